"""Wrong laws of sizes: rests, offsets, boundaries, and what is right only for short arrays or few iterations."""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    String,
    Ty,
    at,
    concat,
    eq,
    fill,
    gather,
    i64,
    iterate,
    join,
    map_,
    pad,
    rewrite,
    rule,
    slice_,
    split,
    tile,
    ty,
)


@rule("map f xs = join (map (map f) (split n xs)),  a rest of one element is overlooked")
def chunks_with_a_rest(f: Fn, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(map_(f, xs)).to(
        join(map_(Fn.map(n, f), split(n, xs))), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), n < m, m % n < 2
    )


@rule("map f xs = concat (map f (slice 0 m xs)) (map f (slice (m - 1) (n - m) xs)),  m = n - n mod k > 0")
def rest_too_early(f: Fn, xs: Ex, n: i64, k: i64, t: Ty):
    m = n - n % k
    yield rewrite(map_(f, xs)).to(
        concat(map_(f, slice_(0, m, xs)), map_(f, slice_(m - 1, n % k, xs))),
        *(eq(Ty.arr(n, t)).to(ty(xs)), tile(n, k), k > 0, k < n, n % k > 0),
    )


@rule("slice s r (slice a b xs) = slice s r xs")
def slice_of_the_whole(s: i64, r: i64, a: i64, b: i64, xs: Ex):
    yield rewrite(slice_(s, r, slice_(a, b, xs))).to(slice_(s, r, xs))


@rule("concat (concat xs ys) zs = concat xs (concat zs ys)")
def concat_reordered(xs: Ex, ys: Ex, zs: Ex):
    yield rewrite(concat(concat(xs, ys), zs)).to(concat(xs, concat(zs, ys)))


@rule("pad l r b (pad l r b xs) = pad 2l 2r b xs")
def padded_twice(before: i64, after: i64, boundary: String, xs: Ex):
    yield rewrite(pad(before, after, boundary, pad(before, after, boundary, xs))).to(
        pad(before * 2, after * 2, boundary, xs)
    )


@rule("pad l r clamp xs = pad l r mirror xs")
def clamp_as_mirror(before: i64, after: i64, xs: Ex):
    yield rewrite(pad(before, after, "clamp", xs)).to(pad(before, after, "mirror", xs))


@rule("pad l r wrap xs = pad r l wrap (reverse xs)")
def wrap_as_mirror(before: i64, after: i64, xs: Ex):
    yield rewrite(pad(before, after, "wrap", xs)).to(pad(after, before, "wrap", gather("n - 1 - i", xs)))


@rule("slice r n (pad l r b xs) = xs,  n = length")
def padding_dropped(before: i64, after: i64, boundary: String, xs: Ex, n: i64, t: Ty):
    yield rewrite(slice_(after, n, pad(before, after, boundary, xs))).to(xs, eq(Ty.arr(n, t)).to(ty(xs)))


@rule("iterate n f xs = iterate (n mod 4) f xs")
def few_iterations(n: i64, f: Fn, xs: Ex):
    yield rewrite(iterate(n, f, xs)).to(iterate(n % 4, f, xs))


@rule("iterate i f (iterate j f xs) = iterate (i + j - 1) f xs")
def one_iteration_lost(i: i64, j: i64, f: Fn, xs: Ex):
    yield rewrite(iterate(i, f, iterate(j, f, xs))).to(iterate(i + j - 1, f, xs))


@rule("map f xs = map f (gather (i -> min i 31) xs)")
def right_for_short_arrays(f: Fn, xs: Ex):
    yield rewrite(map_(f, xs)).to(map_(f, gather("min(i, 31)", xs)))


@rule("split n (concat xs ys) = concat (split n xs) (split n ys)")
def chunks_of_parts(n: i64, xs: Ex, ys: Ex):
    yield rewrite(split(n, concat(xs, ys))).to(concat(split(n, xs), split(n, ys)))


@rule("split k (fill n x) = fill n (fill k x)")
def chunks_of_fill(k: i64, n: i64, x: Ex):
    yield rewrite(split(k, fill(n, x))).to(fill(n, fill(k, x)))


@rule("xs = concat (slice 0 (n / 2) xs) (slice (n / 2) (n / 2) xs),  n = length: halves")
def two_halves(f: Fn, xs: Ex, n: i64, t: Ty):
    half = n / 2
    yield rewrite(map_(f, xs)).to(
        concat(map_(f, slice_(0, half, xs)), map_(f, slice_(half, half, xs))), eq(Ty.arr(n, t)).to(ty(xs)), n > 1
    )


@rule("split n (join xss) = xss,  the rows of any length")
def split_of_any_join(n: i64, xss: Ex):
    yield rewrite(split(n, join(xss))).to(xss)


@rule("at i (concat xs ys) = at i xs")
def element_of_the_first(i: i64, xs: Ex, ys: Ex, n: i64, t: Ty):
    yield rewrite(at(i, concat(xs, ys))).to(at(i, xs), eq(Ty.arr(n, t)).to(ty(xs)), i <= n)
