"""How far floating-point sums and products of many terms, in any order, may lie from their reference values.

Source: S. Rump, "Error estimation of floating-point summation and dot product", 2012 (sums of any length).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lift_egraph.language.types import Scalar
from lift_egraph.meaning.bounded import FORMATS, Bounded, Error, Format, full_error, plus
from lift_egraph.meaning.contractions import contract

GRIDS = (1.0, 2.0**-10)  # sums of multiples of one of these are checked for being exact


def _whole(ufunc: np.ufunc, array: np.ndarray, axis: int, dtype: Any = None) -> np.ndarray:
    """One result of a fold along an axis."""
    return ufunc.reduce(array, axis=axis, dtype=dtype)


def prefixes(ufunc: np.ufunc, array: np.ndarray, axis: int, dtype: Any = None) -> np.ndarray:
    """A result for each element up to which a fold goes."""
    return ufunc.accumulate(array, axis=axis, dtype=dtype)


_Fold = Callable[..., np.ndarray]


def _counts(leaf: Bounded, axis: int, fold: _Fold) -> np.ndarray:
    """How many elements each result of a fold is made of."""
    shape = [1] * leaf.value.ndim
    shape[axis] = leaf.value.shape[axis]
    return fold(np.add, np.ones(shape), axis)


def summed(start: Bounded, leaf: Bounded, axis: int, fold: _Fold = _whole) -> Bounded:
    count = _counts(leaf, axis, fold)
    value = start.value + fold(np.add, leaf.value, axis, dtype=np.float64)
    magnitude = np.abs(start.value) + fold(np.add, np.abs(leaf.value), axis, dtype=np.float64)
    error = plus(start.error, None if leaf.error is None else fold(np.add, leaf.error, axis))
    exact = _exact_sums(start, leaf, axis, magnitude, FORMATS[leaf.scalar], fold)
    return _total(leaf.scalar, value, magnitude, error, count, exact)


def _total(
    scalar: Scalar, value: np.ndarray, magnitude: np.ndarray, error: Error, count: Any, exact: np.ndarray
) -> Bounded:
    """Sums of `count` terms in any order, from the sums of the terms' sizes and of their errors."""
    form = FORMATS[scalar]
    rounding = (2 * count * form.roundoff) * (magnitude if error is None else magnitude + error) + form.smallest * count
    if error is None and exact.all():
        return Bounded(value, None, scalar)
    rounding = np.where(exact & (error is None or error == 0), 0.0, rounding)
    total = rounding if error is None else rounding + error
    # infinite terms are certain; finite ones may overflow in some order
    certain = np.isinf(magnitude) | np.isnan(magnitude)
    total = np.where(certain, np.where(np.isfinite(0.0 if error is None else error), 0.0, np.inf), total)
    total = np.where(~certain & (magnitude + total > form.largest), np.inf, total)
    return Bounded(value, np.broadcast_to(total, value.shape), scalar)


