"""The results of a program bit for bit: each operation rounds by itself, and each fold runs from left to right.

This is what IEEE 754 leaves of an evaluation if nothing is reassociated or contracted. OpenCL asks for other functions
only that they come near (`unlike`): what they compute is held against an error bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import F16, Scalar, scalar_of
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.domains import Plain
from lift_egraph.meaning.interp import interpret
from lift_egraph.meaning.values import Tree, Value, map_leaves

_ROUNDED = ("sqrt", "floor", "ceil")  # of the functions of floats those whose results IEEE 754 says


class InOrder(Plain):
    """NumPy arrays of the element types, folded from left to right.

    All `is_defined` until a float that is no integer of a type is cast to it.
    """

    def __init__(self) -> None:
        self.is_defined = True

    def call(self, op: str, scalar: Scalar, arguments: Sequence[np.ndarray]) -> np.ndarray:
        if OPERATIONS[op].kind == "cast" and scalar.is_integer and arguments[0].dtype.kind == "f":
            limits, whole = np.iinfo(NUMPY_TYPES[scalar.name]), np.trunc(np.asarray(arguments[0], np.float64))
            self.is_defined &= bool(((whole >= limits.min) & (whole < limits.max + 1)).all())
        return super().call(op, scalar, arguments)

    def fold(self, op: str, start: np.ndarray, leaf: np.ndarray, axis: int, ordered: bool) -> np.ndarray:
        return super().fold(op, start, leaf, axis, True)

    def contract(self, start: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        return None


def unlike(term: ir.Part) -> tuple[str, ...]:
    """The operations of a term whose results are not the same on every device, by name.

    >>> from lift_egraph.language.syntax import parse_program
    >>> unlike(parse_program("program p(x: [f32]8) = map(fun a => exp(a) / sqrt(a), x)").body)
    ('exp',)
    """
    calls = (t for t in ir.subterms(term) if isinstance(t, ir.Call))
    return tuple(dict.fromkeys(t.op for t in calls if _is_unlike(t)))


def in_words(term: ir.Part) -> str:
    """How exactly the results of a term can be compared, as the end of a sentence."""
    names = unlike(term)
    if not names:
        return ", floats bit for bit"
    verb = "does" if len(names) == 1 else "do"
    return f", floats within their error bounds only, as {' and '.join(names)} {verb} not round alike on all devices"


def _is_unlike(call: ir.Call) -> bool:
    kind = OPERATIONS[call.op].kind
    is_half = kind == "arithmetic" and scalar_of(type_of(call)) == F16  # may be computed in f32
    return (kind == "float" and call.op not in _ROUNDED) or kind == "lanes" or is_half


def evaluate_plainly(
    term: ir.Expr, inputs: Mapping[str, Value], shared: dict[ir.Expr, Tree] | None = None
) -> tuple[Value, Value]:
    """The value of a term in its own types and order, with a bound of 0: what need not be so on every device."""
    tree = interpret(term, inputs, {}, InOrder(), shared=shared)
    value = map_leaves(lambda leaf: np.asarray(leaf, order="C"), tree)
    return value, map_leaves(lambda leaf: np.zeros(leaf.shape), value)


def evaluate_in_order(
    term: ir.Expr, inputs: Mapping[str, Value], shared: dict[ir.Expr, Tree] | None = None
) -> tuple[Value, Value]:
    """The value of a term, and a bound of 0 where every device has to give it, bit for bit.

    With operations that are `unlike` on devices, it is as `lift_egraph.meaning.bounds.evaluate_bounded` says; where a
    float is no integer of the type that it is cast to, nothing is known either.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> x = np.float32([2**24, *[1.0] * 99])
    >>> program = parse_program("program p(x: [f32]100) = reduce(add, 0.0, x)")
    >>> value, bound = evaluate_in_order(program.body, {"x": x})
    >>> float(value) == 2**24, float(x.sum()) == 2**24, float(bound)
    (True, False, 0.0)
    """
    if unlike(term):
        return evaluate_bounded(term, inputs, shared)
    domain = InOrder()
    tree = interpret(term, inputs, {}, domain)
    value = map_leaves(lambda leaf: np.asarray(leaf, order="C"), tree)
    if domain.is_defined:
        return value, map_leaves(lambda leaf: np.zeros(leaf.shape), value)
    _, bound = evaluate_bounded(term, inputs, shared)
    return value, map_leaves(lambda leaf: np.where(np.isinf(leaf), np.inf, 0.0), bound)
