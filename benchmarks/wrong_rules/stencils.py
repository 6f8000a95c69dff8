"""Wrong laws of windows and boundaries."""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    associative,
    chunked,
    eq,
    gather,
    i64,
    join,
    map_,
    neutral,
    pad,
    pad_constant,
    reduce_,
    rewrite,
    rule,
    slide,
    split,
    transpose,
    ty,
    zip_,
)

REVERSE = "n - 1 - i"


@rule("slide n 1 (pad l r clamp xs) = pad l r clamp (slide n 1 xs)")
def padding_of_windows(n: i64, before: i64, after: i64, xs: Ex):
    yield rewrite(slide(n, 1, pad(before, after, "clamp", xs))).to(pad(before, after, "clamp", slide(n, 1, xs)))


@rule("slide n s (reverse xs) = reverse (slide n s xs)")
def windows_not_reversed(n: i64, s: i64, xs: Ex):
    yield rewrite(slide(n, s, gather(REVERSE, xs))).to(gather(REVERSE, slide(n, s, xs)))


@rule("slide n s xs = join (map (slide n s) (slide (n + (k - 1)·s) (k·s) xs)),  k | the number of windows + 1")
def tiles_one_too_many(n: i64, s: i64, k: i64, a: i64, xs: Ex, t: Ty, e: Ex):
    count, length = (a - n) / s + 2, n + (k - 1) * s
    one = V("$tile", Ty.arr(length, t))
    where = (eq(Ty.arr(a, t)).to(ty(xs)), s > 0, *chunked(count, k), k > 1)
    yield rewrite(slide(n, s, xs)).to(
        join(map_(Fn.lam(P.var(one), slide(n, s, Ex(one))), slide(length, k * s, xs))), *where
    )


@rule("slide n s (zip xs ys) = map zip (zip (slide n s xs) (slide n s (reverse ys)))")
def windows_of_zip(n: i64, s: i64, xs: Ex, ys: Ex, m: i64, t: Ty, u: Ty):
    yield rewrite(slide(n, s, zip_(xs, ys))).to(
        map_(Fn.zip(Ty.pair(Ty.arr(n, t), Ty.arr(n, u))), zip_(slide(n, s, xs), slide(n, s, gather(REVERSE, ys)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(Ty.arr(m, u)).to(ty(ys)),
    )


@rule("pad l r b (zip xs ys) = zip (pad l r b xs) (pad l r clamp ys)")
def padding_of_zip(before: i64, after: i64, boundary: String, xs: Ex, ys: Ex):
    yield rewrite(pad(before, after, boundary, zip_(xs, ys))).to(
        zip_(pad(before, after, boundary, xs), pad(before, after, "clamp", ys))
    )


@rule("pad l r b (reverse xs) = reverse (pad l r b xs)")
def padding_of_reverse(before: i64, after: i64, boundary: String, xs: Ex):
    yield rewrite(pad(before, after, boundary, gather(REVERSE, xs))).to(
        gather(REVERSE, pad(before, after, boundary, xs))
    )


@rule("pad l 0 b (pad 0 r b xs) = pad l r b xs")
def padding_in_two_steps(before: i64, after: i64, boundary: String, xs: Ex):
    yield rewrite(pad(before, 0, boundary, pad(0, after, boundary, xs))).to(pad(before, after, boundary, xs))


@rule("padConstant l r z (map f xs) = map f (padConstant l r z xs)")
def constant_through_map(before: i64, after: i64, z: Ex, f: Fn, xs: Ex, n: i64, t: Ty):
    yield rewrite(pad_constant(before, after, z, map_(f, xs))).to(
        map_(f, pad_constant(before, after, z, xs)), eq(Ty.arr(n, t)).to(ty(xs)), eq(t).to(ty(z))
    )


@rule("slide n s (transpose xss) = transpose (map (slide n s) xss),  windows as high as the matrix")
def windows_not_transposed(xss: Ex, n: i64, s: i64, b: i64, t: Ty):
    row = V("$row", Ty.arr(b, t))
    yield rewrite(slide(n, s, transpose(xss))).to(
        transpose(map_(Fn.lam(P.var(row), slide(n, s, Ex(row))), xss)), eq(Ty.arr(n, Ty.arr(b, t))).to(ty(xss))
    )


@rule("reduce ⊕ z (join (slide n s xs)) = reduce ⊕ z xs,  ⊕ associative, z neutral", reassociates=True)
def overlaps_counted_once(op: Op, z: Ex, n: i64, s: i64, xs: Ex):
    yield rewrite(reduce_(op, z, join(slide(n, s, xs)))).to(reduce_(op, z, xs), associative(op), neutral(op, z))


@rule("slide n s xs = split n xs")
def windows_as_chunks(n: i64, s: i64, xs: Ex):
    yield rewrite(slide(n, s, xs)).to(split(n, xs), s >= n)
