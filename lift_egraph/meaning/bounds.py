"""Running error analysis: what any faithful floating-point evaluation of a program may return.

Each leaf carries a reference value, computed in double precision, and a bound on how far an evaluation in
the program's own types may lie from it, where reductions are associated in any order and multiplications
and additions are contracted. An infinite bound means that nothing is known about the element.

A reduction by an operator that is no built-in operation (see `lift_egraph.meaning.folds`) is followed from left to
right only.

Non-finite values are certain where their bound is 0. Results below the smallest normal number may be
flushed to zero.

Source: N. Higham, *Accuracy and Stability of Numerical Algorithms*, §3.3 (running error analysis); OpenCL C
Specification, section "Relative Error as ULPs" (functions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.scalar import COMPARISONS, LAWS, NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import BOOL, F16, F32, F64, I32, U8, U32, Scalar
from lift_egraph.meaning.bounded import FORMATS, Bounded, Error, Format, full_error, plus
from lift_egraph.meaning.bounds_affine import affinely, changed, settled, sources
from lift_egraph.meaning.bounds_folds import contracted, multiplied, prefixes, summed
from lift_egraph.meaning.bounds_functions import FUNCTIONS
from lift_egraph.meaning.bounds_recurrences import follow
from lift_egraph.meaning.contractions import is_worthwhile
from lift_egraph.meaning.domains import Change
from lift_egraph.meaning.grouped import ByIndex
from lift_egraph.meaning.interp import interpret
from lift_egraph.meaning.values import Tree, Value, at, concatenate, map_leaves, with_axes

KEEP_ZERO = ("div", "sqrt")  # without rounding, though other results of theirs are not rounded correctly


def evaluate_bounded(
    term: ir.Expr, inputs: Mapping[str, Value], shared: dict[ir.Expr, Tree] | None = None
) -> tuple[Value, Value]:
    """The value of a term in double precision, and a bound on the error of any evaluation in its own types.

    Parameters
    ----------
    shared
        Keeps what other terms on the same inputs need too (`interp.interpret`).

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
    tree = interpret(term, inputs, {}, BoundedDomain(), shared=shared)
    return map_leaves(_reference, tree), map_leaves(_bound, tree)


def _reference(leaf: Bounded) -> np.ndarray:
    return np.asarray(leaf.value, np.float64 if leaf.scalar.is_float else None, order="C")


def _bound(leaf: Bounded) -> np.ndarray:
    return np.zeros(leaf.value.shape) if leaf.error is None else np.asarray(leaf.error, order="C")


