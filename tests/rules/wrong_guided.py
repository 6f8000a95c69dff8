"""Wrong versions of the rules for guided search, as one might write them by mistake."""

from __future__ import annotations

import egglog
from egglog import String, eq, i64, rewrite

from lift_egraph.egraph.sorts import (
    ELEMENT,
    LEFT,
    RIGHT,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    app,
    as_scalar,
    as_vector,
    associative,
    at,
    bvs,
    call2,
    commutative,
    disjoint,
    fill,
    gather,
    iterate,
    join,
    lane_width,
    make_pair,
    map_,
    map_level,
    pad,
    pty,
    reduce_,
    reduce_seq,
    scalar_like,
    scatter,
    slide,
    split,
    tile,
    to_memory,
    transpose,
    ty,
    vty,
    zip_,
)
from lift_egraph.rules.stencil import Grid, nested, tiled_windows, windows
from tests.rules.planting import REVERSED, Planted

twins = Planted()


# --- fusion ---------------------------------------------------------------------------------------------


@twins.plant("zip_of_map_left", "y may be free in b")
def zip_left_names_capture(p: P, b: Ex, xs: Ex, ys: Ex, n: i64, u: Ty):
    y = V(RIGHT, u)
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), ys)).to(
        map_(Fn.lam(P.pair(p, P.var(y)), make_pair(b, Ex(y))), zip_(xs, ys)), eq(Ty.arr(n, u)).to(ty(ys))
    )


@twins.plant("zip_of_map_right", "the components are swapped")
def zip_right_swapped(p: P, b: Ex, xs: Ex, ys: Ex, n: i64, t: Ty):
    x = V(LEFT, t)
    yield rewrite(zip_(xs, map_(Fn.lam(p, b), ys))).to(
        map_(Fn.lam(P.pair(P.var(x), p), make_pair(b, Ex(x))), zip_(xs, ys)), eq(Ty.arr(n, t)).to(ty(xs))
    )


@twins.plant("map_fission_of_let", "p may be free in the function")
def let_fission_captures(p: P, f: Fn, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, app(f, c)), xs)).to(map_(f, map_(Fn.lam(p, c), xs)))


@twins.plant("map_fusion_of_pattern", "x may be free in f")
def pattern_fusion_captures(f: Fn, g: Fn, xs: Ex, n: i64, m: i64, t: Ty):
    x = V(ELEMENT, t)
    yield rewrite(map_(f, map_(Fn.map(n, g), xs))).to(
        map_(Fn.lam(P.var(x), app(f, map_(g, Ex(x)))), xs), eq(Ty.arr(m, t)).to(ty(xs))
    )


# --- iteration ------------------------------------------------------------------------------------------


@twins.plant("iterate_decomposition", "one iteration too many")
def iterate_off_by_one(n: i64, f: Fn, xs: Ex):
    yield rewrite(iterate(n, f, xs)).to(iterate(n, f, iterate(1, f, xs)), n > 1)


@twins.plant("iterate_composition", "the counts are multiplied")
def iterate_multiplied(i: i64, j: i64, f: Fn, xs: Ex):
    yield rewrite(iterate(i, f, iterate(j, f, xs))).to(iterate(i * j, f, xs))


@twins.plant("iterate_composition", "the functions may differ")
def iterate_of_others(i: i64, j: i64, f: Fn, g: Fn, xs: Ex):
    yield rewrite(iterate(i, f, iterate(j, g, xs))).to(iterate(i + j, f, xs))


@twins.plant("iterate_once", "no iteration applies f as well")
def iterate_never_applies(f: Fn, xs: Ex):
    yield rewrite(iterate(0, f, xs)).to(app(f, xs))


# --- movement -------------------------------------------------------------------------------------------


