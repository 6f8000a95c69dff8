"""Wrong versions of the algorithmic rules, as one might write them by mistake."""

from __future__ import annotations

from egglog import String, eq, i64, rewrite

from lift_egraph.egraph.sorts import (
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    app,
    associative,
    bvs,
    commutative,
    fill,
    join,
    make_pair,
    map_,
    neutral,
    pty,
    reduce_,
    split,
    tile,
    transpose,
    ty,
    zip_,
)
from tests.rules.planting import Planted

twins = Planted()


# --- fusion ---------------------------------------------------------------------------------------------


@twins.plant("map_fusion", "p may be free in f")
def fusion_captures(f: Fn, p: P, b: Ex, xs: Ex):
    yield rewrite(map_(f, map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(p, app(f, b)), xs))


@twins.plant("map_fusion", "the functions are composed in the other order")
def fusion_swapped(p: P, q: P, b: Ex, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(q, c), map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(q, app(Fn.lam(p, b), c)), xs))


@twins.plant("map_fission", "p may be free in f")
def fission_captures(f: Fn, p: P, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, map_(f, b)), xs)).to(
        map_(Fn.map(n, f), map_(Fn.lam(p, b), xs)), eq(Ty.arr(n, t)).to(ty(b))
    )


@twins.plant("map_fission", "p may be free in the operator")
def fission_captures_in_operator(f: Fn, p: P, b: Ex, z: Ex, xs: Ex, t: Ty):
    op = Op.fn(f)
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        map_(Fn.reduce(op, z, t), map_(Fn.lam(p, b), xs)), eq(t).to(ty(b)), absent(p, z)
    )


@twins.plant("map_fission", "a transposition is lost")
def fission_loses_transpose(p: P, b: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, transpose(b)), xs)).to(map_(Fn.lam(p, b), xs))


@twins.plant("zip_of_maps", "the variables of one function may be free in the other")
def zip_captures(p: P, q: P, b: Ex, c: Ex, xs: Ex, ys: Ex):
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(q, c), ys))).to(
        map_(Fn.lam(P.pair(p, q), make_pair(b, c)), zip_(xs, ys))
    )


# --- split_join -----------------------------------------------------------------------------------------


@twins.plant("split_join", "n need not divide the length")
def split_join_with_rest(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), split(n, xs))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        n < m,
        eq(t).to(pty(p)),
    )


@twins.plant("split_join", "the chunks are transposed: a strided partition without its inverse")
def split_join_strided(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, m / n)
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        eq(t).to(pty(p)),
    )


@twins.plant("split_join", "the name of the chunk is the name of another row")
def split_join_captures(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V("x", Ty.arr(n, t))
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), split(n, xs))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        eq(t).to(pty(p)),
    )


@twins.plant("split_of_map", "the function is mapped over the chunks, not over their elements")
def split_of_map_too_flat(f: Fn, xs: Ex, n: i64):
    yield rewrite(split(n, map_(f, xs))).to(map_(f, split(n, xs)))


@twins.plant("split_of_map", "the function is lost")
def split_of_map_loses_function(f: Fn, xs: Ex, n: i64):
    yield rewrite(split(n, map_(f, xs))).to(split(n, xs))


@twins.plant("split_of_zip", "the second array is the first")
def split_of_zip_repeats(xs: Ex, ys: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(split(n, zip_(xs, ys))).to(
        map_(Fn.zip(Ty.pair(Ty.arr(n, t), Ty.arr(n, t))), zip_(split(n, xs), split(n, xs))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(Ty.arr(m, t)).to(ty(ys)),
    )


@twins.plant("zip_takes_names", "the parts are zipped in the other order")
def zip_takes_names_swapped(xss: Ex, yss: Ex, m: i64, n: i64, t: Ty, u: Ty):
    left, right = V("$left", Ty.arr(m, t)), V("$right", Ty.arr(m, u))
    yield rewrite(map_(Fn.zip(Ty.pair(Ty.arr(m, t), Ty.arr(m, u))), zip_(xss, yss))).to(
        map_(Fn.lam(P.pair(P.var(left), P.var(right)), zip_(Ex(right), Ex(left))), zip_(xss, yss)),
        eq(Ty.arr(n, Ty.arr(m, t))).to(ty(xss)),
        eq(Ty.arr(n, Ty.arr(m, u))).to(ty(yss)),
    )


# --- interchange ----------------------------------------------------------------------------------------


@twins.plant("map_map_on_matrix", "the outer transposition is missing")
def on_matrix_without_transpose(f: Fn, n: i64, m: i64, xss: Ex, t: Ty):
    yield rewrite(map_(Fn.map(n, f), xss)).to(
        map_(Fn.map(m, f), transpose(xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@twins.plant("map_map_interchange", "p may be free in ys")
def interchange_captures(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)), absent(q, xs)
    )


@twins.plant("map_map_interchange", "q may be free in xs")
def interchange_captures_inside(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)), absent(p, ys), eq(bvs(p) - bvs(q)).to(bvs(p))
    )


@twins.plant("map_map_interchange", "p and q may be one variable")
def interchange_shadows(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)), absent(p, ys), absent(q, xs)
    )


