"""Reductions: splitting them, turning them into sequential loops, and applying lifted operators."""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    ACCUMULATOR,
    ELEMENT,
    LANE,
    LEFT,
    ONE_CHUNK,
    RIGHT,
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    absent,
    absent_in_function,
    absent_in_operator,
    app,
    associative,
    bvs,
    call2,
    chunked,
    combine,
    commutative,
    disjoint,
    eq,
    fresh,
    fv,
    fvf,
    fvo,
    i64,
    join,
    make_pair,
    map_,
    map_level,
    neutral,
    pty,
    reduce_,
    reduce_seq,
    rewrite,
    rule,
    split,
    transpose,
    ty,
    zip_,
)
from lift_egraph.rules.by_index import index_loop_rules
from lift_egraph.rules.ranges import range_loop_rules
from lift_egraph.rules.scans import scan_loop_rules


@rule(
    "reduce ⊕ z xs = reduce ⊕ z (map (reduce ⊕ z) (split n xs)),  n | length, ⊕ associative, z neutral",
    source="000 Figure 2.9c",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def partial_reduce(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        *chunked(m, n),
        associative(op),
        neutral(op, z),
    )


@rule(
    "reduce ⊕ z xs = reduce ⊕ z (map (reduce ⊕ z) (transpose (split n xs))),  n | length, ⊕ associative and "
    "commutative, z neutral",
    source="000 Figure 2.9c with gather; 001 §4.3 (strided partition)",
    reassociates=True,
    commutes=True,
    notes={"n < m": ONE_CHUNK},
)
def partial_reduce_strided(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(m / n, t)), transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        *chunked(m, n),
        associative(op),
        commutative(op),
        neutral(op, z),
    )


@rule(
    "reduce ⊕ z (map (λp. reduce ⊕ z (map f b)) xs) = reduce ⊕ z (map f (join (map (λp. b) xs))),  p not free in f, ⊕ "
    "and z, ⊕ associative, z neutral",
    source="new: 000 Figure 2.9c, from right to left",
    reassociates=True,
    nan_unsafe=True,
)
def reduce_of_reductions(op: Op, z: Ex, p: P, f: Fn, b: Ex, xs: Ex):
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, reduce_(op, z, map_(f, b))), xs))).to(
        reduce_(op, z, map_(f, join(map_(Fn.lam(p, b), xs)))),
        absent_in_function(p, f),
        absent_in_operator(p, op),
        absent(p, z),
        associative(op),
        neutral(op, z),
    )


@rule(
    "reduceSeq (λ(s, p). reduceSeq f s b) z xs = reduceSeq f z (join (map (λp. b) xs)),  s and p not free in f, s not "
    "free in b, s a name or a pair of two",
    source="new: 000 Listing 5.14, from right to left",
)
def fold_of_rows(f: Fn, s: V, t: V, p: P, b: Ex, z: Ex, xs: Ex):
    for state, start, names in (
        (P.var(s), Ex(s), (s,)),
        (P.pair(P.var(s), P.var(t)), make_pair(Ex(s), Ex(t)), (s, t)),
    ):
        yield rewrite(reduce_seq(Fn.lam(P.pair(state, p), reduce_seq(f, start, b)), z, xs)).to(
            reduce_seq(f, z, join(map_(Fn.lam(p, b), xs))),
            absent_in_function(p, f),
            *(free.not_contains(name) for free in (fvf(f), fv(b)) for name in names),
        )


@rule(
    "reduceSeq (λ(s, p). reduce ⊕ s b) z xs = reduce ⊕ z (join (map (λp. b) xs)),  s and p not free in ⊕, s not free "
    "in b",
    source="new: 000 Listing 5.14, from right to left",
    reassociates=True,
)
def reduce_of_rows(op: Op, s: V, p: P, b: Ex, z: Ex, xs: Ex):
    yield rewrite(reduce_seq(Fn.lam(P.pair(P.var(s), p), reduce_(op, Ex(s), b)), z, xs)).to(
        reduce_(op, z, join(map_(Fn.lam(p, b), xs))),
        absent_in_operator(p, op),
        *(free.not_contains(s) for free in (fvo(op), fv(b))),
    )


