"""Accumulators that are combined with something of each element by an operator that has no neutral element.

One is adjoined: beside what is combined stands whether there is anything. So the place of the last largest element is
found in parts, though of no place it can be said that all others are behind it.

Source: the monoid S¹ of a semigroup S, as in Clifford and Preston, "The Algebraic Theory of Semigroups", 1961, §1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lift_egraph.algebra.combining import Combined, combined_group
from lift_egraph.algebra.expressions import Binary, numbered
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.types import BOOL, Scalar


@dataclass(frozen=True)
class Adjoined:
    """Components of an accumulator that are combined with something, if there is anything.

    It has what `lift_egraph.algebra.matrices.Block` has; its entries are whether there is anything, and what.
    """

    types: tuple[Scalar, ...]
    group: tuple[int, ...]
    first: tuple[ir.Var, ...]
    second: tuple[ir.Var, ...]
    found: Combined

    @property
    def why(self) -> str:
        """How the components follow from those before."""
        return f"combined with something of each element, associatively: both sides are {self.found.why}"

    @property
    def entries(self) -> tuple[ir.Expr, ...]:
        """What an element gives."""
        return ir.Literal(True, BOOL), *self.found.element

    @property
    def ones(self) -> tuple[ir.Expr, ...]:
        """Nothing."""
        return ir.Literal(False, BOOL), *(any_value(t) for t in self.types[1:])

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What acts like `first` and then `second`."""
        (was, *before), (is_, *after) = first, second
        both = self._both(before, after)
        later = (ir.Call("select", (was, c, new)) for c, new in zip(both, after, strict=True))
        values = (ir.Call("select", (is_, new, old)) for new, old in zip(later, before, strict=True))
        return [ir.Call("or", (was, is_)), *values]

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """The values, combined with what there is."""
        is_, *given = data
        both = self._both(values, given)
        return [ir.Call("select", (is_, new, old)) for new, old in zip(both, values, strict=True)]

    def _both(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        values = dict(zip((*self.first, *self.second), (*first, *second), strict=True))
        return [substitute(r, values) for r in self.found.results]


def any_value(t: Scalar) -> ir.Literal:
    """Some value of a type."""
    return ir.Literal(False if t == BOOL else 0.0 if t.is_float else 0, t)


def adjoined(op: Binary, group: Sequence[int]) -> Adjoined:
    """Some components as combined with something.

    Raises
    ------
    NotLinear
        If they are not known to be, by an associative operator.
    """
    first = tuple(op.first[i] for i in group)
    second = numbered("e", [v.type for v in first])
    found = combined_group(op, group, second)
    types = [v.type for v in first if isinstance(v.type, Scalar)]
    if found is None or len(types) < len(first):
        raise NotLinear("it is not combined with something of each element")
    return Adjoined((BOOL, *types), tuple(group), first, second, found)
