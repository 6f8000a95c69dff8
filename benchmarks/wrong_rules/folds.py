"""Wrong laws of reductions, scans and loops."""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    Ty,
    app,
    associative,
    at,
    commutative,
    concat,
    eq,
    fill,
    gather,
    i64,
    iterate,
    join,
    map_,
    neutral,
    reduce_,
    reduce_seq,
    rewrite,
    rule,
    scan,
    scan_exclusive,
    scan_exclusive_seq,
    scan_seq,
    slice_,
    transpose,
    ty,
    zip_,
)


@rule("reduceSeq f z (concat xs ys) = reduceSeq f (reduceSeq f z ys) xs")
def loop_parts_exchanged(f: Fn, z: Ex, xs: Ex, ys: Ex):
    yield rewrite(reduce_seq(f, z, concat(xs, ys))).to(reduce_seq(f, reduce_seq(f, z, ys), xs))


@rule("reduce ⊕ z (map f xs) = f (reduce ⊕ z xs)")
def function_after_sum(op: Op, z: Ex, f: Fn, xs: Ex, n: i64, t: Ty):
    yield rewrite(reduce_(op, z, map_(f, xs))).to(
        app(f, reduce_(op, z, xs)), eq(Ty.arr(n, t)).to(ty(xs)), eq(t).to(ty(z))
    )


@rule("scanExclusive ⊕ z xs = scan ⊕ z (concat (fill 1 z) (slice 0 (n - 1) xs)),  n = length > 1")
def exclusive_counts_z_twice(op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(scan_exclusive(op, z, xs)).to(
        scan(op, z, concat(fill(1, z), slice_(0, n - 1, xs))), eq(Ty.arr(n, t)).to(ty(xs)), eq(t).to(ty(z)), n > 1
    )


@rule("scan ⊕ z (reverse xs) = reverse (scan ⊕ z xs)")
def scan_of_reverse(op: Op, z: Ex, xs: Ex):
    yield rewrite(scan(op, z, gather("n - 1 - i", xs))).to(gather("n - 1 - i", scan(op, z, xs)))


@rule("scan ⊕ z (map f xs) = map f (scan ⊕ z xs)")
def function_after_scan(op: Op, z: Ex, f: Fn, xs: Ex, n: i64, t: Ty):
    yield rewrite(scan(op, z, map_(f, xs))).to(map_(f, scan(op, z, xs)), eq(Ty.arr(n, t)).to(ty(xs)), eq(t).to(ty(z)))


@rule("scan ⊕ z (concat xs ys) = concat (scan ⊕ z xs) (scan ⊕ z ys)")
def scan_of_parts(op: Op, z: Ex, xs: Ex, ys: Ex):
    yield rewrite(scan(op, z, concat(xs, ys))).to(concat(scan(op, z, xs), scan(op, z, ys)))


@rule("scan ⊕ z (scan ⊕ z xs) = scan ⊕ z xs,  ⊕ associative and commutative", reassociates=True)
def scan_twice(op: Op, z: Ex, xs: Ex):
    yield rewrite(scan(op, z, scan(op, z, xs))).to(scan(op, z, xs), associative(op), commutative(op))


@rule("map (reduce ⊕ z) (transpose xss) = map (reduce ⊕ z) xss,  xss square")
def sums_of_columns(op: Op, z: Ex, xss: Ex, n: i64, t: Ty):
    sums = Fn.reduce(op, z, Ty.arr(n, t))
    yield rewrite(map_(sums, transpose(xss))).to(map_(sums, xss), eq(Ty.arr(n, Ty.arr(n, t))).to(ty(xss)))


@rule(
    "reduce ⊕ z (join xss) = reduce ⊕ z (map (reduce ⊕ z) (transpose xss)),  ⊕ associative, z neutral",
    reassociates=True,
)
def columns_before_rows(op: Op, z: Ex, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(reduce_(op, z, join(xss))).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(m, t)), transpose(xss))),
        *(eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)), associative(op), neutral(op, z)),
    )


@rule("reduce (lift ⊕) zs xss = map (reduce ⊕ (at 0 zs)) (transpose xss)")
def one_start_for_all(op: Op, z: Ex, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(reduce_(op.lift(), z, xss)).to(
        map_(Fn.reduce(op, at(0, z), Ty.arr(m, t)), transpose(xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@rule("at i (scanSeq f z xs) = reduceSeq f z (slice 0 i xs),  i > 0")
def step_too_few(f: Fn, z: Ex, i: i64, xs: Ex):
    yield rewrite(at(i, scan_seq(f, z, xs))).to(reduce_seq(f, z, slice_(0, i, xs)), i > 0)


@rule("iterate n f (map g xs) = map g (iterate n f xs)")
def map_after_iterations(n: i64, f: Fn, g: Fn, xs: Ex):
    yield rewrite(iterate(n, f, map_(g, xs))).to(map_(g, iterate(n, f, xs)))


@rule("concat (map f xs) (map g ys) = map f (concat xs ys)")
def one_function_for_both(f: Fn, g: Fn, xs: Ex, ys: Ex):
    yield rewrite(concat(map_(f, xs), map_(g, ys))).to(map_(f, concat(xs, ys)))


@rule("scanSeq f z xs = scanExclusiveSeq f z xs")
def inclusive_as_exclusive(f: Fn, z: Ex, xs: Ex):
    yield rewrite(scan_seq(f, z, xs)).to(scan_exclusive_seq(f, z, xs))


@rule("map f (zip xs ys) = map f (zip ys xs),  xs and ys of one type")
def sides_exchanged(f: Fn, xs: Ex, ys: Ex, n: i64, t: Ty):
    yield rewrite(map_(f, zip_(xs, ys))).to(
        map_(f, zip_(ys, xs)), eq(Ty.arr(n, t)).to(ty(xs)), eq(Ty.arr(n, t)).to(ty(ys))
    )
