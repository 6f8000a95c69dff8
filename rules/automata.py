"""Folds of automata with few states over few elements: each step finds the next state in a table of words.

The condition ``tabulates(f, z, words, step, start, value, places, steps, found)`` says that f has few states from z on,
over few elements: ``value (step (words, (p, x))) = f (value p, x)`` for the places p of these states, and
``value start = z``. What elements make of all the places is ``steps (words, (ps, x))`` again and again, from `places`
on, and ``found (p, ps)`` is what they make of one; no variable is free in any of these
(`lift_egraph.algebra.tabulated`). ``tabulates_first`` says so of the first components of an accumulator alone, beside
which h folds the others. E-graphs are told of it for the operators of their terms.
"""

from __future__ import annotations

import egglog

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
    cod,
    combine,
    component,
    concat,
    eq,
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
    scan_exclusive_seq,
    scan_seq,
    slice_,
    split,
    tabulates,
    tabulates_first,
    tile,
    ty,
    zip_,
)

WORDS, PLACE, PLACES, TOTALS, STARTS, CHUNK = "$words", "$place", "$places", "$totals", "$starts", "$chunk"


def _named(function: Fn, words: V, own: V, x: V) -> Fn:
    """A step by the table of a name."""
    return Fn.lam(P.pair(P.var(own), P.var(x)), app(function, make_pair(Ex(words), make_pair(Ex(own), Ex(x)))))


@rule(
    "reduceSeq f z xs = let ws = words in value (reduceSeq (λ(p, x). step (ws, (p, x))) start xs),  f has few states "
    "from z on over few elements, the names fresh;  the same for reduce, and for scanSeq with map value",
    source="new: Vognsen, 'Shift-based DFAs'",
    notes={
        "tabulates(f, z, words, step, start, value, places, steps, found) becomes tabulates(f, z, words, step, start, "
        "value, places, found, steps)": "what becomes of all places is not used here"
    },
)
def fold_by_table(
    a: Ex, f: Fn, z: Ex, words: Ex, step: Fn, start: Ex, value: Fn, places: Ex, steps: Fn, found: Fn, xs: Ex,
    n: i64, t: Ty, u: Ty, v: Ty,
):  # fmt: skip
    where = (
        *(tabulates(f, z, words, step, start, value, places, steps, found), eq(Ty.arr(n, t)).to(ty(xs))),
        *(eq(u).to(ty(words)), eq(v).to(ty(start))),
    )
    ws, p, x = names = V(WORDS, u), V(PLACE, v), V(ELEMENT, t)
    step_by_name = _named(step, ws, p, x)
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs), scan_seq(f, z, xs)):
        yield egglog.rule(eq(a).to(fold), *where).then(*names)  # the conditions need them to exist
    unused = fv(xs).not_contains(ws)
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        made = app(value, reduce_seq(step_by_name, start, xs))
        yield rewrite(fold).to(app(Fn.lam(P.var(ws), made), words), *where, unused)
    made = map_(value, scan_seq(step_by_name, start, xs))
    yield rewrite(scan_seq(f, z, xs)).to(app(Fn.lam(P.var(ws), made), words), *where, unused)


@rule(
    "reduceSeq f z xs = let ws = words in let ts = map (λc. reduceSeq (λ(ps, x). steps (ws, (ps, x))) places c) (split "
    "n xs) in value (reduceSeq found start ts),  n | length, f has few states from z on over few elements, the names "
    "fresh;  where chunks leave a rest, (reduceSeq (λ(p, x). step (ws, (p, x))) (reduceSeq found start ts) rest);  the "
    "same for reduce",
    source="new: Mytkowicz, Musuvathi and Schulte, with Vognsen's words",
    notes={"n < k": ONE_CHUNK},
)
def fold_by_table_in_chunks(
    a: Ex, f: Fn, z: Ex, words: Ex, step: Fn, start: Ex, value: Fn, places: Ex, steps: Fn, found: Fn, xs: Ex,
    n: i64, k: i64, t: Ty, u: Ty, v: Ty, w: Ty,
):  # fmt: skip
    where = (
        *(tabulates(f, z, words, step, start, value, places, steps, found), eq(Ty.arr(k, t)).to(ty(xs))),
        *(eq(u).to(ty(words)), eq(v).to(ty(start)), eq(w).to(ty(places)), tile(k, n), n < k),
    )
    ws, p, ps, x, c, ts = names = (
        *(V(WORDS, u), V(PLACE, v), V(PLACES, w), V(ELEMENT, t)),
        *(V(CHUNK, Ty.arr(n, t)), V(TOTALS, Ty.arr(k / n, w))),
    )
    unused = fv(xs).not_contains(ws), fv(xs).not_contains(ts)
    whole = n * (k / n)
    for fold in (reduce_seq(f, z, xs), reduce_(Op.fn(f), z, xs)):
        yield egglog.rule(eq(a).to(fold), *where).then(*names)  # the conditions need them to exist
        for array, rest in ((xs, None), (slice_(0, whole, xs), slice_(whole, k - whole, xs))):
            each = Fn.lam(P.var(c), reduce_seq(_named(steps, ws, ps, x), places, Ex(c)))
            last = reduce_seq(found, start, Ex(ts))
            if rest is not None:
                last = reduce_seq(_named(step, ws, p, x), last, rest)
            inner = app(Fn.lam(P.var(ts), app(value, last)), map_(each, split(n, array)))
            fits = whole < k if rest is not None else eq(whole).to(k)
            yield rewrite(fold).to(app(Fn.lam(P.var(ws), inner), words), *where, *unused, fits)


