"""Which folds keep their accumulator between bounds, and are parallel once that is known.

The terms are built here as the rule of `lift_egraph.rules.algebra` builds them; that it does is what the phase
``algebra`` shows.
"""

from __future__ import annotations

from dataclasses import replace

from lift_egraph.algebra.kept import keeping_of
from lift_egraph.egraph.operators import making
from lift_egraph.language import ir
from lift_egraph.language.layout import is_pure
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.outside import map_outside
from lift_egraph.workbench.planning.plan import length_of


def with_bounds(term: ir.Expr, rows: Rows) -> ir.Expr | None:
    """The term with its folds' accumulators moved between the bounds that they stay in anyway, where the folds are then
    parallel: outside of all loops, and in functions of maps over few long rows; None if there are none.
    """
    made = _bounded(term, rows, 1)
    return None if made is term else made


def _bounded(term: ir.Expr, rows: Rows, around: int) -> ir.Expr:
    if isinstance(term, ir.WHOLE_FOLDS):
        if around > 1 and not rows.chunks(around, length_of(term.array), in_lanes=True):
            return term
        f, z = term.operator, term.initial
        found = (keeping_of(f, z) or keeping_of(f, z, making(term))) if isinstance(f, ir.Lambda) else None
        return replace(term, operator=found) if found else term
    if isinstance(term, ir.Map) and isinstance(term.function, ir.Lambda) and is_pure(term.array):
        body = _bounded(term.function.body, rows, around * length_of(term.array))
        return term if body is term.function.body else ir.Map(ir.Lambda(term.function.binder, body), term.array)
    if is_pure(term):
        return term
    return map_outside(term, lambda inner: _bounded(inner, rows, around))
