"""A slow interpreter on Python lists, written node by node from their definitions, and random small programs.

Arrays are lists, pairs are tuples, vectors are `Lanes`, scalars are NumPy scalars.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lift_egraph.language import ir
from lift_egraph.language.check import apply_index, iterate_step, type_of
from lift_egraph.language.nat import NatVar, nat
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import F32, I32, Array, DataType, Pair, Scalar, Vector


class Lanes(list):
    """The lanes of a vector."""


def to_lists(t: DataType, value: Any) -> Any:
    if isinstance(t, Pair):
        return to_lists(t.first, value[0]), to_lists(t.second, value[1])
    if isinstance(t, Array):
        return [to_lists(t.element, choose(value, i)) for i in range(t.size.constant)]
    return Lanes(value) if isinstance(t, Vector) else value[()]


def choose(value: Any, index: int) -> Any:
    return tuple(choose(v, index) for v in value) if isinstance(value, tuple) else value[index]


def listed(term: Any, inputs: dict, scope: dict) -> Any:
    """The value of a term."""

    def go(t: Any) -> Any:
        return listed(t, inputs, scope)

    def call(function: ir.Function, argument: Any) -> Any:
        if isinstance(function, ir.Vectorize):
            lanes = [call(function.function, lane(argument, k)) for k in range(function.width)]
            return from_lanes(lanes)
        return listed(function.body, inputs, {**scope, **bound(function.pattern, argument)})

    match term:
        case ir.Var():
            return scope[term]
        case ir.Input():
            return inputs[term.name]
        case ir.Literal():
            return NUMPY_TYPES[term.type.name](term.value)
        case ir.Call(op="dot"):
            a, b = map(go, term.arguments)
            return sum(x * y for x, y in zip(a, b, strict=True))
        case ir.Call():
            return lanewise(
                lambda *a: NUMPY_TYPES[scalar_name(term)](OPERATIONS[term.op].meaning(*a)), *map(go, term.arguments)
            )
        case ir.MakePair():
            return go(term.first), go(term.second)
        case ir.Component():
            return go(term.pair)[term.index]
        case ir.Apply():
            return call(term.function, go(term.argument))
        case ir.Map() | ir.MapLevel():
            return [call(term.function, x) for x in go(term.array)]
        case ir.Reduce() | ir.ReduceSeq():
            result = go(term.initial)
            for x in go(term.array):
                result = call(term.operator, (result, x))
            return result
        case ir.Scan() | ir.ScanSeq():
            start, operator = go(term.initial), term.operator
            return list(accumulate(go(term.array), lambda a, x: call(operator, (a, x)), initial=start))[1:]
        case ir.Zip():
            return list(zip(go(term.first), go(term.second), strict=True))
        case ir.Split():
            xs, n = go(term.array), term.chunk.constant
            return [xs[i : i + n] for i in range(0, len(xs), n)]
        case ir.Join():
            return [x for xs in go(term.array) for x in xs]
        case ir.Transpose():
            rows, outer = go(term.array), type_of(term)
            return [[row[j] for row in rows] for j in range(outer.size.constant)]
        case ir.Gather():
            xs = go(term.array)
            return [xs[apply_index(term.indices, i, len(xs))] for i in range(len(xs))]
        case ir.Scatter():
            xs = go(term.array)
            out = list(xs)
            for i, x in enumerate(xs):
                out[apply_index(term.indices, i, len(xs))] = x
            return out
        case ir.Slide():
            xs, size, step = go(term.array), term.size.constant, term.step.constant
            return [xs[i : i + size] for i in range(0, len(xs) - size + 1, step)]
        case ir.Pad():
            xs = go(term.array)
            return [outside(term.boundary, xs, i) for i in range(-term.left.constant, len(xs) + term.right.constant)]
        case ir.Iterate():
            xs = go(term.array)
            for _ in range(term.times):
                xs = call(iterate_step(term, nat(len(xs))), xs)
            return xs
        case ir.At():
            return go(term.array)[term.index.constant]
        case ir.Generate():
            return [call(term.function, np.int32(i)) for i in range(term.size.constant)]
        case ir.Fill():
            return [go(term.value)] * term.size.constant
        case ir.Lookup():
            xs = go(term.array)
            return [xs[min(max(i, 0), len(xs) - 1)] for i in go(term.indices)]
        case ir.ToMemory():
            return go(term.value)
        case ir.AsVector():
            xs, w = go(term.array), term.width
            return [from_lanes(xs[i : i + w]) for i in range(0, len(xs), w)]
        case ir.AsScalar():
            width = type_of(term).size.constant // max(type_of(term.array).size.constant, 1)
            return [lane(x, k) for x in go(term.array) for k in range(width)]
    raise AssertionError(term)


def scalar_name(term: ir.Call) -> str:
    t = type_of(term)
    return t.scalar.name if isinstance(t, Vector) else t.name


def bound(pattern: ir.Pattern, value: Any) -> dict:
    if isinstance(pattern, ir.Var):
        return {pattern: value}
    return {**bound(pattern.first, value[0]), **bound(pattern.second, value[1])}


def lanewise(function: Any, *arguments: Any) -> Any:
    widths = [len(a) for a in arguments if isinstance(a, Lanes)]
    if not widths:
        return function(*arguments)
    return Lanes(function(*(a[k] if isinstance(a, Lanes) else a for a in arguments)) for k in range(widths[0]))


def lane(value: Any, k: int) -> Any:
    if isinstance(value, Lanes):
        return value[k]
    return type(value)(lane(v, k) for v in value)


def from_lanes(values: list) -> Any:
    if isinstance(values[0], tuple | list):
        return type(values[0])(from_lanes(list(parts)) for parts in zip(*values, strict=True))
    return Lanes(values)


def outside(boundary: ir.Boundary, xs: list, i: int) -> Any:
    n = len(xs)
    if 0 <= i < n:
        return xs[i]
    if boundary.kind == "constant":
        return np.float32(boundary.value.value)
    if boundary.kind == "clamp":
        return xs[0] if i < 0 else xs[-1]
    if boundary.kind == "wrap":
        return xs[i % n]
    return xs[-1 - i] if i < 0 else xs[2 * n - 1 - i]


# --- random programs --------------------------------------------------------------------------------


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def size_of(t: DataType) -> int:
    return t.size.constant if isinstance(t, Array) else 0


def total(t: DataType) -> int:
    if isinstance(t, Array):
        return size_of(t) * total(t.element)
    return total(t.first) + total(t.second) if isinstance(t, Pair) else 1


def binary(op: str, t: Scalar) -> ir.Lambda:
    a, b = ir.Var("a", t), ir.Var("b", t)
    return ir.Lambda(ir.PairPattern(a, b), ir.Call(op, (a, b)))


REVERSE = ir.IndexFunction("i", nat("n") - 1 - nat("i"))
ROTATE = ir.IndexFunction("i", (nat("i") + 1) % nat("n"))
HALVE = ir.IndexFunction("i", nat("i") // 2)


@st.composite
def programs(draw: st.DrawFn) -> ir.Expr:
    """A random term over the inputs xs: [[f32]3]4, ys: [f32]4 and s: f32."""
    inputs = [ir.Input("xs", _array(4, 3)), ir.Input("ys", _array(4)), ir.Input("s", F32)]
    return grow(draw, draw(st.sampled_from(inputs)), list(inputs), draw(st.integers(1, 7)))


def _array(*sizes: int) -> DataType:
    t: DataType = F32
    for n in reversed(sizes):
        t = Array(nat(n), t)
    return t


def grow(draw: st.DrawFn, term: ir.Expr, scope: list[ir.Expr], steps: int) -> ir.Expr:
    """A term with some more patterns around it, over variables in scope."""
    for _ in range(steps):
        choices = applicable(term, scope)
        term = choices[draw(st.sampled_from(sorted(choices)))](draw)
    return term


def applicable(term: ir.Expr, scope: list[ir.Expr]) -> dict[str, Any]:
    t = type_of(term)
    if isinstance(t, Pair):
        return {
            "first": lambda draw: ir.Component(0, term),
            "second": lambda draw: ir.Component(1, term),
            "swap": lambda draw: ir.MakePair(ir.Component(1, term), ir.Component(0, term)),
        }
    if isinstance(t, Scalar):
        others = [v for v in scope if type_of(v) == t] + [ir.Literal(2 if t == I32 else 2.0, t)]

        def let(draw: st.DrawFn) -> ir.Expr:
            v = ir.Var(f"v{len(scope)}", t)
            return ir.Apply(ir.Lambda(v, grow(draw, v, [*scope, v], 2)), term)

        return {
            "op": lambda draw: ir.Call(
                draw(st.sampled_from(("add", "sub", "min", "max"))), (term, draw(st.sampled_from(others)))
            ),
            "select": lambda draw: ir.Call("select", (ir.Call("lt", (term, others[0])), others[-1], term)),
            "neg": lambda draw: ir.Call("neg", (term,)),
            "cast": lambda draw: ir.Call("to_i32" if t == F32 else "to_f32", (term,)),
            "pair": lambda draw: ir.MakePair(draw(st.sampled_from(scope)), term),
            "fill": lambda draw: ir.Fill(nat(2), term),
            "let": let,
        }
    return array_steps(term, t, scope)


def array_steps(term: ir.Expr, t: Array, scope: list[ir.Expr]) -> dict[str, Any]:
    n = size_of(t)
    x = ir.Var(f"x{len(scope)}", t.element)

    def mapped(draw: st.DrawFn) -> ir.Expr:
        body = ir.Lambda(x, grow(draw, x, [*scope, x], draw(st.integers(1, 3))))
        level = draw(st.sampled_from((None, ir.SEQ)))
        return ir.MapLevel(level, body, term) if level else ir.Map(body, term)

    partners = [v for v in scope if size_of(type_of(v)) == n]
    steps: dict[str, Any] = {
        "map": mapped,
        "map again": mapped,
        "zip": lambda draw: ir.Zip(term, draw(st.sampled_from([*partners, ir.Gather(REVERSE, term)]))),
        "scatter": lambda draw: ir.Scatter(draw(st.sampled_from((REVERSE, ROTATE))), term),
        "gather": lambda draw: ir.Gather(draw(st.sampled_from((REVERSE, HALVE))), term),
        "memory": lambda draw: ir.ToMemory("local", term),
        "fold pairs": lambda draw: pair_fold(term, t, x),
    }
    if n:
        steps["split"] = lambda draw: ir.Split(nat(draw(st.sampled_from(divisors(n)))), term)
        steps["at"] = lambda draw: ir.At(nat(draw(st.integers(0, n - 1))), term)
        steps["lookup"] = lambda draw: lookup(draw, term)
        if n >= 2:
            steps["slide"] = lambda draw: ir.Slide(nat(2), nat(1), term)
        if n % 2 == 0 and not has_vectors(t) and isinstance(t.element, Scalar | Array):
            steps["vector"] = lambda draw: through_vectors(draw, term, t, scope)
        if total(t) < 100:
            kind = st.sampled_from(("clamp", "mirror", "wrap"))
            steps["pad"] = lambda draw: ir.Pad(nat(1), nat(min(n, 2)), ir.Boundary(draw(kind)), term)
    if isinstance(t.element, Array):
        steps["join"] = lambda draw: ir.Join(term)
        steps["transpose"] = lambda draw: ir.Transpose(term)
    if isinstance(t.element, Scalar):
        steps["reduce"] = lambda draw: reduced(draw, term, t.element, scope)
        if t.element == F32:
            constant = ir.Boundary("constant", ir.Literal(1.0, F32))
            steps["pad constant"] = lambda draw: ir.Pad(nat(1), nat(0), constant, term)
            steps["iterate"] = lambda draw: ir.Iterate(2, "k", dropping(), ir.Pad(nat(2), nat(2), constant, term))
    if isinstance(t.element, Array) and t.element.element == F32:
        add_arrays = elementwise("add", t.element)
        zeros = ir.Fill(t.element.size, ir.Literal(0.0, F32))
        steps["reduce arrays"] = lambda draw: draw(st.sampled_from(ir.FOLDS))(add_arrays, zeros, term)
    return steps


def has_vectors(t: DataType) -> bool:
    return isinstance(t, Vector) or (isinstance(t, Array) and has_vectors(t.element))


def reduced(draw: st.DrawFn, term: ir.Expr, t: Scalar, scope: list[ir.Expr]) -> ir.Expr:
    zero = ir.Literal(0 if t == I32 else 0.0, t)
    a, b = ir.Var("acc", t), ir.Var("elem", t)
    body = grow(draw, b, [*scope, b], 1)
    if type_of(body) == t and draw(st.booleans()):
        operator = ir.Lambda(ir.PairPattern(a, b), ir.Call("add", (body, a)))
        return ir.ReduceSeq(operator, zero, term)
    operator = binary(draw(st.sampled_from(("add", "min", "max"))), t)
    return draw(st.sampled_from(ir.FOLDS))(operator, zero, term)


def pair_fold(term: ir.Expr, t: Array, x: ir.Var) -> ir.Expr:
    """Number of elements and last element: no built-in operation."""
    acc = ir.Var("acc", Pair(I32, I32))
    count = ir.Call("add", (ir.Component(0, acc), ir.Literal(1, I32)))
    body = ir.MakePair(count, ir.Call("sub", (count, ir.Component(1, acc))))
    return ir.ReduceSeq(ir.Lambda(ir.PairPattern(acc, x), body), ir.MakePair(*(ir.Literal(0, I32),) * 2), term)


def elementwise(op: str, t: Array) -> ir.Lambda:
    a, b = ir.Var("as", t), ir.Var("bs", t)
    return ir.Lambda(ir.PairPattern(a, b), ir.Map(binary(op, t.element), ir.Zip(a, b)))


def dropping() -> ir.Lambda:
    """[f32]k -> [f32](k - 1): sums of neighbours."""
    xs, w = ir.Var("ks", Array(nat(NatVar("k")), F32)), ir.Var("w", _array(2))
    neighbours = ir.Reduce(binary("add", F32), ir.Literal(0.0, F32), w)
    return ir.Lambda(xs, ir.Map(ir.Lambda(w, neighbours), ir.Slide(nat(2), nat(1), xs)))


def lookup(draw: st.DrawFn, term: ir.Expr) -> ir.Expr:
    i = ir.Var("i", I32)
    step = ir.Literal(draw(st.integers(-2, 3)), I32)
    return ir.Lookup(ir.Generate(nat(3), ir.Lambda(i, ir.Call("mul", (i, step)))), term)


def through_vectors(draw: st.DrawFn, term: ir.Expr, t: Array, scope: list[ir.Expr]) -> ir.Expr:
    lane_value = ir.Var(f"l{len(scope)}", t.element)
    body = grow(draw, lane_value, [ir.Literal(3.0, F32), *scope, lane_value], 1)
    vectors = ir.AsVector(2, term)
    if has_vectors(type_of(body)) or not only_floats(type_of(body)):
        return ir.AsScalar(vectors)
    return ir.AsScalar(ir.Map(ir.Vectorize(2, ir.Lambda(lane_value, body)), vectors))


def only_floats(t: DataType) -> bool:
    return isinstance(t, Scalar) or (isinstance(t, Array) and only_floats(t.element))
