"""Running error analysis: what any faithful floating-point evaluation of a program may return.

Each leaf carries a reference value, computed in double precision, and a bound on how far an evaluation in
the program's own types may lie from it, where reductions are associated in any order and multiplications
and additions are contracted. An infinite bound means that nothing is known about the element.

A reduction by an operator that is no built-in operation (see `lift_egraph.meaning.folds`) is followed from left to
right only.

Non-finite values are certain where their bound is 0. Results below the smallest normal number may be
flushed to zero.

Source: N. Higham, *Accuracy and Stability of Numerical Algorithms*, §3.3 (running error analysis); S. Rump,
"Error estimation of floating-point summation and dot product", 2012 (sums of any length); OpenCL C
Specification, section "Relative Error as ULPs" (functions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.scalar import COMPARISONS, LAWS, NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import BOOL, F32, F64, Scalar
from lift_egraph.meaning.bounds_functions import FUNCTIONS
from lift_egraph.meaning.domains import Change
from lift_egraph.meaning.interp import interpret
from lift_egraph.meaning.values import Value, at, concatenate, map_leaves

Error = np.ndarray | None  # None: exact everywhere


@dataclass(frozen=True)
class Format:
    """The numbers of a floating-point type."""

    roundoff: float  # of one correctly rounded operation, with the error of the reference itself
    integers: float  # all integers up to this one are exact
    largest: float
    smallest: float  # normal


FORMATS = {
    F32: Format(2.0**-24 * (1 + 2.0**-20), 2.0**24, float(np.finfo(np.float32).max), 2.0**-126),
    F64: Format(2.0**-52 * (1 + 2.0**-20), 2.0**53, float(np.finfo(np.float64).max), 2.0**-1022),
}
GRIDS = (1.0, 2.0**-10)  # sums of multiples of one of these are checked for being exact


@dataclass(frozen=True)
class Bounded:
    """Reference values and the absolute error bound of each (of the same shape), for elements of one type."""

    value: np.ndarray
    error: Error
    scalar: Scalar


def evaluate_bounded(term: ir.Expr, inputs: Mapping[str, Value]) -> tuple[Value, Value]:
    """The value of a term in double precision, and a bound on the error of any evaluation in its own types.

    Returns
    -------
    (value, bound)
        Floats are ``float64``. The bound is 0 where every evaluation gives the value exactly, and infinite
        where nothing is known: where an integer, a boolean or an index depends on rounding, or a result may
        overflow.

    Raises
    ------
    InputProblem, SizeProblem
        As `interp.evaluate`.

    Examples
    --------
    >>> from lift_egraph.language.types import array
    >>> x = ir.Var("x", F32)
    >>> tenth = ir.Lambda(x, ir.Call("mul", (ir.Literal(0.1, F32), x)))
    >>> value, bound = evaluate_bounded(ir.Map(tenth, ir.Input("xs", array(F32, 2))), {"xs": np.float32([0, 3])})
    >>> print(value, bound.round(10))
    [0.  0.3] [0.00e+00 1.79e-08]
    """
    tree = interpret(term, inputs, {}, BoundedDomain())
    return map_leaves(_reference, tree), map_leaves(_bound, tree)


def _reference(leaf: Bounded) -> np.ndarray:
    return np.asarray(leaf.value, np.float64 if leaf.scalar.is_float else None, order="C")


def _bound(leaf: Bounded) -> np.ndarray:
    return np.zeros(leaf.value.shape) if leaf.error is None else np.asarray(leaf.error, order="C")


class BoundedDomain:
    """Leaves are `Bounded`: the interpreter's domain for error analysis."""

    bytes_per_element = 32

    def exact(self, array: np.ndarray, scalar: Scalar) -> Bounded:
        return Bounded(array, None, scalar)

    def array(self, leaf: Bounded) -> np.ndarray:
        return leaf.value

    def each(self, change: Change, leaf: Bounded) -> Bounded:
        return Bounded(change(leaf.value), None if leaf.error is None else change(leaf.error), leaf.scalar)

    def call(self, op: str, scalar: Scalar, arguments: Sequence[Bounded]) -> Bounded:
        if op == "dot":
            products = self.call("mul", scalar, arguments)
            return _sum(self.exact(np.zeros(products.value.shape[:-1]), scalar), products, -1)
        if op in _SPECIAL:
            return _SPECIAL[op](scalar, *arguments)
        if scalar.is_float:
            function, *ulps = FUNCTIONS[op]
            value, error = function(*((a.value, a.error) for a in arguments))
            if any(ulps):
                error = _round(value, error, FORMATS[scalar], ulps[scalar == F64], arguments)
            return _finish(op, value, error, scalar, arguments)
        value = np.asarray(OPERATIONS[op].meaning(*(a.value for a in arguments)), NUMPY_TYPES[scalar.name])
        return Bounded(value, _doubt(value.shape, *(a.error for a in arguments)), scalar)

    def fold(self, op: str, start: Bounded, leaf: Bounded, axis: int, ordered: bool) -> Bounded:
        if leaf.scalar.is_float and op == "add":
            return _sum(start, leaf, axis)
        if leaf.scalar.is_float and op == "mul":
            return _product(start, leaf, axis)
        value = LAWS[op].ufunc.reduce(leaf.value, axis=axis, dtype=leaf.value.dtype)
        error = None if leaf.error is None else np.maximum.reduce(leaf.error, axis=axis)
        return self.call(op, leaf.scalar, (start, Bounded(value, error, leaf.scalar)))

    def scan(self, op: str, start: Bounded, leaf: Bounded, axis: int) -> Bounded:
        start = self.each(lambda a: np.expand_dims(a, axis), start)
        if leaf.scalar.is_float and op in ("add", "mul"):
            return (_sum if op == "add" else _product)(start, leaf, axis, _prefixes)
        value = LAWS[op].ufunc.accumulate(leaf.value, axis=axis, dtype=leaf.value.dtype)
        error = None if leaf.error is None else np.maximum.accumulate(leaf.error, axis=axis)
        return self.call(op, leaf.scalar, (start, Bounded(value, error, leaf.scalar)))

    def concatenate(self, leaves: Sequence[Bounded], axis: int) -> Bounded:
        value = concatenate([leaf.value for leaf in leaves], axis)
        if all(leaf.error is None for leaf in leaves):
            return Bounded(value, None, leaves[0].scalar)
        return Bounded(value, concatenate([_full_error(leaf) for leaf in leaves], axis), leaves[0].scalar)

    def place(self, whole: Bounded | None, part: Bounded, axis: int, start: int, total: int) -> Bounded:
        shape = (*part.value.shape[:axis], total, *part.value.shape[axis + 1 :])
        value = np.empty(shape, part.value.dtype) if whole is None else whole.value
        error = None if whole is None else whole.error
        index = at(axis, slice(start, start + part.value.shape[axis]))
        value[index] = part.value
        if part.error is not None:
            error = np.zeros(shape) if error is None else error
            error[index] = part.error
        return Bounded(value, error, part.scalar)

    def picked(self, leaf: Bounded, indices: Bounded) -> Bounded:
        if indices.error is None:
            return leaf
        extra = leaf.value.ndim - indices.value.ndim
        doubt = indices.error.reshape(indices.error.shape + (1,) * extra)
        return Bounded(leaf.value, np.broadcast_to(_full_error(leaf) + doubt, leaf.value.shape), leaf.scalar)


