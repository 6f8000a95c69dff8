"""Reductions by operators whose laws are found: folds that are no reductions as such, and operations in other words.

A fold's operator f acts like a monoid if ``f (s, x) = act (m x, s)``, where acting with p and then with q is acting
with ``p ⊙ q``, and acting with e changes nothing. Functions that are linear in s over a semiring act so: m gives
matrices, ⊙ is their product (`lift_egraph.algebra.actions`). The condition ``acts(f, m, op, one, act)`` says so, and
``built_in(op, name)`` that an operator is the scalar operation of a name. A fold that does no more than combine its
accumulator with a function of each element, by an associative operator, ``combines(f, g, op)``
(`lift_egraph.algebra.combining`). Where the matrices that act are all the same, ``steady(f, e, p, op, one, on)``, n
elements take s to ``on (pⁿ, (s, q))``, where q is what the fold makes of them from e (`lift_egraph.algebra.steady`).
What a fold remembers of the element before, ``recalls(f, g, first, whole)``, is read there
(`lift_egraph.algebra.recalled`). An accumulator that stays between bounds is moved between them first, without any
effect, ``kept_within(f, g, z)`` or ``kept_along(f, h, g, z)``, so that nothing wraps around whatever it is
(`lift_egraph.algebra.kept`). All of them are told to an e-graph for the operators of its term.
"""

from __future__ import annotations

from collections.abc import Callable

import egglog
from egglog.egraph import FactLike

from lift_egraph.dsl import (
    ONE_CHUNK,
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    acts,
    app,
    associative,
    at,
    built_in,
    chunked,
    cod,
    combine,
    combines,
    eq,
    fill,
    fresh,
    fv,
    fvf,
    fvo,
    i64,
    join,
    kept_along,
    kept_within,
    make_pair,
    map_,
    neutral,
    recalls,
    reduce_,
    reduce_seq,
    rewrite,
    rule,
    scan,
    scan_exclusive,
    scan_exclusive_seq,
    scan_seq,
    slice_,
    split,
    steady,
    transpose,
    ty,
    zip_,
)
from lift_egraph.rules.scans import monoid

TOTALS = "$totals"
FROM_IDENTITY = "reduce_(Op.scalar(s), e, xs)"


@rule(
    "reduceSeq f z xs = act (reduce ⊙ e (map m xs), z),  f (s, x) = act (m x, s), an action of the monoid (⊙, e)",
    source="003 §4.6",
    reassociates=True,
)
def fold_by_action(f: Fn, m: Fn, op: Op, one: Ex, act: Fn, z: Ex, xs: Ex):
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield rewrite(fold).to(app(act, make_pair(reduce_(op, one, map_(m, xs)), z)), acts(f, m, op, one, act))


@rule(
    "scanSeq f z xs = map (λp. act (p, z)) (scan ⊙ e (map m xs)),  f (s, x) = act (m x, s), an action of the monoid "
    "(⊙, e), p fresh;  the same for scanExclusiveSeq with scanExclusive",
    source="003 §8.3",
    reassociates=True,
)
def scan_by_action(f: Fn, m: Fn, op: Op, one: Ex, act: Fn, z: Ex, xs: Ex, e: Ex, t: Ty):
    p = V("$p", t)
    for fold, scanned in (
        (scan_seq(f, z, xs), scan),
        (scan(Op.fn(f), z, xs), scan),
        (scan_exclusive_seq(f, z, xs), scan_exclusive),
        (scan_exclusive(Op.fn(f), z, xs), scan_exclusive),
    ):
        where = acts(f, m, op, one, act), eq(t).to(cod(m))
        yield egglog.rule(eq(e).to(fold), *where).then(p)  # the conditions need it to exist
        yield rewrite(fold).to(
            map_(Fn.lam(P.var(p), app(act, make_pair(Ex(p), z))), scanned(op, one, map_(m, xs))),
            *where,
            fresh(p, z),
            fvf(act).not_contains(p),
        )


