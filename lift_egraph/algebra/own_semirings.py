"""Semirings that users declare, by laws of two operators on scalars.

``plus`` is associative, commutative and has a neutral element, which annihilates for ``times``; that is associative,
has a neutral element too, and distributes over ``plus``. Both neutral elements are declared, as operators are by that;
the other laws are declared or found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from lift_egraph.algebra import laws
from lift_egraph.algebra.declared import laws_believed
from lift_egraph.algebra.equations import operator
from lift_egraph.algebra.semirings import Semiring
from lift_egraph.algebra.trials import evaluate
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import LAWS, NUMPY_TYPES
from lift_egraph.language.types import Scalar

Found = Mapping[ir.Expr, ir.Expr]  # terms that stand for variables


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
    holes = op.first[0], ir.bound_variables(op.second)[0]
    found = next((f for f in _matches(op.results[0], term, holes, {}) if len(f) == len(holes)), None)
    return None if found is None else (found[holes[0]], found[holes[1]])


def _matches(pattern: ir.Expr, term: ir.Expr, holes: tuple[ir.Var, ...], found: Found) -> Iterator[Found]:
    """The terms for a pattern's variables with which it is a term, up to what commutes."""
    if pattern in holes:
        yield from [{**found, pattern: term}] if found.get(pattern, term) == term else []
    elif isinstance(pattern, ir.Call) and isinstance(term, ir.Call) and pattern.op == term.op:
        commutes = pattern.op in LAWS and LAWS[pattern.op].commutative
        for arguments in (term.arguments, term.arguments[::-1])[: 2 if commutes else 1]:
            yield from _match_all(pattern.arguments, arguments, holes, found)
    elif pattern == term:
        yield found


def _match_all(
    patterns: Sequence[ir.Expr], terms: Sequence[ir.Expr], holes: tuple[ir.Var, ...], found: Found
) -> Iterator[Found]:
    if not patterns:
        yield found
        return
    for first in _matches(patterns[0], terms[0], holes, found):
        yield from _match_all(patterns[1:], terms[1:], holes, first)
