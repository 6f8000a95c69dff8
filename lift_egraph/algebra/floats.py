"""Between which floats an operation on floats lies, with all its rounding.

Sums and products are rounded to the nearest number of the type, or not at all where they are a part of a fused
operation: both lie between the exact ends, rounded outwards. Other operations of OpenCL err by some units in the last
place. A number that is not normal may count as 0. What begins with NaNs, or comes to one, is not spoken of.

Source: Moore, "Interval Analysis", 1966; The OpenCL C Specification 3.0, 7.4, "Relative error as ULPs".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Scalar

Floats = tuple[float, float]
EVERYTHING: Floats = (-inf, inf)
ULPS = 16  # by which any operation errs at most
UNIT: Floats = (-1.0, 1.0)
_GROWING: dict[str, tuple[Callable[[float], float], Floats, Floats]] = {
    "sqrt": (math.sqrt, (0.0, inf), (0.0, inf)),
    "exp": (math.exp, EVERYTHING, (0.0, inf)),
    "log": (math.log, (0.0, inf), EVERYTHING),
    "tanh": (math.tanh, EVERYTHING, UNIT),
    "erf": (math.erf, EVERYTHING, UNIT),
    "atan": (math.atan, EVERYTHING, (-math.pi / 2, math.pi / 2)),
}  # where each is defined, and what it is at the ends of that


def number(literal: ir.Literal) -> float:
    """The float that a literal is, rounded to its type."""
    return float(NUMPY_TYPES[literal.type.name](literal.value))


def of_floats(op: str, t: Scalar, given: Sequence[Floats]) -> Floats | None:
    """The interval of an operation's results, by those of its operands; None if nothing is known.

    Examples
    --------
    >>> from lift_egraph.language.types import F32
    >>> of_floats("mul", F32, [(0.0, 1.0), (-2.0, 3.0)]), of_floats("mul", F32, [(0.0, inf), (0.0, 1.0)])
    ((-2.0, 3.0), (0.0, inf))

    A third is between two floats, and ``inf - inf`` may be anything:

    >>> low, high = of_floats("div", F32, [(1.0, 1.0), (3.0, 3.0)])
    >>> low < 1 / 3 < high < 0.333335, of_floats("sub", F32, [(0.0, inf), (0.0, inf)])
    (True, (-inf, inf))

    What gives a factor may be above 1 by rounding:

    >>> of_floats("exp", F32, [(-inf, 0.0)])
    (0.0, 1.0000019073486328)
    """
    if op not in ("min", "max"):
        given = [_outward(t, *ends) for ends in given]
    (low, high), *others = given
    if not others:
        return _of_one(op, t, low, high)
    (least, most) = others[0]
    match op:
        case "add":
            return _outward(t, _sum(low, least, -inf), _sum(high, most, inf))
        case "sub":
            return _outward(t, _sum(low, -most, -inf), _sum(high, -least, inf))
        case "mul":
            products = [_product(a, b) for a in (low, high) for b in (least, most)]
            return _outward(t, min(products), max(products))
        case "div" if least > 0 or most < 0:
            quotients = [_quotient(a, b) for a in (low, high) for b in (least, most)]
            return _erring(t, min(quotients), max(quotients))
        case "min":
            return min(low, least), min(high, most)
        case "max":
            return max(low, least), max(high, most)
        case "pow" if low > 0 or (low == 0 and least >= 0):
            return _erring(t, 0.0, 1.0) if high <= 1 and least >= 0 else (0.0, inf)
    return None


def of_square(t: Scalar, given: Floats) -> Floats:
    """The interval of what is multiplied with itself."""
    low, high = of_floats("abs", t, [given]) or EVERYTHING
    return _outward(t, _product(low, low), _product(high, high))


def of_cast(t: Scalar, given: tuple[float, float]) -> Floats:
    """The interval of numbers as floats of a type."""
    low, high = given
    return _outward(t, *(Fraction(end) if abs(end) != inf else end for end in (low, high)))


def _of_one(op: str, t: Scalar, low: float, high: float) -> Floats | None:
    match op:
        case "neg":
            return 0.0 - high, 0.0 - low
        case "abs":
            return max(0.0, low, -high), max(-low, high)
        case "floor" | "ceil":
            of = {"floor": math.floor, "ceil": math.ceil}[op]
            least, most = (end if abs(end) == inf else of(end) for end in (low, high))
            return _outward(t, least, most)
        case "sin" | "cos":
            return _erring(t, *UNIT)
        case "rsqrt":
            return _erring(t, high**-0.5, low**-0.5) if low > 0 else None  # of -0.0 it is -inf
        case "sinh" | "cosh" | "tan" | "asin" | "acos":
            return None
    if op not in _GROWING:
        return None
    value, (first, last), (least, most) = _GROWING[op]
    return _erring(
        t,
        least if low <= first else _value(value, low),
        most if high >= last or high <= first else _value(value, high),
    )


def _value(of: Callable[[float], float], at: float) -> float:
    try:
        return of(at)
    except OverflowError:
        return inf


def _sum(a: float, b: float, otherwise: float) -> float | Fraction:
    if abs(a) == inf or abs(b) == inf:
        return otherwise if a + b != a + b else a + b
    return Fraction(a) + Fraction(b)


def _product(a: float, b: float) -> float | Fraction:
    """A product, that of 0 and infinity as the limit of those of 0 and finite numbers."""
    if 0 in (a, b):
        return 0.0
    return a * b if abs(a) == inf or abs(b) == inf else Fraction(a) * Fraction(b)


def _quotient(a: float, b: float) -> float | Fraction:
    if abs(b) == inf:
        return 0.0
    return a / b if abs(a) == inf else Fraction(a) / Fraction(b)


def _erring(t: Scalar, low: float | Fraction, high: float | Fraction) -> Floats:
    """An interval that is wider by what operations err."""
    eps = ULPS * float(np.finfo(NUMPY_TYPES[t.name]).eps)
    least, most = (
        end if abs(end) == inf else Fraction(end) + Fraction(sign * eps) * abs(Fraction(end))
        for sign, end in zip((-1, 1), _outward(t, low, high), strict=True)
    )
    return _outward(t, least, most)


def _outward(t: Scalar, low: float | Fraction, high: float | Fraction) -> Floats:
    """The ends as floats of a type that are no greater, or no less."""
    return 0.0 - _above(t, -low), _above(t, high)


def _above(t: Scalar, number: float | Fraction) -> float:
    """The least float of a type that is no less than a number; 0 for those below it that are not normal."""
    dtype = NUMPY_TYPES[t.name]
    info = np.finfo(dtype)
    if number != number or abs(number) == inf:
        return float(number)
    if abs(number) > float(info.max):
        return inf if number > 0 else -float(info.max)
    if -float(info.tiny) < number <= 0:
        return 0.0
    with np.errstate(all="ignore"):
        nearest = dtype(float(number))
        while Fraction(float(nearest)) < number:
            nearest = np.nextafter(nearest, dtype(inf))
    return float(nearest)
