"""Laws of binary operators as equations of scalar expressions: of their bodies, in which lets are written out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lift_egraph.algebra.expressions import Binary, leaves, numbered, opened, scalars, simplified
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import type_of

Leaves = Sequence[ir.Expr]
Sides = tuple[Leaves, Leaves]


@lru_cache(maxsize=1024)
def operator(function: ir.Function) -> Binary | None:
    """A binary operator on scalars or tuples of them as scalar expressions; None for other functions."""
    found = opened(function, both=True)
    if found is None:
        return None
    types = [v.type for v in found.first]
    same = [v.type for v in ir.bound_variables(found.second)] == types == [type_of(r) for r in found.results]
    return found if same else None


def arguments_of(op: Binary) -> tuple[tuple[ir.Var, ...], ...]:
    """Three values that it may be applied to."""
    types = [v.type for v in op.first]
    if len(types) == 1:
        return tuple((ir.Var(f"${name}", types[0]),) for name in "abc")
    return tuple(numbered(name, types) for name in "abc")


def leaves_of_value(value: ir.Expr) -> Leaves | None:
    """The scalars of a tuple as scalar expressions; None for other values."""
    try:
        return None if scalars(type_of(value)) is None else tuple(leaves(simplified(value)))
    except LiftError:
        return None


def sides(name: str, function: ir.Function, about: ir.Expr | ir.Function | None = None) -> Sides | None:
    """Both sides of a law of an operator, one of `lift_egraph.language.ir.LAWS`; None if it is not on scalars.

    Parameters
    ----------
    about
        The neutral or annihilating value, or the operator that it distributes over.
    """
    op = operator(function)
    if op is None:
        return None
    a, b, c = arguments_of(op)
    if name == "associative":
        return op.at(op.at(a, b), c), op.at(a, op.at(b, c))
    if name == "commutative":
        return op.at(a, b), op.at(b, a)
    if name == "idempotent":
        return op.at(a, a), a
    if name == "distributes":
        assert isinstance(about, ir.Lambda | ir.Vectorize)
        plus = operator(about)
        if plus is None or [v.type for v in op.first] != [v.type for v in plus.first]:
            return None
        left = (*op.at(a, plus.at(b, c)), *op.at(plus.at(b, c), a))
        return left, (*plus.at(op.at(a, b), op.at(a, c)), *plus.at(op.at(b, a), op.at(c, a)))
    assert isinstance(about, ir.Expr)
    z = leaves_of_value(about)
    if z is None or len(z) != len(op.first):
        return None
    left = (*op.at(z, a), *op.at(a, z))
    return left, (*a, *a) if name == "neutral" else (*z, *z)
