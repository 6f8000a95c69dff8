"""Accumulators that are shifted and clamped: ``min (max (s + a, b), c)``, where the elements give a, b and c; or
multiplied before.

Such functions are closed under composition, and are linear over no semiring: ``min``, ``max`` and ``+`` are three
operations. A queue that is never longer than it may be, or an account that is never overdrawn, is of this kind. Whole
numbers of `i32` are so as the `f64` that they are, where nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, log

import numpy as np

from lift_egraph.algebra.bounded import bounds, holds_all, is_exact, is_whole, within
from lift_egraph.algebra.linear import NeedsRange, NotLinear, as_extreme, by_one_condition, linear_form
from lift_egraph.algebra.semirings import SEMIRINGS
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import F64, I32, Scalar

Scaled = tuple[ir.Expr, ir.Expr, ir.Expr, ir.Expr]  # a factor before these
Form = tuple[ir.Expr, ir.Expr, ir.Expr]  # what is added, the least, and the greatest value
RING = next(s for s in SEMIRINGS if s.is_ring)
EXACT = (-(1 << 53), 1 << 53)  # whole numbers that f64 has, and all between
LARGER, SMALLER = (next(s for s in SEMIRINGS if (s.plus, s.times) == (op, "add")) for op in ("max", "min"))


@dataclass(frozen=True)
class Clamp:
    """One component of an accumulator that is shifted and clamped.

    It has what `lift_egraph.algebra.matrices.Block` has.
    """

    type: Scalar
    group: tuple[int, ...]
    entries: Form
    whole: Scalar | None = None  # the type of the component, where that is another
    why: str = "shifted and clamped"

    @property
    def types(self) -> tuple[Scalar, ...]:
        """Of the entries."""
        return (self.type,) * len(self.entries)

    @property
    def ones(self) -> Form:
        """What changes nothing."""
        return _nothing(self.type)

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What acts like `first` and then `second`."""
        shift, least, greatest = second
        one, two, three = first
        shifted = _shifted((one, two, three), shift, self.type)
        return [*_at_most(_at_least(shifted, least, self.type), greatest, self.type)]

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """A value, shifted and clamped."""
        shift, least, greatest = data
        value = ir.Call(f"to_{self.type.name}", (values[0],)) if self.whole else values[0]
        raised = LARGER.sum(LARGER.product(value, shift, self.type), least, self.type)
        made = SMALLER.sum(raised, greatest, self.type)
        return [ir.Call(f"to_{self.whole.name}", (made,)) if self.whole else made]


def clamp(t: Scalar, component: int, term: ir.Expr, variable: ir.Var) -> Clamp:
    """An expression as a clamp of a variable.

    Raises
    ------
    NotLinear
        If it is none.
    """
    if t == I32:  # negative numbers of f64 are none of a type without a sign
        return Clamp(F64, (component,), _form(F64, term, variable), t)
    if not t.is_float:
        raise NotLinear(f"numbers of {t} are no numbers of {F64}")
    return Clamp(t, (component,), _form(t, term, variable))


def _form(t: Scalar, term: ir.Expr, variable: ir.Var) -> Form:
    def is_free(part: ir.Expr) -> bool:
        return variable not in ir.free_variables(part)

    def number(part: ir.Expr) -> ir.Expr:
        if not _is_in_doubles(part):
            raise NotLinear(f"it has numbers that {t} has not")
        if isinstance(part, ir.Literal):
            return ir.Literal(float(part.value), t)
        return part if type_of(part) == t else ir.Call(f"to_{t.name}", (part,))

    if is_free(term):
        return LARGER.one(t), number(term), number(term)
    if is_whole(term) and not (is_exact(term) and _is_in_doubles(term)):
        raise NotLinear("it may wrap around")
    match as_extreme(by_one_condition(term, is_free)):
        case ir.Var():
            return _nothing(t)
        case ir.Call(op="add" | "max" | "min" as op, arguments=(a, b)) if is_free(a) or is_free(b):
            known, other = (a, b) if is_free(a) else (b, a)
            change = {"add": _shifted, "max": _at_least, "min": _at_most}[op]
            return change(_form(t, other, variable), number(known), t)
        case ir.Call(op="sub", arguments=(a, b)) if is_free(b):
            return _shifted(_form(t, a, variable), ir.Call("neg", (number(b),)), t)
        case ir.Call(op=op, arguments=(a,)) if op.startswith("to_") and holds_all(term, a):
            return _form(t, a, variable)
        case ir.Call(op="select", arguments=(condition, a, b)) if is_free(condition):
            both = zip(_form(t, a, variable), _form(t, b, variable), strict=True)
            one, two, three = (x if x == y else ir.Call("select", (condition, x, y)) for x, y in both)
            return one, two, three
    raise NotLinear("it is not shifted and clamped alone")


