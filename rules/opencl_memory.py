"""Staging data in faster memory, at marked binders only: ``f => toLocal f`` everywhere would match everything."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import egglog
from egglog.egraph import FactLike

from lift_egraph.dsl import (
    ONE_CHUNK,
    Ex,
    Fn,
    P,
    Ty,
    V,
    absent,
    app,
    as_scalar,
    as_vector,
    bvs,
    chunked,
    component,
    eq,
    fresh,
    fvf,
    i64,
    join,
    lane_width,
    map_,
    map_level,
    reduce_seq,
    rewrite,
    rule,
    scalar_like,
    scan_exclusive_seq,
    scan_seq,
    split,
    stage_local,
    stage_private,
    tile,
    to_memory,
    transpose,
    ty,
    vty,
    zip_,
)
from lift_egraph.language.ir import TILE_SPACES


@rule(
    "mapWrg (λv. b) = mapWrg (λv. let v = toLocal (mapLcl id v) in b),  v marked",
    source="000 Figure 2.10d",
    phase="memory",
)
def stage_in_local(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    item = V("$item", t)
    copy = to_memory("local", map_level("lcl", d, Fn.lam(P.var(item), Ex(item)), Ex(v)))
    yield rewrite(map_level("wrg", d, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
        stage_local(v),
        eq(Ty.arr(n, t)).to(vty(v)),
    )


@rule(
    "mapWrg(0) (λv. b) = mapWrg(0) (λv. let v = toLocal (mapLcl(1) (mapLcl(0) id) v) in b),  v marked, a matrix",
    source="000 Figure 2.10d",
    phase="memory",
)
def stage_block_in_local(v: V, b: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    item, row = V("$item", t), V("$row", Ty.arr(m, t))
    copy_row = map_level("lcl", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))
    copy = to_memory("local", map_level("lcl", 1, Fn.lam(P.var(row), copy_row), Ex(v)))
    yield rewrite(map_level("wrg", 0, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", 0, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
        stage_local(v),
        eq(Ty.arr(n, Ty.arr(m, t))).to(vty(v)),
    )


@rule(
    "mapX (λv. b) = mapX (λv. let v = toPrivate (mapSeq id v) in b),  X = Glb or Lcl, v marked",
    source="000 Figure 2.10d",
    phase="memory",
)
def stage_in_private(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    item = V("$item", t)
    copy = to_memory("private", map_level("seq", 0, Fn.lam(P.var(item), Ex(item)), Ex(v)))
    for kind in ("glb", "lcl"):
        yield rewrite(map_level(kind, d, Fn.lam(P.var(v), b), xs)).to(
            map_level(kind, d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
            stage_private(v),
            eq(Ty.arr(n, t)).to(vty(v)),
        )


@rule("mapX f xs = toGlobal (mapX f xs),  X = Glb or Wrg", source="000 Figure 2.10d", phase="memory")
def result_in_global(f: Fn, xs: Ex, d: i64):
    for kind in ("glb", "wrg"):
        yield rewrite(map_level(kind, d, f, xs)).to(to_memory("global", map_level(kind, d, f, xs)))


@rule(
    "mapGlb f xs = toStream (mapGlb f xs)",
    source="new: non-temporal stores; Intel 64 and IA-32 Architectures Optimization Reference Manual, §9.4",
    phase="memory",
)
def result_as_stream(f: Fn, xs: Ex, d: i64):
    yield rewrite(map_level("glb", d, f, xs)).to(to_memory("stream", map_level("glb", d, f, xs)))


@rule("mapLcl f xs = toLocal (mapLcl f xs)", source="000 Figure 2.10d", phase="memory")
def result_in_local(f: Fn, xs: Ex, d: i64):
    yield rewrite(map_level("lcl", d, f, xs)).to(to_memory("local", map_level("lcl", d, f, xs)))


@rule(
    "toLocal xs = toLocalX xs,  X = Once, Ahead or Twice",
    source="Lam, Software pipelining, PLDI 1988; kernels of CUTLASS",
    phase="memory",
)
def tiles_in_turn(xs: Ex):
    for space in TILE_SPACES:
        yield rewrite(to_memory("local", xs)).to(to_memory(space, xs))


@rule("let v = xs in b = let v = toGlobal xs in b,  xs an array", source="new: lowering chooses else", phase="memory")
def let_in_global(p: P, b: Ex, xs: Ex, n: i64, t: Ty):
    yield _let_in("global", p, b, xs, n, t)


@rule("let v = xs in b = let v = toPrivate xs in b,  xs an array", source="000 Figure 2.10d", phase="memory")
def let_in_private(p: P, b: Ex, xs: Ex, n: i64, t: Ty):
    yield _let_in("private", p, b, xs, n, t)


def _let_in(space: str, p: P, b: Ex, xs: Ex, n: i64, t: Ty) -> egglog.RewriteOrRule:
    """What a let binds is kept in memory, if it is an array of n elements."""
    return rewrite(app(Fn.lam(p, b), xs)).to(app(Fn.lam(p, b), to_memory(space, xs)), eq(Ty.arr(n, t)).to(ty(xs)))


@rule(
    "reduceSeq (λ(a, (v, w)). b) z xs = reduceSeq (λ(a, (v, w)). let v = toLocal (mapLcl(1) (mapLcl(0) id) v) in b) z "
    "xs,  v marked, a matrix",
    source="000 Figure 2.10d, for the tiles of a loop",
    phase="memory",
)
def stage_first_tile(a: P, v: V, w: V, b: Ex, z: Ex, xs: Ex, m: i64, n: i64, t: Ty):
    binder = P.pair(a, P.pair(P.var(v), P.var(w)))
    staged = app(Fn.lam(P.var(v), b), to_memory("local", _by_items(Ex(v), n, t)))
    yield rewrite(reduce_seq(Fn.lam(binder, b), z, xs)).to(
        reduce_seq(Fn.lam(binder, staged), z, xs), stage_local(v), eq(Ty.arr(m, Ty.arr(n, t))).to(vty(v))
    )


@rule(
    "reduceSeq (λ(a, (v, w)). b) z xs = reduceSeq (λ(a, (v, w)). let w = toLocal (mapLcl(1) (mapLcl(0) id) w) in b) z "
    "xs,  w marked, a matrix",
    source="000 Figure 2.10d, for the tiles of a loop",
    phase="memory",
)
def stage_second_tile(a: P, v: V, w: V, b: Ex, z: Ex, xs: Ex, m: i64, n: i64, t: Ty):
    binder = P.pair(a, P.pair(P.var(v), P.var(w)))
    staged = app(Fn.lam(P.var(w), b), to_memory("local", _by_items(Ex(w), n, t)))
    yield rewrite(reduce_seq(Fn.lam(binder, b), z, xs)).to(
        reduce_seq(Fn.lam(binder, staged), z, xs), stage_local(w), eq(Ty.arr(m, Ty.arr(n, t))).to(vty(w))
    )


def _by_items(xss: Ex, n: i64, t: Ty) -> Ex:
    """A copy of a matrix with rows of length n by the items of a group."""
    return _copied(xss, V("$row", Ty.arr(n, t)), V("$item", t))


def _copied(xss: Ex, row: V, item: V) -> Ex:
    return map_level("lcl", 1, Fn.lam(P.var(row), map_level("lcl", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))), xss)


@rule(
    "mapLcl(1) (mapLcl(0) id) xss = split n (asScalar (join (join (mapSeq (mapLcl(1) (mapLcl(0) id)) "
    "(split p (split q (asVector w (join xss))))))))),  n the length of the rows, w | n, p·q | m·n / w;  the same "
    "without vectors",
    source="new: a tile is copied in rounds, in each of which neighbours take neighbours",
    phase="memory",
)
def copy_in_rounds(xss: Ex, r: V, i: V, m: i64, n: i64, items: i64, q: i64, w: i64, t: Ty):
    p = items / q
    flat, where = join(xss), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    for lanes, element, elements, back in (
        (i64(1), t, flat, lambda xs: xs),
        (w, Ty.lanes(w, t), as_vector(w, flat), as_scalar),
    ):
        part = V("$part", Ty.arr(p, Ty.arr(q, element)))
        count = m * n / lanes
        rounds = map_level("seq", 0, Fn.lam(P.var(part), _by_items(Ex(part), q, element)), split(p, split(q, elements)))
        vectors = (lane_width(w), eq(n % w).to(i64(0)), scalar_like(t)) if lanes is w else ()
        yield rewrite(_copied(xss, r, i)).to(
            split(n, back(join(join(rounds)))),
            where,
            *vectors,
            n > 0,
            tile(count, items),
            tile(items, q),
            eq(count % items).to(i64(0)),
            eq(items % q).to(i64(0)),
        )


@rule(
    "mapLcl f xs = join (mapSeq (mapLcl f) (split n xs)),  n | length",
    source="new: as many elements as there are work-items in each round",
    phase="memory",
    notes={"n < m": ONE_CHUNK},
)
def items_in_rounds(e: Ex, f: Fn, xs: Ex, d: i64, n: i64, m: i64, t: Ty):
    part = V("$part", Ty.arr(n, t))
    left, where = map_level("lcl", d, f, xs), (eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, n))
    each = Fn.lam(P.var(part), map_level("lcl", d, f, Ex(part)))
    yield egglog.rule(eq(e).to(left), *where).then(part)  # the condition needs it to exist
    yield rewrite(left).to(join(map_level("seq", 0, each, split(n, xs))), *where, fvf(f).not_contains(part))


@rule(
    "toLocal (mapLcl(1) (mapLcl(0) id) xss) = toLocal (transpose (mapLcl(1) (mapLcl(0) id) (transpose xss)))",
    source="new: neighbours take the elements of a column",
    phase="memory",
)
def copy_columns(xss: Ex, r: V, i: V, m: i64, n: i64, t: Ty):
    yield rewrite(to_memory("local", _copied(xss, r, i))).to(
        to_memory("local", transpose(_by_items(transpose(xss), m, t))), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@rule(
    "reduceSeq (λ(a, (v, w)). b) z xs = reduceSeq (λ(a, (v, w)). let v = hold v in let w = hold w in b) z xs,  "
    "hold = asScalar ∘ toPrivate ∘ mapSeq id ∘ asVector n, v and w arrays of scalars, n | their lengths",
    source="000 Listing 5.10 and Figure 2.10d, for the elements of a loop",
    phase="memory",
)
def hold_vectors(a: P, v: V, w: V, b: Ex, z: Ex, xs: Ex, n: i64, k: i64, m: i64, t: Ty):
    def held(array: V) -> Ex:
        vector = V("$vector", Ty.lanes(n, t))
        return as_scalar(
            to_memory("private", map_level("seq", 0, Fn.lam(P.var(vector), Ex(vector)), as_vector(n, Ex(array))))
        )

    def step(body: Ex) -> Fn:
        return Fn.lam(P.pair(a, P.pair(P.var(v), P.var(w))), body)

    yield rewrite(reduce_seq(step(b), z, xs)).to(
        reduce_seq(step(app(Fn.lam(P.var(v), app(Fn.lam(P.var(w), b), held(w))), held(v))), z, xs),
        eq(Ty.arr(k, t)).to(vty(v)),
        eq(Ty.arr(m, t)).to(vty(w)),
        lane_width(n),
        eq(k % n).to(i64(0)),
        eq(m % n).to(i64(0)),
        scalar_like(t),
    )


@rule(
    "reduceSeq f z xs = mapLcl(1) (mapLcl(0) (mapSeq (asScalar ∘ mapSeq id ∘ asVector w))) (reduceSeq f z xs),  z a "
    "matrix of matrices, w | length of their rows",
    source="new: the items of a group write their blocks",
    phase="memory",
)
def write_blocks(f: Fn, z: Ex, xs: Ex, w: i64, h: i64, k: i64, m: i64, n: i64, t: Ty):
    block, blocks = V("$block", Ty.arr(m, Ty.arr(n, t))), V("$blocks", Ty.arr(k, Ty.arr(m, Ty.arr(n, t))))
    copy = map_level("lcl", 0, Fn.lam(P.var(block), _rows_in_vectors(Ex(block), w, n, t)), Ex(blocks))
    yield rewrite(reduce_seq(f, z, xs)).to(
        map_level("lcl", 1, Fn.lam(P.var(blocks), copy), reduce_seq(f, z, xs)),
        eq(Ty.arr(h, Ty.arr(k, Ty.arr(m, Ty.arr(n, t))))).to(ty(z)),
        lane_width(w),
        eq(n % w).to(i64(0)),
        scalar_like(t),
    )


@rule(
    "reduceSeq (λ(a, v). b) z xs = reduceSeq (λ(a, v). let v = toLocal (mapLcl(0) id v) in b) z xs,  v marked, "
    "an array",
    source="000 Figure 2.10d, for the chunks of a loop",
    phase="memory",
)
def stage_tile(a: P, v: V, b: Ex, z: Ex, xs: Ex, n: i64, t: Ty):
    item = V("$item", t)
    copy = to_memory("local", map_level("lcl", 0, Fn.lam(P.var(item), Ex(item)), Ex(v)))
    yield rewrite(reduce_seq(Fn.lam(P.pair(a, P.var(v)), b), z, xs)).to(
        reduce_seq(Fn.lam(P.pair(a, P.var(v)), app(Fn.lam(P.var(v), b), copy)), z, xs),
        stage_local(v),
        eq(Ty.arr(n, t)).to(vty(v)),
    )


@rule(
    "mapLcl(1) (λ(v, p). b) xs = mapLcl(1) (λ(v, p). let v = toLocal (mapLcl(0) id v) in b) xs,  v marked, an array;  "
    "the same for λv. b",
    source="000 Figure 2.10d: what the items of a row have meets in local memory",
    phase="memory",
)
def stage_row(v: V, p: P, b: Ex, xs: Ex, n: i64, t: Ty):
    item = V("$item", t)
    copy = to_memory("local", map_level("lcl", 0, Fn.lam(P.var(item), Ex(item)), Ex(v)))
    for binder in (P.var(v), P.pair(P.var(v), p)):
        yield rewrite(map_level("lcl", 1, Fn.lam(binder, b), xs)).to(
            map_level("lcl", 1, Fn.lam(binder, app(Fn.lam(P.var(v), b), copy)), xs),
            stage_local(v),
            eq(Ty.arr(n, t)).to(vty(v)),
        )


@rule(
    "reduceSeq f z xs = toLocal (mapLcl(1) (mapLcl(0) id) (reduceSeq f z xs)),  z a matrix",
    source="000 Figure 2.10d: what the items of a group have meets in local memory",
    phase="memory",
)
def meet_in_local(f: Fn, z: Ex, xs: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(reduce_seq(f, z, xs)).to(
        to_memory("local", _by_items(reduce_seq(f, z, xs), n, t)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(z))
    )


@rule(
    "reduceSeq (λ(a, q). mapLcl(0) f (zip a xs)) z ys = let v = toPrivate (mapLcl(0) id xs) in reduceSeq (λ(a, q). "
    "mapLcl(0) f (zip a v)) z ys,  a and q not free in xs, v fresh",
    source="000 Figure 2.10d: what each work-item reads in all steps of a loop",
    phase="memory",
)
def hold_items(e: Ex, a: P, q: P, f: Fn, xs: Ex, z: Ex, ys: Ex, acc: Ex, n: i64, t: Ty):
    item, v = V("$item", t), V("$held", Ty.arr(n, t))
    held = to_memory("private", map_level("lcl", 0, Fn.lam(P.var(item), Ex(item)), xs))

    def loop(array: Ex) -> Ex:
        return reduce_seq(Fn.lam(P.pair(a, q), map_level("lcl", 0, f, zip_(acc, array))), z, ys)

    elements = eq(Ty.arr(n, t)).to(ty(xs))
    yield egglog.rule(eq(e).to(loop(xs)), elements).then(v)  # the conditions need it to exist
    yield rewrite(loop(xs)).to(
        app(Fn.lam(P.var(v), loop(Ex(v))), held),
        elements,
        absent(a, xs),
        absent(q, xs),
        fresh(v, acc),
        fresh(v, z),
        fresh(v, ys),
        fvf(f).not_contains(v),
        bvs(a).not_contains(v),
        bvs(q).not_contains(v),
    )


@rule(
    "reduceSeq f z xs = mapSeq (asScalar ∘ mapSeq id ∘ asVector w) (reduceSeq f z xs),  z a matrix, w | length of its "
    "rows",
    source="000 Listing 5.10 and Figure 2.10d: a work-item writes its block",
    phase="memory",
)
def write_block(f: Fn, z: Ex, xs: Ex, w: i64, m: i64, n: i64, t: Ty):
    yield rewrite(reduce_seq(f, z, xs)).to(
        _rows_in_vectors(reduce_seq(f, z, xs), w, n, t),
        eq(Ty.arr(m, Ty.arr(n, t))).to(ty(z)),
        lane_width(w),
        eq(n % w).to(i64(0)),
        scalar_like(t),
    )


def _rows_in_vectors(matrix: Ex, w: i64, n: i64, t: Ty) -> Ex:
    """A copy of a matrix with rows of length n by one work-item, in vectors."""
    row = V("$row", Ty.arr(n, t))
    return map_level("seq", 0, Fn.lam(P.var(row), as_scalar(_in_vectors(Ex(row), w, t))), matrix)


@rule(
    "reduceSeq f z xs = reduceSeq f z (asScalar (toPrivate (mapSeq id (asVector w xs)))),  w | length, xs an array of "
    "scalars;  the same for scanSeq and scanExclusiveSeq",
    source="000 Listing 5.10 and Figure 2.10d: what a work-item folds it reads in vectors",
    phase="memory",
)
def hold_folded(f: Fn, z: Ex, xs: Ex, w: i64, n: i64, t: Ty):
    copy = _in_vectors(xs, w, t)
    for fold in (reduce_seq, scan_seq, scan_exclusive_seq):
        yield rewrite(fold(f, z, xs)).to(
            fold(f, z, as_scalar(to_memory("private", copy))),
            eq(Ty.arr(n, t)).to(ty(xs)),
            lane_width(w),
            eq(n % w).to(i64(0)),
            scalar_like(t),
        )


@rule(
    "scanSeq f z xs = asScalar (mapSeq id (asVector w (toPrivate (scanSeq f z xs)))),  w | length, z a scalar;  the "
    "same for scanExclusiveSeq",
    source="000 Listing 5.10 and Figure 2.10d: a work-item writes what it scans in vectors",
    phase="memory",
)
def write_scan(f: Fn, z: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty):
    for scan in (scan_seq, scan_exclusive_seq):
        own = to_memory("private", scan(f, z, xs))
        yield rewrite(scan(f, z, xs)).to(
            as_scalar(_in_vectors(own, w, t)),
            eq(Ty.arr(n, u)).to(ty(xs)),
            eq(t).to(ty(z)),
            lane_width(w),
            eq(n % w).to(i64(0)),
            scalar_like(t),
        )


@rule(
    "reduceSeq f z xs = reduceSeq f z (zip (v (map fst xs)) (v (map snd xs))),  v ys = asScalar (toPrivate (mapSeq id "
    "(asVector w ys))), w | length, xs an array of pairs of scalars;  the same for scanSeq and scanExclusiveSeq, and "
    "for triples",
    source="000 Listing 5.10 and Figure 2.10d: what a work-item folds it reads in vectors",
    phase="memory",
)
def hold_folded_sides(f: Fn, z: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty, v: Ty):
    for types in ((t, u), (t, u, v)):
        sides = _sides(xs, types)
        copies = [_in_vectors(side, w, of) for side, of in zip(sides, types, strict=True)]
        held = [as_scalar(to_memory("private", copy)) for copy in copies]
        for fold in (reduce_seq, scan_seq, scan_exclusive_seq):
            yield rewrite(fold(f, z, xs)).to(fold(f, z, _zipped(held)), *_cut(xs, types, n, w))


@rule(
    "scanSeq f z xs = let r = toPrivate (scanSeq f z xs) in zip (v (map fst r)) (v (map snd r)),  v ys = asScalar "
    "(mapSeq id (asVector w ys)), w | length, z a pair of scalars;  the same for scanExclusiveSeq, and for triples",
    source="000 Listing 5.10 and Figure 2.10d: a work-item writes what it scans in vectors",
    phase="memory",
)
def write_scan_sides(a: Ex, f: Fn, z: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty, v: Ty):
    for types in ((t, u), (t, u, v)):
        for scan in (scan_seq, scan_exclusive_seq):
            r = V("$scanned", Ty.arr(n, _tuple(types)))
            where = _cut(scan(f, z, xs), types, n, w)
            yield egglog.rule(eq(a).to(scan(f, z, xs)), *where).then(r)  # the conditions need it to exist
            sides = _sides(Ex(r), types)
            written = _zipped([as_scalar(_in_vectors(side, w, of)) for side, of in zip(sides, types, strict=True)])
            yield rewrite(scan(f, z, xs)).to(
                app(Fn.lam(P.var(r), written), to_memory("private", scan(f, z, xs))), *where
            )


def _zipped(arrays: Sequence[Ex]) -> Ex:
    """An array of tuples."""
    return reduce(lambda b, a: zip_(a, b), reversed(arrays))


def _tuple(types: Sequence[Ty]) -> Ty:
    """Pairs whose second sides are pairs."""
    return reduce(lambda b, a: Ty.pair(a, b), reversed(types))


def _cut(array: Ex, types: Sequence[Ty], n: i64, w: i64) -> tuple[FactLike, ...]:
    """The conditions that an array has n tuples of scalars, which vectors of w divide."""
    divided = eq(Ty.arr(n, _tuple(types))).to(ty(array)), lane_width(w), eq(n % w).to(i64(0))
    return *divided, *map(scalar_like, types)


def _sides(array: Ex, types: Sequence[Ty]) -> list[Ex]:
    """The arrays of the components of tuples."""
    element = V("$sides", _tuple(types))
    sides: list[Ex] = []
    rest = Ex(element)
    for _ in types[1:]:
        sides.append(component(0, rest))
        rest = component(1, rest)
    return [map_(Fn.lam(P.var(element), side), array) for side in (*sides, rest)]


def _in_vectors(array: Ex, w: i64, t: Ty) -> Ex:
    """A copy of an array of scalars in vectors, by one work-item."""
    vector = V("$vector", Ty.lanes(w, t))
    return map_level("seq", 0, Fn.lam(P.var(vector), Ex(vector)), as_vector(w, array))


memory_rules = (stage_in_local, stage_in_private, let_in_global)
block_rules = (stage_block_in_local,)
round_rules = (items_in_rounds,)
result_rules = (result_in_global,)
stream_rules = (result_as_stream,)
turn_rules = (tiles_in_turn,)
shared_rules = (result_in_local,)
tile_copy_rules = (copy_in_rounds, copy_columns)
register_rules = (hold_vectors, write_blocks)
row_tile_rules = (stage_row,)
column_tile_rules = (meet_in_local,)
loop_tile_rules = (stage_tile, hold_items)
block_rows_rules = (write_block,)
item_fold_rules = (hold_folded, write_scan)
item_side_rules = (hold_folded_sides, write_scan_sides)
