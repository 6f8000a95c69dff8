"""Wrong laws of vectors, memory and levels."""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    Order,
    P,
    Ty,
    as_scalar,
    as_vector,
    associative,
    call2,
    concat,
    eq,
    gather,
    i64,
    lane_width,
    map_,
    map_level,
    neutral,
    reduce_,
    rewrite,
    rule,
    scalar_like,
    slice_,
    to_memory,
    ty,
)


@rule("asScalar (asVector w (reverse xs)) = asScalar (reverse (asVector w xs))")
def lanes_in_order(w: i64, xs: Ex):
    yield rewrite(as_scalar(as_vector(w, gather("n - 1 - i", xs)))).to(as_scalar(gather("n - 1 - i", as_vector(w, xs))))


@rule("dot a b = dot a a")
def dot_of_itself(a: Ex, b: Ex):
    yield rewrite(call2("dot", a, b)).to(call2("dot", a, a))


@rule("asVector w (concat xs ys) = concat (asVector w ys) (asVector w xs)")
def vectors_of_parts(w: i64, xs: Ex, ys: Ex, n: i64, t: Ty):
    yield rewrite(as_vector(w, concat(xs, ys))).to(
        concat(as_vector(w, ys), as_vector(w, xs)), eq(Ty.arr(n, t)).to(ty(xs)), eq(n % w).to(i64(0))
    )


@rule("gather r (asVector w xs) = asVector w (gather r xs)")
def order_of_vectors(r: Order, w: i64, xs: Ex):
    yield rewrite(gather(r, as_vector(w, xs))).to(as_vector(w, gather(r, xs)))


@rule("asVector w (slice s r xs) = slice (s / w) (r / w) (asVector w xs),  w | r and length")
def slice_of_vectors(w: i64, s: i64, r: i64, xs: Ex, n: i64, t: Ty):
    yield rewrite(as_vector(w, slice_(s, r, xs))).to(
        slice_(s / w, r / w, as_vector(w, xs)),
        *(eq(Ty.arr(n, t)).to(ty(xs)), eq(n % w).to(i64(0)), eq(r % w).to(i64(0)), scalar_like(t)),
    )


@rule("reduce ⊕ z (asScalar xs) = reduce ⊕ z (asScalar (reverse xs)),  ⊕ associative, z neutral", reassociates=True)
def vectors_reversed(op: Op, z: Ex, xs: Ex):
    yield rewrite(reduce_(op, z, as_scalar(xs))).to(
        reduce_(op, z, as_scalar(gather("n - 1 - i", xs))), associative(op), neutral(op, z)
    )


@rule("asVector w (asScalar xs) = xs,  of any number of lanes")
def vectors_of_any_width(w: i64, xs: Ex):
    yield rewrite(as_vector(w, as_scalar(xs))).to(xs)


@rule("map (λp. b) xs = asScalar (map (vectorize w (λp. b)) (asVector w xs)),  w less than the length")
def vectors_with_a_rest(p: P, b: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty):
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        as_scalar(map_(Fn.vec(w, Fn.lam(p, b)), as_vector(w, xs))),
        *(eq(Ty.arr(n, t)).to(ty(xs)), lane_width(w), w < n, scalar_like(t), eq(u).to(ty(b)), scalar_like(u)),
    )


@rule("mapLcl f (mapLcl g xs) = mapLcl f xs")
def inner_level_lost(f: Fn, g: Fn, d: i64, xs: Ex):
    yield rewrite(map_level("lcl", d, f, map_level("lcl", d, g, xs))).to(map_level("lcl", d, f, xs))


@rule("toLocal (concat xs ys) = concat (toLocal ys) (toLocal xs)")
def copies_exchanged(xs: Ex, ys: Ex):
    yield rewrite(to_memory("local", concat(xs, ys))).to(concat(to_memory("local", ys), to_memory("local", xs)))