@rule(
    "scanSeq f z xs = join (map (λ(s, c). scanSeq f s c) (zip (map (λp. act (p, z)) (scanExclusive ⊙ e (map (λc. "
    "reduce ⊙ e (map m c)) (split n xs)))) (split n xs))),  n | length, f (s, x) = act (m x, s), an action of the "
    "monoid (⊙, e), s, c and p fresh;  the same for scanExclusiveSeq",
    source="new: 003 §8.3 with reduce, then scan; matrices are made of chunks alone",
    reassociates=True,
    notes={"n < k": ONE_CHUNK},
)
def scan_by_action_in_chunks(
    f: Fn, m: Fn, op: Op, one: Ex, act: Fn, z: Ex, xs: Ex, a: Ex, n: i64, k: i64, t: Ty, u: Ty, v: Ty
):
    p, s, c = V("$p", t), V("$start", u), V("$chunk", Ty.arr(n, v))
    for scanned in (
        lambda start, array: scan_seq(f, start, array),
        lambda start, array: scan(Op.fn(f), start, array),
        lambda start, array: scan_exclusive_seq(f, start, array),
    ):
        fold = scanned(z, xs)
        where = (
            *(acts(f, m, op, one, act), eq(t).to(cod(m)), eq(u).to(ty(z)), eq(Ty.arr(k, v)).to(ty(xs))),
            *chunked(k, n),
        )
        yield egglog.rule(eq(a).to(fold), *where).then(p, s, c)  # the conditions need them to exist
        totals = map_(Fn.lam(P.var(c), reduce_(op, one, map_(m, Ex(c)))), split(n, xs))
        starts = map_(Fn.lam(P.var(p), app(act, make_pair(Ex(p), z))), scan_exclusive(op, one, totals))
        each = Fn.lam(P.pair(P.var(s), P.var(c)), scanned(Ex(s), Ex(c)))
        yield rewrite(fold).to(
            join(map_(each, zip_(starts, split(n, xs)))),
            *where,
            fresh(p, z),
            *(fvf(act).not_contains(p), fvf(f).not_contains(s), fvf(f).not_contains(c)),
            *(fvf(m).not_contains(c), fvo(op).not_contains(c), fv(one).not_contains(c)),
        )


@rule("reduceSeq f z xs = reduce ⊕ z (map g xs),  f (s, x) = s ⊕ g x", source="new")
def fold_of_mapped(f: Fn, g: Fn, op: Op, z: Ex, xs: Ex):
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield rewrite(fold).to(reduce_(op, z, map_(g, xs)), combines(f, g, op))


@rule(
    "scanSeq f z xs = scan ⊕ z (map g xs),  f (s, x) = s ⊕ g x;  the same for scanExclusiveSeq with scanExclusive",
    source="new",
)
def scan_of_mapped(f: Fn, g: Fn, op: Op, z: Ex, xs: Ex):
    for fold in (scan_seq(f, z, xs), scan(Op.fn(f), z, xs)):
        yield rewrite(fold).to(scan(op, z, map_(g, xs)), combines(f, g, op))
    for fold in (scan_exclusive_seq(f, z, xs), scan_exclusive(Op.fn(f), z, xs)):
        yield rewrite(fold).to(scan_exclusive(op, z, map_(g, xs)), combines(f, g, op))


@rule(
    "reduceSeq f z xs = whole (reduceSeq g (first (z, at 0 xs)) (zip (slice 0 (n - 1) xs) (slice 1 (n - 1) xs)), at "
    "(n - 1) xs),  n > 1 elements, whole (first (s, x), x) = f (s, x), first (whole (k, y), x) = g (k, (y, x));  the "
    "same for reduce",
    source="new: what a fold remembers of the element before is there in the array",
)
def fold_of_recalled(f: Fn, g: Fn, first: Fn, whole: Fn, z: Ex, xs: Ex, n: i64, t: Ty):
    start, pairs = app(first, make_pair(z, at(0, xs))), zip_(slice_(0, n - 1, xs), slice_(1, n - 1, xs))
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield rewrite(fold).to(
            app(whole, make_pair(reduce_seq(g, start, pairs), at(n - 1, xs))),
            recalls(f, g, first, whole),
            eq(Ty.arr(n, t)).to(ty(xs)),
            i64(1) < n,
        )


