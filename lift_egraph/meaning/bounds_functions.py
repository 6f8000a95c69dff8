"""How the float operations carry an error from their arguments to their result.

Each function takes ``(value, error)`` per argument, with errors as bounds or None for exact, and returns the
value of the operation in double precision with the propagated error; rounding is not part of it. An error
that is NaN or infinite means that nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lift_egraph.language.scalar import OPERATIONS

Argument = tuple[np.ndarray, "np.ndarray | None"]
Result = tuple[Any, Any]


def _added(sign: int) -> Callable[[Argument, Argument], Result]:
    def added(a: Argument, b: Argument) -> Result:
        value = (np.add if sign > 0 else np.subtract)(a[0], b[0], dtype=np.float64)
        return value, b[1] if a[1] is None else a[1] if b[1] is None else a[1] + b[1]

    return added


def _mul(a: Argument, b: Argument) -> Result:
    value = np.multiply(a[0], b[0], dtype=np.float64)
    error: Any = None
    if a[1] is not None:
        error = a[1] * (np.abs(b[0]) if b[1] is None else np.abs(b[0]) + b[1])
    if b[1] is not None:
        other = np.abs(a[0]) * b[1]
        error = other if error is None else error + other
    return value, error


def _div(a: Argument, b: Argument) -> Result:
    value = np.divide(a[0], b[0], dtype=np.float64)
    if a[1] is None and b[1] is None:
        return value, None
    room = np.abs(b[0])
    error = np.zeros(()) if a[1] is None else a[1]
    if b[1] is not None:
        error = error + np.abs(value) * b[1]
        room = room - b[1]
    return value, np.where(room > 0, error / room, np.inf)


def _monotone(function: Callable[[Any], Any]) -> Callable[[Argument], Result]:
    """On an interval, a monotone function is furthest from its middle at one of the ends."""

    def bounded(a: Argument) -> Result:
        value = function(np.asarray(a[0], np.float64))
        if a[1] is None:
            return value, None
        ends = (function(a[0] - a[1]), function(a[0] + a[1]))
        return value, np.maximum(*(np.abs(end - value) for end in ends))

    return bounded


def _wave(function: Callable[[Any], Any]) -> Callable[[Argument], Result]:
    """Sine and cosine move at most as far as their argument, and at most by 2."""
    return lambda a: (function(np.asarray(a[0], np.float64)), None if a[1] is None else np.minimum(a[1], 2.0))


def _tan(a: Argument) -> Result:
    value, error = _monotone(np.tan)(a)
    if a[1] is not None:
        low, high = (np.floor((a[0] + side * a[1]) / np.pi + 0.5) for side in (-1, 1))
        error = np.where(low == high, error, np.inf)
    return value, error


def _atan2(a: Argument, b: Argument) -> Result:
    """The angle of a point in the plane turns at most as far as its error reaches, if not past where it jumps."""
    y, x = np.asarray(a[0], np.float64), np.asarray(b[0], np.float64)
    value = np.arctan2(y, x)
    up, along = (np.zeros(()) if e is None else e for e in (a[1], b[1]))
    reach, distance = np.hypot(up, along), np.hypot(y, x)
    jumps = (x - along <= 0) & (np.abs(y) <= up)
    turned = np.arcsin(np.divide(reach, distance, out=np.ones_like(value), where=reach < distance))
    return value, np.where(jumps, np.inf, np.where((reach < distance) | (reach == 0), turned, np.inf))


def _unary(function: Callable[[Any], Any]) -> Callable[[Argument], Result]:
    """Negation and absolute value neither round nor enlarge an error."""
    return lambda a: (function(a[0]), a[1])


def _extreme(function: Callable[[Any, Any], Any]) -> Callable[[Argument, Argument], Result]:
    def bounded(a: Argument, b: Argument) -> Result:
        if a[1] is None and b[1] is None:
            return function(a[0], b[0]), None
        zero = np.zeros(())
        return function(a[0], b[0]), np.maximum(zero if a[1] is None else a[1], zero if b[1] is None else b[1])

    return bounded


def _pow(a: Argument, b: Argument) -> Result:
    base, exponent = np.asarray(a[0], np.float64), np.asarray(b[0], np.float64)
    value = np.power(base, exponent)
    if a[1] is None and b[1] is None:
        return value, None
    base_error, exponent_error = (np.zeros(()) if e is None else e for e in (a[1], b[1]))
    corners = [
        np.abs(np.power(base + s * base_error, exponent + t * exponent_error) - value) for s in (-1, 1) for t in (-1, 1)
    ]
    error = np.maximum.reduce(np.broadcast_arrays(*corners))
    # on both sides of 0 only a fixed whole exponent has a value; 0 itself is then an extreme
    whole = (exponent_error == 0) & (exponent > 0) & (np.rint(exponent) == exponent)
    positive = base - base_error > 0
    error = np.where(positive, error, np.where(whole, np.maximum(error, np.abs(value)), np.inf))
    return value, np.where((base_error == 0) & (exponent_error == 0), 0.0, error)


# how an error is carried, and the largest error in ULPs that OpenCL allows in single and in double precision:
# 0 is exact, 0.5 correctly rounded
FUNCTIONS: dict[str, tuple[Callable[..., Result], float, float]] = {
    "add": (_added(1), 0.5, 0.5),
    "sub": (_added(-1), 0.5, 0.5),
    "mul": (_mul, 0.5, 0.5),
    "div": (_div, 2.5, 0.5),
    "neg": (_unary(np.negative), 0, 0),
    "abs": (_unary(np.abs), 0, 0),
    "min": (_extreme(OPERATIONS["min"].meaning), 0, 0),
    "max": (_extreme(OPERATIONS["max"].meaning), 0, 0),
    "sqrt": (_monotone(np.sqrt), 3, 0.5),
    "rsqrt": (_monotone(OPERATIONS["rsqrt"].meaning), 2, 2),
    "exp": (_monotone(np.exp), 3, 3),
    "log": (_monotone(np.log), 3, 3),
    "sin": (_wave(np.sin), 4, 4),
    "cos": (_wave(np.cos), 4, 4),
    "tan": (_tan, 5, 5),
    "asin": (_monotone(np.arcsin), 4, 4),
    "acos": (_monotone(np.arccos), 4, 4),
    "atan": (_monotone(np.arctan), 5, 5),
    "atan2": (_atan2, 6, 6),
    "sinh": (_monotone(np.sinh), 4, 4),
    "cosh": (_monotone(np.cosh), 4, 4),  # of a convex function, too, an end is furthest
    "tanh": (_monotone(np.tanh), 5, 5),
    "erf": (_monotone(OPERATIONS["erf"].meaning), 16, 16),
    "floor": (_monotone(np.floor), 0, 0),
    "ceil": (_monotone(np.ceil), 0, 0),
    "pow": (_pow, 16, 16),
}
