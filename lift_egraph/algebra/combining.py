"""Folds that combine the accumulator with what is computed of each element: ``f (s, x) = s ⊕ g x``.

They are reductions of what g makes. A fold's operator is taken apart where the accumulator does not occur: the largest
such parts are g, and the operator with variables for them is ⊕, if it is associative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

from lift_egraph.algebra import laws
from lift_egraph.algebra.automata import composes_words
from lift_egraph.algebra.compensated import compensates
from lift_egraph.algebra.declared import believed
from lift_egraph.algebra.expressions import (
    Binary,
    binder_of,
    computed_once,
    fold_step,
    numbered,
    packed,
    right_nested,
    shaped_binder,
)
from lift_egraph.language import ir
from lift_egraph.language.binders import with_parts
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
    op = fold_step(function)
    if op is None or compensates(function) or composes_words(op):
        return None
    given = numbered("e", [v.type for v in op.first])
    proofs: dict[str, None] = {}
    element: dict[int, ir.Expr] = {}
    results: dict[int, ir.Expr] = {}
    for group in op.independent():
        found = combined_group(op, group, [given[i] for i in group])
        if found is None:
            return None
        proofs[found.why] = None
        element |= dict(zip(group, found.element, strict=True))
        results |= dict(zip(group, found.results, strict=True))
    t = type_of(ir.function_body(function).body)
    each, combined = (packed([made[i] for i in range(len(given))], t) for made in (element, results))
    binder = ir.PairBinder(shaped_binder(op.first, t), shaped_binder(given, t))
    why = f"both sides of associativity are {' and '.join(proofs)}"
    return Combining(ir.Lambda(op.second, computed_once(each)), ir.Lambda(binder, combined), why)


@dataclass(frozen=True)
class Combined:
    """What is computed of an element for some components, and these combined with variables for it."""

    element: tuple[ir.Expr, ...]
    results: tuple[ir.Expr, ...]
    why: str


def combined_group(op: Binary, group: Sequence[int], given: Sequence[ir.Var]) -> Combined | None:
    """Some components of an accumulator as combined with something of the element, by an associative operator; None if
    that is not known.

    Parameters
    ----------
    given
        Variables for what is computed of the element.
    """
    parts = dict.fromkeys(p for i in group for p in _elements(op.results[i], frozenset(op.first)))
    types = [op.first[i].type for i in group]
    if sorted(str(type_of(p)) for p in parts) != sorted(map(str, types)):
        return None
    for order in permutations(parts):
        if [type_of(p) for p in order] == types:
            named = dict(zip(order, given, strict=True))
            found = tuple(with_parts(op.results[i], named) for i in group)
            of = ir.PairBinder(binder_of([op.first[i] for i in group]), binder_of(given))
            if why := laws.associative(ir.Lambda(of, right_nested(found))):
                return Combined(order, found, why)
    return None


def _elements(term: ir.Expr, state: frozenset[ir.Var]) -> Iterator[ir.Expr]:
    """The largest parts of an expression that have variables, but none of the accumulator's."""
    free = ir.free_variables(term)
    if free and state.isdisjoint(free) and not (isinstance(term, ir.Call) and term.op == "not"):  # both may occur
        yield term
    elif isinstance(term, ir.Call):
        for a in term.arguments:
            yield from _elements(a, state)
