"""Floats from 0 on with ``max`` and ``·``, which are a semiring on these alone: ``max (a, b) · c`` is the larger of
``a · c`` and ``b · c`` where c is not negative.

What is below 0 stands for 0, so that the laws hold for all values. The most likely way through a hidden Markov model is
of this kind.

Source: Viterbi, "Error bounds for convolutional codes and an asymptotically optimum decoding algorithm", 1967.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lift_egraph.algebra.bounded import Interval, bounds, within
from lift_egraph.algebra.residues import kept
from lift_egraph.algebra.semirings import FLOATS, Semiring
from lift_egraph.language import ir
from lift_egraph.language.types import Scalar

INTERVAL: Interval = (0.0, inf)


@dataclass(frozen=True)
class NonNegative(Semiring):
    """``(max, ·)`` of floats from 0 on."""

    @property
    def interval(self) -> Interval:
        """All of them."""
        return INTERVAL

    def __str__(self) -> str:
        return "(max, ·) of what is not negative"

    def zero(self, t: Scalar) -> ir.Literal:
        """The least of them."""
        return ir.Literal(0.0, t)

    def sum(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """The larger of both."""
        return super().sum(kept(a, INTERVAL), kept(b, INTERVAL), t)

    def product(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """Their product."""
        return super().product(kept(a, INTERVAL), kept(b, INTERVAL), t)


def is_negative(term: ir.Expr) -> bool:
    """Whether an expression may be less than 0."""
    return not within(bounds(term), INTERVAL)


NON_NEGATIVE = NonNegative("max", "mul", FLOATS)