@twins.plant("map_of_join", "the function is mapped over the rows")
def map_of_join_too_flat(f: Fn, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(map_(f, join(xss))).to(join(map_(f, xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)))


@twins.plant("map_map_of_transpose", "the transposition is lost")
def map_of_transpose_loses_it(f: Fn, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(map_(Fn.map(m, f), transpose(xss))).to(
        map_(Fn.map(n, f), xss), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@twins.plant("transpose_of_map_map", "the function is lost")
def transpose_loses_function(f: Fn, xss: Ex, n: i64):
    yield rewrite(transpose(map_(Fn.map(n, f), xss))).to(transpose(xss))


@twins.plant("split_of_split", "the chunks are split by k")
def split_of_split_swapped(n: i64, k: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(split(k, split(n, xs))).to(
        map_(Fn.split(k, Ty.arr(k * n, t)), split(k * n, xs)), eq(Ty.arr(m, t)).to(ty(xs))
    )


@twins.plant("join_of_join", "columns are joined")
def join_of_join_by_columns(xsss: Ex, k: i64, m: i64, n: i64, t: Ty):
    yield rewrite(join(join(xsss))).to(
        join(map_(Fn.join(Ty.arr(n, Ty.arr(m, t))), map_(Fn.transpose(Ty.arr(m, Ty.arr(n, t))), xsss))),
        eq(Ty.arr(k, Ty.arr(m, Ty.arr(n, t)))).to(ty(xsss)),
    )


@twins.plant("slide_of_map", "the function is lost")
def slide_of_map_loses_it(f: Fn, xs: Ex, n: i64, s: i64):
    yield rewrite(slide(n, s, map_(f, xs))).to(slide(n, s, xs))


@twins.plant("slide_of_transpose", "the windows are not transposed")
def slide_of_transpose_by_rows(xss: Ex, n: i64, s: i64, a: i64, b: i64, t: Ty):
    row = V("$row", Ty.arr(b, t))
    yield rewrite(slide(n, s, transpose(xss))).to(
        transpose(map_(Fn.lam(P.var(row), slide(n, s, Ex(row))), xss)), eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss))
    )


@twins.plant("pad_of_map", "the two sides are swapped")
def pad_of_map_swapped(f: Fn, xs: Ex, before: i64, after: i64, boundary: String):
    yield rewrite(pad(before, after, boundary, map_(f, xs))).to(map_(f, pad(after, before, boundary, xs)))


@twins.plant("map_backwards", "the result is not put back in order")
def map_backwards_only(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_(f, gather(REVERSED, xs)))


@twins.plant("map_strided", "the wrong stride")
def map_strided_wrongly(f: Fn, xs: Ex, m: i64, s: i64, t: Ty):
    stride, count = s.to_string(), (m / s).to_string()
    there = egglog.join("(i % ", stride, ") * ", count, " + i / ", stride)
    back = egglog.join("(i % ", count, ") * ", stride, " + i / ", count)
    yield rewrite(map_(f, xs)).to(
        scatter(back, map_(f, gather(there, xs))), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, s), eq(m % s).to(i64(0)), s > 1
    )


@twins.plant("reorder_and_back", "the orders may differ")
def reorder_without_back(r: String, q: String, xs: Ex):
    yield rewrite(gather(r, scatter(q, xs))).to(xs)


# --- partition ------------------------------------------------------------------------------------------


@twins.plant("split_join_strided", "the result is not transposed back")
def strided_without_inverse(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), transpose(split(m / n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), eq(m % n).to(i64(0)), eq(t).to(pty(p)),
    )  # fmt: skip


@twins.plant("thread_coarsening", "n need not divide the length")
def coarsening_with_rest(p: P, b: Ex, xs: Ex, d: i64, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    each = Fn.lam(P.var(chunk), map_level("seq", 0, Fn.lam(p, b), Ex(chunk)))
    yield rewrite(map_level("glb", d, Fn.lam(p, b), xs)).to(
        join(map_level("glb", d, each, split(n, xs))), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), n < m, eq(t).to(pty(p))
    )


@twins.plant("thread_coarsening_strided", "the elements are read in order and written with a stride")
def coarsening_half_strided(p: P, b: Ex, xs: Ex, d: i64, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    each = Fn.lam(P.var(chunk), map_level("seq", 0, Fn.lam(p, b), Ex(chunk)))
    yield rewrite(map_level("glb", d, Fn.lam(p, b), xs)).to(
        join(transpose(map_level("glb", d, each, split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), eq(m % n).to(i64(0)), n < m, n > 1, eq(t).to(pty(p)),
    )  # fmt: skip


@twins.plant("reduce_reordered", "⊕ need not commute")
def reordered_of_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, join(transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), eq(m % n).to(i64(0)), n < m,
    )  # fmt: skip


@twins.plant("partial_reduce_in_parts", "the parts are transposed")
def parts_transposed(op: Op, z: Ex, xs: Ex, n: i64, m: i64, k: i64, t: Ty):
    each = Fn.reduce(op, z, Ty.arr(n, t))
    yield rewrite(map_(each, split(n, xs))).to(
        join(transpose(map_(Fn.map(k, each), map_(Fn.split(n, Ty.arr(k * n, t)), split(k * n, xs))))),
        eq(Ty.arr(m, t)).to(ty(xs)), tile(m / n, k), eq(m % (k * n)).to(i64(0)), k * n < m, k > 1,
    )  # fmt: skip


@twins.plant("partial_reduce_to_one", "of any number of chunks")
def to_one_of_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs))).to(
        fill(m / n, reduce_(op, z, xs)), eq(Ty.arr(m, t)).to(ty(xs))
    )


