"""Semirings that users declare, by laws of two operators on scalars.

``plus`` is associative, commutative and has a neutral element, which annihilates for ``times``; that is associative,
has a neutral element too, and distributes over ``plus``. Both neutral elements are declared, as operators are by that;
the other laws are declared or found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from lift_egraph.algebra import laws
from lift_egraph.algebra.declared import laws_believed
from lift_egraph.algebra.equations import operator
from lift_egraph.algebra.semirings import Semiring
from lift_egraph.algebra.trials import evaluate
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Scalar


@dataclass(frozen=True)
class OwnSemiring(Semiring):
    """Two operators of a user's: `plus` and `times` are what they are called."""

    addition: ir.Lambda
    multiplication: ir.Lambda
    zero_value: ir.Literal
    one_value: ir.Literal
    is_commutative: bool

    @property
    def commutes(self) -> bool:
        """Whether ``times`` is commutative."""
        return self.is_commutative

    @property
    def is_ring(self) -> bool:
        return False

    @property
    def is_lattice(self) -> bool:
        return False

    @property
    def has_normal_forms(self) -> bool:
        return False

    def zero(self, t: Scalar) -> ir.Literal:
        """The neutral element of ``plus``."""
        return self.zero_value

    def one(self, t: Scalar) -> ir.Literal:
        """The neutral element of ``times``."""
        return self.one_value

    def sum(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """``a ⊕ b``, without what follows from the laws of zero."""
        if self.zero_value in (a, b):
            return b if a == self.zero_value else a
        return _applied(self.addition, a, b)

    def product(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """``a ⊗ b``, without what follows from the laws of zero and one."""
        if self.zero_value in (a, b):
            return self.zero_value
        if self.one_value in (a, b):
            return b if a == self.one_value else a
        return _applied(self.multiplication, a, b)

    def sum_in(self, term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
        """What an expression is the sum of, if it is one."""
        return _arguments(self.addition, term)

    def product_in(self, term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
        """What an expression is the product of, if it is one."""
        return _arguments(self.multiplication, term)


def own_semirings(t: Scalar) -> Iterator[OwnSemiring]:
    """The semirings of a scalar type whose laws are believed, or found."""
    declared = [law for law in laws_believed() if law.name == "neutral" and type_of(law.operator.body) == t]
    for addition, multiplication in permutations(declared, 2):
        plus, times, zero, one = addition.operator, multiplication.operator, addition.about, multiplication.about
        if not isinstance(zero, ir.Literal) or not isinstance(one, ir.Literal):
            continue
        if not laws.distributes(times, plus) or not laws.annihilating(times, zero):
            continue
        if laws.associative(plus) and laws.commutative(plus) and laws.associative(times):
            commutes = laws.commutative(times) is not None
            names = addition.called, multiplication.called
            yield OwnSemiring(*names, (t.name,), plus, times, zero, one, commutes)


def _applied(f: ir.Lambda, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    op = operator(f)
    assert op is not None
    (made,) = op.at([a], [b])
    t = type_of(made)
    if isinstance(a, ir.Literal) and isinstance(b, ir.Literal) and isinstance(t, Scalar):
        value = evaluate(made, {}).astype(NUMPY_TYPES[t.name]).item()
        return ir.Literal(value, t) if value == value else made
    return made


def _arguments(f: ir.Lambda, term: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    op = operator(f)
    assert op is not None
    found: dict[ir.Expr, ir.Expr] = {}
    a, b = op.first[0], ir.bound_variables(op.second)[0]
    if not _matches(op.results[0], term, (a, b), found) or len(found) < 2:
        return None
    return found[a], found[b]


def _matches(pattern: ir.Expr, term: ir.Expr, holes: tuple[ir.Var, ...], found: dict[ir.Expr, ir.Expr]) -> bool:
    """Whether a term is a pattern, with terms for its variables."""
    if pattern in holes:
        return found.setdefault(pattern, term) == term
    if isinstance(pattern, ir.Call) and isinstance(term, ir.Call) and pattern.op == term.op:
        pairs = zip(pattern.arguments, term.arguments, strict=True)
        return all(_matches(p, t, holes, found) for p, t in pairs)
    return pattern == term
