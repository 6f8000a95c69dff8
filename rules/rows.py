"""Reductions of rows out of the function that does more with their results, so that each can be taken apart by itself.

A map over few rows has few elements to run beside each other, but each reduction in it has many. What a row's reduction
is used for stays behind: it is named where it stands, its name is moved outwards to the function's body, and there
`map_fission_of_reduced` computes what is reduced, such as the partial results of a row's chunks, by a map of its own.
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    LEFT,
    RIGHT,
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    absent,
    absent_in_function,
    absent_in_operator,
    app,
    as_it_stands,
    call2,
    concat,
    eq,
    fresh,
    fvo,
    made,
    make_pair,
    map_,
    named,
    reduce_,
    rewrite,
    rule,
    seen,
    ty,
    zip_,
)


@rule("map (λp. (b, c)) xs = zip (map (λp. b) xs) (map (λp. c) xs)", source="new: 000 Listing 5.8, from right to left")
def map_of_pair(p: P, b: Ex, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, make_pair(b, c)), xs)).to(zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(p, c), xs)))


@rule(
    "map (λp. g b c) xs = map (λ(x, y). g x y) (zip (map (λp. b) xs) (map (λp. c) xs)),  g an operation", source="new"
)
def map_of_operands(e: Ex, name: String, p: P, b: Ex, c: Ex, v: V, w: V, xs: Ex, t: Ty, u: Ty):
    def operation(left: V, right: V) -> Fn:
        return Fn.lam(P.pair(P.var(left), P.var(right)), call2(name, Ex(left), Ex(right)))

    x, y = V(LEFT, t), V(RIGHT, u)
    left, where = map_(Fn.lam(p, call2(name, b, c)), xs), (eq(t).to(ty(b)), eq(u).to(ty(c)))
    yield egglog.rule(eq(e).to(left), *where).then(x, y)
    for operand, of_result in ((b, v), (c, w)):
        yield seen(operand, eq(e).to(left))
        yield made(Ex(of_result), eq(e).to(map_(operation(v, w), xs)))
        yield rewrite(left).to(
            map_(operation(x, y), zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(p, c), xs))), *where, as_it_stands(operand)
        )


@rule(
    "(reduce ⊕ z xs, a) = let x = reduce ⊕ z xs in (x, a),  x fresh;  the same on the other side, and for what a "
    "reduction begins with",
    source="new",
)
def name_reduction(e: Ex, op: Op, z: Ex, xs: Ex, a: Ex, other: Op, t: Ty):
    total, x = reduce_(op, z, xs), V("$total", t)
    for form, unused in (
        (lambda r: make_pair(r, a), ()),
        (lambda r: make_pair(a, r), ()),
        (lambda r: reduce_(other, r, a), (fvo(other).not_contains(x),)),
    ):
        yield from named(e, x, total, form, (eq(t).to(ty(total)),), fresh(x, a), *unused)


@rule(
    "(let p = c in b, a) = let p = c in (b, a),  p not free in a;  the same on the other side, for what a reduction "
    "begins with, for what a let binds, and for what stands behind an array",
    source="new",
)
def let_out_of_pair(p: P, b: Ex, c: Ex, a: Ex, f: Fn, op: Op):
    def let(body: Ex) -> Ex:
        return app(Fn.lam(p, body), c)

    yield rewrite(make_pair(let(b), a)).to(let(make_pair(b, a)), absent(p, a))
    yield rewrite(make_pair(a, let(b))).to(let(make_pair(a, b)), absent(p, a))
    yield rewrite(reduce_(op, let(b), a)).to(let(reduce_(op, b, a)), absent(p, a), absent_in_operator(p, op))
    yield rewrite(app(f, let(b))).to(let(app(f, b)), absent_in_function(p, f))
    yield rewrite(concat(a, let(b))).to(let(concat(a, b)), absent(p, a))


row_rules = (map_of_pair, map_of_operands, name_reduction, let_out_of_pair)