# --- rounding ---------------------------------------------------------------------------------------


def _round(value: np.ndarray, error: Error, form: Format, ulps: float, arguments: Sequence[Bounded]) -> Error:
    """The propagated error with that of one rounding, which is 0 where the result is exact."""
    rounding = np.asarray(np.abs(value))
    if error is not None:
        rounding += error
    rounding *= 2 * ulps * form.roundoff
    rounding += form.smallest
    exact = None
    if ulps == 0.5 and (error is None or not error.all()):
        exact = _representable(value, form, arguments)
        if error is not None:
            exact &= error == 0
        elif exact.all():
            return None
        rounding[exact] = 0
    return rounding if error is None else np.add(rounding, error, out=rounding)


def _representable(value: np.ndarray, form: Format, arguments: Sequence[Bounded]) -> np.ndarray:
    if form is FORMATS[F32]:
        return (value == value.astype(np.float32)) & ((np.abs(value) >= form.smallest) | (value == 0))
    exact = np.abs(value) <= form.integers
    for array in (value, *(a.value for a in arguments)):
        exact = exact & (np.rint(array) == array)
    return exact


def _finish(op: str, value: np.ndarray, error: Error, scalar: Scalar, arguments: Sequence[Bounded]) -> Bounded:
    """The result, with overflow and non-finite values accounted for."""
    value = np.asarray(value)
    if error is not None:
        error = np.broadcast_to(error, value.shape)
    if not value.size:
        return Bounded(value, error, scalar)
    largest = FORMATS[scalar].largest
    margin = 0.0 if error is None else error.max()
    if -largest < value.min() - margin and value.max() + margin < largest:
        return Bounded(value, error, scalar)
    error = np.zeros(value.shape) if error is None else np.where(np.isnan(error), np.inf, error)
    certain = _certain(op, arguments)
    error = np.where(np.isfinite(value), error, np.where(certain, 0.0, np.inf))
    size = np.abs(value)
    overflows = np.isfinite(value) & (size - error > largest * (1 + FORMATS[scalar].roundoff))
    value, error = np.where(overflows, np.copysign(np.inf, value), value), np.where(overflows, 0.0, error)
    return Bounded(value, np.where(np.isfinite(value) & (size + error > largest), np.inf, error), scalar)