@twins.plant("partial_reduce_in_steps", "z may be anything")
def steps_from_any(op: Op, z: Ex, xs: Ex, n: i64, k: i64, t: Ty):
    first = map_(Fn.reduce(op, z, Ty.arr(k, t)), split(k, xs))
    yield rewrite(map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs))).to(
        map_(Fn.reduce(op, z, Ty.arr(n / k, t)), split(n / k, first)),
        tile(n, k), eq(n % k).to(i64(0)), k < n, k > 1, associative(op),
    )  # fmt: skip


# --- interchange ----------------------------------------------------------------------------------------


@twins.plant("map_map_zip_outside", "the row may be free in b")
def zip_outside_captures(r: V, q: P, v: V, b: Ex, xss: Ex, ys: Ex, n: i64, t: Ty):
    column = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(P.pair(P.var(r), q), map_(Fn.lam(P.var(v), b), Ex(r))), zip_(xss, ys))).to(
        transpose(
            map_(
                Fn.lam(P.var(column), map_(Fn.lam(P.pair(P.var(v), q), b), zip_(Ex(column), ys))),
                transpose(xss),
            )
        ),
        eq(Ty.arr(n, t)).to(ty(ys)),
        bvs(q).not_contains(v),
    )


@twins.plant("map_loop_interchange", "p may be free in ys")
def loop_interchange_captures(p: P, a: P, q: P, b: Ex, z: Ex, xs: Ex, ys: Ex, n: i64, t: Ty):
    all_a = V.of("slice", a, n)
    loop = Fn.lam(P.pair(P.var(all_a), q), map_(Fn.lam(P.pair(a, p), b), zip_(Ex(all_a), xs)))
    yield rewrite(map_(Fn.lam(p, reduce_seq(Fn.lam(P.pair(a, q), b), z, ys)), xs)).to(
        reduce_seq(loop, fill(n, z), ys), eq(Ty.arr(n, t)).to(ty(xs)), absent(p, z), disjoint(a, p), disjoint(p, q)
    )


@twins.plant("map_loop_interchange_rows", "p may be free in z")
def loop_rows_capture(p: P, a: P, q: P, b: Ex, z: Ex, c: Ex, xs: Ex, n: i64, t: Ty):
    all_a, all_q = V.of("slice", a, n), V.of("column", q, n)
    loop = Fn.lam(P.pair(P.var(all_a), P.var(all_q)), map_(Fn.lam(P.pair(a, q), b), zip_(Ex(all_a), Ex(all_q))))
    yield rewrite(map_(Fn.lam(p, reduce_seq(Fn.lam(P.pair(a, q), b), z, c)), xs)).to(
        reduce_seq(loop, fill(n, z), transpose(map_(Fn.lam(p, c), xs))), eq(Ty.arr(n, t)).to(ty(xs)), absent(p, b)
    )


# --- stencils -------------------------------------------------------------------------------------------


@twins.plant("slide_tiling", "the tiles do not overlap enough")
def tiles_too_short(n: i64, s: i64, k: i64, a: i64, xs: Ex, t: Ty):
    count = (a - n) / s + 1
    tiles = windows(n + (k - 1) * s - 1, k * s, Grid(xs, (a,), t))
    one = V("$tile", tiles.element)
    yield rewrite(slide(n, s, xs)).to(
        join(map_(Fn.lam(P.var(one), slide(n, s, Ex(one))), tiles.term)),
        eq(Ty.arr(a, t)).to(ty(xs)), tile(count, k), eq(count % k).to(i64(0)), k < count, k > 1,
    )  # fmt: skip


