"""Wrong laws of index orders and layouts: compositions, inverses, transpositions."""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    Order,
    P,
    Ty,
    V,
    at,
    cod,
    concat,
    eq,
    gather,
    i64,
    join,
    lookup,
    map_,
    rewrite,
    rule,
    scatter,
    slice_,
    split,
    transpose,
    ty,
    zip_,
)

REVERSE = "n - 1 - i"


@rule("gather r (gather q xs) = gather q (gather r xs)")
def orders_commute(r: Order, q: Order, xs: Ex):
    yield rewrite(gather(r, gather(q, xs))).to(gather(q, gather(r, xs)))


@rule("gather r (zip xs ys) = zip (gather r xs) ys")
def gather_of_one_side(r: Order, xs: Ex, ys: Ex):
    yield rewrite(gather(r, zip_(xs, ys))).to(zip_(gather(r, xs), ys))


@rule("scatter r (map f xs) = map f xs")
def scatter_lost(r: Order, f: Fn, xs: Ex):
    yield rewrite(scatter(r, map_(f, xs))).to(map_(f, xs))


@rule("reverse (concat xs ys) = concat (reverse xs) (reverse ys)")
def reversed_parts(xs: Ex, ys: Ex):
    yield rewrite(gather(REVERSE, concat(xs, ys))).to(concat(gather(REVERSE, xs), gather(REVERSE, ys)))


@rule("transpose xss = xss,  xss square")
def square_transposed(xss: Ex, n: i64, t: Ty):
    yield rewrite(transpose(xss)).to(xss, eq(Ty.arr(n, Ty.arr(n, t))).to(ty(xss)))


@rule("join (transpose xss) = join xss")
def joined_columns(xss: Ex):
    yield rewrite(join(transpose(xss))).to(join(xss))


@rule("transpose (split n xs) = split (m / n) xs,  n | m = length")
def chunks_the_other_way(n: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(transpose(split(n, xs))).to(split(m / n, xs), eq(Ty.arr(m, t)).to(ty(xs)))


@rule("split n (reverse xs) = map reverse (split n xs)")
def reversed_chunks(n: i64, xs: Ex, e: Ex, m: i64, t: Ty):
    chunk = V("$chunk", Ty.arr(n, t))
    yield rewrite(split(n, gather(REVERSE, xs))).to(
        map_(Fn.lam(P.var(chunk), gather(REVERSE, Ex(chunk))), split(n, xs)), eq(Ty.arr(m, t)).to(ty(xs))
    )


@rule("gather r (split n xs) = split n (gather r xs)")
def order_of_chunks(r: Order, n: i64, xs: Ex):
    yield rewrite(gather(r, split(n, xs))).to(split(n, gather(r, xs)))


@rule("rotate (rotate xs) = xs")
def rotated_twice(xs: Ex):
    yield rewrite(gather("(i + 1) % n", gather("(i + 1) % n", xs))).to(xs)


@rule("rotations are undone by rotations: scatter (i + 1) mod n = gather (i + 1) mod n")
def rotation_undone(xs: Ex):
    yield rewrite(scatter("(i + 1) % n", xs)).to(gather("(i + 1) % n", xs))


@rule("stride n (stride n xs) = xs,  stride n = join ∘ transpose ∘ split n")
def strided_twice(n: i64, xs: Ex):
    once = join(transpose(split(n, xs)))
    yield rewrite(join(transpose(split(n, once)))).to(xs)


@rule("slice s r (reverse xs) = reverse (slice s r xs)")
def slice_of_reverse(s: i64, r: i64, xs: Ex):
    yield rewrite(slice_(s, r, gather(REVERSE, xs))).to(gather(REVERSE, slice_(s, r, xs)))


@rule("map f (transpose xss) = transpose (map f xss),  f keeps the type of square matrices' rows")
def rows_as_columns(f: Fn, xss: Ex, n: i64, t: Ty):
    yield rewrite(map_(f, transpose(xss))).to(
        transpose(map_(f, xss)), eq(Ty.arr(n, Ty.arr(n, t))).to(ty(xss)), eq(Ty.arr(n, t)).to(cod(f))
    )


@rule("at i (reverse xs) = at i xs")
def element_of_reverse(i: i64, xs: Ex):
    yield rewrite(at(i, gather(REVERSE, xs))).to(at(i, xs))


@rule("at 0 (scatter r xs) = at 0 xs")
def first_stays(r: Order, xs: Ex):
    yield rewrite(at(0, scatter(r, xs))).to(at(0, xs))


@rule("gather r (scatter q xs) = xs,  r and q any")
def any_order_undoes(r: Order, q: Order, xs: Ex):
    yield rewrite(gather(r, scatter(q, xs))).to(xs)


@rule("transpose (map transpose xsss) = map transpose (transpose xsss),  for cubes")
def transpositions_commute(xsss: Ex, n: i64, t: Ty, u: Ty):
    cube = Ty.arr(n, Ty.arr(n, Ty.arr(n, t)))
    plane = Fn.transpose(Ty.arr(n, Ty.arr(n, t)))
    yield rewrite(transpose(map_(plane, xsss))).to(map_(plane, transpose(xsss)), eq(cube).to(ty(xsss)))


@rule("lookup is (lookup js xs) = lookup (lookup js is) xs")
def lookups_composed(i: Ex, j: Ex, xs: Ex):
    yield rewrite(lookup(i, lookup(j, xs))).to(lookup(lookup(j, i), xs))
