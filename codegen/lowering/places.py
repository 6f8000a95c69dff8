"""Which computed places are known to be in an array, so that nothing need check it where it is written."""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.codegen.c_ast import CExpr, Const, IndexValue, Operate
from lift_egraph.language.nat import Nat

Bounds = tuple[int, int]


def is_within(place: CExpr, size: Nat) -> bool:
    """Whether a place is one of an array of this size, whatever values it is computed from."""
    bounds, least = bounds_of(place), size.range[0]
    return bounds is not None and least is not None and bounds[0] >= 0 and bounds[1] < least


def bounds_of(value: CExpr) -> Bounds | None:
    """The least and the greatest value of a whole number, if they are known."""
    match value:
        case Const(value=int() as known):
            return known, known
        case IndexValue(value=index):
            low, high = index.range
            return None if low is None or high is None else (low, high)
        case Operate(op="add" | "sub" as op, arguments=(a, b)) if (left := bounds_of(a)) and (right := bounds_of(b)):
            return (left[0] + right[0], left[1] + right[1]) if op == "add" else (left[0] - right[1], left[1] - right[0])
        case Operate(op="neg", arguments=(a,)) if known := bounds_of(a):
            return -known[1], -known[0]
        case Operate(op="select", arguments=(condition, inside, outside)):
            left, right = _bounds_where(condition, inside), bounds_of(outside)
            return None if left is None or right is None else (min(left[0], right[0]), max(left[1], right[1]))
    return None


def _bounds_where(condition: CExpr, value: CExpr) -> Bounds | None:
    """The bounds of a value where a condition holds that compares it with constants."""
    if (known := bounds_of(value)) is not None:
        return known
    low: int | None = None
    high: int | None = None
    for part in _conjuncts(condition):
        match part:
            case Operate(op="ge" | "gt" as op, arguments=(a, Const(value=int() as c))) if a == value:
                least = c + (op == "gt")
                low = least if low is None else max(least, low)
            case Operate(op="le" | "lt" as op, arguments=(a, Const(value=int() as c))) if a == value:
                most = c - (op == "lt")
                high = most if high is None else min(most, high)
    return None if low is None or high is None else (low, high)


def _conjuncts(condition: CExpr) -> Iterator[CExpr]:
    if isinstance(condition, Operate) and condition.op == "and":
        for part in condition.arguments:
            yield from _conjuncts(part)
    else:
        yield condition
