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
    return map_leaves(np.asarray, interpret(term, inputs, {}, DoubleDomain()))


class DoubleDomain(Plain):
    """Leaves are NumPy arrays, of floats always in double precision."""

    bytes_per_element = 8
    doubles = True

    def exact(self, array: np.ndarray, scalar: Scalar) -> np.ndarray:
        return np.asarray(array, np.float64) if scalar.is_float else array

    def call(self, op: str, scalar: Scalar, arguments: Sequence[np.ndarray]) -> np.ndarray:
        if not scalar.is_float:
            return super().call(op, scalar, arguments)
        made = arguments[0] if op in _CASTS else OPERATIONS[op].meaning(*arguments)
        return np.asarray(made, np.float64)

    def fold(self, op: str, start: np.ndarray, leaf: np.ndarray, axis: int, ordered: bool) -> np.ndarray:
        reduced = LAWS[op].ufunc.reduce(leaf, axis=axis, dtype=leaf.dtype)
        return np.asarray(OPERATIONS[op].meaning(start, reduced))
