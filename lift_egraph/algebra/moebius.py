"""Accumulators that become a fraction of linear functions of themselves: ``(a · s + b) / (c · s + d)``.

Such functions, Möbius transformations, are closed under composition: their coefficients are multiplied as matrices are.
Continued fractions, sweeps through tridiagonal systems, and the variance in a Kalman filter are of this kind. All
multiples of a matrix give one function. So products are divided by their largest entry: else those of many elements
would be too large for floats, or too small. Sums count as exact, and dividing by the largest entry changes nothing of
``(P Q) R = P (Q R)``, as entries k times as large give a largest one that is.

No matrix is neutral then: what is divided has changed. So one is adjoined (`lift_egraph.algebra.adjoined`).

Whole numbers have no such fractions: their division cuts off.

Source: Stone, "An efficient parallel algorithm for the solution of a tridiagonal linear system of equations",
JACM 1973.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lift_egraph.algebra.equations import arguments_of, operator
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.algebra.normal_forms import NoNormalForm, Polynomial, equal_over, polynomial
from lift_egraph.algebra.semirings import SEMIRINGS
from lift_egraph.language import ir
from lift_egraph.language.pretty import print_term
from lift_egraph.language.types import BOOL, Scalar

RING = next(s for s in SEMIRINGS if s.is_ring)
Matrix = tuple[ir.Expr, ir.Expr, ir.Expr, ir.Expr]  # a, b, c and d
LINEAR, MOST_POWERS = 2, 4  # coefficients of a linear function, and of what must cancel out


@dataclass(frozen=True)
class Moebius:
    """One component of an accumulator that becomes a fraction of linear functions of itself.

    It has what `lift_egraph.algebra.matrices.Block` has; its entries are whether there is a matrix, and this.
    """

    type: Scalar
    group: tuple[int, ...]
    matrix: Matrix
    why: str = "a fraction of linear functions of the accumulator"

    @property
    def types(self) -> tuple[Scalar, ...]:
        """Of the entries."""
        return BOOL, *((self.type,) * 4)

    @property
    def entries(self) -> tuple[ir.Expr, ...]:
        """What an element gives."""
        return ir.Literal(True, BOOL), *self.matrix

    @property
    def ones(self) -> tuple[ir.Expr, ...]:
        """Nothing."""
        one, zero = RING.one(self.type), RING.zero(self.type)
        return ir.Literal(False, BOOL), one, zero, zero, one

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What acts like `first` and then `second`."""
        return _product(first, second)

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """The fraction for a value."""
        is_, a, b, c, d = data
        (s,) = values
        return [ir.Call("select", (is_, (a * s + b) / (c * s + d), s))]


