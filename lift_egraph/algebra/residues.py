"""Rests of whole numbers modulo one of them, which are a ring like these: sums and products, of which rests are taken.

A rest is kept as a number of the type from 0 on and below the modulus. What else the type has stands for the nearest of
these, so that the laws hold for all values. Where a sum or a product may leave the type, it is computed in `i64`.

Source: Gauss, "Disquisitiones Arithmeticae", 1801, §1 to §11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lift_egraph.algebra.bounded import Interval, bounds, is_exact, limits, within
from lift_egraph.algebra.semirings import Semiring
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import I64, Scalar


@dataclass(frozen=True)
class Residues(Semiring):
    """The rests modulo a number: `plus` and `times` are those of numbers."""

    modulus: int

    def __str__(self) -> str:
        return f"(+, ·) modulo {self.modulus}"

    @property
    def is_ring(self) -> bool:
        return False  # a negative number is no rest

    @property
    def interval(self) -> Interval:
        """All rests."""
        return 0, self.modulus - 1

    def sum_in(self, term: ir.Expr) -> None:
        """Nothing: what an expression is modulo a number, its normal form says."""

    def product_in(self, term: ir.Expr) -> None:
        """Nothing, as with sums."""

    def zero(self, t: Scalar) -> ir.Literal:
        """The rest 0."""
        return ir.Literal(0, t)

    def one(self, t: Scalar) -> ir.Literal:
        """The rest 1."""
        return ir.Literal(1, t)

    def sum(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """The rest of ``a + b``."""
        zero = self.zero(t)
        if zero in (a, b):
            return kept(b if a == zero else a, self.interval)
        return self._rest("add", a, b, t)

    def product(self, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        """The rest of ``a · b``."""
        zero, one = self.zero(t), self.one(t)
        if zero in (a, b):
            return zero
        if one in (a, b):
            return kept(b if a == one else a, self.interval)
        return self._rest("mul", a, b, t)

    def _rest(self, op: str, a: ir.Expr, b: ir.Expr, t: Scalar) -> ir.Expr:
        if isinstance(a, ir.Literal) and isinstance(b, ir.Literal):
            x, y = int(a.value), int(b.value)
            return ir.Literal((x + y if op == "add" else x * y) % self.modulus, t)
        parts = tuple(kept(e, self.interval) for e in (a, b))
        made = ir.Call(op, parts)
        if is_exact(made):
            return ir.Call("mod", (made, ir.Literal(self.modulus, t)))
        wide = ir.Call(op, tuple(as_type(e, I64) for e in parts))
        return as_type(ir.Call("mod", (wide, ir.Literal(self.modulus, I64))), t)

    def representative(self, term: ir.Expr, t: Scalar) -> ir.Expr:
        """The rest of any whole number, as a number of a type."""
        own = type_of(term)
        assert isinstance(own, Scalar)
        if isinstance(term, ir.Literal):
            return ir.Literal(int(term.value) % self.modulus, t)
        found = bounds(term)
        if not within(found, self.interval):
            if within(found, limits(t)) and own != t:
                own, term = t, as_type(term, t)
            if limits(own)[1] < 2 * self.modulus:
                own, term = I64, as_type(term, I64)
            m = ir.Literal(self.modulus, own)
            term = ir.Call("mod", (term, m))
            if found[0] < 0:
                term = ir.Call("mod", (ir.Call("add", (term, m)), m))
        return as_type(term, t)


def kept(term: ir.Expr, interval: Interval) -> ir.Expr:
    """What an expression of numbers gives, or the end of an interval that is nearest to it.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.types import I32
    >>> print_term(kept(ir.Var("s", I32), (0, 9)))
    'min(max(s, 0), 9)'
    >>> print_term(kept(ir.Var("s", I32) % 10 + 3, (-9, 12)))
    's % 10 + 3'
    """
    t, (low, high), (least, most) = type_of(term), interval, bounds(term)
    assert isinstance(t, Scalar)
    if least < low:
        term = ir.Call("max", (term, _literal(low, t)))
    return ir.Call("min", (term, _literal(high, t))) if most > high else term


def _literal(number: float, t: Scalar) -> ir.Literal:
    """A number of a type, a float with as many digits as tell it from others."""
    return ir.Literal(float(str(NUMPY_TYPES[t.name](number))) if t.is_float else number, t)


def as_type(term: ir.Expr, t: Scalar) -> ir.Expr:
    """A whole number as one of a type."""
    return term if type_of(term) == t else ir.Call(f"to_{t.name}", (term,))


def residues_in(terms: Iterable[ir.Expr]) -> Iterator[Residues]:
    """The rings of the moduli in expressions; products of two rests are numbers of `i64`."""
    moduli: dict[int, None] = {}
    for term in terms:
        for part in ir.subterms(term):
            match part:
                case ir.Call(op="mod", arguments=(_, ir.Literal(value=m))) if m > 1 and m * m <= limits(I64)[1]:
                    moduli[int(m)] = None
    for m in moduli:
        yield Residues("add", "mul", (), m)
