"""Batches of rows as one array of rows, for devices on which sub-groups have a row each: so there are rows enough.

The term is built here as the rule `lift_egraph.rules.views.maps_as_one` builds it; that it does is what the phase
``rows_as_one`` shows.
"""

from __future__ import annotations

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Array, Scalar
from lift_egraph.workbench.changes.long_rows import in_maps
from lift_egraph.workbench.planning.plan import length_of
from lift_egraph.workbench.planning.short_rows import has_lanes


def with_rows_as_one(term: ir.Expr, device: Device) -> ir.Expr:
    """The term with its maps over batches of rows, outside of all other loops, as maps over all rows."""

    def change(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        match body:
            case ir.Map(function=f, array=rows) if rows == p and not ir.free_variables(f) & set(ir.bound_variables(p)):
                made = in_maps(ir.Map(f, ir.Join(xs)), change)
                if isinstance(made, ir.Split) or _has_lanes(f, length_of(ir.Join(xs)), device):
                    return ir.Split(nat(length_of(rows)), made)
        return ir.Map(ir.Lambda(p, body), xs)

    return in_maps(term, change)


def _has_lanes(f: ir.Function, rows: int, device: Device) -> bool:
    """Whether a function folds its row, and does nothing with it that takes longer."""
    lambda_ = ir.function_body(f)
    folds = [t for t in ir.subterms(lambda_.body) if isinstance(t, ir.FOLDS)]
    maps = [t for t in ir.subterms(lambda_.body) if isinstance(t, ir.Map)]
    if not folds or any(ir.has_folds(t.function) for t in maps) or not _is_row(lambda_.binder):
        return False
    return all(isinstance(t, ir.Reduce) and has_lanes(rows, length_of(t.array), device) for t in folds)


def _is_row(p: ir.Binder) -> bool:
    return isinstance(p, ir.Var) and isinstance(p.type, Array) and isinstance(p.type.element, Scalar)
