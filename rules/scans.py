"""Scans: in chunks that run beside each other, in blocks, as loops, and what they have to do with reductions.

A scan in chunks needs what stands before each chunk: the exclusive scan of the chunks' totals. They are reduced first
and then scanned from there (reduce, then scan), or scanned first, and what stands before is added (scan, scan, add).
Where chunks are pairs, and their totals are scanned so again, both ways together are a tree: sums of pairs up to one
that has all, and what stands before each pair down again. It has one operation for each node, twice.

Source: Blelloch, "Prefix sums and their applications", 1990; Dotsenko et al., "Fast scan algorithms on graphics
processors", ICS 2008; Bird, "An introduction to the theory of lists", 1987.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
    absent,
    absent_in_operator,
    app,
    associative,
    at,
    chunked,
    combine,
    component,
    concat,
    disjoint,
    eq,
    fill,
    fv,
    fvf,
    fvo,
    i64,
    identity,
    join,
    make_pair,
    map_,
    map_level,
    named,
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
    tile,
    transpose,
    ty,
    zip_,
)

OFFSET, CHUNK, CHUNKS, TOTALS, STARTS = "$offset", "$chunk", "$chunks", "$totals", "$starts"
PAIR = i64(2)
STATE, NEXT, BESIDE = "$state", "$next", "$beside"


@rule(
    "scan ⊕ z (map f xs) = join (map (λ(o, c). scan ⊕ o (map f c)) (zip (scanExclusive ⊕ z (map (λc. reduce ⊕ e "
    "(map f c)) (split n xs))) (split n xs))),  n | length, ⊕ associative, e its right identity;  the same without f, "
    "and for scanExclusive",
    source="reduce, then scan: Dotsenko et al.",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def scan_in_chunks(a: Ex, op: Op, z: Ex, e: Ex, f: Fn, xs: Ex, n: i64, m: i64, t: Ty, u: Ty):
    offset, chunk = V(OFFSET, t), V(CHUNK, Ty.arr(n, u))
    where = (eq(t).to(ty(z)), eq(Ty.arr(m, u)).to(ty(xs)), *chunked(m, n), *monoid(op, e, t))
    for elements, unused in with_map(f, offset, chunk):
        own = elements(Ex(chunk))
        totals = map_(Fn.lam(P.var(chunk), reduce_(op, e, own)), split(n, xs))
        for scanned in (scan, scan_exclusive):
            left = scanned(op, z, elements(xs))
            yield egglog.rule(eq(a).to(left), *where).then(offset, chunk)  # the conditions need them to exist
            each = Fn.lam(P.pair(P.var(offset), P.var(chunk)), scanned(op, Ex(offset), own))
            yield rewrite(left).to(
                join(map_(each, zip_(scan_exclusive(op, z, totals), split(n, xs)))),
                *where,
                *unused,
                *(fvo(op).not_contains(name) for name in (offset, chunk)),
                fv(e).not_contains(chunk),
            )


def monoid(op: Op, e: Ex, t: Ty) -> tuple[FactLike, ...]:
    """The conditions that an operator on values of a type is associative, and e its right identity."""
    return associative(op), identity(op, e), eq(t).to(ty(e))


def with_map(f: Fn, *names: V) -> Iterator[tuple[Callable[[Ex], Ex], tuple[FactLike, ...]]]:
    """An array as it is, and with a function of each element; with the conditions that no name is free in it."""
    yield lambda array: array, ()
    yield lambda array: map_(f, array), tuple(fvf(f).not_contains(name) for name in names)


@rule(
    "scan ⊕ z xs = let css = map (λc. scan ⊕ e c) (split n xs) in join (map (λ(o, c). map (λx. o ⊕ x) c) "
    "(zip (scanExclusive ⊕ z (map (λc. at (n - 1) c) css)) css)),  n | length, ⊕ associative, e its right identity",
    source="scan, scan, add: Blelloch",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def scan_then_combine(a: Ex, op: Op, z: Ex, e: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    offset, element, chunk = V(OFFSET, t), V(ELEMENT, t), V(CHUNK, Ty.arr(n, t))
    chunks = V(CHUNKS, Ty.arr(m / n, Ty.arr(n, t)))
    names = offset, element, chunk, chunks
    where = (eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, n), *monoid(op, e, t))
    yield egglog.rule(eq(a).to(scan(op, z, xs)), *where).then(*names)
    totals = map_(Fn.lam(P.var(chunk), at(n - 1, Ex(chunk))), Ex(chunks))
    moved = map_(Fn.lam(P.var(element), combine(op, Ex(offset), Ex(element))), Ex(chunk))
    offsets = scan_exclusive(op, z, totals)
    whole = join(map_(Fn.lam(P.pair(P.var(offset), P.var(chunk)), moved), zip_(offsets, Ex(chunks))))
    yield rewrite(scan(op, z, xs)).to(
        app(Fn.lam(P.var(chunks), whole), map_(Fn.lam(P.var(chunk), scan(op, e, Ex(chunk))), split(n, xs))),
        *where,
        fv(z).not_contains(chunks),
        fv(e).not_contains(chunk),
        *(fvo(op).not_contains(name) for name in names),
    )


@rule(
    "scan ⊕ z xs = join (map (λ(o, p). scan ⊕ o p) (zip (let ts = map (λp. at 0 p ⊕ at 1 p) (split 2 xs) in "
    "scanExclusive ⊕ z ts) (split 2 xs))),  2 | length, ⊕ associative, ts fresh;  the same for scanExclusive",
    source="work-efficient tree, one level of its up-sweep and its down-sweep: Blelloch",
    reassociates=True,
    notes={"2 < m": ONE_CHUNK},
)
def scan_by_sweeps(a: Ex, op: Op, z: Ex, xs: Ex, m: i64, t: Ty):
    offset, pair, totals = names = V(OFFSET, t), V("$pair", Ty.arr(PAIR, t)), V(TOTALS, Ty.arr(m / PAIR, t))
    where = eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, PAIR), associative(op)
    pairs, both = split(PAIR, xs), combine(op, at(0, Ex(pair)), at(1, Ex(pair)))
    before = app(Fn.lam(P.var(totals), scan_exclusive(op, z, Ex(totals))), map_(Fn.lam(P.var(pair), both), pairs))
    for scanned in (scan, scan_exclusive):
        yield egglog.rule(eq(a).to(scanned(op, z, xs)), *where).then(*names)  # the conditions need them to exist
        down = Fn.lam(P.pair(P.var(offset), P.var(pair)), scanned(op, Ex(offset), Ex(pair)))
        yield rewrite(scanned(op, z, xs)).to(
            join(map_(down, zip_(before, pairs))),
            *where,
            *(fvo(op).not_contains(name) for name in names),
            fv(z).not_contains(totals),
        )


@rule(
    "scan ⊕ z (map f xs) = join (scanSeq (λ(b, c). let o = at (n - 1) b in map (λx. o ⊕ x) (scan ⊕ e (map f c))) "
    "(fill n z) (split n xs)),  n | length, ⊕ associative, e its right identity;  the same without f",
    source="new: what follows a block waits for one step of it, not for each",
    phase="lowering",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def scan_in_blocks(a: Ex, op: Op, z: Ex, e: Ex, f: Fn, xs: Ex, n: i64, m: i64, t: Ty, u: Ty):
    offset, element = V(OFFSET, t), V(ELEMENT, t)
    block, chunk = V(ACCUMULATOR, Ty.arr(n, t)), V(CHUNK, Ty.arr(n, u))
    names = offset, element, block, chunk
    where = (eq(t).to(ty(z)), eq(Ty.arr(m, u)).to(ty(xs)), *chunked(m, n), *monoid(op, e, t))
    for elements, unused in with_map(f, *names):
        left = scan(op, z, elements(xs))
        yield egglog.rule(eq(a).to(left), *where).then(*names)
        inside = map_(Fn.lam(P.var(element), combine(op, Ex(offset), Ex(element))), scan(op, e, elements(Ex(chunk))))
        moved = app(Fn.lam(P.var(offset), inside), at(n - 1, Ex(block)))
        yield rewrite(left).to(
            join(scan_seq(Fn.lam(P.pair(P.var(block), P.var(chunk)), moved), fill(n, z), split(n, xs))),
            *where,
            *unused,
            *(fvo(op).not_contains(name) for name in names),
            *(fv(e).not_contains(name) for name in names),
        )


@rule(
    "scanExclusive ⊕ z (map f xs) = let ts = map f xs in scanExclusive ⊕ z ts,  ts fresh",
    source="new: the totals of chunks are kept, for the work-items that scan them",
)
def name_scanned(a: Ex, op: Op, z: Ex, f: Fn, xs: Ex, n: i64, t: Ty):
    scanned = map_(f, xs)
    totals = V(TOTALS, Ty.arr(n, t))
    where, unused = eq(Ty.arr(n, t)).to(ty(scanned)), (fvo(op).not_contains(totals), fv(z).not_contains(totals))
    yield from named(a, totals, scanned, lambda r: scan_exclusive(op, z, r), (where,), *unused)


@rule(
    "map f (scan ⊕ z xs) = let v = scan ⊕ z xs in map f v,  v fresh;  the same for scanExclusive",
    source="new: what is scanned, and then read, by its name",
)
def name_scan(e: Ex, f: Fn, op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    for tag, form in (("$scanned", scan), ("$before", scan_exclusive)):
        scanned, v = form(op, z, xs), V(tag, Ty.arr(n, t))
        where = eq(Ty.arr(n, t)).to(ty(scanned))
        yield from named(e, v, scanned, lambda r: map_(f, r), (where,), fvf(f).not_contains(v))


@rule(
    "scan ⊕ z (map f xs) = let ts = map (λc. reduce ⊕ e (map f c)) (split n xs) in let ss = scanExclusive ⊕ z ts in "
    "join (map (λ(s, c). scan ⊕ s (map f c)) (zip ss (split n xs))),  n | length, ⊕ associative, e its right identity, "
    "ts and ss fresh;  the same without f",
    source="reduce, then scan, each of them a stage of its own",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def scan_in_named_chunks(a: Ex, op: Op, z: Ex, e: Ex, f: Fn, xs: Ex, n: i64, m: i64, t: Ty, u: Ty):
    offset, chunk = V(OFFSET, t), V(CHUNK, Ty.arr(n, u))
    ts, ss = names = V(TOTALS, Ty.arr(m / n, t)), V(STARTS, Ty.arr(m / n, t))
    where = (eq(t).to(ty(z)), eq(Ty.arr(m, u)).to(ty(xs)), *chunked(m, n), *monoid(op, e, t))
    for elements, unused in with_map(f, offset, chunk, *names):
        own, left = elements(Ex(chunk)), scan(op, z, elements(xs))
        yield egglog.rule(eq(a).to(left), *where).then(offset, chunk, *names)  # the conditions need them to exist
        totals = map_(Fn.lam(P.var(chunk), reduce_(op, e, own)), split(n, xs))
        each = Fn.lam(P.pair(P.var(offset), P.var(chunk)), scan(op, Ex(offset), own))
        whole = app(Fn.lam(P.var(ss), join(map_(each, zip_(Ex(ss), split(n, xs))))), scan_exclusive(op, z, Ex(ts)))
        yield rewrite(left).to(
            app(Fn.lam(P.var(ts), whole), totals),
            *where,
            *unused,
            *(fvo(op).not_contains(name) for name in (offset, chunk, *names)),
            *(fv(xs).not_contains(name) for name in names),
            *(fv(z).not_contains(ts), fv(e).not_contains(chunk)),
        )


@rule(
    "scan ⊕ z xs = join (map (λc. scan ⊕ z c) (split n xs)),  n = length, c not free in ⊕ and z;  the same for "
    "scanExclusive",
    source="new: one chunk, for the one group or work-item that scans it",
)
def scan_in_one_chunk(a: Ex, op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    chunk = V(CHUNK, Ty.arr(n, t))
    where = eq(Ty.arr(n, t)).to(ty(xs)), tile(n, n)
    for scanned in (scan, scan_exclusive):
        yield egglog.rule(eq(a).to(scanned(op, z, xs)), *where).then(chunk)  # the conditions need it to exist
        yield rewrite(scanned(op, z, xs)).to(
            join(map_(Fn.lam(P.var(chunk), scanned(op, z, Ex(chunk))), split(n, xs))),
            *where,
            fvo(op).not_contains(chunk),
            fv(z).not_contains(chunk),
        )


@rule("at (n - 1) (scan ⊕ z xs) = reduce ⊕ z xs,  n = length", source="Bird 1987")
def last_of_scan(op: Op, z: Ex, xs: Ex, n: i64, i: i64, t: Ty):
    yield rewrite(at(i, scan(op, z, xs))).to(reduce_(op, z, xs), eq(Ty.arr(n, t)).to(ty(xs)), eq(i + 1).to(n))


@rule("at i (scan ⊕ z xs) = reduce ⊕ z (slice 0 (i + 1) xs)", source="Bird 1987")
def at_of_scan(op: Op, z: Ex, xs: Ex, i: i64):
    yield rewrite(at(i, scan(op, z, xs))).to(reduce_(op, z, slice_(0, i + 1, xs)))


@rule("scan ⊕ z xs = map (λ(a, x). a ⊕ x) (zip (scanExclusive ⊕ z xs) xs)", source="Blelloch")
def scan_by_exclusive(e: Ex, op: Op, z: Ex, xs: Ex, m: i64, t: Ty):
    acc, x = V(ACCUMULATOR, t), V(ELEMENT, t)
    yield rewrite(scan(op, z, xs)).to(
        map_(Fn.lam(P.pair(P.var(acc), P.var(x)), combine(op, Ex(acc), Ex(x))), zip_(scan_exclusive(op, z, xs), xs)),
        eq(Ty.arr(m, t)).to(ty(xs)),
        fvo(op).not_contains(acc),
        fvo(op).not_contains(x),
    )


@rule("scanExclusive ⊕ z xs = concat (fill 1 z) (slice 0 (n - 1) (scan ⊕ z xs)),  n = length, n > 1", source="Blelloch")
def exclusive_by_shift(op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(scan_exclusive(op, z, xs)).to(
        concat(fill(1, z), slice_(0, n - 1, scan(op, z, xs))), eq(Ty.arr(n, t)).to(ty(xs)), n > 1
    )


@rule(
    "map (λp. scan ⊕ z c) xs = transpose (scan (lift ⊕) (fill n z) (transpose (map (λp. c) xs))),  n = length, p not "
    "free in ⊕ and z",
    source="000 Listing 5.18, for scans",
)
def map_scan_interchange(p: P, op: Op, z: Ex, c: Ex, xs: Ex, n: i64, t: Ty):
    for scanned in (scan, scan_exclusive):
        yield rewrite(map_(Fn.lam(p, scanned(op, z, c)), xs)).to(
            transpose(scanned(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, c), xs)))),
            eq(Ty.arr(n, t)).to(ty(xs)),
            absent(p, z),
            absent_in_operator(p, op),
        )


@rule(
    "scan ⊕ z xs = scanSeq (λ(acc, x). acc ⊕ x) z xs;  scanExclusive ⊕ z xs = scanExclusiveSeq (λ(acc, x). acc ⊕ x) z "
    "xs",
    source="new",
    phase="lowering",
)
def scan_to_seq(op: Op, z: Ex, xs: Ex, t: Ty, m: i64):
    acc, x = V(ACCUMULATOR, t), V(ELEMENT, t)
    for scanned, loop in ((scan, scan_seq), (scan_exclusive, scan_exclusive_seq)):
        yield rewrite(scanned(op, z, xs)).to(
            loop(Fn.lam(P.pair(P.var(acc), P.var(x)), combine(op, Ex(acc), Ex(x))), z, xs),
            eq(Ty.arr(m, t)).to(ty(xs)),
            fvo(op).not_contains(acc),
            fvo(op).not_contains(x),
        )


@rule(
    "scanSeq (λ(acc, p). b) z (map (λq. c) xs) = scanSeq (λ(acc, q). let p = c in b) z xs,  "
    "q not free in b, acc not free in c;  the same for scanExclusiveSeq",
    source="new, as 000 Listing 5.7",
    phase="lowering",
)
def scan_seq_fusion(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex):
    for loop in (scan_seq, scan_exclusive_seq):
        for mapped in (map_(Fn.lam(q, c), xs), map_level("seq", 0, Fn.lam(q, c), xs)):
            yield rewrite(loop(Fn.lam(P.pair(a, p), b), z, mapped)).to(
                loop(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, xs), absent(q, b), absent(a, c), disjoint(a, q)
            )


@rule(
    "reduceSeq f z (scanSeq g e xs) = component 1 (reduceSeq (λ((s, t), x). let n = g (s, x) in (n, f (t, n))) (e, z) "
    "xs),  s, t, x and n fresh;  with f (t, s) for scanExclusiveSeq, and with f (t, (n, y)) for zip (scanSeq g e xs) "
    "ys, folded over zip xs ys, on either side",
    source="new: what folds the values of a scan needs no array of them",
)
def fold_of_scan(a: Ex, f: Fn, g: Fn, z: Ex, e: Ex, xs: Ex, ys: Ex, n: i64, r: Ty, t: Ty, u: Ty, v: Ty):
    s, acc, x, now, y = V(STATE, r), V(ACCUMULATOR, t), V(ELEMENT, u), V(NEXT, r), V(BESIDE, v)
    where = eq(r).to(ty(e)), eq(t).to(ty(z)), eq(Ty.arr(n, u)).to(ty(xs))
    of_both = (*where, eq(Ty.arr(n, v)).to(ty(ys)))
    after = app(g, make_pair(Ex(s), Ex(x)))
    for beside, arrays, binder, element, names, conditions in (
        (lambda array: array, xs, P.var(x), lambda q: q, (s, acc, x), where),
        (
            *(lambda array: zip_(array, ys), zip_(xs, ys), P.pair(P.var(x), P.var(y))),
            *(lambda q: make_pair(q, Ex(y)), (s, acc, x, y), of_both),
        ),
        (
            *(lambda array: zip_(ys, array), zip_(ys, xs), P.pair(P.var(y), P.var(x))),
            *(lambda q: make_pair(Ex(y), q), (s, acc, x, y), of_both),
        ),
    ):

        def folded(value: V, f: Fn = f, element: Callable[[Ex], Ex] = element) -> Ex:
            return app(f, make_pair(Ex(acc), element(Ex(value))))

        for scanned, both, in_f in (
            (scan_seq, app(Fn.lam(P.var(now), make_pair(Ex(now), folded(now))), after), (*names, now)),
            (scan_exclusive_seq, make_pair(after, folded(s)), names),
        ):
            left = reduce_seq(f, z, beside(scanned(g, e, xs)))
            yield egglog.rule(eq(a).to(left), *conditions).then(*in_f)  # the conditions need them to exist
            step = Fn.lam(P.pair(P.pair(P.var(s), P.var(acc)), binder), both)
            yield rewrite(left).to(
                component(1, reduce_seq(step, make_pair(e, z), arrays)),
                *conditions,
                *(fvf(f).not_contains(name) for name in in_f),
                *(fvf(g).not_contains(name) for name in names),
            )


@rule(
    "reduceSeq f z (zip xs (zip ys ws)) = reduceSeq (λ(t, (y, (x, w))). f (t, (x, (y, w)))) z (zip ys (zip xs ws)),  "
    "ys a scan, t, x, y and w fresh;  and λ(t, (w, (x, y))) over zip ws (zip xs ys) where ws is one",
    source="new: a scan stands first where it is folded",
)
def scan_first(a: Ex, f: Fn, g: Fn, z: Ex, e: Ex, xs: Ex, ys: Ex, ws: Ex, n: i64, r: Ty, t: Ty, u: Ty, v: Ty):
    acc, x, s, y = V(ACCUMULATOR, t), V(ELEMENT, u), V(STATE, r), V(BESIDE, v)
    where = (
        *(eq(r).to(ty(e)), eq(t).to(ty(z)), eq(Ty.arr(n, u)).to(ty(xs)), eq(Ty.arr(n, v)).to(ty(ys))),
        *(fvf(f).not_contains(name) for name in (acc, x, s, y)),
    )
    for scanned in (scan_seq(g, e, ws), scan_exclusive_seq(g, e, ws)):
        for inner, element in (
            (zip_(scanned, ys), make_pair(Ex(s), Ex(y))),
            (zip_(ys, scanned), make_pair(Ex(y), Ex(s))),
        ):
            left = reduce_seq(f, z, zip_(xs, inner))
            yield egglog.rule(eq(a).to(left), *where[:4]).then(acc, x, s, y)  # the conditions need them to exist
            binder = P.pair(P.var(acc), P.pair(P.var(s), P.pair(P.var(x), P.var(y))))
            body = app(f, make_pair(Ex(acc), make_pair(Ex(x), element)))
            yield rewrite(left).to(reduce_seq(Fn.lam(binder, body), z, zip_(scanned, zip_(xs, ys))), *where)


chunked_scan_rules = (scan_in_chunks,)
folded_scan_rules = (fold_of_scan, scan_first)
group_scan_rules = (name_scanned, scan_in_one_chunk)
named_chunk_rules = (scan_in_named_chunks,)
scan_block_rules = (scan_in_blocks,)
sweep_rules = (scan_by_sweeps,)
scan_rules = (scan_then_combine, last_of_scan, at_of_scan, scan_by_exclusive, exclusive_by_shift, map_scan_interchange)
read_scan_rules = (name_scan,)
scan_loop_rules = (scan_to_seq, scan_seq_fusion)
