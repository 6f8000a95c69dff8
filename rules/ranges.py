"""Folds of ranges, such as the rows of a sparse matrix: as loops.

Source: Pizzuti et al., "Position-dependent arrays and their application for high performance code generation", 2019,
give each row a length of its own; here a row is a range with computed ends in an array of all rows' elements.
"""

from __future__ import annotations

from lift_egraph.dsl import (
    ACCUMULATOR,
    ELEMENT,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    absent_in_operator,
    app,
    bvs,
    combine,
    disjoint,
    eq,
    fresh,
    fvo,
    i64,
    map_,
    map_level,
    reduce_range,
    reduce_range_seq,
    rewrite,
    rule,
    ty,
)


@rule("reduceRange ⊕ z l h xs = reduceRangeSeq (λ(acc, x). acc ⊕ x) z l h xs", source="new", phase="lowering")
def reduce_range_to_seq(op: Op, z: Ex, low: Ex, high: Ex, xs: Ex, t: Ty, m: i64):
    acc, x = V(ACCUMULATOR, t), V(ELEMENT, t)
    yield rewrite(reduce_range(op, z, low, high, xs)).to(
        reduce_range_seq(Fn.lam(P.pair(P.var(acc), P.var(x)), combine(op, Ex(acc), Ex(x))), z, low, high, xs),
        eq(Ty.arr(m, t)).to(ty(xs)),
        fvo(op).not_contains(acc),
        fvo(op).not_contains(x),
    )


@rule(
    "reduceRange ⊕ z l h (map (λp. b) xs) = reduceRangeSeq (λ(acc, p). acc ⊕ b) z l h xs,  p and acc not free in ⊕, "
    "acc fresh",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def reduce_range_map_to_seq(op: Op, z: Ex, low: Ex, high: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_range(op, z, low, high, map_(Fn.lam(p, b), xs))).to(
        reduce_range_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), z, low, high, xs),
        eq(t).to(ty(b)),
        fresh(acc, b),
        bvs(p).not_contains(acc),
        absent_in_operator(p, op),
        fvo(op).not_contains(acc),
    )


@rule(
    "reduceRangeSeq (λ(acc, p). b) z l h (map (λq. c) xs) = reduceRangeSeq (λ(acc, q). let p = c in b) z l h xs,  "
    "q not free in b, acc not free in c",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def reduce_range_seq_fusion(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, low: Ex, high: Ex, xs: Ex):
    for mapped in (map_(Fn.lam(q, c), xs), map_level("seq", 0, Fn.lam(q, c), xs)):
        yield rewrite(reduce_range_seq(Fn.lam(P.pair(a, p), b), z, low, high, mapped)).to(
            reduce_range_seq(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, low, high, xs),
            absent(q, b),
            absent(a, c),
            disjoint(a, q),
        )


range_loop_rules = (reduce_range_to_seq, reduce_range_seq_fusion)
range_map_rules = (reduce_range_map_to_seq,)