@rule(
    "reduceSeq f z xs = reduceSeq g z xs,  f (s, x) = g (s, x) for all x and each s that folds by f from z give;  the "
    "same for map h xs, for s and elements that h makes, and for reduce, scanSeq, scan, scanExclusiveSeq and "
    "scanExclusive",
    source="new: an accumulator that stays between bounds does not wrap around",
)
def fold_within_bounds(f: Fn, h: Fn, g: Fn, z: Ex, xs: Ex):
    for array, known in ((xs, kept_within(f, g, z)), (map_(h, xs), kept_along(f, h, g, z))):
        for fold in (reduce_seq, scan_seq, scan_exclusive_seq):
            yield rewrite(fold(f, z, array)).to(fold(g, z, array), known)
        for fold in (reduce_, scan, scan_exclusive):
            yield rewrite(fold(Op.fn(f), z, array)).to(fold(Op.fn(g), z, array), known)


@rule(
    "reduce ⊕ z xs = reduce ⊗ z xs,  ⊕ the scalar operation ⊗ in other words;  the same for scan and scanExclusive",
    source="003 §5.3.4",
    reassociates=True,
)
def built_in_operator(op: Op, s: String, z: Ex, xs: Ex):
    for fold in (reduce_, scan, scan_exclusive):
        yield rewrite(fold(op, z, xs)).to(fold(Op.scalar(s), z, xs), built_in(op, s))


@rule(
    "reduce ⊕ z xs = z ⊕ reduce ⊕ e xs,  ⊕ an associative scalar operation, e its right identity",
    source="new: what a sum begins with is added to that of all elements",
    reassociates=True,
    notes={
        f"combine(Op.scalar(s), z, {FROM_IDENTITY}) becomes combine(Op.scalar(s), {FROM_IDENTITY}, z)": (
            "scalar operations that have an identity commute"
        )
    },
)
def reduce_from_identity(s: String, z: Ex, e: Ex, xs: Ex, t: Ty):
    op = Op.scalar(s)
    yield rewrite(reduce_(op, z, xs)).to(combine(op, z, reduce_(op, e, xs)), *monoid(op, e, t), eq(t).to(ty(z)))


def _steady(
    f: Fn, e: Ex, p: Ex, op: Op, one: Ex, on: Fn, z: Ex, xs: Ex, n: i64, m: i64, t: Ty, u: Ty, w: Ty
) -> tuple[Ex, Callable[[Callable[[Fn, Ex], Ex]], Ex], tuple[FactLike, ...], tuple[FactLike, ...], tuple[V, ...]]:
    """What chunks give from zero, how the fold of these goes on, conditions, then those on names, and these names."""
    c, s, x, q, ts = (
        V("$chunk", Ty.arr(n, u)),
        V("$start", t),
        V("$total", t),
        V("$power", w),
        V(TOTALS, Ty.arr(m / n, t)),
    )
    where = (
        *(steady(f, e, p, op, one, on), eq(t).to(ty(z)), eq(t).to(ty(e)), eq(w).to(ty(one))),
        *(eq(Ty.arr(m, u)).to(ty(xs)), *chunked(m, n)),
    )
    unused = (
        *(fvf(f).not_contains(c), fv(e).not_contains(c)),
        *(term.not_contains(ts) for term in (fv(z), fv(p), fv(one), fvo(op))),
        *(fv(z).not_contains(q), *(fvf(on).not_contains(name) for name in (s, x, q, ts))),
    )
    totals = map_(Fn.lam(P.var(c), reduce_seq(f, e, Ex(c))), split(n, xs))
    step = Fn.lam(P.pair(P.var(s), P.var(x)), app(on, make_pair(Ex(q), make_pair(Ex(s), Ex(x)))))

    def onward(fold: Callable[[Fn, Ex], Ex]) -> Ex:
        return app(Fn.lam(P.var(q), fold(step, Ex(ts))), reduce_(op, one, fill(n, p)))

    return totals, onward, where, unused, (c, s, x, q, ts)


