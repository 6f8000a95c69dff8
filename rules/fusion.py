"""Fusing maps, and taking them apart again (fission)."""

from __future__ import annotations

import egglog
from egglog import eq, i64, rewrite

from lift_egraph.rule import rule
from lift_egraph.sorts import (
    LEFT,
    RIGHT,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    absent_in_function,
    absent_in_operator,
    app,
    bvs,
    fresh,
    join,
    make_pair,
    map_,
    reduce_,
    split,
    transpose,
    ty,
    zip_,
)
from rules.scopes import disjoint


@rule("map f (map (λp. b) xs) = map (λp. f b) xs,  p not free in f", source="000 Listing 5.4")
def map_fusion(f: Fn, p: P, b: Ex, xs: Ex):
    yield rewrite(map_(f, map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(p, app(f, b)), xs), absent_in_function(p, f))


@rule("map (λp. g b) xs = map g (map (λp. b) xs),  g a pattern, p not free in g", source="000 Listing 5.22")
def map_fission(f: Fn, p: P, b: Ex, xs: Ex, op: Op, z: Ex, n: i64, t: Ty):
    def mapped(body: Ex) -> Ex:
        return map_(Fn.lam(p, body), xs)

    yield rewrite(mapped(join(b))).to(map_(Fn.join(t), mapped(b)), eq(t).to(ty(b)))
    yield rewrite(mapped(transpose(b))).to(map_(Fn.transpose(t), mapped(b)), eq(t).to(ty(b)))
    yield rewrite(mapped(split(n, b))).to(map_(Fn.split(n, t), mapped(b)), eq(t).to(ty(b)))
    yield rewrite(mapped(reduce_(op, z, b))).to(
        map_(Fn.reduce(op, z, t), mapped(b)), eq(t).to(ty(b)), absent(p, z), absent_in_operator(p, op)
    )
    yield rewrite(mapped(map_(f, b))).to(
        map_(Fn.map(n, f), mapped(b)), eq(Ty.arr(n, t)).to(ty(b)), absent_in_function(p, f)
    )


@rule(
    "zip (map (λp. b) xs) (map (λq. c) ys) = map (λ(p, q). (b, c)) (zip xs ys),  p not free in c, q not free in b, "
    "p and q disjoint",
    source="000 Listing 5.8",
)
def zip_of_maps(p: P, q: P, b: Ex, c: Ex, xs: Ex, ys: Ex):
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(q, c), ys))).to(
        map_(Fn.lam(P.pair(p, q), make_pair(b, c)), zip_(xs, ys)),
        absent(p, c),
        absent(q, b),
        disjoint(p, q),
    )


@rule("zip (map (λp. b) xs) ys = map (λ(p, y). (b, y)) (zip xs ys),  y fresh", source="000 Listing 5.8, on one side")
def zip_of_map_left(e: Ex, p: P, b: Ex, xs: Ex, ys: Ex, n: i64, u: Ty):
    y = V(RIGHT, u)
    yield egglog.rule(eq(e).to(zip_(map_(Fn.lam(p, b), xs), ys)), eq(Ty.arr(n, u)).to(ty(ys))).then(y)
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), ys)).to(
        map_(Fn.lam(P.pair(p, P.var(y)), make_pair(b, Ex(y))), zip_(xs, ys)),
        eq(Ty.arr(n, u)).to(ty(ys)),
        fresh(y, b),
        bvs(p).not_contains(y),
    )


@rule("zip xs (map (λp. b) ys) = map (λ(x, p). (x, b)) (zip xs ys),  x fresh", source="000 Listing 5.8, on one side")
def zip_of_map_right(e: Ex, p: P, b: Ex, xs: Ex, ys: Ex, n: i64, t: Ty):
    x = V(LEFT, t)
    yield egglog.rule(eq(e).to(zip_(xs, map_(Fn.lam(p, b), ys))), eq(Ty.arr(n, t)).to(ty(xs))).then(x)
    yield rewrite(zip_(xs, map_(Fn.lam(p, b), ys))).to(
        map_(Fn.lam(P.pair(P.var(x), p), make_pair(Ex(x), b)), zip_(xs, ys)),
        eq(Ty.arr(n, t)).to(ty(xs)),
        fresh(x, b),
        bvs(p).not_contains(x),
    )


@rule(
    "map (λp. let q = c in b) xs = map (λq. b) (map (λp. c) xs),  p not free in b",
    source="000 Listing 5.22",
)
def map_fission_of_let(p: P, f: Fn, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, app(f, c)), xs)).to(map_(f, map_(Fn.lam(p, c), xs)), absent_in_function(p, f))


fusion_rules = (map_fusion, zip_of_maps)
zip_rules = (zip_of_map_left, zip_of_map_right)
let_rules = (map_fission_of_let,)
fission_rules = (map_fission,)
