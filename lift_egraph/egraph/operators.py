"""What an e-graph is told of operators that are no built-in operation: the laws that are found in their expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from egglog import String
from egglog.egraph import ActionLike

from lift_egraph.algebra import laws
from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import function_to_egg, known_operator, operator_to_egg, to_egg
from lift_egraph.language import ir


@dataclass(frozen=True)
class Use:
    """A fold by an operator, from an initial value."""

    pattern: type[ir.Expr]
    operator: ir.Lambda
    initial: ir.Expr

    @property
    def is_reduction(self) -> bool:
        """Whether the operator may be associative: its arguments have one type."""
        return self.pattern in (ir.Reduce, ir.Scan)


def uses_in(term: ir.Expr) -> tuple[Use, ...]:
    """The folds of a term whose operators are no built-in operation."""
    return tuple(dict.fromkeys(_uses(term)))


def _uses(term: ir.Part) -> Iterator[Use]:
    for t in ir.subterms(term):
        if isinstance(t, ir.FOLDS) and isinstance(t.operator, ir.Lambda) and known_operator(t.operator) is None:
            yield Use(type(t), t.operator, t.initial)


@lru_cache(maxsize=1024)
def facts_of(use: Use) -> tuple[ActionLike, ...]:
    """What is known of an operator as relations: its laws, and of a fold's what makes it a reduction."""
    f, facts = use.operator, list[ActionLike]()
    if use.is_reduction:
        op = operator_to_egg(f)
        if laws.associative(f):
            facts.append(sorts.associative(op))
        if laws.commutative(f):
            facts.append(sorts.commutative(op))
        if laws.neutral(f, use.initial):
            facts.append(sorts.neutral(op, to_egg(use.initial)))
        if found := laws.built_in(f):
            facts.append(sorts.built_in(op, String(found[0])))
    acting = None if use.is_reduction and laws.associative(f) else action_of(f)
    if isinstance(acting, Action):
        functions = (function_to_egg(g) for g in (f, acting.matrix, acting.act))
        given, matrix, act = functions
        facts.append(sorts.acts(given, matrix, operator_to_egg(acting.operator), to_egg(acting.one), act))
    return tuple(facts)
