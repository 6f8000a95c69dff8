"""Rules as far as they are exact: what changes results of floats applies only where there are none.

A rule with flags (`lift_egraph.egraph.rule.FLAGS`) changes what floats it names. Whole numbers wrap, so they are added
and multiplied in any order alike. The exact form of such a rule has one more condition for each expression that stands
on its left-hand side: that there are no floats in its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import egglog
from egglog import declarations as egg
from egglog.declarations import Ident
from egglog.egraph import RewriteOrRule

from lift_egraph.egraph import sorts
from lift_egraph.egraph.rule import FLAGS, Rule, own_name
from lift_egraph.egraph.rule_edits import Expression, expression, left_of, places, right_of, with_argument
from lift_egraph.egraph.saturate import Phase
from lift_egraph.egraph.sorts import Ex

NO_FLOATS = ",  no floats"
_CONDITION = sorts.without_floats(sorts.ty(egglog.var("e", Ex)))


@dataclass(frozen=True)
class ExactRule(Rule):
    """A rule where it changes no floats; `of` is the rule as it stands."""

    of: Rule | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return exact_rule, (self.of,)


def exact_phase(phase: Phase) -> Phase:
    """A phase with the exact forms of its rules."""
    rules, simplification = (tuple(map(exact_rule, rules)) for rules in (phase.rules, phase.simplification))
    return replace(phase, rules=rules, simplification=simplification)


@cache
def exact_rule(rule: Rule) -> Rule:
    """The rule as far as it keeps each bit of floats: itself, if it has no flags.

    >>> from lift_egraph.rules import map_fusion, partial_reduce
    >>> exact_rule(map_fusion) is map_fusion, exact_rule(partial_reduce).flags
    (True, ())
    """
    if not rule.flags:
        return rule
    given = rule.ruleset.__egg_decls__  # egglog runs the function now
    declarations = egg.Declarations.create(given, _CONDITION.__egg_decls__)  # pyright: ignore
    rules = egglog.Ruleset(Ident(own_name(rule.name), rule.body.__module__))
    for declared in rule.ruleset.__egg_ruleset__.rules:
        for made in _exact(declared):
            rules.append(RewriteOrRule(declarations, made))
    facts = {name: getattr(rule, name) for name in Rule.__dataclass_fields__}
    return ExactRule(**{**facts, **dict.fromkeys(FLAGS, False), "law": rule.law + NO_FLOATS, "ruleset": rules}, of=rule)


def _exact(declared: Any) -> Iterator[Any]:
    """A declaration of egglog's with the conditions; one that equates nothing stays as it is."""
    if isinstance(declared, egg.BiRewriteDecl):
        left, right = left_of(declared), right_of(declared)
        for one, other in ((left, right), (right, left)):
            yield from _exact(egg.RewriteDecl(declared.tp, one.expr, other.expr, declared.conditions, False))
    elif isinstance(declared, egg.RewriteDecl):
        yield replace(declared, conditions=(*declared.conditions, *_conditions([left_of(declared)])))
    elif isinstance(declared, egg.RuleDecl) and any(isinstance(a, egg.UnionDecl) for a in declared.head):
        yield replace(declared, body=(*declared.body, *_conditions(_matched(declared))))
    else:
        yield declared


def _matched(declared: egg.RuleDecl) -> Iterator[Expression]:
    """What a rule's conditions match."""
    for fact in declared.body:
        if isinstance(fact, egg.EqDecl):
            yield from (egg.TypedExprDecl(fact.tp, side) for side in (fact.left, fact.right))
        else:
            yield fact.typed_expr


def _conditions(matched: Iterator[Expression] | list[Expression]) -> Iterator[Any]:
    """That there are no floats in what is matched."""
    terms = (place.part for whole in matched for place in places(whole) if place.sort == Ex.__name__)
    whole = expression(_CONDITION)
    (types,) = whole.expr.args  # pyright: ignore
    for term in dict.fromkeys(terms):
        yield egg.ExprFactDecl(with_argument(whole, 0, with_argument(types, 0, term)))