@rule(
    "reduce ⊕ z (map (λp. b) xs) = reduceSeq (λ(acc, p). acc ⊕ b) z xs,  p and acc not free in ⊕, acc fresh",
    source="000 Figure 2.10b with Listing 5.7",
    phase="lowering",
)
def reduce_map_to_seq(op: Op, z: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, b), xs))).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), z, xs),
        eq(t).to(ty(b)),
        fresh(acc, b),
        bvs(p).not_contains(acc),
        absent_in_operator(p, op),
        fvo(op).not_contains(acc),
    )


@rule("reduce ⊕ z xs = reduceSeq (λ(acc, x). acc ⊕ x) z xs", source="000 Figure 2.10b", phase="lowering")
def reduce_to_seq(op: Op, z: Ex, xs: Ex, t: Ty, m: i64):
    acc, x = V(ACCUMULATOR, t), V(ELEMENT, t)
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(x)), combine(op, Ex(acc), Ex(x))), z, xs),
        eq(Ty.arr(m, t)).to(ty(xs)),
        fvo(op).not_contains(acc),
        fvo(op).not_contains(x),
    )


@rule(
    "reduceSeq f z xs = reduceSeq (λ(acc, c). reduceSeq f acc c) z (split n xs),  n | length, f closed in acc and c",
    source="000 Listing 5.14",
    phase="lowering",
    notes={"n < m": ONE_CHUNK},
)
def split_reduce_seq(e: Ex, a: P, p: P, b: Ex, z: Ex, xs: Ex, n: i64, m: i64, t: Ty, u: Ty):
    acc, chunk = V(ACCUMULATOR, u), V.of("chunk", p, n)
    loop = Fn.lam(P.pair(a, p), b)
    where = (eq(Ty.arr(m, t)).to(ty(xs)), eq(t).to(pty(p)), eq(u).to(ty(z)), *chunked(m, n))
    yield egglog.rule(eq(e).to(reduce_seq(loop, z, xs)), *where).then(acc, chunk)  # the condition needs them to exist
    yield rewrite(reduce_seq(loop, z, xs)).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(chunk)), reduce_seq(loop, Ex(acc), Ex(chunk))), z, split(n, xs)),
        *where,
        eq(fvf(loop)).to(fvf(loop).remove(acc).remove(chunk)),
    )


@rule(
    "reduceSeq f z (zip xs ys) = reduceSeq (λ(acc, (c, d)). reduceSeq f acc (zip c d)) z (zip (split n xs) (split n "
    "ys)),  n | length, f = λ(a, (p, q)). b closed in acc, c and d",
    source="000 Listing 5.14, with the split of zip",
    phase="lowering",
    notes={"n < m": ONE_CHUNK},
)
def split_reduce_seq_zip(e: Ex, a: P, p: P, q: P, b: Ex, z: Ex, xs: Ex, ys: Ex, n: i64, m: i64, t: Ty, u: Ty, v: Ty):
    acc, left, right = V(ACCUMULATOR, v), V.of("chunk", p, n), V.of("chunk", q, n)
    loop = Fn.lam(P.pair(a, P.pair(p, q)), b)
    where = (
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(Ty.arr(m, u)).to(ty(ys)),
        eq(t).to(pty(p)),
        eq(u).to(pty(q)),
        eq(v).to(ty(z)),
        *chunked(m, n),
    )
    yield egglog.rule(eq(e).to(reduce_seq(loop, z, zip_(xs, ys))), *where).then(acc, left, right)
    chunks = P.pair(P.var(left), P.var(right))
    yield rewrite(reduce_seq(loop, z, zip_(xs, ys))).to(
        reduce_seq(
            Fn.lam(P.pair(P.var(acc), chunks), reduce_seq(loop, Ex(acc), zip_(Ex(left), Ex(right)))),
            z,
            zip_(split(n, xs), split(n, ys)),
        ),
        *where,
        eq(fvf(loop)).to(fvf(loop).remove(acc).remove(left).remove(right)),
    )


