"""Types, sizes and well-formedness of terms.

Source: 000 §2.4.2 (types of the patterns), §4.3.1 (type analysis).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.index_arrays import index_values
from lift_egraph.language.nat import Nat, NatLike, NatVar, divides, nat
from lift_egraph.language.scalar import result_type
from lift_egraph.language.types import (
    I32,
    Array,
    DataType,
    Pair,
    lanes,
    substitute_sizes,
    without_lanes,
)

MOST_INDICES = 1 << 24  # of an index function, up to which all are tried


def type_of(term: ir.Expr) -> DataType:
    """The type of a term (computed once per node).

    Raises
    ------
    TypeProblem, SizeProblem
        Where parts do not fit; the message shows the pattern and the types that met.
    """
    known = term.__dict__.get("_type")
    if known is None:
        known = term.__dict__["_type"] = _TYPING[type(term)](term)
    return known


def pattern_type(pattern: ir.Pattern) -> DataType:
    """The type of the values that a binding pattern takes apart."""
    if isinstance(pattern, ir.Var):
        return pattern.type
    return Pair(pattern_type(pattern.first), pattern_type(pattern.second))


def result_of(function: ir.Function, argument: DataType, where: str) -> DataType:
    """The type of a function applied to an argument of a type; `where` names the pattern for errors."""
    if isinstance(function, ir.Vectorize):
        width, scalar_argument = without_lanes(argument)
        if width != function.width:
            raise TypeProblem(
                f"{where}: vectorize({function.width}) is applied to vectors of {width} lanes, {argument}"
            )
        return lanes(width, result_of(function.function, scalar_argument, where))
    expected = pattern_type(function.pattern)
    if expected != argument:
        raise TypeProblem(f"{where}: the function takes {expected}, but is given {argument}")
    return type_of(function.body)


def domain(function: ir.Function) -> DataType:
    """The type of a function's argument."""
    if isinstance(function, ir.Vectorize):
        return lanes(function.width, pattern_type(function.function.pattern))
    return pattern_type(function.pattern)


def codomain(function: ir.Function) -> DataType:
    """The type of a function's result."""
    return result_of(function, domain(function), "function")


def size_of(array: ir.Expr) -> Nat:
    """The length of an array term."""
    return array_type(array, "a length").size


def inner_size(array: ir.Expr) -> Nat:
    """The length of the arrays in an array of arrays."""
    return _array_of_arrays(array, "a length")[1].size


def array_type(term: ir.Expr, where: str) -> Array:
    """The type of an array term; `where` names the pattern for errors."""
    t = type_of(term)
    if not isinstance(t, Array):
        raise TypeProblem(f"{where} works on an array, got {t}")
    return t


def _array_of_arrays(term: ir.Expr, where: str) -> tuple[Array, Array]:
    outer = array_type(term, where)
    if not isinstance(outer.element, Array):
        raise TypeProblem(f"{where} works on an array of arrays, got {outer}")
    return outer, outer.element


def _call(term: ir.Call) -> DataType:
    return result_type(term.op, tuple(type_of(a) for a in term.arguments))


def _component(term: ir.Component) -> DataType:
    t = type_of(term.pair)
    if not isinstance(t, Pair):
        raise TypeProblem(f"get works on a tuple, got {t}")
    if term.index not in (0, 1):
        raise TypeProblem(f"a pair has the components 0 and 1, not {term.index}")
    return t.second if term.index else t.first


def _map(term: ir.Map | ir.MapLevel) -> DataType:
    where = "map" if isinstance(term, ir.Map) else term.level.name
    t = array_type(term.array, where)
    return Array(t.size, result_of(term.function, t.element, where))


def _reduce(term: ir.Reduce | ir.ReduceSeq) -> DataType:
    where = "reduce" if isinstance(term, ir.Reduce) else "reduceSeq"
    t, start = array_type(term.array, where), type_of(term.initial)
    result = result_of(term.operator, Pair(start, t.element), where)
    if result != start:
        raise TypeProblem(f"{where}: the operator returns {result}, but the accumulator starts as {start}")
    if isinstance(term, ir.Reduce) and start != t.element:
        raise TypeProblem(f"reduce combines elements of one type, got {start} and {t.element}; use reduceSeq")
    return start


