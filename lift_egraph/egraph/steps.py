"""Iterates that change the length of their array: one step after the other, and steps as one iterate again.

The type of a step follows from the length that it is at, so the e-graph holds each step as a function of its own, where
rules match as anywhere. What it holds is read as an iterate where the steps, at the lengths of the steps, are one
function: numbers in them may be linear in the length.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, fresh_name
from lift_egraph.language.check import codomain, domain, iterate_step, size_of
from lift_egraph.language.nat import Atom, Monomial, Nat, Operation, nat, operate
from lift_egraph.language.sizes import size_value, sizes_in, substitute_nats
from lift_egraph.language.types import I32, Array, DataType, Pair


def lengths(term: ir.Iterate) -> tuple[Nat, ...]:
    """The lengths of an iterate's array, the first and each other one: the last step is at the last, or keeps it.

    They are found once for all iterates with fewer steps that `fewer_steps` makes of it.
    """
    known = term.__dict__.get("_lengths")
    if known is None:
        found = [size_of(term.array)]
        while len(found) <= term.times:
            step = iterate_step(term, found[-1])
            if domain(step) == codomain(step):
                break
            found.append(size_of(step.body))
        known = term.__dict__["_lengths"] = tuple(found)
    return known


def changing_steps(term: ir.Part) -> int:
    """How many steps of a term change the length of their array; none if it is no iterate."""
    return len(lengths(term)) - 1 if isinstance(term, ir.Iterate) else 0


def fewer_steps(term: ir.Iterate, times: int) -> ir.Expr:
    """An iterate with fewer steps: the array itself, without any."""
    if not times:
        return term.array
    made = ir.Iterate(times, term.size, term.function, term.array)
    made.__dict__["_lengths"] = lengths(term)[: times + 1]
    return made


def one_more_step(function: ir.Function, array: ir.Expr) -> ir.Iterate:
    """A function of an array as a step: one more of the iterate that the array is, if it is a step of that.

    >>> from lift_egraph.language.syntax import parse_term, print_term
    >>> halve = "iterate(1, fun (h: [f32]{0}) => slice(0, {0} / 2, h), xs)"
    >>> first, second = (parse_term(halve.format(n), {"xs": f"[f32]{n}"}) for n in (8, 4))
    >>> print(print_term(one_more_step(second.function, first)))
    iterate(2, fun (h: [f32]n) => slice(0, n / 2, h), xs)
    """
    assert isinstance(function, ir.Lambda), function
    before = array if isinstance(array, ir.Iterate) and array.times else None
    together = before and _as_one(before, function)
    return together or ir.Iterate(1, fresh_name("n", _names(function)), function, array)


def _as_one(before: ir.Iterate, function: ir.Lambda) -> ir.Iterate | None:
    first, last = size_of(before.array), size_of(before)
    if alpha_equal(iterate_step(before, last), function):
        return ir.Iterate(before.times + 1, before.size, before.function, before.array)
    if before.times > 1 or first == last:
        return None
    one = iterate_step(before, first)
    size = fresh_name("n", _names(one) | _names(function))
    try:
        made = _Both(size, first, last).term(one, function, {})
    except _Different:
        return None
    return ir.Iterate(2, size, made, before.array)


def _names(function: ir.Lambda) -> set[str]:
    return {*sizes_in(function), *(t.size for t in ir.subterms(function) if isinstance(t, ir.Iterate))}


class _Different(Exception):
    """Two terms are not the same at two lengths."""


class _Both:
    """What two terms are at any length that are known at two."""

    def __init__(self, size: str, first: Nat, last: Nat) -> None:
        assert first.constant is not None
        assert last.constant is not None
        self.size, self.first, self.last = nat(size), first.constant, last.constant

    def term(self, a: Any, b: Any, names: Mapping[ir.Var, ir.Var]) -> Any:
        if isinstance(a, ir.Literal | ir.SizeLiteral):
            return self.literal(a, b)
        if type(a) is not type(b):
            raise _Different
        if isinstance(a, ir.Var):
            if names.get(b, b) != a:
                raise _Different
            return ir.Var(a.name, self.type(a.type, b.type))
        if isinstance(a, ir.Lambda):
            inner = {v: w for v, w in names.items() if w not in ir.bound_variables(a.binder)}
            binder = self.binder(a.binder, b.binder, inner)
            return ir.Lambda(binder, self.term(a.body, b.body, inner))
        if isinstance(a, ir.Input):
            return self.same(a, b)
        if isinstance(a, ir.Iterate):
            step = substitute_nats(b.function, {b.size: nat(a.size)})
            b = ir.Iterate(b.times, a.size, step, b.array)
        if isinstance(a, ir.IndexFunction):
            b = ir.IndexFunction(a.variable, b.body.substitute({b.variable: nat(a.variable)}))
        if isinstance(a, Nat):
            return self.number(a, b)
        if isinstance(a, tuple):
            if len(a) != len(b):
                raise _Different
            return tuple(self.term(x, y, names) for x, y in zip(a, b, strict=True))
        if isinstance(a, ir.Level | ir.Boundary) or not hasattr(a, "__dataclass_fields__"):
            return self.same(a, b)
        return type(a)(*(self.term(getattr(a, f), getattr(b, f), names) for f in a.__dataclass_fields__))

    def same(self, a: Any, b: Any) -> Any:
        if a != b:
            raise _Different
        return a

    def literal(self, a: ir.Literal | ir.SizeLiteral, b: Any) -> ir.Expr:
        if a == b:
            return a
        if not (isinstance(a, ir.Literal) and isinstance(b, ir.Literal) and a.type == b.type == I32):
            raise _Different
        return size_value(self.number(nat(int(a.value)), nat(int(b.value))))

    def binder(self, a: ir.Binder, b: ir.Binder, names: dict[ir.Var, ir.Var]) -> ir.Binder:
        """The binder of both; `names` learns which variable of the first a variable of the second is."""
        if isinstance(a, ir.Var) and isinstance(b, ir.Var):
            names[b] = a
            return ir.Var(a.name, self.type(a.type, b.type))
        if isinstance(a, ir.PairBinder) and isinstance(b, ir.PairBinder):
            first = self.binder(a.first, b.first, names)
            return ir.PairBinder(first, self.binder(a.second, b.second, names))
        raise _Different

    def type(self, a: DataType, b: DataType) -> DataType:
        if isinstance(a, Array) and isinstance(b, Array):
            return Array(self.number(a.size, b.size), self.type(a.element, b.element))
        if isinstance(a, Pair) and isinstance(b, Pair):
            return Pair(self.type(a.first, b.first), self.type(a.second, b.second))
        return self.same(a, b)

    def number(self, a: Nat, b: Nat) -> Nat:
        if a == b:
            return a
        (terms, x), (others, y) = _apart(a), _apart(b)
        if len(terms) != len(others):
            raise _Different
        made = self.linear(x, y)
        for (factors, x), (other_factors, y) in zip(terms, others, strict=True):
            if len(factors) != len(other_factors):
                raise _Different
            product = self.linear(x, y)
            for one, other in zip(factors, other_factors, strict=True):
                product *= self.atom(one, other)
            made += product
        return made

    def atom(self, a: Atom, b: Atom) -> Nat:
        if isinstance(a, Operation) and isinstance(b, Operation) and a.symbol == b.symbol:
            return operate(a.symbol, self.number(a.left, b.left), self.number(a.right, b.right))
        return nat(self.same(a, b))

    def linear(self, a: int, b: int) -> Nat:
        """The number that is linear in the length and has these values at the two."""
        slope = Fraction(b - a, self.last - self.first)
        rest = a * slope.denominator - slope.numerator * self.first
        return (self.size * slope.numerator + rest) // slope.denominator


def _apart(number: Nat) -> tuple[list[tuple[Monomial, int]], int]:
    """The terms of a sum, and the number in it."""
    terms = dict(number.terms)
    rest = terms.pop((), 0)
    return list(terms.items()), rest
