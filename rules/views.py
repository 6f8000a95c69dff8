"""Products of views as products of matrices: windows side by side are rows of a matrix, that no memory holds.

A convolution with several channels is so the product of its filters and of its windows, and has the plans of products.

Source: Chellapilla et al., "High performance convolutional neural networks for document processing", 2006 (im2col);
without the copy, as in cuDNN: Chetlur et al., arXiv 1410.0759.
"""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    absent_in_function,
    absent_in_operator,
    app,
    disjoint,
    eq,
    fresh,
    fvf,
    i64,
    join,
    map_,
    named,
    reduce_,
    rewrite,
    rule,
    split,
    transpose,
    ty,
    zip_,
)


@rule(
    "zip (join xss) ys = let v = join xss in zip v ys,  v fresh;  the same for zip ys (join xss)",
    source="new: a view by its name",
)
def name_joined(e: Ex, xss: Ex, ys: Ex, n: i64, t: Ty):
    joined = join(xss)
    for tag, form in (("$view", lambda r: zip_(r, ys)), ("$beside", lambda r: zip_(ys, r))):
        v = V(tag, Ty.arr(n, t))
        yield from named(e, v, joined, form, (eq(Ty.arr(n, t)).to(ty(joined)),), fresh(v, ys))


@rule(
    "map f (let p = c in b) = let p = c in map f b,  p not free in f;  the same for reduce ⊕ z, p not free in ⊕ and z",
    source="new",
)
def let_out_of_array(f: Fn, op: Op, z: Ex, p: P, b: Ex, c: Ex):
    def let(body: Ex) -> Ex:
        return app(Fn.lam(p, body), c)

    yield rewrite(map_(f, let(b))).to(let(map_(f, b)), absent_in_function(p, f))
    yield rewrite(reduce_(op, z, let(b))).to(let(reduce_(op, z, b)), absent(p, z), absent_in_operator(p, op))


@rule("transpose (let p = c in b) = let p = c in transpose b", source="new")
def let_out_of_transpose(p: P, b: Ex, c: Ex):
    yield rewrite(transpose(app(Fn.lam(p, b), c))).to(app(Fn.lam(p, transpose(b)), c))


@rule(
    "map (λp. let q = c in b) xs = let q = c in map (λp. b) xs,  p not free in c, q not free in xs, p and q disjoint",
    source="new",
)
def let_out_of_map(p: P, q: P, b: Ex, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, app(Fn.lam(q, b), c)), xs)).to(
        app(Fn.lam(q, map_(Fn.lam(p, b), xs)), c), absent(p, c), absent(q, xs), disjoint(p, q)
    )


@rule("map (map f) xss = split n (map f (join xss)),  n the length of the rows", source="split_of_map, of join xss")
def maps_as_one(f: Fn, xss: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(map_(Fn.map(n, f), xss)).to(split(n, map_(f, join(xss))), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss)))


@rule("let q = (let p = c in a) in b = let p = c in let q = a in b,  p not free in b", source="new")
def let_out_of_argument(f: Fn, p: P, a: Ex, c: Ex):
    yield rewrite(app(f, app(Fn.lam(p, a), c))).to(app(Fn.lam(p, app(f, a)), c), absent_in_function(p, f))


@rule(
    "let q = transpose xss in b = let v = xss in let q = transpose v in b,  v fresh",
    source="new: what is in memory by its name",
)
def name_transposed(e: Ex, f: Fn, xss: Ex, n: i64, m: i64, t: Ty):
    v, matrix = V("$turned", Ty.arr(n, Ty.arr(m, t))), eq(Ty.arr(n, Ty.arr(m, t))).to(ty(xss))
    yield from named(e, v, xss, lambda r: app(f, transpose(r)), (matrix,), fvf(f).not_contains(v))


turned_rules = (let_out_of_argument, name_transposed)
view_rules = (name_joined, let_out_of_array, let_out_of_transpose, let_out_of_map, maps_as_one)