class BoundedDomain:
    """Leaves are `Bounded`: the interpreter's domain for error analysis."""

    bytes_per_element = 32
    doubles = True

    def exact(self, array: np.ndarray, scalar: Scalar) -> Bounded:
        return Bounded(array, None, scalar)

    def array(self, leaf: Bounded) -> np.ndarray:
        return leaf.value

    def each(self, change: Change, leaf: Bounded) -> Bounded:
        return changed(change, leaf)

    def call(self, op: str, scalar: Scalar, arguments: Sequence[Bounded]) -> Bounded:
        if op == "dot":
            products = self.call("mul", scalar, arguments)
            return summed(self.exact(np.zeros(products.value.shape[:-1]), scalar), products, -1)
        if op in _SPECIAL:
            made = _SPECIAL[op](scalar, *arguments)
            return affinely(op, made, made.error, arguments)
        if scalar.is_float:
            function, *ulps = FUNCTIONS[op]
            value, propagated = function(*((a.value, a.error) for a in arguments))
            error = propagated
            if any(ulps):
                error = _round(value, error, FORMATS[scalar], _ulps(scalar, *ulps), arguments)
                error = _with_zeros(error, propagated, arguments[0]) if op in KEEP_ZERO else error
            return affinely(op, _finish(op, value, error, scalar, arguments), propagated, arguments)
        value = np.asarray(OPERATIONS[op].meaning(*(a.value for a in arguments)), NUMPY_TYPES[scalar.name])
        return Bounded(value, _doubt(value.shape, *(a.error for a in arguments)), scalar)

    def fold(self, op: str, start: Bounded, leaf: Bounded, axis: int, ordered: bool) -> Bounded:
        if leaf.scalar.is_float and op == "add":
            return summed(start, leaf, axis)
        if leaf.scalar.is_float and op == "mul":
            return multiplied(start, leaf, axis)
        value = LAWS[op].ufunc.reduce(leaf.value, axis=axis, dtype=leaf.value.dtype)
        error = None if leaf.error is None else np.maximum.reduce(leaf.error, axis=axis)
        return self.call(op, leaf.scalar, (start, Bounded(value, error, leaf.scalar)))

    def fold_by_index(self, op: str, start: Bounded, leaf: Bounded, places: np.ndarray) -> Bounded:
        fold = ByIndex(places, start.value.shape[-1])
        if leaf.scalar.is_float and op in ("add", "mul"):
            return (summed if op == "add" else multiplied)(start, leaf, leaf.value.ndim - 1, fold.along)
        value = fold(LAWS[op].ufunc, leaf.value, start=start.value)
        if start.error is None and leaf.error is None:
            return Bounded(value, None, leaf.scalar)
        errors = fold(np.maximum, full_error(leaf), start=full_error(start))
        return Bounded(value, errors if leaf.scalar.is_float else np.where(errors > 0, np.inf, 0.0), leaf.scalar)

    def contract(self, start: Bounded, a: Bounded, b: Bounded) -> Bounded | None:
        return contracted(start, a, b) if is_worthwhile(a.value, b.value) else None

    def scan(self, op: str, start: Bounded, leaf: Bounded, axis: int) -> Bounded:
        start = self.each(lambda a: with_axes(a, axis, 1), start)
        if leaf.scalar.is_float and op in ("add", "mul"):
            return (summed if op == "add" else multiplied)(start, leaf, axis, prefixes)
        value = LAWS[op].ufunc.accumulate(leaf.value, axis=axis, dtype=leaf.value.dtype)
        error = None if leaf.error is None else np.maximum.accumulate(leaf.error, axis=axis)
        return self.call(op, leaf.scalar, (start, Bounded(value, error, leaf.scalar)))

    def concatenate(self, leaves: Sequence[Bounded], axis: int) -> Bounded:
        value = concatenate([leaf.value for leaf in leaves], axis)
        if all(leaf.error is None for leaf in leaves):
            return Bounded(value, None, leaves[0].scalar)
        return Bounded(value, concatenate([full_error(leaf) for leaf in leaves], axis), leaves[0].scalar)

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

    def follow(self, start: Tree, states: Tree, apply: Callable[[Tree], Tree]) -> Tree:
        return follow(start, states, apply)

    def sources(self, state: Tree) -> Tree:
        return sources(state)

    def settled(self, leaf: Bounded) -> Bounded:
        return settled(leaf)

    def picked(self, leaf: Bounded, indices: Bounded) -> Bounded:
        if indices.error is None:
            return leaf
        extra = leaf.value.ndim - indices.value.ndim
        doubt = indices.error.reshape(indices.error.shape + (1,) * extra)
        return Bounded(leaf.value, np.broadcast_to(full_error(leaf) + doubt, leaf.value.shape), leaf.scalar)


def _ulps(scalar: Scalar, single: float, double: float) -> float:
    """The error of a function; halves are computed in single precision, and rounded."""
    return double if scalar == F64 else single if scalar == F32 else min(single, 1.0)


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


def _with_zeros(error: Error, propagated: Error, first: Bounded) -> Error:
    """The error of an operation that makes 0 of 0, where its other argument leaves no doubt."""
    if error is None or first.value.all():
        return error
    zero = (first.value == 0) & (full_error(first) == 0)
    return np.where(zero if propagated is None else zero & (propagated == 0), 0.0, error)


def _representable(value: np.ndarray, form: Format, arguments: Sequence[Bounded]) -> np.ndarray:
    if form is not FORMATS[F64]:
        dtype = np.float32 if form is FORMATS[F32] else np.float16
        return (value == value.astype(dtype)) & ((np.abs(value) >= form.smallest) | (value == 0))
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


