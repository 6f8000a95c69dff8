"""A slow interpreter on Python lists, written node by node from their definitions.

Arrays are lists, pairs are tuples, vectors are `Lanes`, scalars are NumPy scalars.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import apply_index, iterate_step, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import Array, DataType, Pair, Vector


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
        return listed(function.body, inputs, {**scope, **bound(function.binder, argument)})

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
        case ir.Scan() | ir.ScanSeq() | ir.ScanExclusive() | ir.ScanExclusiveSeq():
            start, operator = go(term.initial), term.operator
            states = list(accumulate(go(term.array), lambda a, x: call(operator, (a, x)), initial=start))
            return states[:-1] if isinstance(term, ir.ScanExclusive | ir.ScanExclusiveSeq) else states[1:]
        case ir.ReduceRange() | ir.ReduceRangeSeq():
            result, xs = go(term.initial), go(term.array)
            for x in xs[min(max(go(term.low), 0), len(xs)) : max(go(term.high), 0)]:
                result = call(term.operator, (result, x))
            return result
        case ir.ReduceByIndex() | ir.ReduceByIndexSeq() | ir.ReduceByIndexGlb() | ir.ReduceByIndexAtomic():
            result, xs = list(go(term.initial)), go(term.array)
            places = [call(term.place, x) for x in xs] if isinstance(term, ir.INDEX_LOOPS) else go(term.indices)
            met: set[int] = set()
            met_with = list(zip(places, xs, strict=True))
            for place, x in met_with[::-1] if isinstance(term, ir.ReduceByIndexAtomic) else met_with:
                is_first = place not in met or not isinstance(term, ir.ReduceByIndexGlb)
                met.add(place)
                if 0 <= place < len(result) and is_first:
                    result[place] = call(term.operator, (result[place], x))
            return result
        case ir.Zip():
            return list(zip(go(term.first), go(term.second), strict=True))
        case ir.Split():
            xs, n = go(term.array), term.chunk.constant
            return [xs[i : i + n] for i in range(0, len(xs), n)]
        case ir.Join():
            return [x for xs in go(term.array) for x in xs]
        case ir.Slice():
            return go(term.array)[term.start.constant :][: term.length.constant]
        case ir.Concat():
            return go(term.first) + go(term.second)
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


def bound(pattern: ir.Binder, value: Any) -> dict:
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
        return NUMPY_TYPES[boundary.value.type.name](boundary.value.value)
    if boundary.kind == "clamp":
        return xs[0] if i < 0 else xs[-1]
    if boundary.kind == "wrap":
        return xs[i % n]
    return xs[-1 - i] if i < 0 else xs[2 * n - 1 - i]