@rule(
    "scanSeq f z xs = let ws = words in let ts = map (λc. reduceSeq (λ(ps, x). steps (ws, (ps, x))) places c) (split n "
    "xs) in let ss = scanExclusiveSeq found start ts in join (map (λ(p, c). map value (scanSeq (λ(p, x). step (ws, (p, "
    "x))) p c)) (zip ss (split n xs))),  n | length, f has few states from z on over few elements, the names fresh;  "
    "where chunks leave a rest, concat with map value (scanSeq (λ(p, x). step (ws, (p, x))) (reduceSeq found start ts) "
    "rest)",
    source="new: Mytkowicz, Musuvathi and Schulte, with Vognsen's words",
    notes={"n < k": ONE_CHUNK},
)
def scan_by_table_in_chunks(
    a: Ex, f: Fn, z: Ex, words: Ex, step: Fn, start: Ex, value: Fn, places: Ex, steps: Fn, found: Fn, xs: Ex,
    n: i64, k: i64, t: Ty, u: Ty, v: Ty, w: Ty,
):  # fmt: skip
    where = (
        *(tabulates(f, z, words, step, start, value, places, steps, found), eq(Ty.arr(k, t)).to(ty(xs))),
        *(eq(u).to(ty(words)), eq(v).to(ty(start)), eq(w).to(ty(places)), tile(k, n), n < k),
    )
    ws, p, ps, x, c, ts, ss = names = (
        *(V(WORDS, u), V(PLACE, v), V(PLACES, w), V(ELEMENT, t)),
        *(V(CHUNK, Ty.arr(n, t)), V(TOTALS, Ty.arr(k / n, w)), V(STARTS, Ty.arr(k / n, v))),
    )
    unused = tuple(fv(xs).not_contains(name) for name in (ws, ts, ss))
    whole = n * (k / n)
    fold = scan_seq(f, z, xs)
    yield egglog.rule(eq(a).to(fold), *where).then(*names)  # the conditions need them to exist
    one = _named(step, ws, p, x)
    for array, rest in ((xs, None), (slice_(0, whole, xs), slice_(whole, k - whole, xs))):
        all_of = Fn.lam(P.var(c), reduce_seq(_named(steps, ws, ps, x), places, Ex(c)))
        each = Fn.lam(P.pair(P.var(p), P.var(c)), map_(value, scan_seq(one, Ex(p), Ex(c))))
        made = join(map_(each, zip_(Ex(ss), split(n, array))))
        if rest is not None:
            made = concat(made, map_(value, scan_seq(one, reduce_seq(found, start, Ex(ts)), rest)))
        inner = app(Fn.lam(P.var(ss), made), scan_exclusive_seq(found, start, Ex(ts)))
        inner = app(Fn.lam(P.var(ts), inner), map_(all_of, split(n, array)))
        fits = whole < k if rest is not None else eq(whole).to(k)
        yield rewrite(fold).to(app(Fn.lam(P.var(ws), inner), words), *where, *unused, fits)