# --- operations on other types ----------------------------------------------------------------------


def _compare(op: str) -> Callable[[Scalar, Bounded, Bounded], Bounded]:
    def compare(scalar: Scalar, a: Bounded, b: Bounded) -> Bounded:
        value = np.asarray(OPERATIONS[op].meaning(a.value, b.value))
        error = plus(a.error, b.error)
        if error is None:
            return Bounded(value, None, scalar)
        distance = np.abs(np.subtract(a.value, b.value, dtype=np.float64))
        near = ~(distance > error) & (~np.isnan(distance) | np.isinf(error))
        return Bounded(value, _infinite(near & (error > 0), value.shape), scalar)

    return compare


def _logic(decisive: bool) -> Callable[[Scalar, Bounded, Bounded], Bounded]:
    def logic(scalar: Scalar, a: Bounded, b: Bounded) -> Bounded:
        value = np.asarray(np.logical_or(a.value, b.value) if decisive else np.logical_and(a.value, b.value))
        doubt = plus(a.error, b.error)
        if doubt is None:
            return Bounded(value, None, scalar)
        decided = ((a.value == decisive) & (full_error(a) == 0)) | ((b.value == decisive) & (full_error(b) == 0))
        return Bounded(value, _infinite((doubt > 0) & ~decided, value.shape), scalar)

    return logic


def _select(scalar: Scalar, condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    value = np.asarray(np.where(condition.value, a.value, b.value))
    if condition.error is None and a.error is None and b.error is None:
        return Bounded(value, None, scalar)
    chosen = np.where(condition.value, full_error(a), full_error(b))
    if condition.error is not None:
        other = np.where(condition.value, full_error(b), full_error(a))
        distance = np.abs(np.subtract(a.value, b.value, dtype=np.float64))
        if not scalar.is_float:
            distance = np.where(distance > 0, np.inf, 0.0)
        either = np.maximum(chosen, distance + other)
        chosen = np.where(condition.error > 0, np.where(np.isnan(either), np.inf, either), chosen)
    return Bounded(value, np.broadcast_to(chosen, value.shape), scalar)


_EXACT_IN = {F16: (F16, BOOL), F32: (F16, F32, BOOL), F64: (F16, F32, F64, I32, U32, U8, BOOL)}


def _to_float(scalar: Scalar, a: Bounded) -> Bounded:
    value, form = np.asarray(a.value, np.float64), FORMATS[scalar]
    if a.scalar in _EXACT_IN[scalar]:
        return Bounded(value, a.error, scalar)
    return _finish("cast", value, _round(value, a.error, form, 0.5, ()), scalar, (a,))


def _to_int(scalar: Scalar, a: Bounded) -> Bounded:
    dtype, error = NUMPY_TYPES[scalar.name], full_error(a)
    if not a.scalar.is_float:  # what is outside wraps around
        return Bounded(np.asarray(a.value).astype(dtype), _doubt(a.value.shape, a.error), scalar)
    limits, number = np.iinfo(dtype), np.asarray(a.value, np.float64)
    inside = (number > limits.min - 1.0) & (number < limits.max + 1.0) if limits.bits < 64 else np.abs(number) < 2.0**63
    value = np.where(inside, number, 0).astype(dtype)
    doubt = ~inside | (np.trunc(number - error) != np.trunc(number + error))
    return Bounded(value, _infinite(doubt, value.shape), scalar)


_SPECIAL: dict[str, Callable[..., Bounded]] = {
    **{op: _compare(op) for op in COMPARISONS},
    "and": _logic(False),
    "or": _logic(True),
    "select": _select,
    **dict.fromkeys(("to_f16", "to_f32", "to_f64"), _to_float),
    **dict.fromkeys(("to_i32", "to_i64", "to_u32", "to_u8"), _to_int),
}


def _infinite(where: np.ndarray, shape: tuple[int, ...]) -> Error:
    return np.broadcast_to(np.where(where, np.inf, 0.0), shape) if where.any() else None


def _doubt(shape: tuple[int, ...], *errors: Error) -> Error:
    total = plus(*errors)
    return None if total is None else _infinite(total > 0, shape)
