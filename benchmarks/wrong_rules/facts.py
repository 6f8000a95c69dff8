"""Laws of operators that ask for too little, and rules that tell what is not so."""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    String,
    Ty,
    associative,
    at,
    built_in,
    chunked,
    combine,
    commutative,
    concat,
    eq,
    fill,
    i64,
    identity,
    join,
    map_,
    neutral,
    reduce_,
    rewrite,
    rule,
    scan,
    slice_,
    split,
    transpose,
    ty,
)


@rule("reduce ⊕ z xs = reduce ⊕ z (map (reduce ⊕ z) (split n xs)),  ⊕ commutative", reassociates=True)
def chunks_of_commutative(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs))),
        *(eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, n), commutative(op), neutral(op, z)),
    )


@rule("reduce ⊕ z xs = reduce ⊕ z (join (transpose (split n xs))),  ⊕ associative", reassociates=True)
def reordered_associative(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, join(transpose(split(n, xs)))),
        *(eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, n), associative(op), neutral(op, z)),
    )


@rule("reduce ⊕ z (concat xs ys) = reduce ⊕ z xs ⊕ reduce ⊕ z ys,  ⊕ associative", reassociates=True)
def parts_count_z_twice(op: Op, z: Ex, xs: Ex, ys: Ex):
    yield rewrite(reduce_(op, z, concat(xs, ys))).to(
        combine(op, reduce_(op, z, xs), reduce_(op, z, ys)), associative(op)
    )


@rule("reduce ⊕ z (fill n x) = z ⊕ x,  ⊕ associative and commutative", reassociates=True)
def equal_elements_once(op: Op, z: Ex, n: i64, x: Ex):
    yield rewrite(reduce_(op, z, fill(n, x))).to(combine(op, z, x), associative(op), commutative(op))


@rule("reduce ⊕ z (join xss) = reduce ⊕ z (map (reduce ⊕ z) xss),  ⊕ associative", reassociates=True)
def rows_count_z(op: Op, z: Ex, xss: Ex, m: i64, n: i64, t: Ty):
    yield rewrite(reduce_(op, z, join(xss))).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), xss)),
        eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)),
        associative(op),
    )


@rule("reduce ⊕ z xs = reduce ⊕ (at 0 xs) (slice 1 (n - 1) xs),  ⊕ associative, z neutral", reassociates=True)
def neutral_dropped(op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, at(0, xs), slice_(1, n - 1, xs)),
        *(eq(Ty.arr(n, t)).to(ty(xs)), n > 1, associative(op), neutral(op, z)),
    )


@rule("what associates commutes")
def associative_commutes(e: Ex, op: Op, z: Ex, xs: Ex):
    yield egglog.rule(eq(e).to(reduce_(op, z, xs)), associative(op)).then(commutative(op))


@rule("what is neutral is the identity")
def neutral_is_identity(e: Ex, op: Op, z: Ex, xs: Ex):
    yield egglog.rule(eq(e).to(scan(op, z, xs)), neutral(op, z)).then(identity(op, z))


@rule("what commutes associates")
def commutative_associates(e: Ex, op: Op, z: Ex, xs: Ex):
    yield egglog.rule(eq(e).to(reduce_(op, z, xs)), commutative(op)).then(associative(op))


@rule("what commutes and associates is an addition")
def all_are_additions(e: Ex, op: Op, z: Ex, xs: Ex):
    yield egglog.rule(eq(e).to(reduce_(op, z, xs)), associative(op), commutative(op)).then(built_in(op, String("add")))


@rule("a ⊕ b = b ⊕ a,  ⊕ associative", commutes=True)
def operands_exchanged(op: Op, a: Ex, b: Ex):
    yield rewrite(combine(op, a, b)).to(combine(op, b, a), associative(op))


@rule("(a ⊕ b) ⊕ c = a ⊕ (b ⊕ c),  ⊕ commutative", reassociates=True)
def regrouped_commutative(op: Op, a: Ex, b: Ex, c: Ex):
    yield rewrite(combine(op, combine(op, a, b), c)).to(combine(op, a, combine(op, b, c)), commutative(op))


@rule("reduce ⊕ z xs = reduce ⊕ z (map (reduce ⊕ z) (split n xs)),  ⊕ associative, z neutral: bit for bit")
def chunks_unflagged(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs))),
        *(eq(Ty.arr(m, t)).to(ty(xs)), *chunked(m, n), associative(op), neutral(op, z)),
    )


@rule("reduce ⊕ (reduce ⊕ z xs) ys = reduce ⊕ (reduce ⊕ z ys) xs,  ⊕ associative", reassociates=True)
def sums_exchanged(op: Op, z: Ex, xs: Ex, ys: Ex):
    yield rewrite(reduce_(op, reduce_(op, z, xs), ys)).to(reduce_(op, reduce_(op, z, ys), xs), associative(op))


@rule("at 0 (scan ⊕ z xs) = at 0 xs,  z neutral")
def first_of_scan(op: Op, z: Ex, xs: Ex):
    yield rewrite(at(0, scan(op, z, xs))).to(at(0, xs), neutral(op, z))
