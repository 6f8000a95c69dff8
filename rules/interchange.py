"""Changing the order of nested maps and reductions."""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    absent_in_operator,
    bvs,
    disjoint,
    eq,
    fill,
    fresh,
    fv,
    i64,
    map_,
    reduce_,
    reduce_range,
    reduce_seq,
    rewrite,
    rule,
    transpose,
    ty,
    zip_,
)


@rule("map (map f) xss = transpose (map (map f) (transpose xss))", source="000 Listing 5.15")
def map_map_on_matrix(f: Fn, n: i64, m: i64, xss: Ex, t: Ty):
    # the rows have the length n, but to ask for it joins all types with all maps of that length first
    yield rewrite(map_(Fn.map(n, f), xss)).to(
        transpose(map_(Fn.map(m, f), transpose(xss))), eq(Ty.arr(m, t)).to(ty(xss))
    )


@rule(
    "map (λp. map (λq. b) ys) xs = transpose (map (λq. map (λp. b) xs) ys),  p not free in ys, q not free in xs, "
    "p and q disjoint",
    source="000 Listing 5.16",
)
def map_map_interchange(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)), absent(p, ys), absent(q, xs), disjoint(p, q)
    )


@rule(
    "map (λp. map (λ(q, v). b) (zip ws ys)) xs = transpose (map (λ(q, s). map (λv. b) s) (zip ws (transpose "
    "(map (λp. ys) xs)))),  p not free in ws and b, s fresh",
    source="000 Listing 5.17",
)
def map_map_zip_right(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s, columns = V.of("slice", P.var(v), n), transpose(map_(Fn.lam(p, ys), xs))
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(q, P.var(v)), b), zip_(ws, ys))), xs)).to(
        transpose(map_(Fn.lam(P.pair(q, P.var(s)), map_(Fn.lam(P.var(v), b), Ex(s))), zip_(ws, columns))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
        fresh(s, b),
        bvs(q).not_contains(s),
    )


@rule(
    "map (λp. map (λ(v, q). b) (zip ys ws)) xs = transpose (map (λ(s, q). map (λv. b) s) (zip (transpose "
    "(map (λp. ys) xs)) ws)),  p not free in ws and b, s fresh",
    source="000 Listing 5.17",
)
def map_map_zip_left(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s, columns = V.of("slice", P.var(v), n), transpose(map_(Fn.lam(p, ys), xs))
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(P.var(v), q), b), zip_(ys, ws))), xs)).to(
        transpose(map_(Fn.lam(P.pair(P.var(s), q), map_(Fn.lam(P.var(v), b), Ex(s))), zip_(columns, ws))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
        fresh(s, b),
        bvs(q).not_contains(s),
    )


@rule(
    "map (λp. reduce ⊕ z b) xs = reduce (lift ⊕) (fill n z) (transpose (map (λp. b) xs)),  p not free in z and ⊕",
    source="000 Listing 5.18",
)
def map_reduce_interchange(p: P, op: Op, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, b), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, z),
        absent_in_operator(p, op),
    )


