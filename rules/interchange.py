"""Changing the order of nested maps and reductions."""

from __future__ import annotations

from egglog import eq, i64, rewrite

from lift_egraph.rule import rule
from lift_egraph.sorts import (
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    absent_in_operator,
    bvs,
    fill,
    fresh,
    map_,
    reduce_,
    transpose,
    ty,
    zip_,
)
from rules.scopes import disjoint


@rule("map (map f) xss = transpose (map (map f) (transpose xss))", source="000 Listing 5.15")
def map_map_on_matrix(f: Fn, n: i64, m: i64, k: i64, xss: Ex, t: Ty):
    yield rewrite(map_(Fn.map(n, f), xss)).to(
        transpose(map_(Fn.map(m, f), transpose(xss))), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@rule(
    "map (λp. map (λq. b) ys) xs = transpose (map (λq. map (λp. b) xs) ys),  p not free in ys, q not free in xs, "
    "p and q disjoint",
    source="000 Listing 5.16",
)
def map_map_interchange(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)),
        absent(p, ys),
        absent(q, xs),
        disjoint(p, q),
    )


@rule(
    "map (λp. map (λ(q, v). b) (zip ws ys)) xs = transpose (map (λ(q, s). map (λv. b) s) (zip ws (transpose "
    "(map (λp. ys) xs)))),  p not free in ws and b, s fresh",
    source="000 Listing 5.17",
)
def map_map_zip_right(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(q, P.var(v)), b), zip_(ws, ys))), xs)).to(
        transpose(
            map_(
                Fn.lam(P.pair(q, P.var(s)), map_(Fn.lam(P.var(v), b), Ex(s))),
                zip_(ws, transpose(map_(Fn.lam(p, ys), xs))),
            )
        ),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
        fresh(s, b),
        bvs(q).not_contains(s),
    )


@rule(
    "map (λp. map (λ(v, q). b) (zip ys ws)) xs = transpose (map (λ(s, q). map (λv. b) s) (zip (transpose "
    "(map (λp. ys) xs)) ws)),  p not free in ws and b, s fresh",
    source="000 Listing 5.17",
)
def map_map_zip_left(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(P.var(v), q), b), zip_(ys, ws))), xs)).to(
        transpose(
            map_(
                Fn.lam(P.pair(P.var(s), q), map_(Fn.lam(P.var(v), b), Ex(s))),
                zip_(transpose(map_(Fn.lam(p, ys), xs)), ws),
            )
        ),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
        fresh(s, b),
        bvs(q).not_contains(s),
    )


@rule(
    "map (λp. reduce ⊕ z b) xs = reduce (lift ⊕) (fill n z) (transpose (map (λp. b) xs)),  p not free in z and ⊕",
    source="000 Listing 5.18",
)
def map_reduce_interchange(p: P, op: Op, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, b), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, z),
        absent_in_operator(p, op),
    )


interchange_rules = (map_map_interchange, map_map_zip_right, map_map_zip_left, map_reduce_interchange)
matrix_rules = (map_map_on_matrix,)