def _zip(term: ir.Zip) -> DataType:
    first, second = array_type(term.first, "zip"), array_type(term.second, "zip")
    if first.size != second.size:
        raise SizeProblem(f"zip needs arrays of one length, got {first.size} and {second.size} ({first} and {second})")
    return Array(first.size, Pair(first.element, second.element))


def _split(term: ir.Split) -> DataType:
    t = array_type(term.array, "split")
    _positive(term.chunk, "split: the chunk size")
    if divides(term.chunk, t.size) is False:
        raise SizeProblem(f"split({term.chunk}) does not divide an array of length {t.size}")
    return Array(t.size // term.chunk, Array(term.chunk, t.element))


def _join(term: ir.Join) -> DataType:
    outer, inner = _array_of_arrays(term.array, "join")
    return Array(outer.size * inner.size, inner.element)


def _transpose(term: ir.Transpose) -> DataType:
    outer, inner = _array_of_arrays(term.array, "transpose")
    return Array(inner.size, Array(outer.size, inner.element))


def _gather(term: ir.Gather) -> DataType:
    t = array_type(term.array, "gather")
    function, n = term.indices, t.size.constant
    if n and is_tried(function, t.size):
        low, high = function.body.substitute({function.variable: nat(NatVar("i", 0, n - 1)), "n": nat(n)}).range
        if low is None or high is None or low < 0 or high >= n:
            index_values(function, n, "gather")
    return t


def _scatter(term: ir.Scatter) -> DataType:
    t = array_type(term.array, "scatter")
    function, n = term.indices, t.size.constant
    if n is not None and is_tried(function, t.size):
        targets = index_values(function, n, "scatter")
        if np.bincount(targets, minlength=n).max(initial=1) > 1:
            raise SizeProblem(f"scatter({function.variable} -> {function.body}) is no permutation of {n} elements")
    return t


def is_tried(function: ir.IndexFunction, size: Nat) -> bool:
    """Whether all indices of a function on an array of a length are tried as soon as the term is typed."""
    is_closed = {v.name for v in function.body.variables} <= {function.variable, "n"}
    return is_closed and size.constant is not None and size.constant <= MOST_INDICES


def apply_index(function: ir.IndexFunction, index: NatLike, size: NatLike) -> Any:
    """An index function at an index; ``n`` in it stands for the length of the array.

    Returns an ``int`` for integers, a `Nat` otherwise.
    """
    result = function.body.substitute({function.variable: nat(index), "n": nat(size)})
    return result.constant if isinstance(index, int) and result.constant is not None else result


def _slide(term: ir.Slide) -> DataType:
    t = array_type(term.array, "slide")
    _positive(term.size, "slide: the window size")
    _positive(term.step, "slide: the step")
    spare = t.size - term.size
    if (spare.constant or 0) < 0:
        raise SizeProblem(f"slide: a window of {term.size} does not fit into an array of length {t.size}")
    if divides(term.step, spare) is False:
        raise SizeProblem(f"slide({term.size}, {term.step}) does not tile an array of length {t.size} exactly")
    return Array(spare // term.step + 1, Array(term.size, t.element))


def _pad(term: ir.Pad) -> DataType:
    t = array_type(term.array, "pad")
    kind, value = term.boundary.kind, term.boundary.value
    if kind not in ir.BOUNDARIES:
        raise TypeProblem(f"pad: unknown boundary {kind!r}; known are {', '.join(ir.BOUNDARIES)}")
    if kind == "constant" and (value is None or type_of(value) != t.element):
        raise TypeProblem(f"pad(constant) needs a value of the element type {t.element}")
    least = {"constant": 0, "clamp": 1}  # elements that must be there to pad from
    for side, amount in (("left", term.left), ("right", term.right)):
        if (amount.constant or 0) < 0:
            raise SizeProblem(f"pad: {side} must not be negative, got {amount}")
        needed = least.get(kind, max(1, amount.constant or 0))
        if t.size.constant is not None and t.size.constant < needed:
            raise SizeProblem(f"pad({kind}) by {amount} needs an array of length {needed} or more, got {t.size}")
    return Array(term.left + t.size + term.right, t.element)


def _iterate(term: ir.Iterate) -> DataType:
    t = array_type(term.array, "iterate")
    if term.times < 0:
        raise SizeProblem(f"iterate: the count must not be negative, got {term.times}")
    for _ in range(term.times):
        step = iterate_step(term, t.size)
        result = result_of(step, t, "iterate")
        if not isinstance(result, Array) or result.element != t.element:
            raise TypeProblem(f"iterate: the function must keep the element type, it turns {t} into {result}")
        t = result
    return t


def iterate_step(term: ir.Iterate, size: Nat) -> ir.Lambda:
    """The body of an iterate for a given length of its argument."""
    return substitute_nats(term.function, {term.size: size})


def iterate_steps(term: ir.Iterate) -> Iterator[ir.Lambda]:
    """The body of an iterate at the length of each step's argument."""
    size = size_of(term.array)
    for _ in range(term.times):
        step = iterate_step(term, size)
        yield step
        size = size_of(step.body)


def _at(term: ir.At) -> DataType:
    t = array_type(term.array, "at")
    low, high = (t.size - 1 - term.index).range[0], term.index.range[0]
    if (high is not None and high < 0 and term.index.constant is not None) or (
        low is not None and low < 0 and (t.size - 1 - term.index).constant is not None
    ):
        raise SizeProblem(f"at({term.index}) is outside an array of length {t.size}")
    return t.element


def _generate(term: ir.Generate) -> DataType:
    return Array(term.size, result_of(term.function, I32, "generate"))


def _fill(term: ir.Fill) -> DataType:
    return Array(term.size, type_of(term.value))


def _lookup(term: ir.Lookup) -> DataType:
    indices, t = array_type(term.indices, "lookup"), array_type(term.array, "lookup")
    if indices.element != I32:
        raise TypeProblem(f"lookup: the indices are i32, got {indices.element}")
    return Array(indices.size, t.element)


def _to_memory(term: ir.ToMemory) -> DataType:
    if term.space not in ir.SPACES:
        raise TypeProblem(f"unknown address space {term.space!r}; known are {', '.join(ir.SPACES)}")
    return type_of(term.value)


def _as_vector(term: ir.AsVector) -> DataType:
    t = array_type(term.array, "asVector")
    if divides(term.width, t.size) is False:
        raise SizeProblem(f"asVector({term.width}) does not divide an array of length {t.size}")
    return Array(t.size // term.width, lanes(term.width, t.element))


def _as_scalar(term: ir.AsScalar) -> DataType:
    t = array_type(term.array, "asScalar")
    width, element = without_lanes(t.element)
    return Array(t.size * width, element)


def _positive(size: Nat, what: str) -> None:
    if size.constant is not None and size.constant < 1:
        raise SizeProblem(f"{what} must be at least 1, got {size}")


_TYPING: dict[type, Any] = {
    ir.Var: lambda e: e.type,
    ir.Input: lambda e: e.type,
    ir.Literal: lambda e: e.type,
    ir.Call: _call,
    ir.MakePair: lambda e: Pair(type_of(e.first), type_of(e.second)),
    ir.Component: _component,
    ir.Apply: lambda e: result_of(e.function, type_of(e.argument), "let"),
    ir.Map: _map,
    ir.MapLevel: _map,
    ir.Reduce: _reduce,
    ir.ReduceSeq: _reduce,
    ir.Zip: _zip,
    ir.Split: _split,
    ir.Join: _join,
    ir.Transpose: _transpose,
    ir.Gather: _gather,
    ir.Scatter: _scatter,
    ir.Slide: _slide,
    ir.Pad: _pad,
    ir.Iterate: _iterate,
    ir.At: _at,
    ir.Generate: _generate,
    ir.Fill: _fill,
    ir.Lookup: _lookup,
    ir.ToMemory: _to_memory,
    ir.AsVector: _as_vector,
    ir.AsScalar: _as_scalar,
}


# --- sizes ----------------------------------------------------------------------------------------


def substitute_nats(term: Any, values: dict[str, NatLike]) -> Any:
    """A term with size variables replaced by name, in its nodes and in the types of its binders."""
    if isinstance(term, Nat):
        return term.substitute(values)
    if isinstance(term, ir.IndexFunction):
        inner = {k: v for k, v in values.items() if k not in (term.variable, "n")}
        return ir.IndexFunction(term.variable, term.body.substitute(inner))
    if isinstance(term, ir.Var):
        return ir.Var(term.name, substitute_sizes(term.type, values))
    if isinstance(term, ir.Input):
        return ir.Input(term.name, substitute_sizes(term.type, values))
    if isinstance(term, ir.Literal | ir.Level | ir.Boundary) or not hasattr(term, "__dataclass_fields__"):
        if isinstance(term, tuple):
            return tuple(substitute_nats(x, values) for x in term)
        return term
    if isinstance(term, ir.Iterate):
        values = {k: v for k, v in values.items() if k != term.size}
        inner = substitute_nats(term.function, values)
        return ir.Iterate(term.times, term.size, inner, substitute_nats(term.array, values))
    return type(term)(*(substitute_nats(getattr(term, f), values) for f in term.__dataclass_fields__))


def size_variables(program: ir.Program) -> tuple[str, ...]:
    """The names of the sizes a program is open in, in order of appearance in its inputs."""
    names: list[str] = []

    def visit(t: DataType) -> None:
        if isinstance(t, Array):
            visit(t.element)
            names.extend(sorted(v.name for v in t.size.variables))
        elif isinstance(t, Pair):
            visit(t.first)
            visit(t.second)

    for item in program.inputs:
        visit(item.type)
    return tuple(dict.fromkeys(names))


def specialise(program: ir.Program, sizes: dict[str, int] | None = None, *, keep: Collection[str] = ()) -> ir.Program:
    """The program at concrete sizes: the given ones, else its defaults; those in `keep` stay open.

    Raises
    ------
    SizeProblem
        For an unknown size name, a size below 0, a missing size, or sizes that a pattern cannot divide.
    """
    every = size_variables(program)
    for name in keep:
        if name not in every:
            raise SizeProblem(f"{program.name} has no size {name!r}; it has {', '.join(every) or 'none'}")
    names = tuple(n for n in every if n not in keep)
    defaults = {n: v for n, v in program.sizes if n not in keep}
    chosen = {**defaults, **(sizes or {})}
    for name, value in chosen.items():
        if name not in names:
            raise SizeProblem(f"{program.name} has no size {name!r}; it has {', '.join(names) or 'none'}")
        if value < 0:
            raise SizeProblem(f"the size {name} must be at least 0, got {value}")
        if value >= 1 << 31:
            raise SizeProblem(f"the size {name} = {value} is beyond the 32-bit index range")
    missing = [n for n in names if n not in chosen]
    if missing:
        raise SizeProblem(f"{program.name} needs a value for the size {', '.join(missing)} (--size {missing[0]}=…)")
    values: dict[str, NatLike] = {n: chosen[n] for n in names}
    inputs = tuple(substitute_nats(i, values) for i in program.inputs)
    kept = tuple((n, v) for n, v in program.sizes if n in keep)
    body = substitute_nats(program.body, values)
    special = ir.Program(program.name, inputs, body, (*((n, chosen[n]) for n in names), *kept))
    try:
        check_program(special)
    except (SizeProblem, TypeProblem) as problem:
        shown = ", ".join(f"{n} = {chosen[n]}" for n in names)
        raise type(problem)(f"{program.name} at {shown}: {problem}") from None
    return special


def check_program(program: ir.Program) -> DataType:
    """The type of a program's result, after checking that it is closed and well-typed."""
    loose = ir.free_variables(program.body)
    if loose:
        raise TypeProblem(f"{program.name} uses unbound variables: {', '.join(sorted(v.name for v in loose))}")
    known = set(program.inputs)
    for term in ir.subterms(program.body):
        if isinstance(term, ir.Input) and term not in known:
            raise TypeProblem(f"{program.name} uses the input {term.name}: {term.type}, which it does not declare")
    return type_of(program.body)
