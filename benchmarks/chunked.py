"""Reductions as they run in parallel, for whoever compares these with the loops that they stand for."""

from __future__ import annotations

from lift_egraph.algebra.laws import associative
from lift_egraph.language import ir
from lift_egraph.language.binders import in_lets
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Array
from lift_egraph.workbench.changes.chunked import FOLDS, chunked_steadily


def in_chunks(term: ir.Expr) -> ir.Expr:
    """The term with each reduction as a reduction of those of chunks: of 4 elements, where that divides the length."""
    if isinstance(term, FOLDS) and not associative(term.operator):  # one matrix may act that is not carried
        n = size_of(term.array).constant or 0
        if n % 4 == 0 and (made := chunked_steadily(term, term.initial, term.array, 4, 0)):
            return in_lets(made.lets, made.result)
    if isinstance(term, ir.Reduce):
        n = size_of(term.array).constant or 0
        size = next((k for k in (4, 3, 5, 7) if n % k == 0), n)
        chunk = ir.Var("chunk", Array(nat(size), type_of(term.initial)))
        partial = ir.Lambda(chunk, ir.Reduce(term.operator, term.initial, chunk))
        return ir.Reduce(term.operator, term.initial, ir.Map(partial, ir.Split(nat(size), term.array)))
    return ir.map_parts(term, lambda part: in_chunks(part) if isinstance(part, ir.Expr) else part)
