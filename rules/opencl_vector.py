"""Vectorisation: the lanes of a short vector are consecutive elements of the mapped array.

Sums of products take OpenCL's ``dot`` (`reduce_by_dot`); any other reduction adds up the lanes of each vector one by
one (`reduce_by_vectors`), or those of one vector half by half (`reduce_by_halves`).
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    as_scalar,
    as_vector,
    associative,
    at,
    bvs,
    call2,
    commutative,
    eq,
    fill,
    fresh,
    fv,
    fvf,
    fvo,
    i64,
    lane_width,
    map_,
    map_level,
    neutral,
    reduce_,
    reduce_range_seq,
    reduce_seq,
    rewrite,
    rule,
    scalar_like,
    slice_,
    split,
    transpose,
    ty,
    zip_,
)

OTHER_LANES = "only where there are no elements may f make vectors with other lanes"
HALVED = ("add", "mul", "min", "max")  # operations of scalars that are associative and commutative
ONE_VECTOR = "what one vector holds is reduced as it stands, and the rule would match its own result"


@rule(
    "map f xs = asScalar (map (vectorize w f) (asVector w xs)),  w | length, no vectors in xs and f",
    source="000 Listings 5.10 and 5.11",
    phase="lowering",
)
def vectorise_map(p: P, b: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty):
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        as_scalar(map_(Fn.vec(w, Fn.lam(p, b)), as_vector(w, xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        lane_width(w),
        eq(n % w).to(i64(0)),
        scalar_like(t),
        eq(u).to(ty(b)),
        scalar_like(u),
    )


@rule(
    "asVector w (zip xs ys) = zip (asVector w xs) (asVector w ys),  no vectors in xs and ys",
    source="000 Listing 5.11",
    phase="lowering",
)
def vectorise_zip(xs: Ex, ys: Ex, w: i64, n: i64, t: Ty, u: Ty):
    yield rewrite(as_vector(w, zip_(xs, ys))).to(
        zip_(as_vector(w, xs), as_vector(w, ys)),
        eq(Ty.arr(n, t)).to(ty(xs)),
        eq(Ty.arr(n, u)).to(ty(ys)),
        scalar_like(t),
        scalar_like(u),
    )


@rule(
    "reduce ⊕ z xs = reduce ⊕ z (asScalar [reduce ⊕ (z, …, z) (asVector w xs)]),  w | length, w < length, ⊕ "
    "associative and commutative on scalars, z neutral",
    source="000 Listing 5.12",
    phase="lowering",
    reassociates=True,
    commutes=True,
    notes={"w < n": ONE_VECTOR},
)
def vectorise_reduce(s: String, z: Ex, xs: Ex, w: i64, n: i64, t: Ty):
    op = Op.scalar(s)
    lanes = at(0, as_vector(w, fill(w, z)))
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, as_scalar(fill(1, reduce_(op, lanes, as_vector(w, xs))))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        lane_width(w),
        eq(n % w).to(i64(0)),
        w < n,
        scalar_like(t),
        associative(op),
        commutative(op),
        neutral(op, z),
    )


@rule(
    "reduce ⊕ z (asScalar xs) = reduce ⊕ z (map (λv. reduce ⊕ z (asScalar [v])) xs),  ⊕ associative, z neutral",
    source="000 Listing 5.13",
    phase="lowering",
    reassociates=True,
)
def reduce_by_vectors(e: Ex, op: Op, z: Ex, xs: Ex, w: i64, n: i64, t: Ty):
    v = V("$vector", Ty.lanes(w, t))
    left, where = reduce_(op, z, as_scalar(xs)), eq(Ty.arr(n, Ty.lanes(w, t))).to(ty(xs))
    yield egglog.rule(eq(e).to(left), where).then(v)
    yield rewrite(left).to(
        reduce_(op, z, map_(Fn.lam(P.var(v), reduce_(op, z, as_scalar(fill(1, Ex(v))))), xs)),
        where,
        scalar_like(t),
        associative(op),
        neutral(op, z),
        fvo(op).not_contains(v),
        fresh(v, z),
    )


@rule(
    "reduce + z (asScalar (map (vectorize w (λ(a, b). a * b)) xs)) = reduce + z (map (λ(a, b). dot a b) xs),  w = 2 or "
    "4, floats",
    source="000 Listing 5.13",
    phase="lowering",
    reassociates=True,
)
def reduce_by_dot(a: V, b: V, z: Ex, xs: Ex, w: i64, n: i64):
    products = Fn.vec(w, Fn.lam(P.pair(P.var(a), P.var(b)), call2("mul", Ex(a), Ex(b))))
    for scalar in ("f32", "f64"):
        lanes = Ty.vec(scalar, w)
        left, right = V("$left", lanes), V("$right", lanes)
        yield rewrite(reduce_(Op.scalar("add"), z, as_scalar(map_(products, xs)))).to(
            reduce_(
                Op.scalar("add"),
                z,
                map_(Fn.lam(P.pair(P.var(left), P.var(right)), call2("dot", Ex(left), Ex(right))), xs),
            ),
            eq(Ty.arr(n, Ty.pair(lanes, lanes))).to(ty(xs)),
            w <= 4,
        )


@rule(
    "reduceSeq ⊕ z (asScalar xs) = reduceSeq ⊕ z (asScalar (mapSeq (vectorize h (λc. reduceSeq ⊕ c[0] (slice 1 1 c))) "
    "(asVector h (transpose (split h (asScalar xs)))))),  xs one vector of 2h lanes, h > 1, ⊕ is +, ·, min or max",
    source="new: the lanes of a vector are added up in as many steps as their number can be halved",
    phase="lowering",
    reassociates=True,
    commutes=True,
)
def reduce_by_halves(acc: V, x: V, f: Fn, z: Ex, xs: Ex, w: i64, t: Ty):
    h, c = w / 2, V("$column", Ty.arr(2, t))
    column = Fn.lam(P.var(c), reduce_seq(f, at(0, Ex(c)), slice_(1, 1, Ex(c))))
    columns = as_vector(h, transpose(split(h, as_scalar(xs))))
    for name in HALVED:
        yield rewrite(reduce_seq(f, z, as_scalar(xs))).to(
            reduce_seq(f, z, as_scalar(map_level("seq", 0, Fn.vec(h, column), columns))),
            eq(f).to(Fn.lam(P.pair(P.var(acc), P.var(x)), call2(name, Ex(acc), Ex(x)))),
            eq(Ty.arr(1, Ty.lanes(w, t))).to(ty(xs)),
            w > 2,
        )


@rule(
    "reduceSeq (λ(as, q). asScalar (map f (asVector w (zip as xs)))) z ys = asScalar (reduceSeq (λ(vs, q). map f (zip "
    "vs (asVector w xs))) (asVector w z) ys),  as not free in f and xs, vs fresh;  the same for reduceRangeSeq",
    source="000 Listing 5.11: a loop keeps its results in vectors",
    phase="lowering",
    notes={"Ty.arr(n / w, Ty.lanes(w, t)) = ty(map_(f, as_vector(w, zip_(Ex(a), xs))))": OTHER_LANES},
)
def vectorise_loop(e: Ex, a: V, q: P, f: Fn, xs: Ex, z: Ex, low: Ex, high: Ex, ys: Ex, w: i64, n: i64, t: Ty):
    vectors = V("$vectors", Ty.arr(n / w, Ty.lanes(w, t)))
    made = map_(f, as_vector(w, zip_(Ex(a), xs)))
    step = Fn.lam(P.pair(P.var(vectors), q), map_(f, zip_(Ex(vectors), as_vector(w, xs))))
    where = eq(Ty.arr(n, t)).to(ty(z)), w > 0, eq(Ty.arr(n / w, Ty.lanes(w, t))).to(ty(made))
    for loop in (
        lambda each, start: reduce_seq(each, start, ys),
        lambda each, start: reduce_range_seq(each, start, low, high, ys),
    ):
        left = loop(Fn.lam(P.pair(P.var(a), q), as_scalar(made)), z)
        yield egglog.rule(eq(e).to(left), *where).then(vectors)  # the conditions need it to exist
        yield rewrite(left).to(
            as_scalar(loop(step, as_vector(w, z))),
            *where,
            fvf(f).not_contains(a),
            fv(xs).not_contains(a),
            fvf(f).not_contains(vectors),
            fresh(vectors, xs),
            bvs(q).not_contains(vectors),
            bvs(q).not_contains(a),
        )


@rule(
    "reduceSeq (λ(as, q). map (λ(r, p). asScalar (map f (asVector w (zip r xs)))) (zip as ys)) z zs = map asScalar "
    "(reduceSeq (λ(vs, q). map (λ(v, p). map f (zip v (asVector w xs))) (zip vs ys)) (map (asVector w) z) zs),  as not "
    "free in f, xs and ys, r not free in f and xs, v and vs fresh",
    source="new: a loop keeps the rows of its results in vectors, as libraries' products of matrices do",
    phase="lowering",
    notes={"Ty.arr(n / w, Ty.lanes(w, t)) = ty(map_(f, as_vector(w, zip_(Ex(r), xs))))": OTHER_LANES},
)
def vectorise_loop_rows(
    e: Ex, a: V, r: V, q: P, p: P, f: Fn, xs: Ex, ys: Ex, z: Ex, zs: Ex, w: i64, m: i64, n: i64, t: Ty
):
    in_vectors = Ty.arr(n / w, Ty.lanes(w, t))
    vectors, row, scalars = V("$vectors", Ty.arr(m, in_vectors)), V("$row", in_vectors), V("$scalars", Ty.arr(n, t))
    made = map_(f, as_vector(w, zip_(Ex(r), xs)))
    of_row = Fn.lam(P.pair(P.var(r), p), as_scalar(made))
    rows = map_(of_row, zip_(Ex(a), ys))
    left = reduce_seq(Fn.lam(P.pair(P.var(a), q), rows), z, zs)
    where = eq(Ty.arr(m, Ty.arr(n, t))).to(ty(z)), w > 0, eq(in_vectors).to(ty(made))
    yield egglog.rule(eq(e).to(left), *where).then(vectors, row)  # the conditions need them to exist
    each = Fn.lam(P.pair(P.var(row), p), map_(f, zip_(Ex(row), as_vector(w, xs))))
    step = map_(each, zip_(Ex(vectors), ys))
    begin = map_(Fn.lam(P.var(scalars), as_vector(w, Ex(scalars))), z)
    yield rewrite(left).to(
        map_(Fn.lam(P.var(row), as_scalar(Ex(row))), reduce_seq(Fn.lam(P.pair(P.var(vectors), q), step), begin, zs)),
        *where,
        fvf(of_row).not_contains(a),
        fv(ys).not_contains(a),
        fvf(f).not_contains(r),
        fv(xs).not_contains(r),
        fresh(vectors, rows),
        fresh(row, made),
        bvs(q).not_contains(vectors),
        bvs(p).not_contains(row),
    )


vector_rules = (vectorise_map,)
loop_vector_rules = (vectorise_loop, vectorise_loop_rows)
half_rules = (reduce_by_halves,)
wide_rules = (vectorise_zip, vectorise_reduce, reduce_by_vectors, reduce_by_dot)
