"""Copies that prepare data for a loop: arrays repacked in global memory, results of a block kept in registers."""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    EMPTY,
    Ex,
    Fn,
    P,
    Ty,
    V,
    absent,
    absent_in_function,
    app,
    as_it_stands,
    as_scalar,
    as_vector,
    bvs,
    eq,
    fresh,
    fv,
    fvf,
    i64,
    lane_width,
    made,
    map_,
    map_level,
    reduce_seq,
    rewrite,
    rule,
    scalar_like,
    seen,
    slide,
    split,
    to_memory,
    transpose,
    ty,
    zip_,
)


@rule(
    "transpose xss = toGlobal (mapGlb(1) (mapGlb(0) id) (transpose xss)):  a packed copy",
    source="new; array packing, as tiled matrix multiplications do",
    phase="memory",
)
def pack_transposed(xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(transpose(xss)).to(packed(transpose(xss), m, t), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)))


@rule(
    "split k xs = toGlobal (mapGlb(1) (mapGlb(0) id) (split k xs)):  a packed copy",
    source="new; array packing, as tiled matrix multiplications do",
    phase="memory",
)
def pack_chunks(xs: Ex, k: i64, m: i64, t: Ty):
    yield rewrite(split(k, xs)).to(packed(split(k, xs), k, t), eq(Ty.arr(m, t)).to(ty(xs)))


def packed(xss: Ex, n: i64, t: Ty) -> Ex:
    """A copy of a matrix with rows of length n in global memory, in the order in which it is read."""
    row, item = V("$row", Ty.arr(n, t)), V("$item", t)
    copied = map_level("glb", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))
    return to_memory("global", map_level("glb", 1, Fn.lam(P.var(row), copied), xss))


@rule(
    "split n xss = map transpose (toGlobal (map (map (map id)) (map transpose (split n xss)))),  n > 1, xss closed",
    source="new: array packing of 'Guided equality saturation', POPL 2024",
    phase="memory",
    notes={"scalar_like(t)": "no kernel has blocks of vectors", "n > 1": "a block of one row is packed as it stands"},
)
def pack_blocks(xss: Ex, n: i64, m: i64, k: i64, t: Ty):
    element = V("$element", t)
    copy = Fn.map(k, Fn.map(n, Fn.lam(P.var(element), Ex(element))))
    copied = to_memory("global", map_(copy, map_(Fn.transpose(Ty.arr(n, Ty.arr(k, t))), split(n, xss))))
    yield rewrite(split(n, xss)).to(
        map_(Fn.transpose(Ty.arr(k, Ty.arr(n, t))), copied),
        eq(Ty.arr(m, Ty.arr(k, t))).to(ty(xss)),
        scalar_like(t),
        eq(fv(xss)).to(EMPTY),
        n > 1,
    )


@rule(
    "reduceSeq f z xs = mapSeq (mapSeq id) (toPrivate (reduceSeq f z xs)),  z a matrix",
    source="new: cache blocks of 'Guided equality saturation', POPL 2024",
    phase="memory",
    notes={"scalar_like(t)": "no kernel has blocks of vectors"},
)
def keep_block_in_private(f: Fn, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    element, row = V("$element", t), V("$row", Ty.arr(n, t))
    copy_row = map_level("seq", 0, Fn.lam(P.var(element), Ex(element)), Ex(row))
    yield rewrite(reduce_seq(f, z, xs)).to(
        map_level("seq", 0, Fn.lam(P.var(row), copy_row), to_memory("private", reduce_seq(f, z, xs))),
        eq(Ty.arr(m, Ty.arr(n, t))).to(ty(z)),
        scalar_like(t),
    )


@rule(
    "map (λp. map f xss) ys = let v = toGlobal (mapGlb(0) (mapSeq id) (asVector w xss)) in "
    "map (λp. map f (asScalar v)) ys,  w | length, p not free in xss, a matrix, v fresh;  the same for "
    "map f (zip xss zs) and map f (zip zs xss)",
    source="new; array packing, as tiled matrix multiplications do",
    phase="memory",
)
def pack_vectors(e: Ex, c: Ex, p: P, v: V, f: Fn, xss: Ex, ys: Ex, zs: Ex, w: i64, n: i64, k: i64, t: Ty):
    lanes = Ty.lanes(w, t)
    item, row, panels = V("$item", lanes), V("$row", Ty.arr(k, lanes)), V("$panels", Ty.arr(n / w, Ty.arr(k, lanes)))
    copy_row = map_level("seq", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))
    copied = to_memory("global", map_level("glb", 0, Fn.lam(P.var(row), copy_row), as_vector(w, xss)))
    where = (
        lane_width(w),
        eq(Ty.arr(n, Ty.arr(k, t))).to(ty(xss)),
        eq(n % w).to(i64(0)),
        scalar_like(t),
        absent(p, xss),
    )
    forms = (
        (lambda xs: map_(f, xs), ()),
        (lambda xs: map_(f, zip_(xs, zs)), (fresh(panels, zs),)),
        (lambda xs: map_(f, zip_(zs, xs)), (fresh(panels, zs),)),
    )
    unused = fresh(panels, ys), fvf(f).not_contains(panels), bvs(p).not_contains(panels)
    for inner, unused_beside in forms:
        left = map_(Fn.lam(p, inner(xss)), ys)
        yield egglog.rule(eq(e).to(left), *where).then(panels)
        yield seen(xss, eq(e).to(left), *where)
        packed_left = map_(Fn.lam(p, inner(as_scalar(Ex(v)))), ys)
        yield made(as_scalar(Ex(v)), eq(e).to(app(Fn.lam(P.var(v), packed_left), c)))
        right = map_(Fn.lam(p, inner(as_scalar(Ex(panels)))), ys)
        packed_once = as_it_stands(xss)
        names = *unused, *unused_beside
        yield rewrite(left).to(app(Fn.lam(P.var(panels), right), copied), *where, packed_once, *names)


