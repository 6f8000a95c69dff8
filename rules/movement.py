"""Moving layout patterns past maps and past each other, and other orders of access."""

from __future__ import annotations

from collections.abc import Iterator

import egglog

from lift_egraph.dsl import (
    CHUNKS_OF_ONE,
    ONE_CHUNK,
    Ex,
    Fn,
    Order,
    P,
    String,
    Ty,
    V,
    absent,
    as_it_stands,
    chunked,
    eq,
    gather,
    i64,
    join,
    made,
    map_,
    pad,
    rewrite,
    rule,
    scatter,
    seen,
    slide,
    split,
    transpose,
    ty,
    zip_,
)


@rule("map f (join xss) = join (map (map f) xss)")
def map_of_join(f: Fn, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(map_(f, join(xss))).to(join(map_(Fn.map(n, f), xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)))


@rule("map (map f) (transpose xss) = transpose (map (map f) xss)")
def map_map_of_transpose(f: Fn, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(map_(Fn.map(m, f), transpose(xss))).to(
        transpose(map_(Fn.map(n, f), xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@rule("transpose (map (map f) xss) = map (map f) (transpose xss)")
def transpose_of_map_map(f: Fn, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(transpose(map_(Fn.map(n, f), xss))).to(
        map_(Fn.map(m, f), transpose(xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@rule("transpose (map (split n) xss) = map transpose (split n (transpose xss))")
def transpose_of_split_rows(xss: Ex, n: i64, a: i64, b: i64, t: Ty):
    yield rewrite(transpose(map_(Fn.split(n, Ty.arr(b, t)), xss))).to(
        map_(Fn.transpose(Ty.arr(n, Ty.arr(a, t))), split(n, transpose(xss))), eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss))
    )


@rule("transpose (map transpose (split n xss)) = map (split n) (transpose xss)")
def transpose_of_transposed_chunks(xss: Ex, n: i64, a: i64, b: i64, t: Ty):
    chunks = map_(Fn.transpose(Ty.arr(n, Ty.arr(b, t))), split(n, xss))
    yield rewrite(transpose(chunks)).to(
        map_(Fn.split(n, Ty.arr(a, t)), transpose(xss)), eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss))
    )


@rule("split k (split n xs) = map (split n) (split (k·n) xs)")
def split_of_split(n: i64, k: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(split(k, split(n, xs))).to(
        map_(Fn.split(n, Ty.arr(k * n, t)), split(k * n, xs)), eq(Ty.arr(m, t)).to(ty(xs))
    )


@rule("join (join xsss) = join (map join xsss)")
def join_of_join(xsss: Ex, k: i64, m: i64, n: i64, t: Ty):
    yield rewrite(join(join(xsss))).to(
        join(map_(Fn.join(Ty.arr(m, Ty.arr(n, t))), xsss)), eq(Ty.arr(k, Ty.arr(m, Ty.arr(n, t)))).to(ty(xsss))
    )


@rule("slide n s (map f xs) = map (map f) (slide n s xs)", source="000 §2.4.2 (slide)")
def slide_of_map(f: Fn, xs: Ex, n: i64, s: i64):
    yield rewrite(slide(n, s, map_(f, xs))).to(map_(Fn.map(n, f), slide(n, s, xs)))


@rule("slide n s (transpose xss) = map transpose (transpose (map (slide n s) xss))")
def slide_of_transpose(xss: Ex, n: i64, s: i64, a: i64, b: i64, t: Ty):
    row = V("$row", Ty.arr(b, t))
    windows = map_(Fn.lam(P.var(row), slide(n, s, Ex(row))), xss)
    yield rewrite(slide(n, s, transpose(xss))).to(
        map_(Fn.transpose(Ty.arr(a, Ty.arr(n, t))), transpose(windows)), eq(Ty.arr(a, Ty.arr(b, t))).to(ty(xss))
    )


@rule("pad l r b (map f xs) = map f (pad l r b xs),  b = clamp, mirror or wrap")
def pad_of_map(f: Fn, xs: Ex, before: i64, after: i64, boundary: String):
    yield rewrite(pad(before, after, boundary, map_(f, xs))).to(map_(f, pad(before, after, boundary, xs)))


@rule("pad l r b (transpose xss) = transpose (map (λrow. pad l r b row) xss),  b = clamp, mirror or wrap")
def pad_of_transpose(xss: Ex, before: i64, after: i64, boundary: String, m: i64, n: i64, t: Ty):
    row = V("$row", Ty.arr(n, t))
    yield rewrite(pad(before, after, boundary, transpose(xss))).to(
        transpose(map_(Fn.lam(P.var(row), pad(before, after, boundary, Ex(row))), xss)),
        eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)),
    )


@rule("pad l r b (zip xs ys) = zip (pad l r b xs) (pad l r b ys),  b = clamp, mirror or wrap")
def pad_of_zip(xs: Ex, ys: Ex, before: i64, after: i64, boundary: String):
    yield rewrite(pad(before, after, boundary, zip_(xs, ys))).to(
        zip_(pad(before, after, boundary, xs), pad(before, after, boundary, ys))
    )


NO_STRIDE = "an order that changes nothing is no stride"


@rule("map f xs = scatter r (map f (gather r xs)),  r i = n - 1 - i", source="000 Listing 5.9")
def map_backwards(e: Ex, f: Fn, xs: Ex, r: Order):
    backwards = Order.reverse()
    yield from _once(e, f, xs, r)
    yield rewrite(map_(f, xs)).to(scatter(backwards, map_(f, gather(backwards, xs))), as_it_stands(xs))


@rule(
    "map f xs = scatter r (map f (gather r xs)),  r i = (i mod s)·(m / s) + i / s,  s | m = length",
    source="000 Listing 5.9",
    notes={"s < m": ONE_CHUNK, "s > 1": CHUNKS_OF_ONE},
)
def map_strided(e: Ex, f: Fn, xs: Ex, r: Order, m: i64, s: i64, t: Ty):
    order = Order.stride(s, m / s)
    yield from _once(e, f, xs, r)
    yield rewrite(map_(f, xs)).to(
        scatter(order, map_(f, gather(order, xs))), eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, s), s > 1, as_it_stands(xs)
    )


def _once(e: Ex, f: Fn, xs: Ex, r: Order) -> Iterator[egglog.RewriteOrRule]:
    """What an order of access needs so that it is not put around another one."""
    yield seen(xs, eq(e).to(map_(f, xs)))
    yield made(gather(r, xs), eq(e).to(scatter(r, map_(f, gather(r, xs)))))


@rule("gather r (scatter r xs) = xs,  scatter r (gather r xs) = xs", source="000 Listing 5.19", phase="simplification")
def reorder_and_back(r: Order, xs: Ex):
    yield rewrite(gather(r, scatter(r, xs))).to(xs)
    yield rewrite(scatter(r, gather(r, xs))).to(xs)


@rule("gather i xs = xs", source="new: an order that changes nothing", phase="simplification")
def gather_in_order(xs: Ex):
    yield rewrite(gather(Order.identity(), xs)).to(xs)


@rule(
    "gather (i ↦ (i mod s)·k + i / s) xs = join (transpose (split k xs)),  scatter (i ↦ (i mod s)·k + i / s) xs = "
    "join (transpose (split s xs)),  s·k = length",
    source="new: 001 §4.3, Figure 4.3 d, as an order",
    notes={"s > 1": NO_STRIDE, "k > 1": NO_STRIDE},
)
def stride_by_chunks(s: i64, k: i64, m: i64, xs: Ex, t: Ty):
    for reorder, chunk, count in ((gather, k, s), (scatter, s, k)):
        yield rewrite(reorder(Order.stride(s, k), xs)).to(
            join(transpose(split(chunk, xs))),
            eq(Ty.arr(m, t)).to(ty(xs)),
            eq(m % chunk).to(i64(0)),
            eq(count).to(m / chunk),
            s > 1,
            k > 1,
        )


@rule("gather r (gather q xs) = gather (q ∘ r) xs", source="new: orders compose as index functions")
def gather_of_gather(r: Order, q: Order, xs: Ex):
    yield rewrite(gather(r, gather(q, xs))).to(gather(Order.then(r, q), xs))


@rule("scatter r xs = gather (inverse r) xs", source="new: a scatter's order is a permutation")
def scatter_by_gather(r: Order, xs: Ex):
    yield rewrite(scatter(r, xs)).to(gather(Order.inverse(r), xs))


@rule(
    "transpose (map (λ(p, q). zip b c) (zip xs ys)) = map (λ(l, r). zip l r) (zip (transpose (map (λp. b) xs)) "
    "(transpose (map (λq. c) ys))),  p not free in c, q not free in b",
    source="new: Listing 5.8, for columns",
)
def transpose_of_zips(p: P, q: P, b: Ex, c: Ex, xs: Ex, ys: Ex, n: i64, m: i64, t: Ty, u: Ty, w: Ty):
    left, right = V("$left", Ty.arr(n, t)), V("$right", Ty.arr(n, u))
    rows, others = map_(Fn.lam(p, b), xs), map_(Fn.lam(q, c), ys)
    yield rewrite(transpose(map_(Fn.lam(P.pair(p, q), zip_(b, c)), zip_(xs, ys)))).to(
        map_(
            Fn.lam(P.pair(P.var(left), P.var(right)), zip_(Ex(left), Ex(right))),
            zip_(transpose(rows), transpose(others)),
        ),
        eq(Ty.arr(n, w)).to(ty(xs)),
        eq(Ty.arr(m, t)).to(ty(b)),
        eq(Ty.arr(m, u)).to(ty(c)),
        absent(p, c),
        absent(q, b),
    )


@rule(
    "join (map (λ(p, q). zip b c) (zip xs ys)) = zip (join (map (λp. b) xs)) (join (map (λq. c) ys)),  p not free in "
    "c, q not free in b",
    source="new: Listing 5.8, for the rows of matrices",
)
def join_of_zips(p: P, q: P, b: Ex, c: Ex, xs: Ex, ys: Ex):
    yield rewrite(join(map_(Fn.lam(P.pair(p, q), zip_(b, c)), zip_(xs, ys)))).to(
        zip_(join(map_(Fn.lam(p, b), xs)), join(map_(Fn.lam(q, c), ys))), absent(p, c), absent(q, b)
    )


@rule(
    "map (λ(p, (q, r)). b) (zip xs (zip ys zs)) = map (λ((p, q), r). b) (zip (zip xs ys) zs)",
    source="new: pairs in the other order",
)
def map_of_nested_zip(p: P, q: P, r: P, b: Ex, xs: Ex, ys: Ex, zs: Ex):
    yield rewrite(map_(Fn.lam(P.pair(p, P.pair(q, r)), b), zip_(xs, zip_(ys, zs)))).to(
        map_(Fn.lam(P.pair(P.pair(p, q), r), b), zip_(zip_(xs, ys), zs))
    )


movement_rules = (
    map_of_join,
    map_map_of_transpose,
    transpose_of_map_map,
    split_of_split,
    join_of_join,
    slide_of_map,
    slide_of_transpose,
    pad_of_map,
    pad_of_transpose,
    pad_of_zip,
)
chunk_rules = (transpose_of_split_rows, transpose_of_transposed_chunks)
zip_movement_rules = (transpose_of_zips, map_of_nested_zip)
reordering_rules = (map_backwards, map_strided)
reordering_simplification = (reorder_and_back, gather_in_order)
order_rules = (gather_of_gather, scatter_by_gather, stride_by_chunks)
