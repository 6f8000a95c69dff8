"""Folds that go on from row to row, as one of all rows: their chunks need not be rows.

The terms are built here as the rules `fold_of_rows` and `reduce_of_rows` of `lift_egraph.rules.reduction` build them;
that they do is what the phase ``joined_sums`` shows.
"""

from __future__ import annotations

from typing import TypeVar

from lift_egraph.language import ir

T = TypeVar("T", bound=ir.Part)


def with_joined_folds(term: ir.Expr) -> ir.Expr | None:
    """The term with its folds of folds, each of which begins with what the one before gives, as one; None if there are
    none.
    """
    made = _joined(term)
    return None if made == term else made


def _joined(term: T) -> T:
    if isinstance(term, ir.MapLevel):  # somebody decided how it runs
        return term
    made = ir.map_parts(term, _joined)
    found = _as_one(made) if isinstance(made, ir.ReduceSeq) else None
    return made if found is None else found  # pyright: ignore[reportReturnType]


def _as_one(fold: ir.ReduceSeq) -> ir.ReduceSeq | ir.Reduce | None:
    match fold.operator:
        case ir.Lambda(
            binder=ir.PairBinder(first=state, second=p),
            body=(
                ir.ReduceSeq(operator=f, initial=start, array=b) | ir.Reduce(operator=f, initial=start, array=b)
            ) as inner,
        ) if start == _value(state):
            pass
        case _:
            return None
    if isinstance(inner, ir.Reduce) and not isinstance(state, ir.Var):
        return None
    own, row = (set(ir.bound_variables(q)) for q in (state, p))
    if not own.isdisjoint(ir.free_variables(b)) or not (own | row).isdisjoint(ir.free_variables(f)):
        return None
    rows = fold.array if p == b else ir.Map(ir.Lambda(p, b), fold.array)
    return type(inner)(f, fold.initial, ir.Join(rows))


def _value(state: ir.Binder) -> ir.Expr | None:
    """A name, or a pair of two, as a term."""
    match state:
        case ir.Var():
            return state
        case ir.PairBinder(first=ir.Var() as a, second=ir.Var() as b):
            return ir.MakePair(a, b)
    return None
