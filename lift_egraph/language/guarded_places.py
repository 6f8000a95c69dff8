"""Elements behind conditions on their places: ``if i > 0 && i <= N then xs[i - 1] else 0.0``.

Where a number stands for such an element, it is one of the padded array, and the conditions that say that the place is
inside go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.computed_places import Affine, Bounds, affine, difference
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import BOOL, I32, Scalar

T = TypeVar("T", bound=ir.Part)
_INVERSE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True)
class Guarded:
    """A value that is taken where all conditions hold, and a number elsewhere."""

    conditions: tuple[ir.Expr, ...]
    value: ir.Expr
    otherwise: ir.Literal


def guarded(term: ir.Part) -> Guarded | None:
    """A choice between a value and a number; None for other terms.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_term
    >>> from lift_egraph.language.types import F32
    >>> found = guarded(parse_term("if i < 1 || i > 9 then 0.0 else x", [ir.Var("i", I32), ir.Input("x", F32)]))
    >>> print([print_term(c) for c in found.conditions], print_term(found.value))
    ['i >= 1', 'i <= 9'] x
    """
    match term:
        case ir.Call(op="select", arguments=(condition, value, ir.Literal() as otherwise)):
            conditions = tuple(_all_of(condition, True))
        case ir.Call(op="select", arguments=(condition, ir.Literal() as otherwise, value)):
            conditions = tuple(_all_of(condition, False))
        case _:
            return None
    inner = guarded(value)
    if inner is not None and inner.otherwise == otherwise:
        return Guarded((*conditions, *inner.conditions), inner.value, otherwise)
    return Guarded(conditions, value, otherwise)


def choices(term: ir.Part) -> Iterator[tuple[tuple[ir.Expr, ...], ir.Expr, ir.Expr]]:
    """Of a choice the conditions that all hold where a value is taken, this one, and the other, for both values."""
    match term:
        case ir.Call(op="select", arguments=(condition, first, second)):
            yield tuple(_all_of(condition, True)), first, second
            yield tuple(_all_of(condition, False)), second, first


def _all_of(condition: ir.Expr, holds: bool) -> Iterator[ir.Expr]:
    """What all holds where a condition does, or where it does not."""
    match condition:
        case ir.Call(op="and" | "or" as op, arguments=parts) if holds == (op == "and"):
            for part in parts:
                yield from _all_of(part, holds)
        case ir.Call(op="not", arguments=(inner,)):
            yield from _all_of(inner, not holds)
        case ir.Call(op=op, arguments=arguments) if not holds and op in _INVERSE and type_of(arguments[0]) == I32:
            yield ir.Call(_INVERSE[op], arguments)
        case _:
            yield condition if holds else ir.Call("not", (condition,))


def with_guards_inside(term: T) -> T:
    """The term with guards on elements in the place of guards on what is computed of one of them, where the number
    elsewhere is zero, and just this zero is computed of a zero.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> text = "program p(xs: [f32]N) = generate(N, fun i => if i > 0 then -2.0 * xs[i - 1] else 0.0)"
    >>> print_term(with_guards_inside(parse_program(text).body))
    'generate(N, fun i => -2.0 * select(i > 0, xs[i - 1], -0.0))'
    """
    term = ir.map_parts(term, with_guards_inside)
    match term:
        case ir.Call(op="select", arguments=(condition, value, ir.Literal(value=0) as zero)):
            made = _inside(value, zero, lambda v, z: ir.Call("select", (condition, v, z)))
        case ir.Call(op="select", arguments=(condition, ir.Literal(value=0) as zero, value)):
            made = _inside(value, zero, lambda v, z: ir.Call("select", (condition, z, v)))
        case _:
            return term
    return term if made is None else made  # pyright: ignore[reportReturnType]


def _inside(
    value: ir.Expr, zero: ir.Literal, choice: Callable[[ir.Expr, ir.Literal], ir.Expr]
) -> ir.Expr | None:
    """What is computed of one element and of numbers, with a choice between that element and a zero."""
    if isinstance(value, ir.At) or guarded(value) is not None:
        return choice(value, zero)
    if not isinstance(value, ir.Call) or OPERATIONS[value.op].kind not in ("arithmetic", "cast"):
        return None
    computed = [part for part in value.arguments if not isinstance(part, ir.Literal)]
    if len(computed) != 1 or not isinstance(t := type_of(computed[0]), Scalar) or t == BOOL:
        return None
    for own in (ir.Literal(0.0, t), ir.Literal(-0.0, t)) if t.is_float else (ir.Literal(0, t),):
        if _number_of(_with_own(value, own), zero.type) == zero:
            inner = _inside(computed[0], own, choice)
            return None if inner is None else _with_own(value, inner)
    return None


def _with_own(call: ir.Call, own: ir.Expr) -> ir.Call:
    """The call with another argument in the place of those that are no numbers."""
    return ir.Call(call.op, tuple(part if isinstance(part, ir.Literal) else own for part in call.arguments))


def _number_of(call: ir.Call, t: Scalar) -> ir.Literal:
    """What is computed of numbers alone."""
    numbers = (NUMPY_TYPES[part.type.name](part.value) for part in call.arguments if isinstance(part, ir.Literal))
    with np.errstate(all="ignore"):
        return ir.Literal(np.asarray(OPERATIONS[call.op].meaning(*numbers)).item(), t)


def not_negative(condition: ir.Expr, bounds: Bounds) -> Affine | None:
    """The place that is at least 0 where a comparison of places holds, and only there.

    Parameters
    ----------
    bounds
        How many places variables count: what is 0 at one end of them alone, and is not to be 0, is beyond that end.
    """
    match condition:
        case ir.Call(op="lt" | "le" | "gt" | "ge" | "ne" as op, arguments=(a, b)) if type_of(a) == I32:
            low, high = (affine(b), affine(a)) if op in ("gt", "ge") else (affine(a), affine(b))
        case _:
            return None
    if low is None or high is None:
        return None
    above, one = difference(high, low), Affine((), nat(1))
    if op in ("le", "ge"):
        return above
    if op in ("lt", "gt"):
        return difference(above, one)
    counted = all(bounds.get(v) is not None for v, _ in above.counts)
    for sum_ in (above, difference(low, high)) if counted else ():
        if sum_.counts and all(times > 0 for _, times in sum_.counts) and sum_.ends(bounds)[0] == nat(0):
            return difference(sum_, one)
        if sum_.counts and all(times > 0 for _, times in sum_.counts) and sum_.ends(bounds)[1] == nat(0):
            return difference(difference(Affine((), nat(0)), sum_), one)
    return None


def is_about_places(condition: ir.Expr) -> bool:
    """Whether a truth value only compares places."""
    match condition:
        case ir.Call(op="and" | "or" | "not", arguments=parts):
            return all(map(is_about_places, parts))
        case ir.Call(op=op, arguments=(a, b)) if op in _INVERSE and type_of(a) == I32:
            return affine(a) is not None and affine(b) is not None
    return False


def without_border(
    conditions: tuple[ir.Expr, ...], place: Affine, length: Nat, inside: tuple[bool, bool], bounds: Bounds
) -> tuple[ir.Expr, ...] | None:
    """The conditions without those that say that a place is inside an array.

    None where none says so, or they say so of one end alone, and it is not known to be `inside` at the other.
    """
    behind = difference(Affine((), length - 1), place)
    ends = [(c, not_negative(c, bounds)) for c in conditions]
    said = [any(end == of for _, end in ends) for of in (place, behind)]
    if not any(said) or not all(s or known for s, known in zip(said, inside, strict=True)):
        return None
    return tuple(c for c, end in ends if end is None or end not in (place, behind))
