"""Which folds of a program become reductions by associative operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard, TypeVar, Union

from lift_egraph.algebra.actions import Action, Refusal, action_of
from lift_egraph.algebra.elements import combining_of
from lift_egraph.algebra.laws import associative, built_in, neutral
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term

T = TypeVar("T", bound=ir.Part)
WHOLE = (ir.Reduce, *ir.SCANS, ir.ReduceSeq, *ir.SCAN_LOOPS)
Fold = Union[ir.Reduce, ir.Scan, ir.ScanExclusive, ir.ReduceSeq, ir.ScanSeq, ir.ScanExclusiveSeq]


def with_actions(term: ir.Expr) -> ir.Expr | None:
    """The term in which operators that are built-in operations in other words are these, and folds outside of all loops
    whose operators act like a monoid are reductions; None if there are none.
    """
    made = _acted(_in_plain_words(term))
    return None if alpha_equal(made, term) else made


def _in_plain_words(term: T) -> T:
    made = ir.map_parts(term, _in_plain_words)
    if isinstance(made, ir.Reduce) and isinstance(made.operator, ir.Lambda) and known_operator(made.operator) is None:
        found = built_in(made.operator)
        if found is not None:
            t = type_of(made.initial)
            a, b = ir.Var("a", t), ir.Var("b", t)
            operator = ir.Lambda(ir.PairBinder(a, b), ir.Call(found[0], (a, b)))
            return ir.Reduce(operator, made.initial, made.array)  # pyright: ignore[reportReturnType]
    return made


def _acted(term: ir.Expr) -> ir.Expr:
    """The term with its folds outside of functions changed, but also in the bodies of lets."""
    made = ir.map_parts(term, lambda p: _acted(p) if isinstance(p, ir.Expr) else p)
    if isinstance(made, ir.Apply) and isinstance(made.function, ir.Lambda):
        made = ir.Apply(ir.Lambda(made.function.binder, _acted(made.function.body)), made.argument)
    if not _may_act(made):
        return made
    found = action_of(made.operator)
    if not isinstance(found, Action):
        return _combined(made)
    matrices = ir.Map(found.matrix, made.array)
    if isinstance(made, ir.Reduce | ir.ReduceSeq):
        product = ir.Reduce(found.operator, found.one, matrices)
        return ir.Apply(found.act, ir.MakePair(product, made.initial))
    products = ir.Scan(found.operator, found.one, matrices)
    p = ir.Var("$p", type_of(found.one))
    return ir.Map(ir.Lambda(p, ir.Apply(found.act, ir.MakePair(p, made.initial))), products)


def _combined(fold: Fold) -> Fold:
    """A fold that combines the accumulator with a function of each element as the reduction of what that gives."""
    found = combining_of(fold.operator)
    if found is None or not neutral(found.operator, fold.initial):
        return fold
    pattern = {ir.ReduceSeq: ir.Reduce, ir.ScanSeq: ir.Scan, ir.ScanExclusiveSeq: ir.ScanExclusive}
    return pattern.get(type(fold), type(fold))(found.operator, fold.initial, ir.Map(found.element, fold.array))


def refusals(term: ir.Expr) -> Iterator[str]:
    """Why folds outside of all loops stay loops."""
    if _may_act(term):
        found = action_of(term.operator)
        if isinstance(found, Refusal) and _combined(term) is term:
            yield f"the fold by {print_term(term.operator)} stays a loop: {found}"
    for part in ir.parts(term):
        if isinstance(part, ir.Expr):
            yield from refusals(part)
    if isinstance(term, ir.Apply):
        yield from refusals(ir.function_body(term.function).body)


def _may_act(term: ir.Expr) -> TypeGuard[Fold]:
    """Whether a term folds a whole array by an operator that is no reduction's as it stands."""
    return isinstance(term, WHOLE) and isinstance(term.operator, ir.Lambda) and not _is_reduction(term)


def _is_reduction(fold: ir.Expr) -> bool:
    if not isinstance(fold, ir.Reduce | ir.Scan):
        return False
    return known_operator(fold.operator) is not None or associative(fold.operator) is not None