@rule(
    "reduceSeq f z xs = let ws = words in let ts = map (λc. reduceSeq (λ(ps, x). steps (ws, (ps, x))) places c) (split "
    "n xs) in let qs = map (λ(p, c). reduceSeq (λ((p, q), x). (step (ws, (p, x)), q ⊗ m (value p, x))) (p, e) c) (zip "
    "(scanExclusiveSeq found start ts) (split n xs)) in whole (value (fst (at (k / n - 1) qs)), act (reduce ⊗ e (map "
    "(λ(p, q). q) qs), others z)),  n | k, the length, f (whole (s, t), x) = whole (g (s, x), h (t, (s, x))), where g "
    "has few states from that of z on over few elements, and h (t, y) = act (m y, t), an action of the monoid (⊗, e), "
    "the names fresh;  where chunks leave a rest, reduceSeq f of that and the rest",
    source="new: fold_of_cascade_in_chunks, with Vognsen's words",
    reassociates=True,
    notes={"n < k": ONE_CHUNK},
)
def fold_of_cascade_by_table(
    a: Ex, f: Fn, h: Fn, others: Fn, whole: Fn, z: Ex, xs: Ex, words: Ex, step: Fn, start: Ex, value: Fn,
    places: Ex, steps: Fn, found: Fn, m: Fn, op: Op, one: Ex, act: Fn, n: i64, k: i64, t: Ty, u: Ty, v: Ty, w: Ty,
    r: Ty,
):  # fmt: skip
    where = (
        tabulates_first(f, z, h, others, whole, words, step, start, value, places, steps, found),
        *(acts(h, m, op, one, act), eq(r).to(cod(m))),
        *(eq(Ty.arr(k, t)).to(ty(xs)), eq(u).to(ty(words)), eq(v).to(ty(start)), eq(w).to(ty(places))),
        *(tile(k, n), n < k),
    )
    ws, p, ps, x, q, c, ts, qs = names = (
        *(V(WORDS, u), V(PLACE, v), V(PLACES, w), V(ELEMENT, t), V(ACCUMULATOR, r)),
        *(V(CHUNK, Ty.arr(n, t)), V(TOTALS, Ty.arr(k / n, w)), V("$parts", Ty.arr(k / n, Ty.pair(v, r)))),
    )
    stepped = make_pair(
        app(step, make_pair(Ex(ws), make_pair(Ex(p), Ex(x)))),
        combine(op, Ex(q), app(m, make_pair(app(value, Ex(p)), Ex(x)))),
    )
    both = Fn.lam(P.pair(P.pair(P.var(p), P.var(q)), P.var(x)), stepped)
    each = Fn.lam(P.pair(P.var(p), P.var(c)), reduce_seq(both, make_pair(Ex(p), one), Ex(c)))
    all_of = Fn.lam(P.var(c), reduce_seq(_named(steps, ws, ps, x), places, Ex(c)))
    acting = reduce_(op, one, map_(Fn.lam(P.pair(P.var(p), P.var(q)), Ex(q)), Ex(qs)))
    last = app(value, component(i64(0), at(k / n - 1, Ex(qs))))
    result = app(whole, make_pair(last, app(act, make_pair(acting, app(others, z)))))
    length = n * (k / n)
    fold = reduce_seq(f, z, xs)
    yield egglog.rule(eq(a).to(fold), *where).then(*names)  # the conditions need them to exist
    for array, rest in ((xs, None), (slice_(0, length, xs), slice_(length, k - length, xs))):
        parts = map_(each, zip_(scan_exclusive_seq(found, start, Ex(ts)), split(n, array)))
        inner = app(Fn.lam(P.var(ts), app(Fn.lam(P.var(qs), result), parts)), map_(all_of, split(n, array)))
        made = app(Fn.lam(P.var(ws), inner), words)
        made = made if rest is None else reduce_seq(f, made, rest)
        yield rewrite(fold).to(
            made,
            *where,
            *(fvf(m).not_contains(name) for name in (ws, p, x, q, c, ts)),
            *(fvf(act).not_contains(name) for name in (ws, ts, qs)),
            *(fvo(op).not_contains(name) for name in (ws, p, x, q, c, ts, qs)),
            *(fv(one).not_contains(name) for name in (ws, p, c, ts, qs)),
            *(fv(xs).not_contains(name) for name in (ws, ts)),
            *(fv(z).not_contains(name) for name in (ws, ts, qs)),
            length < k if rest is not None else eq(length).to(k),
        )


table_fold_rules = (fold_by_table,)
chunked_table_fold_rules = (fold_by_table_in_chunks, scan_by_table_in_chunks, fold_of_cascade_by_table)