def _certain(op: str, arguments: Sequence[Bounded]) -> Any:
    """Where a non-finite result does not depend on rounding."""
    exact, finite, nan = np.True_, np.True_, np.False_
    for a in arguments:
        if a.error is None:
            nan = nan | np.isnan(a.value)
        else:
            exact, finite = exact & (a.error == 0), finite & (a.error < np.inf)
            nan = nan | (np.isnan(a.value) & (a.error < np.inf))
    if op in ("add", "sub"):
        return finite
    return exact | (nan if op in ("mul", "div") else np.False_)


# --- folds ------------------------------------------------------------------------------------------


def _whole(ufunc: np.ufunc, array: np.ndarray, axis: int, dtype: Any = None) -> np.ndarray:
    """One result of a fold along an axis."""
    return ufunc.reduce(array, axis=axis, dtype=dtype)


def _prefixes(ufunc: np.ufunc, array: np.ndarray, axis: int, dtype: Any = None) -> np.ndarray:
    """A result for each element up to which a fold goes."""
    return ufunc.accumulate(array, axis=axis, dtype=dtype)


_Fold = Callable[..., np.ndarray]


def _counts(leaf: Bounded, axis: int, fold: _Fold) -> np.ndarray:
    """How many elements each result of a fold is made of."""
    shape = [1] * leaf.value.ndim
    shape[axis] = leaf.value.shape[axis]
    return fold(np.add, np.ones(shape), axis)


def _sum(start: Bounded, leaf: Bounded, axis: int, fold: _Fold = _whole) -> Bounded:
    form, count = FORMATS[leaf.scalar], _counts(leaf, axis, fold)
    value = start.value + fold(np.add, leaf.value, axis, dtype=np.float64)
    magnitude = np.abs(start.value) + fold(np.add, np.abs(leaf.value), axis, dtype=np.float64)
    error = _plus(start.error, None if leaf.error is None else fold(np.add, leaf.error, axis))
    rounding = (2 * count * form.roundoff) * (magnitude if error is None else magnitude + error) + form.smallest * count
    exact = _exact_sums(start, leaf, axis, magnitude, form, fold)
    if error is None and exact.all():
        return Bounded(value, None, leaf.scalar)
    rounding = np.where(exact & (error is None or error == 0), 0.0, rounding)
    total = rounding if error is None else rounding + error
    # infinite terms are certain; finite ones may overflow in some order
    certain = np.isinf(magnitude) | np.isnan(magnitude)
    total = np.where(certain, np.where(np.isfinite(0.0 if error is None else error), 0.0, np.inf), total)
    total = np.where(~certain & (magnitude + total > form.largest), np.inf, total)
    return Bounded(value, np.broadcast_to(total, value.shape), leaf.scalar)


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


def _product(start: Bounded, leaf: Bounded, axis: int, fold: _Fold = _whole) -> Bounded:
    form, count = FORMATS[leaf.scalar], _counts(leaf, axis, fold)
    sizes = np.abs(leaf.value)
    value = start.value * fold(np.multiply, leaf.value, axis, dtype=np.float64)
    # no partial product, in any order, is larger than the product of all factors above 1
    partial = np.maximum(np.abs(start.value), 1) * fold(np.multiply, np.maximum(sizes, 1), axis, dtype=np.float64)
    exact = (partial <= form.integers) & fold(np.logical_and, np.rint(leaf.value) == leaf.value, axis)
    exact = exact & (np.rint(start.value) == start.value)
    if leaf.error is not None or start.error is not None:
        exact = exact & (_full_error(start) == 0) & (fold(np.maximum, _full_error(leaf), axis) == 0)
    if exact.all():
        return Bounded(value, None, leaf.scalar)
    growth = np.exp(2 * count * form.roundoff)
    upper = fold(np.multiply, sizes + _full_error(leaf), axis, dtype=np.float64)
    upper = upper * (np.abs(start.value) + _full_error(start)) * growth
    error = np.where(exact, 0.0, upper - np.abs(value) + upper * form.roundoff + form.smallest * partial * growth)
    error = np.where(np.isnan(error) | (partial * growth > form.largest), np.inf, error)
    return Bounded(value, np.broadcast_to(error, value.shape), leaf.scalar)


