"""Reductions by operators whose laws are found: folds that are no reductions as such, and operations in other words.

A fold's operator f acts like a monoid if ``f (s, x) = act (m x, s)``, where acting with p and then with q is acting
with ``p ⊙ q``, and acting with e changes nothing. Functions that are linear in s over a semiring act so: m gives
matrices, ⊙ is their product (`lift_egraph.algebra.actions`). The condition ``acts(f, m, op, one, act)`` says so, and
``built_in(op, name)`` that an operator is the scalar operation of a name. A fold that does no more than combine its
accumulator with a function of each element, by an associative operator, ``combines(f, g, op)``
(`lift_egraph.algebra.elements`). All of them are told to an e-graph for the operators of its term.
"""

from __future__ import annotations

import egglog

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
    built_in,
    chunked,
    cod,
    combines,
    eq,
    fresh,
    fv,
    fvf,
    fvo,
    i64,
    join,
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
    "monoid (⊙, e), s, c and p fresh",
    source="new: 003 §8.3 with reduce, then scan; matrices are made of chunks alone",
    reassociates=True,
    notes={"n < k": ONE_CHUNK},
)
def scan_by_action_in_chunks(
    f: Fn, m: Fn, op: Op, one: Ex, act: Fn, z: Ex, xs: Ex, a: Ex, n: i64, k: i64, t: Ty, u: Ty, v: Ty
):
    p, s, c = V("$p", t), V("$start", u), V("$chunk", Ty.arr(n, v))
    for scanned in (lambda start, array: scan_seq(f, start, array), lambda start, array: scan(Op.fn(f), start, array)):
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


@rule("reduce ⊕ z xs = reduce ⊗ z xs,  ⊕ the scalar operation ⊗ in other words", source="003 §5.3.4", reassociates=True)
def built_in_operator(op: Op, s: String, z: Ex, xs: Ex):
    yield rewrite(reduce_(op, z, xs)).to(reduce_(Op.scalar(s), z, xs), built_in(op, s))


algebra_rules = (fold_by_action, scan_by_action, fold_of_mapped, scan_of_mapped, built_in_operator)
chunked_action_rules = (scan_by_action_in_chunks,)
