"""Fusing maps, and taking them apart again (fission)."""

from __future__ import annotations

from egglog import eq, i64, rewrite

from lift_egraph.rule import rule
from lift_egraph.sorts import (
    Ex,
    Fn,
    Op,
    P,
    Ty,
    absent,
    absent_in_function,
    absent_in_operator,
    app,
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


fusion_rules = (map_fusion, zip_of_maps)
fission_rules = (map_fission,)