@twins.plant("slide_tiling", "k need not divide the number of windows")
def tiles_with_rest(n: i64, s: i64, k: i64, a: i64, xs: Ex, t: Ty):
    count = (a - n) / s + 1
    yield rewrite(slide(n, s, xs)).to(
        tiled_windows(n, s, k, Grid(xs, (a,), t)), eq(Ty.arr(a, t)).to(ty(xs)), tile(count, k), k < count, k > 1
    )


@twins.plant("slide_tiling_2d", "rows and columns of tiles are exchanged")
def tiles_exchanged(n: i64, s: i64, k: i64, a: i64, xss: Ex, t: Ty, u: Ty, v: V):
    count = (a - n) / s + 1
    tiles = windows(n + (k - 1) * s, k * s, Grid(xss, (a, a), t)).transpose(0)
    one = V("$tile", tiles.element)
    inside = windows(n, s, Grid(Ex(one), (n + (k - 1) * s, n + (k - 1) * s), t))
    each = Grid(tiles.apply(Fn.lam(P.var(one), inside.term), 2), (*tiles.lengths, k, k), inside.element)
    yield rewrite(map_(Fn.transpose(u), slide(n, s, map_(Fn.lam(P.var(v), slide(n, s, Ex(v))), xss)))).to(
        each.transpose(1).join(0).join(1).term,
        eq(Ty.arr(a, Ty.arr(a, t))).to(ty(xss)), tile(count, k), eq(count % k).to(i64(0)), k < count, k > 1,
    )  # fmt: skip


@twins.plant("slide_tiling_3d", "the windows of a tile are taken in another order")
def cubes_exchanged(n: i64, s: i64, k: i64, a: i64, d: i64, xsss: Ex, t: Ty, u: Ty, w: Ty, r: Ty, v: V, q: V):
    count = (a - n) / s + 1
    plane = map_(Fn.transpose(u), slide(n, s, map_(Fn.lam(P.var(v), slide(n, s, Ex(v))), Ex(q))))
    cubes = map_(Fn.transpose(w), slide(n, s, map_(Fn.lam(P.var(q), plane), xsss)))
    right = tiled_windows(n, s, k, Grid(xsss, (a, a, a), t))
    turned = Grid(right, (count, count, count), nested((n, n, n), t)).transpose(1).term
    yield rewrite(map_(Fn.map(d, Fn.transpose(r)), cubes)).to(
        turned,
        eq(Ty.arr(a, Ty.arr(a, Ty.arr(a, t)))).to(ty(xsss)), tile(count, k), eq(count % k).to(i64(0)), k < count, k > 1,
    )  # fmt: skip


@twins.plant("map_of_slide", "the windows are not transposed")
def map_of_slide_by_rows(v: V, n: i64, s: i64, xss: Ex):
    yield rewrite(map_(Fn.lam(P.var(v), slide(n, s, Ex(v))), xss)).to(transpose(slide(n, s, transpose(xss))))


@twins.plant("map_map_of_slide", "the function is mapped over the windows")
def map_map_of_slide_too_flat(f: Fn, n: i64, s: i64, xs: Ex):
    yield rewrite(map_(Fn.map(n, f), slide(n, s, xs))).to(map_(f, slide(n, s, xs)))


@twins.plant("stencil_fusion", "the inner windows are taken one apart")
def stencil_fusion_by_one(p: P, b: Ex, n: i64, s: i64, q: P, c: Ex, m: i64, r: i64, xs: Ex, a: i64, t: Ty):
    length = m + (n - 1) * r
    window = V("$window", Ty.arr(length, t))
    first = map_(Fn.lam(q, c), slide(m, r, Ex(window)))
    yield rewrite(map_(Fn.lam(p, b), slide(n, s, map_(Fn.lam(q, c), slide(m, r, xs))))).to(
        map_(Fn.lam(P.var(window), app(Fn.lam(p, b), first)), slide(length, s, xs)), eq(Ty.arr(a, t)).to(ty(xs))
    )


