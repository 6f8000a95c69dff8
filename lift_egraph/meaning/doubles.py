"""Values in double precision, whatever the floats' own types, without the bounds of `lift_egraph.meaning.bounds`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.scalar import LAWS, OPERATIONS
from lift_egraph.language.types import Scalar
from lift_egraph.meaning.domains import Plain
from lift_egraph.meaning.interp import interpret
from lift_egraph.meaning.values import Value, map_leaves

_CASTS = ("to_f16", "to_f32", "to_f64")
_EXACT = ("abs", "neg", "min", "max", "select")  # of floats of any precision


def evaluate_doubles(term: ir.Expr, inputs: Mapping[str, Value]) -> Value:
    """The value of a term in double precision; folds of built-in operations come in any order.

    It is the value of `lift_egraph.meaning.bounds.evaluate_bounded` up to rounding and overflow, in a fraction of its
    time.

    Raises
    ------
    InputProblem, SizeProblem
        As `interp.evaluate`.

    Examples
    --------
    >>> from lift_egraph.language.types import F32, array
    >>> x = ir.Var("x", F32)
    >>> tenth = ir.Lambda(x, ir.Call("mul", (ir.Literal(0.5, F32), x)))
    >>> evaluate_doubles(ir.Map(tenth, ir.Input("xs", array(F32, 2))), {"xs": np.float32([1, 3])})
    array([0.5, 1.5])
    """
    return map_leaves(_wide, interpret(term, inputs, {}, DoubleDomain()))


class DoubleDomain(Plain):
    """Leaves are NumPy arrays, of floats in double precision, or in a smaller one that has their values."""

    bytes_per_element = 8
    doubles = True

    def call(self, op: str, scalar: Scalar, arguments: Sequence[np.ndarray]) -> np.ndarray:
        if not scalar.is_float:
            return super().call(op, scalar, arguments)
        if op in _CASTS:
            return np.asarray(arguments[0], np.float64)
        if op in _EXACT:
            return np.asarray(OPERATIONS[op].meaning(*arguments))
        return np.asarray(OPERATIONS[op].meaning(*map(_wide, arguments)), np.float64)

    def fold(self, op: str, start: np.ndarray, leaf: np.ndarray, axis: int, ordered: bool) -> np.ndarray:
        dtype = np.float64 if leaf.dtype.kind == "f" else leaf.dtype
        reduced = LAWS[op].ufunc.reduce(leaf, axis=axis, dtype=dtype)
        return np.asarray(OPERATIONS[op].meaning(_wide(start), reduced))

    def scan(self, op: str, start: np.ndarray, leaf: np.ndarray, axis: int) -> np.ndarray:
        return super().scan(op, _wide(start), _wide(leaf), axis)

    def fold_by_index(self, op: str, start: np.ndarray, leaf: np.ndarray, places: np.ndarray) -> np.ndarray:
        return super().fold_by_index(op, _wide(start), _wide(leaf), places)

    def contract(self, start: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        return super().contract(start, _wide(a), _wide(b))

    def place(self, whole: np.ndarray | None, part: np.ndarray, axis: int, start: int, total: int) -> np.ndarray:
        if whole is not None and whole.dtype != part.dtype:
            whole = _wide(whole)
        return super().place(whole, part, axis, start, total)


def _wide(array: np.ndarray) -> np.ndarray:
    is_narrow = array.dtype.kind == "f" and array.dtype != np.float64
    return array.astype(np.float64) if is_narrow else array
