"""Between which numbers an expression lies, whatever its variables are: that sums and products of whole numbers in it
do not wrap around, or that factors are not above 1.

Floats lie between them unless a NaN comes up on the way, for which `min` and `max` give one thing or another
(`lift_egraph.algebra.floats`).

Source: Moore, "Interval Analysis", 1966.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lift_egraph.algebra.floats import EVERYTHING, number, of_cast, of_floats, of_square
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import BOOL, Scalar

Interval = tuple[Any, Any]  # both ends are in it: whole numbers, or floats
Known = Mapping[Any, Interval]  # of variables and of other parts
FLIPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def limits(t: Scalar) -> Interval:
    """The least and the largest number of a type."""
    if t.is_float:
        return EVERYTHING
    found = np.iinfo(NUMPY_TYPES[t.name])
    return int(found.min), int(found.max)


def within(inner: Interval, outer: Interval) -> bool:
    """Whether all numbers of an interval are in another one."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def hull(a: Interval, b: Interval) -> Interval:
    """The least interval that has both."""
    return min(a[0], b[0]), max(a[1], b[1])


def bounds(term: ir.Expr, known: Known | None = None) -> Interval:
    """The interval of what an expression of numbers gives; that of its type, where it may wrap around.

    Parameters
    ----------
    known
        Those of some variables, or of other parts.

    Examples
    --------
    >>> from lift_egraph.language.types import I32, U8
    >>> s, c = ir.Var("s", I32), ir.Var("c", U8)
    >>> bounds((s * 31 + ir.Call("to_i32", (c,))) % 65521, {s: (0, 65520)})
    (0, 65520)
    >>> bounds((s * 31 + ir.Call("to_i32", (c,))) % 65521)
    (-65520, 65520)

    What is chosen is known to fulfil its condition:

    >>> bounds(ir.Call("select", (s > 4, s - 5, s)), {s: (0, 9)})
    (0, 4)

    What is never chosen does not count:

    >>> bounds(ir.Call("select", (s > 4, s - 9, s)), {s: (0, 4)})
    (0, 4)

    Of floats it is where rounding does not lead out of it either:

    >>> from lift_egraph.language.types import F32
    >>> k, x = ir.Var("k", F32), ir.Var("x", F32)
    >>> bounds((1.0 - k) * k, {k: (0.0, 1.0)}), bounds(x * x)
    ((0.0, 1.0), (0.0, inf))
    """
    exact = exact_bounds(term, known or {})
    t = type_of(term)
    assert isinstance(t, Scalar)
    return exact if exact is not None and within(exact, limits(t)) else limits(t)


def exact_bounds(term: ir.Expr, known: Known) -> Interval | None:
    """The interval of what the last operation of an expression gives before it wraps around, if that is known."""
    if known and isinstance(term, ir.Var | ir.Input | ir.Call) and term in known:
        return known[term]
    match term:
        case ir.Literal(value=value, type=t) if t.is_float:
            return EVERYTHING if value != value else (number(term), number(term))
        case ir.Literal(value=value):
            return int(value), int(value)
        case ir.Var(type=Scalar() as t):
            return limits(t)
        case ir.Call(op="select", arguments=(condition, a, b)):
            ways = (a, where_it_holds(condition, True, known)), (b, where_it_holds(condition, False, known))
            ends = [bounds(e, there) for e, there in ways if there is not None]
            return hull(ends[0], ends[-1]) if ends else hull(bounds(a, known), bounds(b, known))
        case ir.Call(op=op, arguments=(a,)) if op.startswith("to_") and type_of(a) == BOOL:
            return 0, 1
        case ir.Call(op="mul", arguments=(a, b)) if a == b and is_float(term):
            return of_square(_scalar(term), bounds(a, known))
        case ir.Call(op=op, arguments=(a,)) if op.startswith("to_") and is_float(term):
            return of_cast(_scalar(term), bounds(a, known))
        case ir.Call(op=op, arguments=arguments) if all(map(is_float, (term, *arguments))):
            return of_floats(op, _scalar(term), [bounds(a, known) for a in arguments])
        case ir.Call(op=op, arguments=arguments) if all(is_whole(a) for a in arguments):
            return _of_operation(op, [bounds(a, known) for a in arguments])
    return None


