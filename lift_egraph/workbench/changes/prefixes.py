"""Reductions of all prefixes of an array, as they are specified, as a scan: each element is read once.

The terms are built here as the rule `reductions_of_prefixes` builds them; that it does is what the phase ``algebra``
shows.

Source: Bird, "An introduction to the theory of lists", 1987 (the scan lemma).
"""

from __future__ import annotations

from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.types import I32
from lift_egraph.workbench.planning.plan import length_of

ZERO, ONE = ir.Literal(0, I32), ir.Literal(1, I32)
T = TypeVar("T", bound=ir.Part)


def with_scanned_prefixes(term: ir.Expr) -> ir.Expr | None:
    """The term with the reductions of all prefixes of an array as scans; None if there are none of these."""
    made = _scanned(term)
    return None if made == term else made


def _scanned(term: T) -> T:
    if isinstance(term, ir.MapLevel):  # somebody decided how it runs
        return term
    made = ir.map_parts(term, _scanned)
    found = _scan_of(made)
    return made if found is None else found  # pyright: ignore[reportReturnType]


def _scan_of(term: ir.Part) -> ir.Scan | ir.ScanExclusive | None:
    match term:
        case (
            ir.Map(function=ir.Lambda() as f, array=ir.Generate(size=size, function=ir.Lambda(binder=j, body=place)))
        ) if place == j:
            pass
        case ir.Generate(size=size, function=ir.Lambda() as f):
            pass
        case _:
            return None
    i, fold = f.binder, f.body
    if not isinstance(i, ir.Var) or not isinstance(fold, ir.ReduceRange):
        return None
    if fold.low != ZERO or size.constant != length_of(fold.array):
        return None
    if any(i in ir.free_variables(part) for part in (fold.operator, fold.initial, fold.array)):
        return None
    if fold.high == i:
        return ir.ScanExclusive(fold.operator, fold.initial, fold.array)
    if fold.high in (ir.Call("add", (i, ONE)), ir.Call("add", (ONE, i))):
        return ir.Scan(fold.operator, fold.initial, fold.array)
    return None
