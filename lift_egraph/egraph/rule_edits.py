"""Rules with one part changed: what a mutation needs of egglog's declarations, which are no stable interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import egglog
from egglog import declarations as egg, var
from egglog.declarations import Ident
from egglog.egraph import RewriteOrRule

from lift_egraph.egraph import sorts
from lift_egraph.egraph.rule import Rule, own_name
from lift_egraph.egraph.rule_forms import Pattern, read_declared

Expression = egg.TypedExprDecl
Fact = egg.EqDecl | egg.ExprFactDecl
Rewrite = egg.RewriteDecl | egg.BiRewriteDecl


@dataclass(frozen=True)
class Place:
    """A part of a rewrite.

    Attributes
    ----------
    part
        What stands there.
    put
        The whole with something else there.
    """

    part: Expression
    put: Callable[[Expression], Expression]

    @property
    def sort(self) -> str:
        return self.part.tp.ident.name

    @property
    def pattern(self) -> Pattern:
        return read_declared(self.part)


def rewrites(rule: Rule) -> tuple[tuple[int, Rewrite], ...]:
    """The rewrites of a rule, with their places among all that it tells egglog."""
    rule.ruleset.__egg_decls__  # noqa: B018  # egglog runs the function now
    declared = rule.ruleset.__egg_ruleset__.rules
    return tuple((i, d) for i, d in enumerate(declared) if isinstance(d, egg.RewriteDecl | egg.BiRewriteDecl))


def edited(rule: Rule, at: int, rewrite: Rewrite, law: str) -> Rule:
    """The rule with another rewrite at a place, without its other rewrites, and with another law."""
    declarations = rule.ruleset.__egg_decls__
    rules = egglog.Ruleset(Ident(own_name(rule.name), rule.body.__module__))
    for i, declared in enumerate(rule.ruleset.__egg_ruleset__.rules):
        if i == at or not isinstance(declared, egg.RewriteDecl | egg.BiRewriteDecl):
            rules.append(RewriteOrRule(declarations, rewrite if i == at else declared))
    return replace(rule, law=law, ruleset=rules)


def watched(rule: Rule) -> egglog.Ruleset:
    """The rules of a rule, and one beside each that tells where it matched.

    That is the relation ``matched`` of its number among them and the class, ``matched_function`` for functions.
    """
    telling = (told(0, var("e", sort)) for sort, told in _TOLD)
    declarations = egg.Declarations.create(rule.ruleset.__egg_decls__, *telling)
    rules = egglog.Ruleset(Ident(own_name(rule.name), rule.body.__module__))
    for number, declared in enumerate(rule.ruleset.__egg_ruleset__.rules):
        rules.append(RewriteOrRule(declarations, declared))
        for place, facts in _matching(declared):
            for sort, told in _TOLD:
                if place.tp.ident.name == sort.__name__:
                    made = with_argument(expression(told(number, var("e", sort))), 1, place)
                    rules.append(RewriteOrRule(declarations, egg.RuleDecl((egg.ExprActionDecl(made),), facts, None)))
    return rules


_TOLD: tuple[tuple[Any, Callable[..., Any]], ...] = ((sorts.Ex, sorts.matched), (sorts.Fn, sorts.matched_function))


def _matching(declared: Any) -> Iterator[tuple[Expression, tuple[Any, ...]]]:
    """What a declaration rewrites, or states laws about, and on what conditions."""
    if isinstance(declared, egg.RewriteDecl | egg.BiRewriteDecl):
        sides = (declared.lhs, declared.rhs) if isinstance(declared, egg.BiRewriteDecl) else (declared.lhs,)
        for side in sides:
            here = egg.UnboundVarDecl("where it matched")
            yield (
                egg.TypedExprDecl(declared.tp, here),
                (egg.EqDecl(declared.tp, here, side), *declared.conditions),
            )
    elif isinstance(declared, egg.RuleDecl):
        unions = [a for a in declared.head if isinstance(a, egg.UnionDecl)]
        whole = [f for f in declared.body if isinstance(f, egg.EqDecl) and isinstance(f.left, egg.UnboundVarDecl)]
        if unions:
            yield egg.TypedExprDecl(unions[0].tp, unions[0].lhs), declared.body
        elif whole:
            yield egg.TypedExprDecl(whole[0].tp, whole[0].left), declared.body


def right_of(rewrite: Rewrite) -> Expression:
    """The right-hand side."""
    return egg.TypedExprDecl(rewrite.tp, rewrite.rhs)


def left_of(rewrite: Rewrite) -> Expression:
    """The left-hand side."""
    return egg.TypedExprDecl(rewrite.tp, rewrite.lhs)


def with_right(rewrite: Rewrite, right: Expression) -> Rewrite:
    """The rewrite with another right-hand side."""
    return replace(rewrite, rhs=right.expr)


def with_condition(rewrite: Rewrite, number: int, condition: Fact | None) -> Rewrite:
    """The rewrite with another condition, or without one."""
    put = () if condition is None else (condition,)
    return replace(rewrite, conditions=(*rewrite.conditions[:number], *put, *rewrite.conditions[number + 1 :]))


def sides_of(condition: Fact) -> tuple[tuple[Expression, Callable[[Expression], Fact]], ...]:
    """The expressions of a condition, and how each is replaced."""
    if isinstance(condition, egg.EqDecl):
        left, right = (egg.TypedExprDecl(condition.tp, e) for e in (condition.left, condition.right))
        return (left, lambda e: replace(condition, left=e.expr)), (right, lambda e: replace(condition, right=e.expr))
    return ((condition.typed_expr, egg.ExprFactDecl),)


def places(whole: Expression) -> Iterator[Place]:
    """All parts of an expression, the whole first."""
    yield Place(whole, lambda e: e)
    call = whole.expr
    if isinstance(call, egg.CallDecl):
        for i, argument in enumerate(call.args):
            for inner in places(argument):
                yield Place(inner.part, lambda e, i=i, inner=inner: with_argument(whole, i, inner.put(e)))


def with_argument(whole: Expression, number: int, argument: Expression) -> Expression:
    """A call with another argument."""
    call = whole.expr
    assert isinstance(call, egg.CallDecl)
    arguments = (*call.args[:number], argument, *call.args[number + 1 :])
    return replace(whole, expr=egg.CallDecl(call.callable, arguments, call.bound_tp_params))


def arguments_of(whole: Expression) -> tuple[Expression, ...]:
    """The arguments of a call; none if it is none."""
    return whole.expr.args if isinstance(whole.expr, egg.CallDecl) else ()


def relation_of(whole: Expression, names: tuple[str, ...]) -> str | None:
    """Which of some methods a call is of."""
    call = whole.expr
    name = getattr(call.callable, "method_name", None) if isinstance(call, egg.CallDecl) else None
    return name if name in names else None


def with_relation(whole: Expression, name: str) -> Expression:
    """A call of another method of the same class."""
    call = whole.expr
    assert isinstance(call, egg.CallDecl)
    return replace(whole, expr=egg.CallDecl(replace(call.callable, method_name=name), call.args))  # pyright: ignore


def expression(value: egglog.BaseExpr) -> Expression:
    """A value of egglog's as an expression."""
    return value.__egg_typed_expr__  # pyright: ignore


def plus(part: Expression, number: int) -> Expression:
    """A number of the e-graph and another added."""
    if isinstance(part.expr, egg.LitDecl):
        assert isinstance(part.expr.value, int)
        return replace(part, expr=egg.LitDecl(part.expr.value + number))
    made = expression(egglog.var("a", egglog.i64) + egglog.i64(number))
    return with_argument(made, 0, part)


def variable(name: str, like: Expression) -> Expression:
    """A variable of the sort of an expression."""
    return replace(like, expr=egg.UnboundVarDecl(name))


def variables(whole: Expression) -> set[str]:
    """The variables of an expression."""
    return {p.part.expr.name for p in places(whole) if isinstance(p.part.expr, egg.UnboundVarDecl)}
