"""Folds of which some components do without the others, one part after the other.

The condition ``cascades(f, g, h, first, others, whole)`` says that f folds its first components by g, and the others by
h beside these: ``f (whole (s, t), x) = whole (g (s, x), h (t, (s, x)))``, and ``whole (first z, others z) = z``
(`lift_egraph.algebra.cascades`). E-graphs are told of it for the operators of their terms. In chunks the first
components need not stand in memory: where each chunk starts is known from what acts on them, and the others act beside
them.
"""

from __future__ import annotations

import egglog
from egglog.egraph import FactLike

from lift_egraph.dsl import (
    ACCUMULATOR,
    ELEMENT,
    ONE_CHUNK,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    acts,
    app,
    at,
    cascades,
    chunked,
    cod,
    combine,
    component,
    eq,
    fv,
    fvf,
    fvo,
    i64,
    make_pair,
    map_,
    reduce_,
    reduce_seq,
    rewrite,
    rule,
    scan,
    scan_exclusive,
    scan_exclusive_seq,
    scan_seq,
    split,
    ty,
    zip_,
)

FIRSTS, CHUNK, START, ACTING, PARTS = "$firsts", "$chunk", "$start", "$acting", "$parts"


def _first_scanned(
    f: Fn, g: Fn, h: Fn, first: Fn, others: Fn, whole: Fn, z: Ex, xs: Ex, n: i64, t: Ty, u: Ty
) -> tuple[V, tuple[FactLike, ...], tuple[FactLike, ...]]:
    """A name for the first components before each element, the conditions, and those on the name."""
    where = cascades(f, g, h, first, others, whole), eq(Ty.arr(n, u)).to(ty(xs)), eq(t).to(cod(g))
    ss = V(FIRSTS, Ty.arr(n, t))
    functions = (fvf(function).not_contains(ss) for function in (g, h, first, others, whole))
    return ss, where, (*functions, fv(z).not_contains(ss), fv(xs).not_contains(ss))


@rule(
    "reduceSeq f z xs = let ss = scanExclusiveSeq g (first z) xs in whole (g (at (n - 1) ss, at (n - 1) xs), reduceSeq "
    "h (others z) (zip ss xs)),  n > 0 elements, f (whole (s, t), x) = whole (g (s, x), h (t, (s, x))), whole (first z,"
    " others z) = z, ss fresh;  the same for reduce",
    source="new: loop distribution",
)
def fold_of_cascade(a: Ex, f: Fn, g: Fn, h: Fn, first: Fn, others: Fn, whole: Fn, z: Ex, xs: Ex, n: i64, t: Ty, u: Ty):
    ss, where, unused = _first_scanned(f, g, h, first, others, whole, z, xs, n, t, u)
    start, last = app(first, z), app(g, make_pair(at(n - 1, Ex(ss)), at(n - 1, xs)))
    both = make_pair(last, reduce_seq(h, app(others, z), zip_(Ex(ss), xs)))
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield egglog.rule(eq(a).to(fold), *where).then(ss)  # the conditions need it to exist
        yield rewrite(fold).to(
            app(Fn.lam(P.var(ss), app(whole, both)), scan_exclusive_seq(g, start, xs)), *where, *unused, i64(0) < n
        )


@rule(
    "scanSeq f z xs = let ss = scanExclusiveSeq g (first z) xs in map whole (zip (map g (zip ss xs)) (scanSeq h "
    "(others z) (zip ss xs))),  f (whole (s, t), x) = whole (g (s, x), h (t, (s, x))), whole (first z, others z) = z,"
    " ss fresh;  the same for scan, and for scanExclusiveSeq with zip ss (scanExclusiveSeq h (others z) (zip ss xs))",
    source="new: loop distribution",
)
def scan_of_cascade(a: Ex, f: Fn, g: Fn, h: Fn, first: Fn, others: Fn, whole: Fn, z: Ex, xs: Ex, n: i64, t: Ty, u: Ty):
    ss, where, unused = _first_scanned(f, g, h, first, others, whole, z, xs, n, t, u)
    beside, rest = zip_(Ex(ss), xs), app(others, z)
    inclusive = zip_(map_(g, beside), scan_seq(h, rest, beside))
    exclusive = zip_(Ex(ss), scan_exclusive_seq(h, rest, beside))
    for fold, both in (
        (scan_seq(f, z, xs), inclusive),
        (scan(Op.fn(f), z, xs), inclusive),
        (scan_exclusive_seq(f, z, xs), exclusive),
        (scan_exclusive(Op.fn(f), z, xs), exclusive),
    ):
        yield egglog.rule(eq(a).to(fold), *where).then(ss)  # the conditions need it to exist
        yield rewrite(fold).to(
            app(Fn.lam(P.var(ss), map_(whole, both)), scan_exclusive_seq(g, app(first, z), xs)), *where, *unused
        )