# --- operations on other types ----------------------------------------------------------------------


def _compare(op: str) -> Callable[[Scalar, Bounded, Bounded], Bounded]:
    def compare(scalar: Scalar, a: Bounded, b: Bounded) -> Bounded:
        value = np.asarray(OPERATIONS[op].meaning(a.value, b.value))
        error = _plus(a.error, b.error)
        if error is None:
            return Bounded(value, None, scalar)
        distance = np.abs(np.subtract(a.value, b.value, dtype=np.float64))
        near = ~(distance > error) & (~np.isnan(distance) | np.isinf(error))
        return Bounded(value, _infinite(near & (error > 0), value.shape), scalar)

    return compare


def _logic(decisive: bool) -> Callable[[Scalar, Bounded, Bounded], Bounded]:
    def logic(scalar: Scalar, a: Bounded, b: Bounded) -> Bounded:
        value = np.asarray(np.logical_or(a.value, b.value) if decisive else np.logical_and(a.value, b.value))
        doubt = _plus(a.error, b.error)
        if doubt is None:
            return Bounded(value, None, scalar)
        decided = ((a.value == decisive) & (_full_error(a) == 0)) | ((b.value == decisive) & (_full_error(b) == 0))
        return Bounded(value, _infinite((doubt > 0) & ~decided, value.shape), scalar)

    return logic


def _select(scalar: Scalar, condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    value = np.asarray(np.where(condition.value, a.value, b.value))
    if condition.error is None and a.error is None and b.error is None:
        return Bounded(value, None, scalar)
    chosen = np.where(condition.value, _full_error(a), _full_error(b))
    if condition.error is not None:
        other = np.where(condition.value, _full_error(b), _full_error(a))
        distance = np.abs(np.subtract(a.value, b.value, dtype=np.float64))
        if not scalar.is_float:
            distance = np.where(distance > 0, np.inf, 0.0)
        either = np.maximum(chosen, distance + other)
        chosen = np.where(condition.error > 0, np.where(np.isnan(either), np.inf, either), chosen)
    return Bounded(value, np.broadcast_to(chosen, value.shape), scalar)


def _to_float(scalar: Scalar, a: Bounded) -> Bounded:
    value, form = np.asarray(a.value, np.float64), FORMATS[scalar]
    if scalar == F64 or a.scalar in (F32, BOOL):
        return Bounded(value, a.error, scalar)
    return _finish("cast", value, _round(value, a.error, form, 0.5, ()), scalar, (a,))


def _to_int(scalar: Scalar, a: Bounded) -> Bounded:
    number = np.asarray(a.value, np.float64)
    inside = np.abs(number) < 2.0**31
    value = np.where(inside, number, 0).astype(np.int32)
    error = _full_error(a)
    doubt = ~inside | (np.trunc(number - error) != np.trunc(number + error))
    return Bounded(value, _infinite(doubt, value.shape), scalar)


_SPECIAL: dict[str, Callable[..., Bounded]] = {
    **{op: _compare(op) for op in COMPARISONS},
    "and": _logic(False),
    "or": _logic(True),
    "select": _select,
    "to_f32": _to_float,
    "to_f64": _to_float,
    "to_i32": _to_int,
}


def _plus(*errors: Error) -> Error:
    known = [e for e in errors if e is not None]
    return sum(known[1:], start=known[0]) if known else None


def _full_error(leaf: Bounded) -> np.ndarray:
    return np.broadcast_to(np.zeros(()), leaf.value.shape) if leaf.error is None else leaf.error


def _infinite(where: np.ndarray, shape: tuple[int, ...]) -> Error:
    return np.broadcast_to(np.where(where, np.inf, 0.0), shape) if where.any() else None


def _doubt(shape: tuple[int, ...], *errors: Error) -> Error:
    total = _plus(*errors)
    return None if total is None else _infinite(total > 0, shape)