def _product(first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
    (was, *before), (is_, *after) = first, second
    (a, b, c, d), (e, f, g, h) = before, after
    made = [e * a + f * c, e * b + f * d, g * a + h * c, g * b + h * d]
    sizes = [ir.Call("abs", (entry,)) for entry in made]
    largest = ir.Call("max", (ir.Call("max", (sizes[0], sizes[1])), ir.Call("max", (sizes[2], sizes[3]))))
    both = (ir.Call("select", (was, entry / largest, own)) for entry, own in zip(made, after, strict=True))
    values = (ir.Call("select", (is_, new, old)) for new, old in zip(both, before, strict=True))
    return [ir.Call("or", (was, is_)), *values]


@lru_cache(maxsize=1024)
def multiplies_fractions(function: ir.Function) -> bool:
    """Whether an operator is the product of matrices that is divided by its largest entry, one that is neutral
    adjoined.

    It is associative, as sums of floats count as exact.
    """
    op = operator(function)
    if op is None or [v.type for v in op.first] != [BOOL, *(op.first[-1].type,) * 4] or op.first[-1].type == BOOL:
        return False
    p, q, _ = arguments_of(op)
    return list(op.at(p, q)) == _product(p, q)


Powers = tuple[ir.Expr, ...]  # the coefficient of each power of a variable, the last of which is not known to be zero


@dataclass(frozen=True)
class _Fraction:
    above: Powers
    below: Powers


def moebius(t: Scalar, component: int, term: ir.Expr, variable: ir.Var) -> Moebius:
    """An expression as a fraction of linear functions of a variable.

    Raises
    ------
    NotLinear
        If it is none.

    Examples
    --------
    >>> from lift_egraph.language.types import F32
    >>> s, x = ir.Var("s", F32), ir.Var("x", F32)
    >>> print(*map(print_term, moebius(F32, 0, x + 1.0 / (x - s), s).matrix), sep=", ")
    x * -1.0, x * x + 1.0, -1.0, x

    Squares may cancel out on the way, as in the variance of a Kalman filter:

    >>> print(*map(print_term, moebius(F32, 0, s - s / (s + x) * s, s).matrix), sep=", ")
    x, 0.0, 1.0, x
    """
    if not t.is_float:
        raise NotLinear("division of whole numbers cuts off")
    fractions = _Fractions(t, variable)
    found = fractions(term)
    if max(len(found.above), len(found.below)) > LINEAR:
        raise fractions.problem(term)
    (b, a), (d, c) = (fractions.padded(powers, LINEAR) for powers in (found.above, found.below))
    return Moebius(t, (component,), (a, b, c, d))


class _Fractions:
    """Expressions as fractions of polynomials in a variable, whose coefficients that are zero are known to be."""

    def __init__(self, t: Scalar, variable: ir.Var) -> None:
        self.t, self.variable = t, variable
        self.zero, self.one = RING.zero(t), RING.one(t)

    def __call__(self, term: ir.Expr) -> _Fraction:
        if self.is_free(term):
            return _Fraction((term,), (self.one,))
        match term:
            case ir.Var():
                return _Fraction((self.zero, self.one), (self.one,))
            case ir.Call(op="add", arguments=(a, b)):
                return self.sum(self(a), self(b))
            case ir.Call(op="sub", arguments=(a, b)):
                return self.sum(self(a), self.negative(self(b)))
            case ir.Call(op="neg", arguments=(a,)):
                return self.negative(self(a))
            case ir.Call(op="mul", arguments=(a, b)):
                return self.product(self(a), self(b))
            case ir.Call(op="div", arguments=(a, b)):
                below = self(b)
                return self.product(self(a), _Fraction(below.below, below.above))
            case ir.Call(op="select", arguments=(condition, a, b)) if self.is_free(condition):
                return self.chosen(condition, self(a), self(b))
        raise self.problem(term)

    def problem(self, term: ir.Expr) -> NotLinear:
        return NotLinear(f"{print_term(term)} is no fraction of functions that are linear in the accumulator")

    def is_free(self, term: ir.Expr) -> bool:
        return self.variable not in ir.free_variables(term)

    def added(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        """A sum, without what cancels out, which floats would lose others beside."""
        made = RING.sum(a, b, self.t)
        try:
            terms, total = (polynomial(RING, self.t, e) for e in (a, b)), polynomial(RING, self.t, made)
            return made if len(total) == sum(map(len, terms)) else self.written(total)
        except NoNormalForm:
            return made

    def written(self, found: Polynomial) -> ir.Expr:
        made = self.zero
        for monomial, count in found.items():
            part: ir.Expr = self.one
            for atom, power in monomial:
                for _ in range(power):
                    part = RING.product(part, atom, self.t)
            made = RING.sum(made, self.scaled(part, float(count)), self.t)
        return made

    def scaled(self, part: ir.Expr, by: float) -> ir.Expr:
        return ir.Call("neg", (part,)) if by == -1.0 else RING.product(ir.Literal(by, self.t), part, self.t)

    def padded(self, powers: Powers, count: int) -> Powers:
        return (*powers, *(self.zero,) * (count - len(powers)))

    def of_each(self, a: Powers, b: Powers, both: Callable[[ir.Expr, ir.Expr], ir.Expr]) -> Powers:
        """What is made of the coefficients of both, up to the last that is not zero."""
        count = max(len(a), len(b))
        made = list(map(both, self.padded(a, count), self.padded(b, count)))
        while len(made) > 1 and made[-1] == self.zero:
            made.pop()
        return tuple(made)

    def plus(self, a: Powers, b: Powers) -> Powers:
        return self.of_each(a, b, self.added)

    def times(self, a: Powers, b: Powers) -> Powers:
        made: list[ir.Expr] = [self.zero] * (len(a) + len(b) - 1)
        if len(made) > MOST_POWERS:
            raise self.problem(self.text(a) * self.text(b))
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                made[i + j] = RING.sum(made[i + j], RING.product(x, y, self.t), self.t)
        return tuple(made)

    def text(self, powers: Powers) -> ir.Expr:
        made = self.zero
        for c in reversed(powers):
            made = RING.sum(RING.product(made, self.variable, self.t), c, self.t)
        return made

    def are_equal(self, a: Powers, b: Powers) -> bool:
        count = max(len(a), len(b))
        pairs = zip(self.padded(a, count), self.padded(b, count), strict=True)
        return all(equal_over(RING, self.t, x, y) for x, y in pairs)

    def negative(self, a: _Fraction) -> _Fraction:
        def minus(c: ir.Expr) -> ir.Expr:
            if isinstance(c, ir.Literal):
                return c if c == self.zero else replace(c, value=-c.value)
            return ir.Call("neg", (c,))

        return _Fraction(tuple(map(minus, a.above)), a.below)

    def sum(self, a: _Fraction, b: _Fraction) -> _Fraction:
        if self.are_equal(a.below, b.below):
            return _Fraction(self.plus(a.above, b.above), a.below)
        above = self.plus(self.times(a.above, b.below), self.times(b.above, a.below))
        return _Fraction(above, self.times(a.below, b.below))

    def product(self, a: _Fraction, b: _Fraction) -> _Fraction:
        if self.are_equal(a.above, b.below):
            return _Fraction(b.above, a.below)
        if self.are_equal(a.below, b.above):
            return _Fraction(a.above, b.below)
        return _Fraction(self.times(a.above, b.above), self.times(a.below, b.below))

    def chosen(self, condition: ir.Expr, a: _Fraction, b: _Fraction) -> _Fraction:
        def either(x: ir.Expr, y: ir.Expr) -> ir.Expr:
            return x if x == y else ir.Call("select", (condition, x, y))

        return _Fraction(self.of_each(a.above, b.above, either), self.of_each(a.below, b.below, either))