@rule(
    "reduceSeq f z xs = let ps = map (λ(s, c). reduceSeq (λ((s, q), x). (g (s, x), q ⊗ m' (s, x))) (s, e') c) (zip "
    "(scanExclusiveSeq (λ(s, p). act (p, s)) (first z) (map (λc. reduce ⊙ e (map m c)) (split n xs))) (split n xs)) "
    "in whole (fst (at (k / n - 1) ps), act' (reduce ⊗ e' (map (λ(s, q). q) ps), others z)),  n | k, the length, f "
    "(whole (s, t), x) = whole (g (s, x), h (t, (s, x))), whole (first z, others z) = z, g (s, x) = act (m x, s) and "
    "h (t, y) = act' (m' y, t), actions of the monoids (⊙, e) and (⊗, e'), the names fresh;  the same for reduce",
    source="new: 003 §4.6 for one part after the other",
    reassociates=True,
    notes={"n < k": ONE_CHUNK},
)
def fold_of_cascade_in_chunks(
    a: Ex, f: Fn, g: Fn, h: Fn, first: Fn, others: Fn, whole: Fn, z: Ex, xs: Ex, n: i64, k: i64, t: Ty, u: Ty,
    m: Fn, op: Op, one: Ex, act: Fn, m2: Fn, op2: Op, one2: Ex, act2: Fn, v: Ty, w: Ty,
):  # fmt: skip
    where = (
        *(cascades(f, g, h, first, others, whole), acts(g, m, op, one, act), acts(h, m2, op2, one2, act2)),
        *(eq(Ty.arr(k, u)).to(ty(xs)), eq(t).to(cod(g)), eq(v).to(cod(m)), eq(w).to(cod(m2)), *chunked(k, n)),
    )
    s, q, x, p = V(START, t), V(ACCUMULATOR, w), V(ELEMENT, u), V(ACTING, v)
    c, ps = V(CHUNK, Ty.arr(n, u)), V(PARTS, Ty.arr(k / n, Ty.pair(t, w)))
    totals = map_(Fn.lam(P.var(c), reduce_(op, one, map_(m, Ex(c)))), split(n, xs))
    moved = Fn.lam(P.pair(P.var(s), P.var(p)), app(act, make_pair(Ex(p), Ex(s))))
    starts = scan_exclusive_seq(moved, app(first, z), totals)
    beside = make_pair(Ex(s), Ex(x))
    stepped = make_pair(app(g, beside), combine(op2, Ex(q), app(m2, beside)))
    step = Fn.lam(P.pair(P.pair(P.var(s), P.var(q)), P.var(x)), stepped)
    each = Fn.lam(P.pair(P.var(s), P.var(c)), reduce_seq(step, make_pair(Ex(s), one2), Ex(c)))
    acting = reduce_(op2, one2, map_(Fn.lam(P.pair(P.var(s), P.var(q)), Ex(q)), Ex(ps)))
    last = component(i64(0), at(k / n - 1, Ex(ps)))
    result = app(whole, make_pair(last, app(act2, make_pair(acting, app(others, z)))))
    functions, operators, values = (g, first, others, whole, m, act, m2, act2), (op, op2), (z, one, one2)
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield egglog.rule(eq(a).to(fold), *where).then(s, q, x, p, c, ps)  # the conditions need them to exist
        yield rewrite(fold).to(
            app(Fn.lam(P.var(ps), result), map_(each, zip_(starts, split(n, xs)))),
            *where,
            *(fvf(function).not_contains(name) for function in functions for name in (s, q, x, p, c, ps)),
            *(fvo(operator).not_contains(name) for operator in operators for name in (s, q, x, p, c, ps)),
            *(fv(value).not_contains(name) for value in values for name in (s, q, x, p, c, ps)),
        )


cascade_rules = (fold_of_cascade, scan_of_cascade)
chunked_cascade_rules = (fold_of_cascade_in_chunks,)
