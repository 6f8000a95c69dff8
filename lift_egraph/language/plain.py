"""What low-level patterns of several plain ones mean, in these."""

from __future__ import annotations

from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name
from lift_egraph.language.check import array_type, codomain, type_of


def plain_reduce_sub(term: ir.ReduceSub) -> ir.Expr:
    """``map (reduce ⊕ z) (split n xs)``."""
    chunks = ir.Split(term.items, term.array)
    taken = {v.name for part in (term.operator, term.initial) for v in ir.free_variables(part)}
    chunk = ir.Var(fresh_name("chunk", taken), array_type(chunks, "reduceSub").element)
    return ir.Map(ir.Lambda(chunk, ir.Reduce(term.operator, term.initial, chunk)), chunks)


def plain_look_back(term: ir.LookBack) -> ir.Expr:
    """``let m = map first xs in map second (zip (scanExclusive ⊕ z (map fst m)) (map snd m))``."""
    firsts = ir.Map(term.first, term.array)
    taken = {v.name for part in (term.operator, term.initial, term.second) for v in ir.free_variables(part)}
    made, each = ir.Var(fresh_name("made", taken), type_of(firsts)), ir.Var("each", codomain(term.first))
    totals, kept = (ir.Map(ir.Lambda(each, ir.Component(side, each)), made) for side in (0, 1))
    whole = ir.Map(term.second, ir.Zip(ir.ScanExclusive(term.operator, term.initial, totals), kept))
    return ir.Apply(ir.Lambda(made, whole), firsts)
