"""Splitting maps into nested maps, and moving splits through other patterns."""

from __future__ import annotations

from egglog.egraph import FactLike

from lift_egraph.dsl import (
    ONE_CHUNK,
    Ex,
    Fn,
    P,
    Ty,
    V,
    chunked,
    eq,
    fresh,
    i64,
    join,
    map_,
    pty,
    rewrite,
    rule,
    split,
    tile,
    ty,
    zip_,
)


def in_chunks(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64) -> tuple[FactLike, ...]:
    """The conditions that λp. b may be mapped over chunks of n of the m elements of xs."""
    return eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, n), eq(t).to(pty(p)), fresh(V.of("chunk", p, n), b)


@rule(
    "map (λp. b) xs = join (map (λc. map (λp. b) c) (split n xs)),  n | length, c fresh",
    source="000 Listing 5.5",
    notes={"n < m": ONE_CHUNK},
)
def split_join(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), split(n, xs))), *in_chunks(p, b, xs, t, n, m)
    )


@rule("map (λp. b) xs = join (map (λc. map (λp. b) c) (split n xs)),  n = length, c fresh", source="new: one chunk")
def map_in_one_chunk(p: P, b: Ex, xs: Ex, t: Ty, n: i64):
    chunk = V.of("chunk", p, n)
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), split(n, xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        tile(n, n),
        eq(t).to(pty(p)),
        fresh(chunk, b),
    )


@rule("split n (map f xs) = map (map f) (split n xs)")
def split_of_map(f: Fn, xs: Ex, n: i64):
    yield rewrite(split(n, map_(f, xs))).to(map_(Fn.map(n, f), split(n, xs)))


@rule("split n (zip xs ys) = map zip (zip (split n xs) (split n ys))")
def split_of_zip(xs: Ex, ys: Ex, n: i64, m: i64, k: i64, t: Ty, u: Ty):
    # zipped arrays have one length, but to ask for it joins all arrays of that length first
    yield rewrite(split(n, zip_(xs, ys))).to(
        map_(Fn.zip(Ty.pair(Ty.arr(n, t), Ty.arr(n, u))), zip_(split(n, xs), split(n, ys))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(Ty.arr(k, u)).to(ty(ys)),
    )


@rule("map zip (zip xss yss) = map (λ(x, y). zip x y) (zip xss yss)")
def zip_takes_names(xss: Ex, yss: Ex, m: i64, n: i64, t: Ty, u: Ty):
    left, right = V("$left", Ty.arr(m, t)), V("$right", Ty.arr(m, u))
    yield rewrite(map_(Fn.zip(Ty.pair(Ty.arr(m, t), Ty.arr(m, u))), zip_(xss, yss))).to(
        map_(Fn.lam(P.pair(P.var(left), P.var(right)), zip_(Ex(left), Ex(right))), zip_(xss, yss)),
        eq(Ty.arr(n, Ty.arr(m, t))).to(ty(xss)),
        eq(Ty.arr(n, Ty.arr(m, u))).to(ty(yss)),
    )


split_join_rules = (split_join, split_of_map, split_of_zip, zip_takes_names)
one_chunk_rules = (map_in_one_chunk,)