@twins.plant("map_map_interchange", "the transposition is missing")
def interchange_without_transpose(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys), absent(p, ys), absent(q, xs), eq(bvs(p) - bvs(q)).to(bvs(p))
    )


def _zip_right(s: V, p: P, q: P, v: V, b: Ex, ws: Ex, rows: Ex) -> Ex:
    return map_(Fn.lam(P.pair(q, P.var(s)), map_(Fn.lam(P.var(v), b), Ex(s))), zip_(ws, rows))


@twins.plant("map_map_zip_right", "p may be free in b")
def zip_right_captures(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(q, P.var(v)), b), zip_(ws, ys))), xs)).to(
        transpose(_zip_right(s, p, q, v, b, ws, transpose(map_(Fn.lam(p, ys), xs)))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
    )


@twins.plant("map_map_zip_right", "the columns are not transposed")
def zip_right_by_rows(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(q, P.var(v)), b), zip_(ws, ys))), xs)).to(
        transpose(_zip_right(s, p, q, v, b, ws, map_(Fn.lam(p, ys), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
    )


def _zip_left(s: V, q: P, v: V, b: Ex, ws: Ex, rows: Ex) -> Ex:
    return map_(Fn.lam(P.pair(P.var(s), q), map_(Fn.lam(P.var(v), b), Ex(s))), zip_(rows, ws))


@twins.plant("map_map_zip_left", "p may be free in ws")
def zip_left_captures(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(P.var(v), q), b), zip_(ys, ws))), xs)).to(
        transpose(_zip_left(s, q, v, b, ws, transpose(map_(Fn.lam(p, ys), xs)))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, b),
    )


@twins.plant("map_map_zip_left", "the result is not transposed")
def zip_left_without_transpose(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(P.var(v), q), b), zip_(ys, ws))), xs)).to(
        _zip_left(s, q, v, b, ws, transpose(map_(Fn.lam(p, ys), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
    )


@twins.plant("map_reduce_interchange", "p may be free in z")
def reduce_interchange_captures(p: P, op: Op, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, b), xs))), eq(Ty.arr(n, t)).to(ty(xs))
    )


@twins.plant("map_reduce_interchange", "p may be free in the operator")
def reduce_interchange_captures_in_operator(p: P, f: Fn, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    op = Op.fn(f)
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, b), xs))), eq(Ty.arr(n, t)).to(ty(xs)), absent(p, z)
    )


@twins.plant("map_reduce_interchange", "the transposition is missing")
def reduce_interchange_without_transpose(p: P, s: String, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    op = Op.scalar(s)
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), map_(Fn.lam(p, b), xs)), eq(Ty.arr(n, t)).to(ty(xs)), absent(p, z)
    )


# --- reduction ------------------------------------------------------------------------------------------


def _partial(op: Op, z: Ex, xs: Ex, n: i64, t: Ty) -> Ex:
    return reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs)))


@twins.plant("partial_reduce", "⊕ need not be associative")
def partial_reduce_of_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        _partial(op, z, xs, n, t), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), eq(m % n).to(i64(0)), n < m
    )


@twins.plant("partial_reduce", "z need not be neutral")
def partial_reduce_from_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        _partial(op, z, xs, n, t), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), eq(m % n).to(i64(0)), n < m, associative(op)
    )


@twins.plant("partial_reduce", "n need not divide the length")
def partial_reduce_with_rest(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        _partial(op, z, xs, n, t), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), n < m, associative(op), neutral(op, z)
    )


@twins.plant("partial_reduce_strided", "⊕ need not be commutative or associative")
def partial_reduce_strided_of_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(m / n, t)), transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        n < m,
    )


@twins.plant("partial_reduce_strided", "the length of the parts is n, not length / n")
def partial_reduce_strided_wrong_stride(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        n < m,
        associative(op),
        commutative(op),
        neutral(op, z),
    )
