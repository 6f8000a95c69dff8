"""Which folds remember the element before, and are reductions without that.

The terms are built here as the rules of `lift_egraph.rules.algebra` build them; that they do is what the phase
``algebra`` shows.
"""

from __future__ import annotations

from lift_egraph.algebra.cascades import parts_of
from lift_egraph.algebra.recalled import recalling_of
from lift_egraph.language import ir
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.workbench.changes.actions import with_actions
from lift_egraph.workbench.changes.outside import map_outside
from lift_egraph.workbench.planning.plan import length_of


def with_recalled(term: ir.Expr) -> ir.Expr | None:
    """The term with those of its folds outside of all loops that remember the element before, and are reductions
    without that, as folds of elements and those before them; None if there are none.
    """
    made = _recalled(term)
    return None if made is term else made


def _recalled(term: ir.Expr) -> ir.Expr:
    if isinstance(term, ir.ReduceSeq | ir.Reduce):
        return _fold(term)
    if is_pure(term):
        return term
    return map_outside(term, _recalled)


def _fold(term: ir.ReduceSeq | ir.Reduce) -> ir.Expr:
    """A fold of elements and those before them, of which the first has none; the same term if that helps nothing."""
    n, xs = length_of(term.array), term.array
    if n < 2 or not is_pure(xs) or with_actions(term) is not None:
        return term
    found = recalling_of(term.operator)
    if found is None:
        return term
    start = ir.Apply(found.first, ir.MakePair(term.initial, ir.At(nat(0), xs)))
    pairs = ir.Zip(ir.Slice(nat(0), nat(n - 1), xs), ir.Slice(nat(1), nat(n - 1), xs))
    fold = ir.ReduceSeq(found.step, start, pairs)
    if with_actions(fold) is None and parts_of(fold.operator) is None:
        return term
    return ir.Apply(found.whole, ir.MakePair(fold, ir.At(nat(n - 1), xs)))
