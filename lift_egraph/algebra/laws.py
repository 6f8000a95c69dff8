"""Laws of binary operators: proved on the scalar expressions of their bodies, and then tried on random values.

An operator on tuples may mix what its components do, as the product of two matrices does. Sums of floats obey the laws
of real numbers, as rules that use them say that they ``reassociate``.

Source: 003 §4.1, §5.3.4 and §8.3, where operators are opaque and have to be declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lift_egraph.algebra.expressions import Binary, leaves, numbered, opened, scalars, simplified
from lift_egraph.algebra.normal_forms import equal_over
from lift_egraph.algebra.orders import equal_in_all_orders
from lift_egraph.algebra.semirings import semirings_on
from lift_egraph.algebra.sums import Sums
from lift_egraph.algebra.trials import Counterexample, counterexample
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar

Leaves = Sequence[ir.Expr]


def proof(left: Leaves, right: Leaves) -> str | None:
    """Why expressions are equal one by one, or None if that is not known.

    Examples
    --------
    >>> from lift_egraph.language.types import F32
    >>> x, y = ir.Var("x", F32), ir.Var("y", F32)
    >>> proof([x + y], [y + x])
    'the same polynomials over (+, ·)'
    >>> proof([x - y], [y - x]) is None
    True
    """
    how = _proof(left, right)
    return how if how and counterexample(left, right) is None else None


def _proof(left: Leaves, right: Leaves) -> str | None:
    if equal_in_all_orders(left, right):
        return "the same for all orders of the values"
    used: dict[str, None] = {}
    for a, b in zip(left, right, strict=True):
        t = type_of(a)
        semiring = isinstance(t, Scalar) and next((s for s in semirings_on(t) if equal_over(s, t, a, b)), None)
        if not semiring:
            sums = Sums()
            same = equal_in_all_orders([sums.of(e) for e in left], [sums.of(e) for e in right])
            return "the same for all orders of the sums in them" if same else None
        used[str(semiring)] = None
    return f"the same polynomials over {' and '.join(used)}"


@lru_cache(maxsize=1024)
def operator(function: ir.Function) -> Binary | None:
    """A binary operator on scalars or tuples of them as scalar expressions; None for other functions."""
    found = opened(function, both=True)
    if found is None:
        return None
    types = [v.type for v in found.first]
    same = [v.type for v in ir.bound_variables(found.second)] == types == [type_of(r) for r in found.results]
    return found if same else None


def _arguments(op: Binary) -> tuple[tuple[ir.Var, ...], ...]:
    types = [v.type for v in op.first]
    first, second, third = (numbered(name, types) for name in "abc")
    return first, second, third


@lru_cache(maxsize=1024)
def associative(function: ir.Function) -> str | None:
    """Why ``(a ⊕ b) ⊕ c = a ⊕ (b ⊕ c)``, or None if that is not known."""
    op = operator(function)
    return None if op is None else proof(*_associated(op))


def _associated(op: Binary) -> tuple[Leaves, Leaves]:
    a, b, c = _arguments(op)
    return op.at(op.at(a, b), c), op.at(a, op.at(b, c))


@lru_cache(maxsize=1024)
def commutative(function: ir.Function) -> str | None:
    """Why ``a ⊕ b = b ⊕ a``, or None if that is not known."""
    op = operator(function)
    if op is None:
        return None
    a, b, _ = _arguments(op)
    return proof(op.at(a, b), op.at(b, a))


@lru_cache(maxsize=1024)
def idempotent(function: ir.Function) -> str | None:
    """Why ``a ⊕ a = a``, or None if that is not known."""
    op = operator(function)
    if op is None:
        return None
    a, _, _ = _arguments(op)
    return proof(op.at(a, a), a)


@lru_cache(maxsize=1024)
def neutral(function: ir.Function, start: ir.Expr) -> str | None:
    """Why a reduction may begin with a value again in each part: ``z ⊕ a ⊕ z = z ⊕ a`` and ``z ⊕ z = z``.

    That holds of what is neutral on both sides, and for some operators, such as those that choose, of any value.
    """
    op, z = operator(function), _leaves_of_value(start)
    if op is None or z is None or len(z) != len(op.first):
        return None
    a, _, _ = _arguments(op)
    begun = op.at(z, a)
    return proof((*op.at(begun, z), *op.at(z, z)), (*begun, *z))


@lru_cache(maxsize=1024)
def annihilating(function: ir.Function, value: ir.Expr) -> str | None:
    """Why ``z ⊕ a = z = a ⊕ z``, or None if that is not known."""
    op, z = operator(function), _leaves_of_value(value)
    if op is None or z is None or len(z) != len(op.first):
        return None
    a, _, _ = _arguments(op)
    return proof((*op.at(z, a), *op.at(a, z)), (*z, *z))


def distributes(times: ir.Function, plus: ir.Function) -> str | None:
    """Why ``a ⊗ (b ⊕ c) = a ⊗ b ⊕ a ⊗ c`` and ``(b ⊕ c) ⊗ a = b ⊗ a ⊕ c ⊗ a``, or None if that is not known."""
    product, total = operator(times), operator(plus)
    if product is None or total is None or [v.type for v in product.first] != [v.type for v in total.first]:
        return None
    a, b, c = _arguments(product)
    left = (*product.at(a, total.at(b, c)), *product.at(total.at(b, c), a))
    one = total.at(product.at(a, b), product.at(a, c))
    other = total.at(product.at(b, a), product.at(c, a))
    return proof(left, (*one, *other))


@lru_cache(maxsize=1024)
def built_in(function: ir.Function) -> tuple[str, str] | None:
    """The built-in operation with laws that an operator is in other words, and why; None if there is none."""
    op = operator(function)
    if op is None or len(op.first) != 1:
        return None
    t = op.first[0].type
    assert isinstance(t, Scalar)
    a, b, _ = _arguments(op)
    body = op.at(a, b)
    for name, laws in LAWS.items():
        how = t.name in laws.neutral and proof(body, [ir.Call(name, (*a, *b))])
        if how:
            return name, how
    return None


def against_associativity(function: ir.Function) -> Counterexample | None:
    """Values for which an operator is not associative, if any are found."""
    op = operator(function)
    return None if op is None else counterexample(*_associated(op))


def _leaves_of_value(value: ir.Expr) -> Leaves | None:
    try:
        return None if scalars(type_of(value)) is None else tuple(leaves(simplified(value)))
    except LiftError:
        return None