def contracted(start: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """A sum of products, each rounded or not, by matrix products in double precision."""
    form, count = FORMATS[a.scalar], a.value.shape[-1]
    if _is_small(start, a, b, form):  # exact in every order, and in single precision
        total = contract(a.value, b.value, np.array)
        return Bounded(np.add(start.value, total, dtype=np.float64), None, a.scalar)
    value = start.value + contract(a.value, b.value, _doubles)
    products = contract(a.value, b.value, _sizes)
    carried: Error = None
    if b.error is not None:
        carried = contract(a.value, b.error, _sizes)
    if a.error is not None:
        reach = contract(a.error, b.value, _sizes)
        carried = reach if carried is None else carried + reach
        if b.error is not None:
            carried = carried + contract(a.error, b.error, _sizes)
    if carried is not None:
        carried = np.where(np.isnan(carried), np.inf, carried)  # no bound, times a factor that is 0, is none
    magnitude = np.abs(start.value) + products
    exact = np.zeros(magnitude.shape, bool)
    for grid in GRIDS:
        first = start.value / grid
        exact |= _on_grid(a, b, grid) & (np.rint(first) == first) & (magnitude <= form.integers * grid)
    rounding = form.roundoff * (products if carried is None else products + carried) + form.smallest * count
    rounding = np.where(exact, 0.0, rounding)
    error = plus(start.error, carried, None if exact.all() else rounding)
    return _total(a.scalar, value, magnitude, error, count, exact)


def _is_small(start: Bounded, a: Bounded, b: Bounded, form: Format) -> bool:
    """Whether all partial sums are whole numbers that floats have."""
    if any(x.error is not None for x in (start, a, b)):
        return False
    first, *largest = (float(np.abs(x.value).max(initial=0.0)) for x in (start, a, b))
    if not first + a.value.shape[-1] * largest[0] * largest[1] <= form.integers:
        return False
    return all(bool((np.rint(x.value) == x.value).all()) for x in (start, a, b))


def _on_grid(a: Bounded, b: Bounded, grid: float) -> np.ndarray:
    """Where all products are multiples of a number."""

    def hold(values: np.ndarray, unit: float) -> np.ndarray:
        scaled = values if unit == 1 else values / unit
        return (np.rint(scaled) == scaled).all(-1)

    def multiples(x: Bounded, unit: float) -> np.ndarray:
        begin = hold(x.value[..., :64], unit)  # of random floats no long row needs more
        return begin & hold(x.value, unit) if begin.any() else begin

    found = multiples(a, 1.0) & multiples(b, grid)
    return found if grid == 1 or found.all() else found | (multiples(a, grid) & multiples(b, 1.0))


def _doubles(block: np.ndarray) -> np.ndarray:
    return np.array(block, np.float64)


def _sizes(block: np.ndarray) -> np.ndarray:
    doubled = _doubles(block)
    return np.abs(doubled, out=doubled)


def _exact_sums(
    start: Bounded, leaf: Bounded, axis: int, magnitude: np.ndarray, form: Format, fold: _Fold
) -> np.ndarray:
    """Where every partial sum is exact in every order: multiples of one unit, and few units in all."""
    exact = np.zeros(magnitude.shape, bool)
    if leaf.error is not None and leaf.error.all():
        return exact
    for grid in GRIDS:
        scaled = leaf.value if grid == 1 else leaf.value / grid
        on_grid = fold(np.logical_and, np.rint(scaled) == scaled, axis)
        first = start.value / grid
        exact |= on_grid & (np.rint(first) == first) & (magnitude <= form.integers * grid)
        if exact.all() or not np.any(magnitude <= form.integers * GRIDS[-1]):
            break
    return exact


def multiplied(start: Bounded, leaf: Bounded, axis: int, fold: _Fold = _whole) -> Bounded:
    form, count = FORMATS[leaf.scalar], _counts(leaf, axis, fold)
    sizes = np.abs(leaf.value)
    value = start.value * fold(np.multiply, leaf.value, axis, dtype=np.float64)
    # no partial product, in any order, is larger than the product of all factors above 1
    partial = np.maximum(np.abs(start.value), 1) * fold(np.multiply, np.maximum(sizes, 1), axis, dtype=np.float64)
    exact = (partial <= form.integers) & fold(np.logical_and, np.rint(leaf.value) == leaf.value, axis)
    exact = exact & (np.rint(start.value) == start.value)
    if leaf.error is not None or start.error is not None:
        exact = exact & (full_error(start) == 0) & (fold(np.maximum, full_error(leaf), axis) == 0)
    if exact.all():
        return Bounded(value, None, leaf.scalar)
    growth = np.exp(2 * count * form.roundoff)
    upper = fold(np.multiply, sizes + full_error(leaf), axis, dtype=np.float64)
    upper = upper * (np.abs(start.value) + full_error(start)) * growth
    error = np.where(exact, 0.0, upper - np.abs(value) + upper * form.roundoff + form.smallest * partial * growth)
    error = np.where(np.isnan(error) | (partial * growth > form.largest), np.inf, error)
    return Bounded(value, np.broadcast_to(error, value.shape), leaf.scalar)