@rule(
    "reduceSeq f z xs = let ts = map (λc. reduceSeq f e c) (split n xs) in let q = reduce ⊙ one (fill n p) in "
    "reduceSeq (λ(s, t). on (q, (s, t))) z ts,  n | length, fold f s ys = on (pᵏ, (s, fold f e ys)) for k elements ys "
    "and all s, powers by ⊙ from one, the names fresh;  the same for reduce",
    source="new: 003 §4.6 where the matrix is the same at each step",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def fold_in_steady_chunks(
    f: Fn, e: Ex, p: Ex, op: Op, one: Ex, on: Fn, z: Ex, xs: Ex, a: Ex, n: i64, m: i64, t: Ty, u: Ty, w: Ty
):
    totals, onward, where, unused, names = _steady(f, e, p, op, one, on, z, xs, n, m, t, u, w)
    whole = onward(lambda step, ts: reduce_seq(step, z, ts))
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield egglog.rule(eq(a).to(fold), *where).then(*names)  # the conditions need them to exist
        yield rewrite(fold).to(app(Fn.lam(P.var(names[-1]), whole), totals), *where, *unused)


@rule(
    "reduceSeq f e xs = let q = reduce ⊙ one (fill n p) in reduceSeq (λ(s, t). on (p, (s, t))) e (map (λc. reduceSeq "
    "(λ(s, x). on (q, (s, f (e, x)))) e c) (transpose (split n xs))),  n | length, f (s, x) = on (p, (s, f (e, x))), "
    "on (r, (s, t)) = r s + t over a semiring, powers by ⊙ from one, the names fresh;  the same for reduce",
    source="new: powers of one matrix commute, so that neighbouring elements may be in chunks of their own",
    reassociates=True,
    commutes=True,
    notes={"n < m": ONE_CHUNK},
)
def fold_in_steady_lanes(
    f: Fn, e: Ex, p: Ex, op: Op, one: Ex, on: Fn, xs: Ex, a: Ex, n: i64, m: i64, t: Ty, u: Ty, w: Ty
):
    q, s, y, x, c = V("$power", w), V("$start", t), V("$total", t), V("$element", u), V("$lane", Ty.arr(m / n, u))
    where = (
        *(steady(f, e, p, op, one, on), eq(t).to(ty(e)), eq(w).to(ty(one)), eq(Ty.arr(m, u)).to(ty(xs))),
        *chunked(m, n),
    )
    step = Fn.lam(P.pair(P.var(s), P.var(x)), app(on, make_pair(Ex(q), make_pair(Ex(s), app(f, make_pair(e, Ex(x)))))))
    last = Fn.lam(P.pair(P.var(s), P.var(y)), app(on, make_pair(p, make_pair(Ex(s), Ex(y)))))
    totals = map_(Fn.lam(P.var(c), reduce_seq(step, e, Ex(c))), transpose(split(n, xs)))
    for fold in (reduce_seq(f, e, xs), reduce_(Op.fn(f), e, xs)):
        yield egglog.rule(eq(a).to(fold), *where).then(q, s, y, x, c)  # the conditions need them to exist
        yield rewrite(fold).to(
            app(Fn.lam(P.var(q), reduce_seq(last, e, totals)), reduce_(op, one, fill(n, p))),
            *where,
            *(term.not_contains(name) for term in (fv(e), fvf(f), fvf(on)) for name in (q, s, x)),
            *(fv(p).not_contains(name) for name in (q, s, y)),
            *(fv(e).not_contains(c), fvf(on).not_contains(y), fvf(on).not_contains(c), fvf(f).not_contains(c)),
            fv(xs).not_contains(q),
        )


@rule(
    "scanSeq f z xs = let ts = map (λc. reduceSeq f e c) (split n xs) in let ss = (let q = reduce ⊙ one (fill n p) in "
    "scanExclusiveSeq (λ(s, t). on (q, (s, t))) z ts) in join (map (λ(s, c). scanSeq f s c) (zip ss (split n xs))),  "
    "n | length, fold f s ys = on (pᵏ, (s, fold f e ys)) for k elements ys and all s, powers by ⊙ from one, the names "
    "fresh;  the same for scan",
    source="new: 003 §8.3 where the matrix is the same at each step",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def scan_in_steady_chunks(
    f: Fn, e: Ex, p: Ex, op: Op, one: Ex, on: Fn, z: Ex, xs: Ex, a: Ex, n: i64, m: i64, t: Ty, u: Ty, w: Ty
):
    totals, onward, where, unused, names = _steady(f, e, p, op, one, on, z, xs, n, m, t, u, w)
    c, s, *_, ts = names
    ss = V("$starts", Ty.arr(m / n, t))
    starts = onward(lambda step, ts: scan_exclusive_seq(step, z, ts))
    for scanned in (lambda start, array: scan_seq(f, start, array), lambda start, array: scan(Op.fn(f), start, array)):
        left = scanned(z, xs)
        yield egglog.rule(eq(a).to(left), *where).then(*names, ss)  # the conditions need them to exist
        each = Fn.lam(P.pair(P.var(s), P.var(c)), scanned(Ex(s), Ex(c)))
        whole = app(Fn.lam(P.var(ss), join(map_(each, zip_(Ex(ss), split(n, xs))))), starts)
        yield rewrite(left).to(
            app(Fn.lam(P.var(ts), whole), totals),
            *where,
            *unused,
            *(fvf(f).not_contains(name) for name in (s, ss, ts)),
            *(fv(xs).not_contains(name) for name in (ss, ts)),
        )


@rule(
    "reduceSeq f z xs = let ts = map (λc. reduce ⊙ e (map m c)) (split n xs) in reduceSeq (λ(s, t). act (t, s)) z ts,  "
    "n | length, f (s, x) = act (m x, s), an action of the monoid (⊙, e), the names fresh;  the same for reduce",
    source="new: 003 §4.6 where no more is known of products than what they do",
    reassociates=True,
    notes={"n < k": ONE_CHUNK},
)
def fold_by_action_in_chunks(
    f: Fn, m: Fn, op: Op, one: Ex, act: Fn, z: Ex, xs: Ex, a: Ex, n: i64, k: i64, t: Ty, u: Ty, v: Ty
):
    c, s, total, ts = V("$chunk", Ty.arr(n, v)), V("$start", u), V("$total", t), V(TOTALS, Ty.arr(k / n, t))
    where = (
        *(acts(f, m, op, one, act), eq(t).to(cod(m)), eq(u).to(ty(z)), eq(Ty.arr(k, v)).to(ty(xs))),
        *chunked(k, n),
    )
    step = Fn.lam(P.pair(P.var(s), P.var(total)), app(act, make_pair(Ex(total), Ex(s))))
    totals = map_(Fn.lam(P.var(c), reduce_(op, one, map_(m, Ex(c)))), split(n, xs))
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield egglog.rule(eq(a).to(fold), *where).then(c, s, total, ts)  # the conditions need them to exist
        yield rewrite(fold).to(
            app(Fn.lam(P.var(ts), reduce_seq(step, z, Ex(ts))), totals),
            *where,
            *(fvf(act).not_contains(name) for name in (s, total, ts)),
            *(fvf(m).not_contains(c), fvo(op).not_contains(c), fv(one).not_contains(c), fv(z).not_contains(ts)),
        )


@rule(
    "reduce ⊕ z (fill n x) = reduce ⊕ z (fill (n / k) (reduce ⊕ z (fill k x))),  k | n, ⊕ associative, z neutral",
    source="new: a power as a power of powers",
    reassociates=True,
    notes={"k < n": ONE_CHUNK},
)
def reduce_of_fill(op: Op, z: Ex, x: Ex, n: i64, k: i64):
    yield rewrite(reduce_(op, z, fill(n, x))).to(
        reduce_(op, z, fill(n / k, reduce_(op, z, fill(k, x)))), *chunked(n, k), associative(op), neutral(op, z)
    )


algebra_rules = (
    *(fold_by_action, scan_by_action, fold_of_mapped, scan_of_mapped, built_in_operator, fold_of_recalled),
    *(reduce_from_identity, fold_within_bounds),
)
chunked_action_rules = (
    *(scan_by_action_in_chunks, fold_by_action_in_chunks, fold_in_steady_chunks, fold_in_steady_lanes),
    *(scan_in_steady_chunks, reduce_of_fill),
)
