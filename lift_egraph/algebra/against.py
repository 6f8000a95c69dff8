"""Laws that fail of a fold's operator f, with values for which they do: what is said of folds that stay loops.

A function that is linear in the accumulator over a semiring, up to what is added, is so for any values a, b and c:
``f (a ⊕ b) ⊕ f (0) = f (a) ⊕ f (b)`` and ``f (c ⊗ a) ⊕ c ⊗ f (0) = c ⊗ f (a) ⊕ f (0)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lift_egraph.algebra.expressions import Binary
from lift_egraph.algebra.laws import against_associativity
from lift_egraph.algebra.semirings import Semiring, semirings_on
from lift_egraph.algebra.trials import counterexample
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.types import Scalar

Values = Sequence[ir.Expr]


def against_linearity(op: Binary, group: Sequence[int], semiring: Semiring | None = None) -> str | None:
    """Values of some components for which they are not linear in these; None if none are found.

    Parameters
    ----------
    semiring
        Over which they are not. Without one each component is taken over the first of its type: numbers over (+, ·),
        and truth values over (or, and).
    """
    own, elements = [op.first[i] for i in group], ir.bound_variables(op.second)
    over = [semiring or _first_of(v) for v in own]
    zero = [s.zero(_scalar(v)) for s, v in zip(over, own, strict=True)]
    taken = {v.name for v in (*op.first, *elements)}
    names = [name for name in "abcpquvw" if not any(other.startswith(name) for other in taken)]
    a, b, c = (
        [ir.Var(name + str(i) * (len(own) > 1), v.type) for i, v in enumerate(own)]
        for name in [*names, "a'", "b'", "c'"][:3]
    )

    def at(values: Values) -> list[ir.Expr]:
        known = dict(zip(own, values, strict=True))
        results = op.at([known.get(v, v) for v in op.first], elements)
        return [results[i] for i in group]

    def plus(one: Values, other: Values) -> list[ir.Expr]:
        return [ir.Call(s.plus, (x, y)) for s, x, y in zip(over, one, other, strict=True)]

    def times(one: Values, other: Values) -> list[ir.Expr]:
        return [ir.Call(s.times, (x, y)) for s, x, y in zip(over, one, other, strict=True)]

    p, q, r = (v[0].name.rstrip("0") for v in (a, b, c))
    semirings = list(dict.fromkeys(over))
    add, multiply = (semirings[0].sign, semirings[0].sign_of_times) if len(semirings) == 1 else ("⊕", "⊗")
    none = ", ".join(map(print_term, zero))
    laws = (
        (
            f"f ({p} {add} {q}) {add} f ({none}) is not f ({p}) {add} f ({q})",
            *(plus(at(plus(a, b)), at(zero)), plus(at(a), at(b))),
        ),
        (
            f"f ({r} {multiply} {p}) {add} {r} {multiply} f ({none}) is not {r} {multiply} f ({p}) {add} f ({none})",
            *(plus(at(times(c, a)), times(c, at(zero))), plus(times(c, at(a)), at(zero))),
        ),
    )
    of_types = "" if len(semirings) == 1 else f"over {' and '.join(map(str, semirings))}, "
    for fractions in (False, True):
        for law, left, right in laws:
            if found := counterexample(left, right, fractions=fractions):
                return f"{of_types}{law}, {found}"
    return None


@lru_cache(maxsize=1024)
def not_associative(function: ir.Function) -> str | None:
    """Values for which an operator is not associative; None if none are found, or its arguments have two types."""
    found = against_associativity(function)
    return found and f"nor is it associative: f (f (a, b), c) is not f (a, f (b, c)), {found}"


def not_distributive(semiring: Semiring, t: Scalar) -> str | None:
    """Values for which one operation does not distribute over the other; None where they do not work on the type."""
    a, b, c = (ir.Var(name, t) for name in "abc")
    left = ir.Call(semiring.times, (a, ir.Call(semiring.plus, (b, c))))
    right = ir.Call(semiring.plus, (ir.Call(semiring.times, (a, b)), ir.Call(semiring.times, (a, c))))
    try:
        type_of(left)
    except TypeProblem:
        return None
    found = counterexample([left], [right])
    return found and f"{print_term(left)} is not {print_term(right)}, {found}"


def _first_of(v: ir.Var) -> Semiring:
    """The first semiring of a variable's type."""
    return semirings_on(_scalar(v))[0]


def _scalar(v: ir.Var) -> Scalar:
    assert isinstance(v.type, Scalar)
    return v.type
