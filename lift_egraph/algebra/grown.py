"""How far whole numbers go in as many steps as arrays may have elements, each of which adds a little at the most.

A step gives at most the larger of ``v + a`` and c, with a from 0 on, where it only adds to the variable v, chooses
between such sums, and takes the larger or smaller of them. So k steps from z give at most ``max (z, c) + k a``.
"""

from __future__ import annotations

from math import inf

from lift_egraph.algebra.bounded import Interval, Known, bounds, limits
from lift_egraph.language import ir
from lift_egraph.language.types import I32, Scalar

MOST_BEFORE = limits(I32)[1] - 1  # elements that stand before one of an array
Growth = tuple[int, float]  # what is added at most, and what is given at most otherwise, if anything


def grown_bounds(
    v: ir.Var, result: ir.Expr, first: Interval, known: Known, before: int = MOST_BEFORE
) -> Interval | None:
    """Bounds of an accumulator v that a step makes `result`, where at most so many elements stand before; None if none
    are known.

    Examples
    --------
    >>> from lift_egraph.language.types import BOOL
    >>> v, opens = ir.Var("depth", I32), ir.Var("opens", BOOL)
    >>> step = ir.Call("select", (opens, v + 1, ir.Call("max", (v - 1, ir.Literal(0, I32)))))
    >>> grown_bounds(v, step, (0, 0), {})
    (-2147483646, 2147483646)
    """
    ends, most = list[int](), 0
    for start, sign in ((first[0], -1), (first[1], 1)):
        made = _growth(v, result, sign, known)
        if made is None:
            return None
        step, otherwise = made
        most = max(most, step)
        ends.append(sign * (int(max(sign * start, otherwise)) + step * before))
    assert isinstance(v.type, Scalar)
    low, high = limits(v.type)
    return (ends[0], ends[1]) if low <= ends[0] - most and ends[1] + most <= high else None


def _growth(v: ir.Var, term: ir.Expr, sign: int, known: Known) -> Growth | None:
    """How far a step goes upwards, or downwards if the sign is -1."""

    def end(free: ir.Expr) -> int:
        low, high = bounds(free, known)
        return high if sign > 0 else -low

    if v not in ir.free_variables(term):
        return 0, end(term)
    match term:
        case ir.Var():
            return 0, -inf
        case ir.Call(op="add" | "sub" as op, arguments=(a, b)) if op == "add" or v not in ir.free_variables(b):
            more, other = (b, a) if v in ir.free_variables(a) else (a, b)
            made = _growth(v, other, sign, known)
            if made is None or v in ir.free_variables(more):
                return None
            by = max(end(more if op == "add" else ir.Call("neg", (more,))), 0)
            return made[0] + by, made[1] + by
        case ir.Call(op="max" | "min", arguments=(a, b)) | ir.Call(op="select", arguments=(_, a, b)):
            one, other = (_growth(v, part, sign, known) for part in (a, b))
            return None if one is None or other is None else (max(one[0], other[0]), max(one[1], other[1]))
    return None