@twins.plant("apply_slide", "the step may be any")
def apply_slide_by_one(v: V, n: i64, s: i64, xs: Ex):
    yield rewrite(app(Fn.lam(P.var(v), slide(n, s, Ex(v))), xs)).to(slide(n, 1, xs))


# --- vectors, levels and memory -------------------------------------------------------------------------


@twins.plant("vectorise_zip", "only one side is vectorised")
def vectorise_zip_by_half(xs: Ex, ys: Ex, w: i64, n: i64, t: Ty):
    yield rewrite(as_vector(w, zip_(xs, ys))).to(
        zip_(as_vector(w, xs), as_vector(w, xs)), eq(Ty.arr(n, t)).to(ty(xs)), eq(ty(xs)).to(ty(ys)), scalar_like(t)
    )


@twins.plant("vectorise_reduce", "z may be anything: it is counted once for every lane")
def vectorise_reduce_from_any(s: String, z: Ex, xs: Ex, w: i64, n: i64, t: Ty):
    op = Op.scalar(s)
    lanes = at(0, as_vector(w, fill(w, z)))
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, as_scalar(fill(1, reduce_(op, lanes, as_vector(w, xs))))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        lane_width(w), eq(n % w).to(i64(0)), scalar_like(t), associative(op), commutative(op),
    )  # fmt: skip


@twins.plant("reduce_by_vectors", "z may be anything: it is counted once for every vector")
def reduce_by_vectors_from_any(op: Op, z: Ex, xs: Ex, w: i64, n: i64, t: Ty):
    v = V("$vector", Ty.lanes(w, t))
    yield rewrite(reduce_(op, z, as_scalar(xs))).to(
        reduce_(op, z, map_(Fn.lam(P.var(v), reduce_(op, z, as_scalar(fill(1, Ex(v))))), xs)),
        eq(Ty.arr(n, Ty.lanes(w, t))).to(ty(xs)), scalar_like(t), associative(op),
    )  # fmt: skip


@twins.plant("reduce_by_dot", "the right factor is the left one")
def reduce_by_dot_of_left(a: V, b: V, z: Ex, xs: Ex, w: i64, n: i64):
    lanes = Ty.vec("f32", w)
    left, right = V("$left", lanes), V("$right", lanes)
    products = Fn.vec(w, Fn.lam(P.pair(P.var(a), P.var(b)), call2("mul", Ex(a), Ex(b))))
    dots = Fn.lam(P.pair(P.var(left), P.var(right)), call2("dot", Ex(left), Ex(left)))
    yield rewrite(reduce_(Op.scalar("add"), z, as_scalar(map_(products, xs)))).to(
        reduce_(Op.scalar("add"), z, map_(dots, xs)), eq(Ty.arr(n, Ty.pair(lanes, lanes))).to(ty(xs)), w <= 4
    )


@twins.plant("map_to_glb2", "the elements are read in the other order")
def map_to_glb2_backwards(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("glb", 2, f, gather(REVERSED, xs)))


@twins.plant("map_to_wrg2", "the elements are read in the other order")
def map_to_wrg2_backwards(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("wrg", 2, f, gather(REVERSED, xs)))


@twins.plant("map_to_lcl2", "the elements are read in the other order")
def map_to_lcl2_backwards(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_level("lcl", 2, f, gather(REVERSED, xs)))


@twins.plant("stage_block_in_local", "the copy is transposed")
def block_staged_by_columns(v: V, b: Ex, xs: Ex, n: i64, t: Ty):
    item, row = V("$item", t), V("$row", Ty.arr(n, t))
    copy_row = map_level("lcl", 0, Fn.lam(P.var(item), Ex(item)), Ex(row))
    copy = to_memory("local", map_level("lcl", 1, Fn.lam(P.var(row), copy_row), transpose(Ex(v))))
    yield rewrite(map_level("wrg", 0, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", 0, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
        eq(Ty.arr(n, Ty.arr(n, t))).to(vty(v)),
    )


@twins.plant("result_in_global", "the result is reversed on its way")
def result_reversed(f: Fn, xs: Ex, d: i64):
    yield rewrite(map_level("glb", d, f, xs)).to(to_memory("global", gather(REVERSED, map_level("glb", d, f, xs))))