@rule(
    "map (λp. reduceRange ⊕ z l h b) xs = reduceRange (lift ⊕) (fill n z) l h (transpose (map (λp. b) xs)),  p not "
    "free in z, l, h and ⊕",
    source="new, as 000 Listing 5.18: a row of a sparse matrix times the rows of a dense one",
)
def map_range_interchange(p: P, op: Op, z: Ex, low: Ex, high: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, reduce_range(op, z, low, high, b)), xs)).to(
        reduce_range(op.lift(), fill(n, z), low, high, transpose(map_(Fn.lam(p, b), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, z),
        absent(p, low),
        absent(p, high),
        absent_in_operator(p, op),
    )


@rule(
    "reduce (lift ⊕) (fill n z) xss = map (reduce ⊕ z) (transpose xss)", source="000 Listing 5.18, from right to left"
)
def reduce_of_lifted(op: Op, z: Ex, xss: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op.lift(), fill(n, z), xss)).to(
        map_(Fn.reduce(op, z, Ty.arr(m, t)), transpose(xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@rule(
    "map (λ(r, q). map (λv. b) r) (zip xss ys) = transpose (map (λc. map (λ(v, q). b) (zip c ys)) (transpose xss)),  "
    "r not free in b, c fresh",
    source="000 §5.4.5: Listing 5.17 with the zip outside",
)
def map_map_zip_outside(r: V, q: P, v: V, b: Ex, xss: Ex, ys: Ex, e: Ex, n: i64, t: Ty):
    column = V.of("slice", P.var(v), n)
    each = Fn.lam(P.var(column), map_(Fn.lam(P.pair(P.var(v), q), b), zip_(Ex(column), ys)))
    left = map_(Fn.lam(P.pair(P.var(r), q), map_(Fn.lam(P.var(v), b), Ex(r))), zip_(xss, ys))
    yield egglog.rule(eq(e).to(left), eq(Ty.arr(n, t)).to(ty(ys))).then(column)  # the conditions need it to exist
    yield rewrite(left).to(
        transpose(map_(each, transpose(xss))),
        eq(Ty.arr(n, t)).to(ty(ys)),
        fv(b).not_contains(r),
        fresh(column, b),
        fresh(column, ys),
        bvs(q).not_contains(v),
    )


@rule(
    "map (λ(p, r). map (λq. b) c) (zip xs ys) = transpose (map (λs. map (λ(q, p). b) (zip s xs)) (transpose "
    "(map (λr. c) ys))),  p not free in c, r not free in b, p and q disjoint, s fresh;  the same for zip ys xs",
    source="000 Listing 5.17, where one side of the zip has the arrays and the other one what is made of them",
)
def map_map_of_sides(p: P, q: P, r: P, b: Ex, c: Ex, xs: Ex, ys: Ex, e: Ex, n: i64, t: Ty):
    s = V.of("slice", q, n)
    each = Fn.lam(P.var(s), map_(Fn.lam(P.pair(q, p), b), zip_(Ex(s), xs)))
    for beside in (lambda one, other: (one, other), lambda one, other: (other, one)):
        left = map_(Fn.lam(P.pair(*beside(p, r)), map_(Fn.lam(q, b), c)), zip_(*beside(xs, ys)))
        yield egglog.rule(eq(e).to(left), eq(Ty.arr(n, t)).to(ty(xs))).then(s)  # the conditions need it to exist
        yield rewrite(left).to(
            transpose(map_(each, transpose(map_(Fn.lam(r, c), ys)))),
            eq(Ty.arr(n, t)).to(ty(xs)),
            absent(p, c),
            absent(r, b),
            fresh(s, b),
            fresh(s, xs),
            disjoint(p, q),
        )


@rule(
    "map (λp. reduceSeq (λ(a, q). b) z ys) xs = reduceSeq (λ(as, q). map (λ(a, p). b) (zip as xs)) (fill n z) ys,  "
    "p not free in z and ys, a and q not free in xs, as fresh",
    source="000 Listing 5.18, for loops over one array",
    phase="lowering",
)
def map_loop_interchange(p: P, a: P, q: P, b: Ex, z: Ex, xs: Ex, ys: Ex, e: Ex, n: i64, t: Ty):
    all_a = V.of("slice", a, n)
    left = map_(Fn.lam(p, reduce_seq(Fn.lam(P.pair(a, q), b), z, ys)), xs)
    yield egglog.rule(eq(e).to(left), eq(Ty.arr(n, t)).to(ty(xs))).then(all_a)  # the conditions need it to exist
    yield rewrite(left).to(
        reduce_seq(Fn.lam(P.pair(P.var(all_a), q), map_(Fn.lam(P.pair(a, p), b), zip_(Ex(all_a), xs))), fill(n, z), ys),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, z),
        absent(p, ys),
        absent(q, xs),
        fresh(all_a, b),
        fresh(all_a, xs),
        disjoint(a, p),
        disjoint(p, q),
        bvs(q).not_contains(all_a),
    )


@rule(
    "map (λp. reduceSeq (λ(a, q). b) z c) xs = reduceSeq (λ(as, qs). map (λ(a, q). b) (zip as qs)) (fill n z) "
    "(transpose (map (λp. c) xs)),  p not free in z and b, as and qs fresh",
    source="000 Listing 5.18, for loops",
    phase="lowering",
)
def map_loop_interchange_rows(p: P, a: P, q: P, b: Ex, z: Ex, c: Ex, xs: Ex, e: Ex, n: i64, t: Ty):
    all_a, all_q = V.of("slice", a, n), V.of("column", q, n)
    loop = Fn.lam(P.pair(P.var(all_a), P.var(all_q)), map_(Fn.lam(P.pair(a, q), b), zip_(Ex(all_a), Ex(all_q))))
    left = map_(Fn.lam(p, reduce_seq(Fn.lam(P.pair(a, q), b), z, c)), xs)
    yield egglog.rule(eq(e).to(left), eq(Ty.arr(n, t)).to(ty(xs))).then(all_a, all_q)
    yield rewrite(left).to(
        reduce_seq(loop, fill(n, z), transpose(map_(Fn.lam(p, c), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, z),
        absent(p, b),
        fresh(all_a, b),
        fresh(all_q, b),
    )


@rule(
    "map (λp. reduceSeq (λ(a, (q, r)). b) z (zip ys c)) xs = reduceSeq (λ(as, (q, rs)). map (λ(a, r). b) (zip as rs)) "
    "(fill n z) (zip ys (transpose (map (λp. c) xs))),  p not free in z, ys and b, as and rs fresh;  the same for "
    "zip c ys",
    source="000 Listings 5.17 and 5.18, for loops",
    phase="lowering",
)
def map_loop_interchange_zip(p: P, a: P, q: P, r: P, b: Ex, z: Ex, c: Ex, xs: Ex, ys: Ex, e: Ex, n: i64, t: Ty):
    all_a, all_r = V.of("slice", a, n), V.of("column", r, n)
    each = map_(Fn.lam(P.pair(a, r), b), zip_(Ex(all_a), Ex(all_r)))
    columns = transpose(map_(Fn.lam(p, c), xs))
    for beside in (lambda one, other: (one, other), lambda one, other: (other, one)):
        elements, arrays = P.pair(*beside(q, r)), zip_(*beside(ys, c))
        left = map_(Fn.lam(p, reduce_seq(Fn.lam(P.pair(a, elements), b), z, arrays)), xs)
        yield egglog.rule(eq(e).to(left), eq(Ty.arr(n, t)).to(ty(xs))).then(all_a, all_r)
        step = Fn.lam(P.pair(P.var(all_a), P.pair(*beside(q, P.var(all_r)))), each)
        yield rewrite(left).to(
            reduce_seq(step, fill(n, z), zip_(*beside(ys, columns))),
            eq(Ty.arr(n, t)).to(ty(xs)),
            absent(p, z),
            absent(p, ys),
            absent(p, b),
            fresh(all_a, b),
            fresh(all_r, b),
            bvs(q).not_contains(all_a),
            bvs(q).not_contains(all_r),
        )


interchange_rules = (map_map_interchange, map_map_zip_right, map_map_zip_left, map_reduce_interchange)
matrix_rules = (map_map_on_matrix,)
range_column_rules = (map_range_interchange,)
lifted_rules = (reduce_of_lifted,)
outer_zip_rules = (map_map_zip_outside, map_map_of_sides)
loop_interchange_rules = (map_loop_interchange, map_loop_interchange_rows, map_loop_interchange_zip)