def _is_in_doubles(term: ir.Expr) -> bool:
    """Whether `f64` has all numbers that an expression may give, if they are whole."""
    return not is_whole(term) or within(bounds(term), EXACT)


def _nothing(t: Scalar) -> Form:
    return LARGER.one(t), LARGER.zero(t), SMALLER.zero(t)


def _shifted(form: Form, by: ir.Expr, t: Scalar) -> Form:
    shift, least, greatest = form
    return LARGER.product(shift, by, t), LARGER.product(least, by, t), SMALLER.product(greatest, by, t)


def _at_least(form: Form, value: ir.Expr, t: Scalar) -> Form:
    shift, least, greatest = form
    return shift, LARGER.sum(least, value, t), _larger(greatest, value, t)


def _at_most(form: Form, value: ir.Expr, t: Scalar) -> Form:
    shift, least, greatest = form
    return shift, least, SMALLER.sum(greatest, value, t)


def _larger(greatest: ir.Expr, value: ir.Expr, t: Scalar) -> ir.Expr:
    """The larger of the two, where nothing is larger than infinity."""
    return greatest if greatest == SMALLER.zero(t) else LARGER.sum(greatest, value, t)


@dataclass(frozen=True)
class ScaledClamp:
    """One component of an accumulator that is multiplied, shifted and clamped: ``min (max (a · s + b, c), d)``.

    Such functions are closed under composition, whatever the sign of a: the bounds are what the interval between them
    becomes. The level of a peak meter, which falls by a factor, is of this kind.
    """

    type: Scalar
    group: tuple[int, ...]
    entries: Scaled
    why: str = "multiplied, shifted and clamped"

    @property
    def types(self) -> tuple[Scalar, ...]:
        """Of the entries."""
        return (self.type,) * len(self.entries)

    @property
    def ones(self) -> Scaled:
        """What changes nothing."""
        return _as_it_is(self.type)

    @property
    def longest(self) -> int | None:
        """Of how many elements the product of factors is below the root of the largest float, so that what is added
        may be multiplied by it: the accumulator is clamped, but that is not. Where it is known what is added, of how
        many the sum of that is a float. None if no factor is above 1; none of data is known to be so few, unless
        nothing is added.
        """
        largest, added = (max(map(abs, bounds(e))) for e in self.entries[:2])
        if largest <= 1 or (largest == inf and self.entries[1] == RING.zero(self.type)):
            return None
        most = log(np.finfo(NUMPY_TYPES[self.type.name]).max) - log(2)
        if added == inf:
            return int(most / (2 * log(largest)))
        of_sum = log(max(1.0, added / (largest - 1)))  # a sum of n products is below this times the nth power
        return int(max(0.0, most - of_sum) / log(largest))

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What acts like `first` and then `second`."""
        scale, shift, least, greatest = first
        by, to, low, high = second
        lowest = ir.Call("min", (least, greatest))  # the greatest value counts where it is the smaller of the two
        ends = [ir.Call("add", (_finite_product(by, end, self.type), to)) for end in (lowest, greatest)]
        bounds = (ir.Call(op, (ends[0], ends[1])) for op in ("min", "max"))
        moved = ir.Call("add", (ir.Call("mul", (by, shift)), to))
        return [ir.Call("mul", (by, scale)), moved, *(_clamped(bound, low, high) for bound in bounds)]

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """A value, multiplied, shifted and clamped."""
        scale, shift, least, greatest = data
        return [_clamped(ir.Call("add", (ir.Call("mul", (scale, values[0])), shift)), least, greatest)]


def scaled_clamp(t: Scalar, component: int, term: ir.Expr, variable: ir.Var) -> ScaledClamp:
    """An expression as a scaled clamp of a variable.

    Raises
    ------
    NotLinear
        If it is none, or the bounds inside of a product are; a `NeedsRange` where it is not known to be one.
    """
    return ScaledClamp(t, (component,), _scaled(t, term, variable))


def _scaled(t: Scalar, term: ir.Expr, variable: ir.Var) -> Scaled:
    def is_free(part: ir.Expr) -> bool:
        return variable not in ir.free_variables(part)

    one, zero, least, greatest = _as_it_is(t)
    if is_free(term):
        return one, zero, term, term
    with suppress(NotLinear):  # also where it occurs several times, as in s + 0.1 * (x - s)
        form = linear_form(RING, t, term, [variable])
        if not any(_may_divide_by_zero(part) for part in ir.subterms(term)):
            return form[variable], form[None], least, greatest
    match as_extreme(by_one_condition(term, is_free)):
        case ir.Call(op="add" | "mul" | "max" | "min" as op, arguments=(a, b)) if is_free(a) or is_free(b):
            known, other = (a, b) if is_free(a) else (b, a)
            scale, shift, low, high = _scaled(t, other, variable)
            if op == "mul":
                return RING.product(scale, known, t), RING.product(shift, known, t), *_multiplied(low, high, known, t)
            if op == "add":
                return scale, RING.sum(shift, known, t), _sum(low, known, t), _sum(high, known, t)
            low, high = _bounded(op, low, high, known, t)
            return scale, shift, low, high
        case ir.Call(op="sub", arguments=(a, b)) if is_free(b):
            return _scaled(t, ir.Call("add", (a, ir.Call("neg", (b,)))), variable)
        case ir.Call(op="div", arguments=(a, b)) if is_free(b):
            factor = ir.Call("div", (one, b))
            if max(map(abs, bounds(factor))) == inf:
                divisor = print_term(b)
                raise NeedsRange(f"it is divided by {divisor}, which may be 0: a range of inputs as 1..2 would do")
            return _scaled(t, ir.Call("mul", (a, factor)), variable)
        case ir.Call(op="select", arguments=(condition, a, b)) if is_free(condition):
            both = zip(_scaled(t, a, variable), _scaled(t, b, variable), strict=True)
            one, two, three, four = (x if x == y else ir.Call("select", (condition, x, y)) for x, y in both)
            return one, two, three, four
    raise NotLinear("it is not multiplied, shifted and clamped alone")


def _may_divide_by_zero(part: ir.Part) -> bool:
    if not (isinstance(part, ir.Call) and part.op == "div"):
        return False
    least, most = bounds(part.arguments[1])
    return least <= 0 <= most


def _as_it_is(t: Scalar) -> Scaled:
    return RING.one(t), RING.zero(t), LARGER.zero(t), SMALLER.zero(t)


def _sum(bound: ir.Expr, by: ir.Expr, t: Scalar) -> ir.Expr:
    return bound if bound in (LARGER.zero(t), SMALLER.zero(t)) else RING.sum(bound, by, t)


def _multiplied(low: ir.Expr, high: ir.Expr, by: ir.Expr, t: Scalar) -> tuple[ir.Expr, ir.Expr]:
    """Bounds of what is multiplied: they change places where the factor is negative.

    Raises
    ------
    NeedsRange
        If the sign of the factor is not known.
    """
    if (low, high) == (LARGER.zero(t), SMALLER.zero(t)):
        return low, high
    least, most = bounds(by)
    if least < 0 < most:
        factor = print_term(by)
        raise NeedsRange(f"clamped, it is multiplied by {factor}, of any sign: a range of inputs as 0..1 would do")
    ends = (high, low) if least < 0 else (low, high)
    beyond = (LARGER.zero(t), SMALLER.zero(t))
    one, two = (e if (b in beyond) else _times(b, by, t) for e, b in zip(beyond, ends, strict=True))
    return one, two


def _times(bound: ir.Expr, by: ir.Expr, t: Scalar) -> ir.Expr:
    is_finite = max(map(abs, bounds(bound))) < inf
    return RING.product(bound, by, t) if is_finite else _finite_product(by, bound, t)


def _bounded(op: str, low: ir.Expr, high: ir.Expr, by: ir.Expr, t: Scalar) -> tuple[ir.Expr, ir.Expr]:
    """Bounds after ``max`` or ``min`` with a value, where nothing is beyond infinity."""
    if op == "max":
        return LARGER.sum(low, by, t), _larger(high, by, t)
    return low if low == LARGER.zero(t) else SMALLER.sum(low, by, t), SMALLER.sum(high, by, t)


def _finite_product(factor: ir.Expr, bound: ir.Expr, t: Scalar) -> ir.Expr:
    """A product that is zero for a factor of zero, also if the bound is infinite."""
    zero = RING.zero(t)
    return ir.Call("select", (ir.Call("eq", (factor, zero)), zero, ir.Call("mul", (factor, bound))))


def _clamped(value: ir.Expr, least: ir.Expr, greatest: ir.Expr) -> ir.Expr:
    return ir.Call("min", (ir.Call("max", (value, least)), greatest))
