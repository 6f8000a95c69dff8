"""Semirings: two operations of which one distributes over the other, with their neutral elements.

``zero`` is neutral for ``plus`` and annihilates what it is multiplied with, ``one`` is neutral for ``times``; both
operations are associative and commutative. Sums and products of numbers are a semiring up to rounding, as are all laws
of sums on floats. Integers have none of ``max`` and ``+``: sums wrap around, so neither does ``+`` distribute over
``max``, nor is there a number that adds to all others to give the least.

Source: 003 §2.3, §4.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.scalar import LAWS, NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import Scalar

FLOATS, INTEGERS, BOOLS = ("f32", "f64", "f16"), ("i32", "i64", "u32", "u8"), ("bool",)


@dataclass(frozen=True)
class Semiring:
    """Two operations by their names, and the scalar types on which they are a semiring."""

    plus: str
    times: str
    types: tuple[str, ...]

    def __str__(self) -> str:
        return f"({self._sign(self.plus)}, {self._sign(self.times)})"

    @staticmethod
    def _sign(name: str) -> str:
        return {"add": "+", "mul": "·"}.get(name, name.removeprefix("bit_"))

    @property
    def sign(self) -> str:
        """That of ``plus``."""
        return self._sign(self.plus)

    @property
    def sign_of_times(self) -> str:
        """That of ``times``."""
        return self._sign(self.times)

    @property
    def is_ring(self) -> bool:
        """Whether there are negative numbers."""
        return self.plus == "add"

    @property
    def is_lattice(self) -> bool:
        """Whether ``x ⊗ x = x`` and ``x ⊕ x ⊗ y = x``."""
        return self.multiplies_once and LAWS[self.plus].idempotent

    @property
    def multiplies_once(self) -> bool:
        """Whether ``x ⊗ x = x``."""
        return LAWS[self.times].idempotent

    @property
    def has_normal_forms(self) -> bool:
        """Whether equality is decided by `lift_egraph.algebra.normal_forms`."""
        return True

    @property
    def commutes(self) -> bool:
        """Whether ``times`` is commutative."""
        return True

    def sum_in(self, term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
        """What an expression is the sum of, if it is one."""
        return _operands(self.plus, term)

    def product_in(self, term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
        """What an expression is the product of, if it is one."""
        return factors_in(term) if self.times == "mul" else _operands(self.times, term)

    def zero(self, t: Scalar) -> ir.Literal:
        """The neutral element of ``plus``."""
        return ir.Literal(LAWS[self.plus].neutral[t.name], t)

    def one(self, t: Scalar) -> ir.Literal:
        """The neutral element of ``times``."""
        return ir.Literal(LAWS[self.times].neutral[t.name], t)

    def sum(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """``a ⊕ b``, without what follows from the laws of zero."""
        zero = self.zero(t)
        if a == zero or b == zero:
            return b if a == zero else a
        if a == b and LAWS[self.plus].idempotent:
            return a
        return _folded(self.plus, a, b, t)

    def product(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """``a ⊗ b``, without what follows from the laws of zero and one."""
        zero, one = self.zero(t), self.one(t)
        if zero in (a, b):
            return zero
        if a == one or b == one:
            return b if a == one else a
        if a == b and self.multiplies_once:
            return a
        return _folded(self.times, a, b, t)


def _operands(op: str, term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    if isinstance(term, ir.Call) and term.op == op:
        a, b = term.arguments
        return a, b
    return None


def factors_in(term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    """What an expression is the product of in numbers: a shift to the left multiplies by a power of two.

    Examples
    --------
    >>> from lift_egraph.language.types import I32
    >>> factors_in(ir.Call("shift_left", (ir.Var("h", I32), ir.Literal(5, I32))))[1].value
    32
    """
    match term:
        case ir.Call(op="shift_left", arguments=(a, ir.Literal(value=by, type=Scalar() as t))):
            info = np.iinfo(NUMPY_TYPES[t.name])
            if 0 <= by < info.bits - 1:  # the power is a number of the type
                return a, ir.Literal(1 << int(by), t)
    return _operands("mul", term)


def _folded(op: str, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
    if isinstance(a, ir.Literal) and isinstance(b, ir.Literal):
        dtype = NUMPY_TYPES[t.name]
        with np.errstate(all="ignore"):
            value = np.asarray(OPERATIONS[op].meaning(dtype(a.value), dtype(b.value))).astype(dtype).item()
        if value == value:
            return ir.Literal(value, t)
    return ir.Call(op, (a, b))


SEMIRINGS = (
    Semiring("add", "mul", FLOATS + INTEGERS),
    Semiring("max", "add", FLOATS),
    Semiring("min", "add", FLOATS),
    Semiring("max", "min", FLOATS + INTEGERS),
    Semiring("min", "max", FLOATS + INTEGERS),
    Semiring("or", "and", BOOLS),
    Semiring("and", "or", BOOLS),
    Semiring("bit_xor", "bit_and", INTEGERS),
    Semiring("bit_or", "bit_and", INTEGERS),
    Semiring("bit_and", "bit_or", INTEGERS),
)


def semirings_on(t: Scalar) -> tuple[Semiring, ...]:
    """The semirings of a scalar type."""
    return tuple(s for s in SEMIRINGS if t.name in s.types)
