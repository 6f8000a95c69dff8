"""Folds that combine the accumulator with what is computed of each element: ``f (s, x) = s ⊕ g x``.

They are reductions of what g makes. A fold's operator is taken apart where the accumulator does not occur: the largest
such parts are g, and the operator with variables for them is ⊕, if it is associative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

from lift_egraph.algebra import laws
from lift_egraph.algebra.declared import believed
from lift_egraph.algebra.expressions import binder_of, numbered, opened, packed, right_nested, shaped_binder
from lift_egraph.language import ir
from lift_egraph.language.check import type_of


@dataclass(frozen=True)
class Combining:
    """A fold's operator f as ``f (s, x) = s ⊕ g x``, with g as `element` and the associative ⊕ as `operator`.

    Attributes
    ----------
    why
        Why ⊕ is associative, in words.
    """

    element: ir.Lambda
    operator: ir.Lambda
    why: str


def combining_of(function: ir.Function) -> Combining | None:
    """A fold's operator as one that combines the accumulator with a function of the element, if it is known to be one.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program(
    ...     "program p(xs: [f32]N, is: [i32]N) = "
    ...     "reduce(fun ((m, i), (x, j)) => select(x * x > m, (x * x, j), (m, i)), (0.0, 0), zip(xs, is))"
    ... ).body
    >>> found = combining_of(fold.operator)
    >>> print(print_term(found.element))
    fun (x, j) => (x * x, j)
    >>> print(print_term(found.operator))
    fun ((m, i), e0, e1) => (select(e0 > m, e0, m), select(e0 > m, e1, i))
    """
    return _combining_of(function, believed())


@lru_cache(maxsize=1024)
def _combining_of(function: ir.Function, _: int) -> Combining | None:
    op = opened(function)
    if op is None or [v.type for v in op.first] != [type_of(r) for r in op.results]:
        return None
    given = numbered("e", [v.type for v in op.first])
    proofs: dict[str, None] = {}
    element: dict[int, ir.Expr] = {}
    results: dict[int, ir.Expr] = {}
    for group in op.independent():
        parts = dict.fromkeys(p for i in group for p in _elements(op.results[i], frozenset(op.first)))
        if sorted(str(type_of(p)) for p in parts) != sorted(str(op.first[i].type) for i in group):
            return None
        types = [op.first[i].type for i in group]
        for order in permutations(parts):
            if [type_of(p) for p in order] == types:
                named = {p: given[i] for p, i in zip(order, group, strict=True)}
                found = [_with(op.results[i], named) for i in group]
                of = [op.first[i] for i in group], [given[i] for i in group]
                if why := laws.associative(ir.Lambda(ir.PairBinder(*map(binder_of, of)), right_nested(found))):
                    proofs[why] = None
                    element |= dict(zip(group, order, strict=True))
                    results |= dict(zip(group, found, strict=True))
                    break
        else:
            return None
    t = type_of(ir.function_body(function).body)
    each, combined = (packed([made[i] for i in range(len(given))], t) for made in (element, results))
    binder = ir.PairBinder(shaped_binder(op.first, t), shaped_binder(given, t))
    why = f"both sides of associativity are {' and '.join(proofs)}"
    return Combining(ir.Lambda(op.second, each), ir.Lambda(binder, combined), why)


def _elements(term: ir.Expr, state: frozenset[ir.Var]) -> Iterator[ir.Expr]:
    """The largest parts of an expression that have variables, but none of the accumulator's."""
    free = ir.free_variables(term)
    if free and state.isdisjoint(free) and not (isinstance(term, ir.Call) and term.op == "not"):  # both may occur
        yield term
    elif isinstance(term, ir.Call):
        for a in term.arguments:
            yield from _elements(a, state)


def _with(term: ir.Expr, named: Mapping[ir.Expr, ir.Expr]) -> ir.Expr:
    """The expression with variables for its parts."""
    if term in named:
        return named[term]
    return ir.Call(term.op, tuple(_with(a, named) for a in term.arguments)) if isinstance(term, ir.Call) else term