@rule(
    "reduceSeq (λ(acc, p). b) z (map (λq. c) xs) = reduceSeq (λ(acc, q). let p = c in b) z xs,  "
    "q not free in b, acc not free in c",
    source="000 Listing 5.7",
    phase="lowering",
)
def reduce_seq_fusion(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex):
    for mapped in (map_(Fn.lam(q, c), xs), map_level("seq", 0, Fn.lam(q, c), xs)):
        yield rewrite(reduce_seq(Fn.lam(P.pair(a, p), b), z, mapped)).to(
            reduce_seq(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, xs), absent(q, b), absent(a, c), disjoint(a, q)
        )


@rule(
    "reduceSeq (λ(a, (p, q)). b) z (zip (map f xs) ys) = reduceSeq (λ(a, (x, q)). let p = f x in b) z (zip xs ys),  x "
    "fresh;  the same for zip ys (map f xs)",
    source="000 Listings 5.7 and 5.8, on one side",
    phase="lowering",
)
def reduce_seq_fusion_beside(a: P, p: P, q: P, b: Ex, f: Fn, z: Ex, xs: Ex, ys: Ex, e: Ex, n: i64, t: Ty):
    for tag, beside in ((LEFT, lambda one, other: (one, other)), (RIGHT, lambda one, other: (other, one))):
        x = V(tag, t)
        step = Fn.lam(P.pair(a, P.pair(*beside(p, q))), b)
        left, element = reduce_seq(step, z, zip_(*beside(map_(f, xs), ys))), eq(Ty.arr(n, t)).to(ty(xs))
        yield egglog.rule(eq(e).to(left), element).then(x)  # the conditions need it to exist
        yield rewrite(left).to(
            reduce_seq(
                Fn.lam(P.pair(a, P.pair(*beside(P.var(x), q))), app(Fn.lam(p, b), app(f, Ex(x)))),
                z,
                zip_(*beside(xs, ys)),
            ),
            element,
            (fv(b) - bvs(p)).not_contains(x),
            fvf(f).not_contains(x),
            bvs(q).not_contains(x),
            bvs(a).not_contains(x),
            absent_in_function(a, f),
            absent_in_function(q, f),
        )


@rule("a ⊕ b = op(a, b)", phase="simplification")
def combine_scalars(a: Ex, b: Ex, s: String):
    yield rewrite(combine(Op.scalar(s), a, b)).to(call2(s, a, b))


@rule("a ⊕ b = f (a, b)", phase="simplification")
def combine_by_function(a: Ex, b: Ex, f: Fn):
    yield rewrite(combine(Op.fn(f), a, b)).to(app(f, make_pair(a, b)))


@rule(
    "a (lift ⊕) (map (λp. b) xs) = map (λ(c, p). c ⊕ b) (zip a xs),  c fresh",
    source="000 Listing 5.18",
    phase="lowering",
)
def combine_lifted_with_map(op: Op, a: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(LANE, t)
    yield rewrite(combine(op.lift(), a, map_(Fn.lam(p, b), xs))).to(
        map_(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), zip_(a, xs)),
        eq(t).to(ty(b)),
        fresh(acc, b),
        bvs(p).not_contains(acc),
        absent_in_operator(p, op),
        fvo(op).not_contains(acc),
    )


@rule("a (lift ⊕) b = map (λ(x, y). x ⊕ y) (zip a b)", source="000 Listing 5.18", phase="lowering")
def combine_lifted(op: Op, a: Ex, b: Ex, t: Ty, n: i64):
    x, y = V(LEFT, t), V(RIGHT, t)
    yield rewrite(combine(op.lift(), a, b)).to(
        map_(Fn.lam(P.pair(P.var(x), P.var(y)), combine(op, Ex(x), Ex(y))), zip_(a, b)),
        eq(Ty.arr(n, t)).to(ty(a)),
        fvo(op).not_contains(x),
        fvo(op).not_contains(y),
    )


splitting_rules = (partial_reduce, partial_reduce_strided)
loop_rules = (
    *(reduce_map_to_seq, reduce_to_seq, reduce_seq_fusion, *scan_loop_rules, *range_loop_rules),
    *index_loop_rules,
    *(combine_lifted_with_map, combine_lifted),
)
pair_loop_rules = (split_reduce_seq_zip, reduce_seq_fusion_beside)
operator_rules = (combine_scalars, combine_by_function)
