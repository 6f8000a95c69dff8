"""Folds of what is folded of ranges: whether the inner operator distributes over the outer one, as products over sums.

So the sum of the products of all tails of an array needs none of these products: Horner's rule.

Source: Bird, "An introduction to the theory of lists", 1987.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lift_egraph.algebra.compensated import compensates
from lift_egraph.algebra.declared import HOW, believed, is_believed
from lift_egraph.algebra.equations import arguments_of, leaves_of_value, operator
from lift_egraph.algebra.laws import proof
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.nat import Nat
from lift_egraph.language.pretty import print_term
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar


@dataclass(frozen=True)
class Ranges:
    """An array of folds of ranges of another one: of `size` places, each known as `place` in its fold."""

    size: Nat
    place: ir.Var
    fold: ir.ReduceRange


@dataclass(frozen=True)
class Distribution:
    """That an operator distributes over another from the right, whose start annihilates for it from the left.

    Attributes
    ----------
    why
        Why it does, in words.
    """

    times: ir.Function
    plus: ir.Function
    zero: ir.Expr
    why: str

    def __str__(self) -> str:
        times, plus = print_term(self.times), print_term(self.plus)
        return f"{times} distributes over {plus}, and {print_term(self.zero)} annihilates for it: {self.why}"


def folded_ranges(array: ir.Part) -> Ranges | None:
    """What is folded of a range for each place, or None of other arrays.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> tails = parse_program("program p(xs: [f32]N) = generate(N, fun i => reduceRange(mul, 1.0, i, N, xs))").body
    >>> found = folded_ranges(tails)
    >>> str(found.size), print_term(found.fold.low)
    ('N', 'i')
    >>> folded_ranges(tails.function.body.array) is None
    True
    """
    match array:
        case (
            ir.Map(function=ir.Lambda() as f, array=ir.Generate(size=size, function=ir.Lambda(binder=j, body=place)))
        ) if place == j:
            pass
        case ir.Generate(size=size, function=ir.Lambda() as f):
            pass
        case _:
            return None
    if not isinstance(f.binder, ir.Var) or not isinstance(f.body, ir.ReduceRange):
        return None
    return Ranges(size, f.binder, f.body)


def distributions_in(term: ir.Expr) -> tuple[Distribution, ...]:
    """What is known of the operators of folds of what is folded of ranges."""
    return tuple(dict.fromkeys(_distributions(term)))


def _distributions(term: ir.Expr) -> Iterator[Distribution]:
    for t in ir.subterms(term):
        if isinstance(t, ir.Reduce) and (found := folded_ranges(t.array)):
            yield from distributions(found.fold.operator, t)


def distributions(times: ir.Function, fold: ir.Reduce) -> Iterator[Distribution]:
    """That an operator distributes over that of a fold: what that begins with is zero, or what is neutral for it."""
    for zero in dict.fromkeys((fold.initial, *_neutral(fold.operator))):
        if why := _why(times, fold.operator, zero, believed()):
            yield Distribution(times, fold.operator, zero, why)


@lru_cache(maxsize=1024)
def _why(times: ir.Function, plus: ir.Function, zero: ir.Expr, _: int) -> str | None:
    """Why ``(a ⊕ b) ⊗ c = a ⊗ c ⊕ b ⊗ c`` and ``z ⊗ c = z``, or None if that is not known."""
    product, total, z = operator(times), operator(plus), leaves_of_value(zero)
    if product is None or total is None or z is None or [v.type for v in product.first] != [type_of(e) for e in z]:
        return None
    if compensates(times) or compensates(plus):
        return None
    a, b, c = arguments_of(product)
    annihilates = HOW if is_believed("annihilating", times, zero) else proof(product.at(z, c), z)
    if annihilates is None:
        return None
    apart = total.at(product.at(a, c), product.at(b, c))
    distributes = HOW if is_believed("distributes", times, plus) else proof(product.at(total.at(a, b), c), apart)
    return distributes and f"both sides are {' and '.join(dict.fromkeys((distributes, annihilates)))}"


def _neutral(plus: ir.Function) -> Iterator[ir.Expr]:
    """What is neutral for an operator that is a scalar operation."""
    if isinstance(plus, ir.Lambda) and isinstance(plus.body, ir.Call) and plus.body.op in LAWS:
        t = plus.body.arguments[0].type if isinstance(plus.body.arguments[0], ir.Var) else None
        if isinstance(t, Scalar) and t.name in (values := LAWS[plus.body.op].neutral):
            yield ir.Literal(values[t.name], t)