@rule(
    "transpose xss = asScalar (toGlobal (mapGlb(0) (mapSeq id) (asVector w (transpose xss)))),  w | length of the rows "
    "of xss, xss closed",
    source="new; array packing, as matrix multiplications of libraries do",
    phase="memory",
)
def pack_columns(xss: Ex, w: i64, n: i64, k: i64, t: Ty):
    lanes = Ty.lanes(w, t)
    item, row = V("$item", lanes), V("$row", Ty.arr(k, lanes))
    copy_row = map_level("seq", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))
    copied = map_level("glb", 0, Fn.lam(P.var(row), copy_row), as_vector(w, transpose(xss)))
    yield rewrite(transpose(xss)).to(
        as_scalar(to_memory("global", copied)),
        lane_width(w),
        eq(Ty.arr(k, Ty.arr(n, t))).to(ty(xss)),
        eq(n % w).to(i64(0)),
        scalar_like(t),
        eq(fv(xss)).to(EMPTY),
    )


@rule(
    "map (λp. map f (slide n s (map g xss))) ys = let v = toGlobal (mapGlb(0) (mapSeq (mapSeq id)) (map (λp. xss) ys)) "
    "in map (λw. map f (slide n s (map g w))) v,  xss a matrix with more rows than an element of ys, p not "
    "free in f and g, v and w fresh",
    source="new; borders that are stored, as layers of convolutions have them",
    phase="memory",
)
def store_padded(
    e: Ex, p: P, f: Fn, g: Fn, xss: Ex, ys: Ex, n: i64, s: i64, k: i64, w: i64, m: i64, h: i64, t: Ty, u: Ty
):
    line, matrix = Ty.arr(w, t), Ty.arr(k, Ty.arr(w, t))
    names = stored, own, row, item = V("$padded", Ty.arr(m, matrix)), V("$own", matrix), V("$row", line), V("$item", t)

    def windows(of: Ex) -> Ex:
        return map_(f, slide(n, s, map_(g, of)))

    left = map_(Fn.lam(p, windows(xss)), ys)
    where = eq(matrix).to(ty(xss)), eq(Ty.arr(m, Ty.arr(h, u))).to(ty(ys)), h < k
    yield egglog.rule(eq(e).to(left), *where).then(*names)  # the conditions need them to exist
    copy_row = map_level("seq", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))
    copy = map_level("seq", 0, Fn.lam(P.var(row), copy_row), Ex(own))
    copied = map_level("glb", 0, Fn.lam(P.var(own), copy), map_(Fn.lam(p, xss), ys))
    made_of = map_(Fn.lam(P.var(own), windows(Ex(own))), Ex(stored))
    yield rewrite(left).to(
        app(Fn.lam(P.var(stored), made_of), to_memory("global", copied)),
        *where,
        absent_in_function(p, f),
        absent_in_function(p, g),
        *(fvf(function).not_contains(name) for function in (f, g) for name in (stored, own)),
    )


packing_rules = (
    *(pack_transposed, pack_chunks, pack_blocks, keep_block_in_private, pack_vectors, pack_columns),
    store_padded,
)