def where_it_holds(condition: ir.Expr, holds: bool, known: Known) -> Known | None:
    """What is known where a condition holds, or does not: of a comparison with a number, and of several of these. None
    if that is never so.
    """
    match condition:
        case ir.Call(op="not", arguments=(a,)):
            return where_it_holds(a, not holds, known)
        case ir.Call(op="and" | "or" as op, arguments=(a, b)) if holds == (op == "and"):
            first = where_it_holds(a, holds, known)
            return None if first is None else where_it_holds(b, holds, first)
        case ir.Call(op=op, arguments=(a, ir.Literal(value=value))) if op in FLIPPED and is_whole(a):
            low, high = bounds(a, known)
            least, most = _fulfilling(op if holds else OPPOSITE[op], int(value), (low, high))
            return None if least > most else {**known, a: (least, most)}
        case ir.Call(op=op, arguments=(a, ir.Literal() as value)) if op in FLIPPED and is_float(a):
            low, high = bounds(a, known)
            least, most = _between(op if holds else OPPOSITE[op], number(value), (low, high))
            if least <= most:
                return {**known, a: (least, most)}
            return None if holds else known  # no comparison holds of a NaN
        case ir.Call(op=op, arguments=(ir.Literal() as a, b)) if op in FLIPPED and not isinstance(b, ir.Literal):
            return where_it_holds(ir.Call(FLIPPED[op], (b, a)), holds, known)
    return known


def _fulfilling(op: str, value: int, interval: Interval) -> Interval:
    """The least interval of those numbers in another one that compare so with a value."""
    low, high = interval
    match op:
        case "lt" | "le":
            return low, min(high, value - (op == "lt"))
        case "gt" | "ge":
            return max(low, value + (op == "gt")), high
        case "eq":
            return max(low, value), min(high, value)
    return low + (low == value), high - (high == value)


def _between(op: str, value: float, interval: Interval) -> Interval:
    """The same of floats, `value` among them."""
    low, high = interval
    if op in ("lt", "le", "eq"):
        high = min(high, value)
    return max(low, value) if op in ("gt", "ge", "eq") else low, high


def is_exact(term: ir.Expr) -> bool:
    """Whether the last operation of an expression of whole numbers never wraps around."""
    t, exact = type_of(term), exact_bounds(term, {})
    return isinstance(t, Scalar) and exact is not None and within(exact, limits(t))


def settled(term: ir.Expr) -> ir.Expr:
    """A choice between whole numbers with what its condition leaves no choice for as numbers; others as they are.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.types import I32
    >>> s = ir.Call("max", (ir.Var("s", I32), ir.Literal(0, I32)))
    >>> print_term(settled(ir.Call("select", (s > 0, s - 1, s))))
    'select(max(s, 0) > 0, max(s, 0) - 1, 0)'
    """
    match term:
        case ir.Call(op="select", arguments=(condition, *ways)) if is_whole(term):
            ends = [
                None if (there := where_it_holds(condition, holds, {})) is None else bounds(e, there)
                for e, holds in zip(ways, (True, False), strict=True)
            ]
            t = type_of(term)
            assert isinstance(t, Scalar)
            made = (
                ir.Literal(end[0], t) if end and end[0] == end[1] else e for e, end in zip(ways, ends, strict=True)
            )  # fmt: skip
            return ir.Call("select", (condition, *made))
    return term


def is_exact_throughout(term: ir.Expr) -> bool:
    """Whether no sum or product of whole numbers in an expression ever wraps around."""
    return all(is_exact(p) for p in ir.subterms(term) if isinstance(p, ir.Call) and is_whole(p))


def holds_all(cast: ir.Expr, given: ir.Expr) -> bool:
    """Whether a cast leaves all whole numbers that an expression may give as they are."""
    t = type_of(cast)
    return is_whole(given) and isinstance(t, Scalar) and t.is_integer and within(bounds(given), limits(t))


def _of_operation(op: str, given: list[Interval]) -> Interval | None:
    (low, high), *others = given
    if op.startswith("to_") or not others:
        return {"neg": (-high, -low), "abs": (max(low, -high, 0), max(-low, high))}.get(
            op, (low, high) if op.startswith("to_") else None
        )
    ((least, most),) = others
    match op:
        case "add":
            return low + least, high + most
        case "sub":
            return low - most, high - least
        case "mul":
            products = [a * b for a in (low, high) for b in (least, most)]
            return min(products), max(products)
        case "min":
            return min(low, least), min(high, most)
        case "max":
            return max(low, least), max(high, most)
        case "mod" if least > 0:
            return max(low, 1 - most) if low < 0 else 0, min(high, most - 1) if high > 0 else 0
        case "div" if least > 0:
            ends = [abs(a) // b * (1 if a >= 0 else -1) for a in (low, high) for b in (least, most)]
            return min(ends), max(ends)
        case "shift_left" if least == most and 0 <= least < 31:
            return low << least, high << least
        case "bit_and" if max(low, least) >= 0:  # one of them has no sign
            return 0, min(m for n, m in given if n >= 0)
        case "shift_right" if low >= 0 and least >= 0 and most < 31:
            return low >> most, high >> least
    return None


def is_float(term: ir.Expr) -> bool:
    """Whether an expression gives a float."""
    t = type_of(term)
    return isinstance(t, Scalar) and t.is_float


def _scalar(term: ir.Expr) -> Scalar:
    t = type_of(term)
    assert isinstance(t, Scalar)
    return t


def is_whole(term: ir.Expr) -> bool:
    """Whether an expression gives whole numbers."""
    t = type_of(term)
    return isinstance(t, Scalar) and t.is_integer
