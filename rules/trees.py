"""Reductions as trees: halves are combined until one element is left, and what is made of that is mapped over it.

Source: 000 Listing 2.4; Harris, "Optimizing parallel reduction in CUDA", 2007.
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    ELEMENT,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    app,
    associative,
    at,
    eq,
    fv,
    fvo,
    i64,
    join,
    map_,
    neutral,
    reduce_,
    rewrite,
    rule,
    split,
    tile,
    ty,
)


@rule(
    "reduce ⊕ z (map (reduce ⊕ z) xss) = at 0 (map (reduce ⊕ z) xss),  one row in xss, ⊕ associative, z neutral",
    source="000 Figure 2.9c: partialReduce = reduce",
    reassociates=True,
)
def reduce_of_one(op: Op, z: Ex, xss: Ex, n: i64, t: Ty):
    totals = map_(Fn.reduce(op, z, Ty.arr(n, t)), xss)
    yield rewrite(reduce_(op, z, totals)).to(
        at(0, totals), eq(Ty.arr(1, Ty.arr(n, t))).to(ty(xss)), associative(op), neutral(op, z)
    )


@rule(
    "reduce ⊕ z xs = at 0 (map (λc. reduce ⊕ z c) (split n xs)),  n = length, c not free in ⊕ and z",
    source="new: one chunk, for the one group that reduces it",
)
def reduce_in_one_chunk(e: Ex, op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    chunk = V("$chunk", Ty.arr(n, t))
    where = eq(Ty.arr(n, t)).to(ty(xs)), tile(n, n)
    yield egglog.rule(eq(e).to(reduce_(op, z, xs)), *where).then(chunk)  # the conditions need it to exist
    yield rewrite(reduce_(op, z, xs)).to(
        at(0, map_(Fn.lam(P.var(chunk), reduce_(op, z, Ex(chunk))), split(n, xs))),
        *where,
        fvo(op).not_contains(chunk),
        fv(z).not_contains(chunk),
    )


@rule("let v = at 0 xs in b = at 0 (map (λv. b) xs),  one element in xs", source="new: at_of_map, from right to left")
def let_of_one(v: V, b: Ex, xs: Ex, t: Ty):
    yield rewrite(app(Fn.lam(P.var(v), b), at(0, xs))).to(
        at(0, map_(Fn.lam(P.var(v), b), xs)), eq(Ty.arr(1, t)).to(ty(xs))
    )


@rule("map (λp. at 0 b) xs = join (map (λp. map id b) xs),  one element in b", source="000 Listing 2.4")
def map_of_one(p: P, b: Ex, xs: Ex, t: Ty):
    x = V(ELEMENT, t)
    yield rewrite(map_(Fn.lam(p, at(0, b)), xs)).to(
        join(map_(Fn.lam(p, map_(Fn.lam(P.var(x), Ex(x)), b)), xs)), eq(Ty.arr(1, t)).to(ty(b))
    )


@rule("map (λp. at 0 b) xs = join (map (λp. map (map id) b) xs),  one row in b", source="000 Listing 2.4, for lines")
def map_of_one_row(p: P, b: Ex, xs: Ex, n: i64, t: Ty):
    x, row = V(ELEMENT, t), V("$row", Ty.arr(n, t))
    copy = Fn.lam(P.var(row), map_(Fn.lam(P.var(x), Ex(x)), Ex(row)))
    yield rewrite(map_(Fn.lam(p, at(0, b)), xs)).to(
        join(map_(Fn.lam(p, map_(copy, b)), xs)), eq(Ty.arr(1, Ty.arr(n, t))).to(ty(b))
    )


tree_rules = (reduce_of_one, reduce_in_one_chunk, let_of_one, map_of_one, map_of_one_row)
