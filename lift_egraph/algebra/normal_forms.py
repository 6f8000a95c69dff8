"""Equality of scalar expressions by normal forms: polynomials over a commutative semiring.

What no operation of the semiring makes is an atom. A ``select`` is decided for each way in which the comparisons and
truth values in conditions may come out, whether they can come out so together or not. Two expressions with one normal
form are equal by the laws of the semiring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import inf, isinf
from operator import and_, or_, xor
from typing import Union

from lift_egraph.algebra.bounded import bounds, holds_all, is_exact, within
from lift_egraph.algebra.nonnegative import NonNegative, is_negative
from lift_egraph.algebra.residues import Residues
from lift_egraph.algebra.semirings import Semiring, factors_in
from lift_egraph.language import ir
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar

Number = Union[Fraction, float, bool]  # floats are infinite
Monomial = frozenset[tuple[ir.Expr, int]]  # atoms with their powers
Polynomial = dict[Monomial, Number]  # with their coefficients, none of them zero
BITS = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}
MOST_CONDITIONS = 6
MOST_MONOMIALS = 400


class NoNormalForm(Exception):
    """The normal form has too many monomials, or opposite infinities in a sum."""


def equal_over(semiring: Semiring, t: Scalar, left: ir.Expr, right: ir.Expr) -> bool:
    """Whether two expressions of a scalar type have one normal form over a semiring."""
    if not semiring.has_normal_forms:
        return left == right
    if isinstance(semiring, Residues) and not all(within(bounds(e), semiring.interval) for e in (left, right)):
        return False  # of one rest, but no rests themselves
    if isinstance(semiring, NonNegative) and any(map(is_negative, (left, right))):
        return False
    conditions = list(dict.fromkeys((*conditions_in(left), *conditions_in(right))))
    if len(conditions) > MOST_CONDITIONS:
        return False
    try:
        for decided in product((False, True), repeat=len(conditions)):
            normal = _normal(semiring, t, dict(zip(conditions, decided, strict=True)))
            if normal(left) != normal(right):
                return False
    except NoNormalForm:
        return False
    return True


def polynomial(semiring: Semiring, t: Scalar, term: ir.Expr) -> Polynomial:
    """The normal form of an expression in which selects are atoms.

    Raises
    ------
    NoNormalForm
        If it has none, or is too large.
    """
    return _normal(semiring, t, None)(term)


def conditions_in(term: ir.Expr) -> Iterator[ir.Expr]:
    """The comparisons and truth values that the conditions of the selects in an expression are made of."""
    if isinstance(term, ir.Call):
        if term.op == "select":
            yield from _atoms(term.arguments[0])
        for a in term.arguments[1 if term.op == "select" else 0 :]:
            yield from conditions_in(a)


def _atoms(condition: ir.Expr) -> Iterator[ir.Expr]:
    match condition:
        case ir.Call(op="and" | "or" | "not" | "select", arguments=parts):
            for part in parts:
                yield from _atoms(part)
        case ir.Literal():
            pass
        case _:
            yield _compared(condition)[0]


def _compared(condition: ir.Expr) -> tuple[ir.Expr, bool]:
    """A comparison by ``<`` or ``==``, and whether it has to hold."""
    match condition:
        case ir.Call(op="gt", arguments=(a, b)):
            return ir.Call("lt", (b, a)), True
        case ir.Call(op="ge", arguments=(a, b)):
            return ir.Call("lt", (a, b)), False
        case ir.Call(op="le", arguments=(a, b)):
            return ir.Call("lt", (b, a)), False
        case ir.Call(op="ne", arguments=(a, b)):
            return ir.Call("eq", (a, b)), False
    return condition, True


def _holds(condition: ir.Expr, decided: Mapping[ir.Expr, bool]) -> bool:
    match condition:
        case ir.Call(op="and", arguments=(a, b)):
            return _holds(a, decided) and _holds(b, decided)
        case ir.Call(op="or", arguments=(a, b)):
            return _holds(a, decided) or _holds(b, decided)
        case ir.Call(op="not", arguments=(a,)):
            return not _holds(a, decided)
        case ir.Call(op="select", arguments=(c, a, b)):
            return _holds(a if _holds(c, decided) else b, decided)
        case ir.Literal(value=value):
            return bool(value)
    plain, positive = _compared(condition)
    return decided[plain] == positive


class _Normal:
    """The normal form of expressions, where it is known how conditions come out, or selects are atoms."""

    def __init__(self, semiring: Semiring, t: Scalar, decided: Mapping[ir.Expr, bool] | None) -> None:
        self.semiring, self.decided = semiring, decided
        self.zero, self.one = (_number(LAWS[op].neutral[t.name]) for op in (semiring.plus, semiring.times))

    def __call__(self, term: ir.Expr) -> Polynomial:
        s = self.semiring
        match term:
            case ir.Literal(value=value) if value == value:
                return self.constant(_number(value))
            case ir.Call(op="select", arguments=(condition, yes, no)) if self.decided is not None:
                return self(yes if _holds(condition, self.decided) else no)
            case ir.Call(op=op, arguments=(a, b)) if op == s.plus:
                return self.sum(self(a), self(b))
            case ir.Call() if (parts := s.product_in(term)) is not None:
                a, b = parts
                return self.product(self(a), self(b))
            case ir.Call(op="sub", arguments=(a, b)) if s.is_ring:
                return self.sum(self(a), self.product(self.constant(Fraction(-1)), self(b)))
            case ir.Call(op="neg", arguments=(a,)) if s.is_ring:
                return self.product(self.constant(Fraction(-1)), self(a))
            case ir.Call(op="sub", arguments=(a, b)) if s.times == "add":
                inverse = self.inverse(self(b))
                if inverse is not None:
                    return self.product(self(a), inverse)
        return {frozenset({(term, 1)}): self.one}

    def constant(self, value: Number) -> Polynomial:
        return {} if value == self.zero else {frozenset(): value}

    def sum(self, a: Polynomial, b: Polynomial) -> Polynomial:
        made = dict(a)
        for monomial, c in b.items():
            made[monomial] = _applied(self.semiring.plus, made.get(monomial, self.zero), c)
        return self._cleaned(made)

    def product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if len(a) * len(b) > MOST_MONOMIALS:
            raise NoNormalForm
        made: Polynomial = {}
        for (m, c), (n, d) in product(a.items(), b.items()):
            powers = Counter(dict(m))
            powers.update(dict(n))
            monomial = frozenset((x, 1 if self.semiring.multiplies_once else p) for x, p in powers.items() if p)
            value = _applied(self.semiring.times, c, d)
            made[monomial] = _applied(self.semiring.plus, made.get(monomial, self.zero), value)
        return self._cleaned(made)

    def inverse(self, a: Polynomial) -> Polynomial | None:
        """One over a monomial, where ``times`` has inverses."""
        if len(a) != 1:
            return None
        ((monomial, c),) = a.items()
        return None if isinf(c) else {frozenset((x, -p) for x, p in monomial): -c}

    def _cleaned(self, a: Polynomial) -> Polynomial:
        if len(a) > MOST_MONOMIALS:
            raise NoNormalForm
        made = {m: c for m, c in a.items() if c != self.zero}
        if not self.semiring.is_lattice:
            return made
        plus = self.semiring.plus
        return {
            m: c
            for m, c in made.items()
            if not any(n != m and n <= m and _applied(plus, c, d) == d for n, d in made.items())
        }


class _OfRests(_Normal):
    """The normal form of whole numbers modulo one: of what does not wrap around."""

    semiring: Residues

    def __init__(self, semiring: Residues, decided: Mapping[ir.Expr, bool] | None) -> None:
        self.semiring, self.decided = semiring, decided
        self.zero, self.one = Fraction(0), Fraction(1)

    def __call__(self, term: ir.Expr) -> Polynomial:
        match term:
            case ir.Literal(value=value):
                return self._cleaned(self.constant(Fraction(value)))
            case ir.Call(op="select", arguments=(condition, yes, no)) if self.decided is not None:
                return self(yes if _holds(condition, self.decided) else no)
            case ir.Call(op="mod", arguments=(a, ir.Literal(value=self.semiring.modulus))):
                return self(a)
            case ir.Call(op="min" | "max" as op, arguments=(a, ir.Literal(value=end))):
                least, most = bounds(a)
                if most <= end if op == "min" else least >= end:
                    return self(a)
            case ir.Call(op=op, arguments=(a,)) if op.startswith("to_") and holds_all(term, a):
                return self(a)
            case ir.Call() if is_exact(term) and (parts := factors_in(term)) is not None:
                a, b = parts
                return self.product(self(a), self(b))
            case ir.Call(op="add" | "sub" as op, arguments=(a, b)) if is_exact(term):
                one, other = self(a), self(b)
                return self.sum(one, other if op == "add" else self.product(self.constant(Fraction(-1)), other))
        return {frozenset({(term, 1)}): self.one}

    def _cleaned(self, a: Polynomial) -> Polynomial:
        return super()._cleaned({m: c % self.semiring.modulus for m, c in a.items()})


class _OfNonNegative(_Normal):
    """The normal form of floats that are not negative: sums and products of these alone are taken apart."""

    def __init__(self, semiring: NonNegative, decided: Mapping[ir.Expr, bool] | None) -> None:
        self.semiring, self.decided = semiring, decided
        self.zero, self.one = Fraction(0), Fraction(1)

    def __call__(self, term: ir.Expr) -> Polynomial:
        match term:
            case ir.Literal(value=value) if value >= 0:
                return self.constant(_number(value))
            case ir.Call(op="select", arguments=(condition, yes, no)) if self.decided is not None:
                chosen = yes if _holds(condition, self.decided) else no
                if not is_negative(chosen):
                    return self(chosen)
            case ir.Call(op="max" | "mul" as op, arguments=(a, b)) if not is_negative(a) and not is_negative(b):
                return (self.sum if op == "max" else self.product)(self(a), self(b))
        return {frozenset({(term, 1)}): self.one}


def _normal(semiring: Semiring, t: Scalar, decided: Mapping[ir.Expr, bool] | None) -> _Normal:
    if isinstance(semiring, NonNegative):
        return _OfNonNegative(semiring, decided)
    return _OfRests(semiring, decided) if isinstance(semiring, Residues) else _Normal(semiring, t, decided)


def _number(value: float | int | bool) -> Number:
    if isinstance(value, bool) or value in (inf, -inf):
        return value
    return Fraction(value)


def _applied(op: str, a: Number, b: Number) -> Number:
    if op == "add":
        if a in (inf, -inf) and b in (inf, -inf) and a != b:
            raise NoNormalForm
        return a if a in (inf, -inf) else b if b in (inf, -inf) else a + b
    if op == "mul":
        return a * b
    if op in ("max", "min"):
        return max(a, b) if op == "max" else min(a, b)
    if op in BITS:
        return Fraction(BITS[op](int(a), int(b)))
    return (a and b) if op == "and" else (a or b)
