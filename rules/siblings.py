"""Siblings: what is computed of the same elements is computed together, so that these are read once.

Reductions beside each other are one reduction of pairs, maps beside each other one map whose results are taken apart
again. Where other lets stand between them, reductions are moved out of the way.

Source: Meijer, Fokkinga and Paterson, "Functional programming with bananas, lenses, envelopes and barbed wire", FPCA
1991 (the banana split law); Oancea et al., "Financial software on GPUs: between Haskell and Fortran", FHPC 2012
(horizontal fusion).
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    ELEMENT,
    LEFT,
    RIGHT,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    absent_in_operator,
    app,
    combine,
    disjoint,
    eq,
    fv,
    fvf,
    fvo,
    i64,
    make_pair,
    map_,
    reduce_,
    rewrite,
    rule,
    ty,
    zip_,
)

FIRST, SECOND, NEXT, LAST, BOTH = "$first", "$second", "$next", "$last", "$both"


@rule(
    "(reduce ⊕ z xs, reduce ⊗ w ys) = reduce (λ((a, b), (c, d)). (a ⊕ c, b ⊗ d)) (z, w) (zip xs ys),  xs and ys of one "
    "length, a, b, c and d fresh",
    source="Meijer et al.: banana split",
)
def reduce_of_siblings(e: Ex, op: Op, z: Ex, xs: Ex, other: Op, w: Ex, ys: Ex, n: i64, t: Ty, u: Ty):
    names = a, b, c, d = V(FIRST, t), V(SECOND, u), V(NEXT, t), V(LAST, u)
    left, where = (
        make_pair(reduce_(op, z, xs), reduce_(other, w, ys)),
        (eq(Ty.arr(n, t)).to(ty(xs)), eq(Ty.arr(n, u)).to(ty(ys))),
    )
    yield egglog.rule(eq(e).to(left), *where).then(*names)  # the conditions need them to exist
    step = make_pair(combine(op, Ex(a), Ex(c)), combine(other, Ex(b), Ex(d)))
    binder = P.pair(P.pair(P.var(a), P.var(b)), P.pair(P.var(c), P.var(d)))
    yield rewrite(left).to(
        reduce_(Op.fn(Fn.lam(binder, step)), make_pair(z, w), zip_(xs, ys)),
        *where,
        *(free.not_contains(name) for free in (fvo(op), fvo(other)) for name in names),
    )


@rule(
    "zip (map f xs) (map g ys) = map (λ(x, y). (f x, g y)) (zip xs ys),  x and y fresh;  the same without f or g",
    source="000 Listing 5.8",
)
def zip_of_functions(e: Ex, f: Fn, g: Fn, xs: Ex, ys: Ex, n: i64, t: Ty, u: Ty):
    x, y = V(LEFT, t), V(RIGHT, u)
    where = eq(Ty.arr(n, t)).to(ty(xs)), eq(Ty.arr(n, u)).to(ty(ys))
    in_f = fvf(f).not_contains(x), fvf(f).not_contains(y)
    in_g = fvf(g).not_contains(x), fvf(g).not_contains(y)
    for left, pair, unused in (
        (zip_(map_(f, xs), map_(g, ys)), make_pair(app(f, Ex(x)), app(g, Ex(y))), (*in_f, *in_g)),
        (zip_(map_(f, xs), ys), make_pair(app(f, Ex(x)), Ex(y)), in_f),
        (zip_(xs, map_(g, ys)), make_pair(Ex(x), app(g, Ex(y))), in_g),
    ):
        yield egglog.rule(eq(e).to(left), *where).then(x, y)  # the conditions need them to exist
        yield rewrite(left).to(map_(Fn.lam(P.pair(P.var(x), P.var(y)), pair), zip_(xs, ys)), *where, *unused)


@rule(
    "zip (map f xs) (map g xs) = map (λx. (f x, g x)) xs,  x fresh;  the same without f or g, or both",
    source="new: 000 Listing 5.8 where both read the same",
)
def zip_of_siblings(e: Ex, f: Fn, g: Fn, xs: Ex, n: i64, t: Ty):
    x, element = V(ELEMENT, t), eq(Ty.arr(n, t)).to(ty(xs))
    mapped, other = map_(f, xs), map_(g, xs)
    in_f, in_g = fvf(f).not_contains(x), fvf(g).not_contains(x)
    for left, pair, unused in (
        (zip_(mapped, other), make_pair(app(f, Ex(x)), app(g, Ex(x))), (in_f, in_g)),
        (zip_(mapped, xs), make_pair(app(f, Ex(x)), Ex(x)), (in_f,)),
        (zip_(xs, mapped), make_pair(Ex(x), app(f, Ex(x))), (in_f,)),
        (zip_(xs, xs), make_pair(Ex(x), Ex(x)), ()),
    ):
        yield egglog.rule(eq(e).to(left), element).then(x)  # the conditions need it to exist
        yield rewrite(left).to(map_(Fn.lam(P.var(x), pair), xs), element, *unused)


@rule("let p = c in let q = d in b = let (p, q) = (c, d) in b,  p not free in d, p and q disjoint", source="new")
def lets_together(p: P, q: P, b: Ex, c: Ex, d: Ex):
    yield rewrite(app(Fn.lam(p, app(Fn.lam(q, b), d)), c)).to(
        app(Fn.lam(P.pair(p, q), b), make_pair(c, d)), absent(p, d), disjoint(p, q)
    )


@rule("let (p, q) = (c, d) in b = let p = c in let q = d in b,  p not free in d", source="new")
def lets_apart(p: P, q: P, b: Ex, c: Ex, d: Ex):
    yield rewrite(app(Fn.lam(P.pair(p, q), b), make_pair(c, d))).to(
        app(Fn.lam(p, app(Fn.lam(q, b), d)), c), absent(p, d)
    )


@rule(
    "let p = c in let q = reduce ⊕ z xs in b = let q = reduce ⊕ z xs in let p = c in b,  p not free in ⊕, z and xs, q "
    "not free in c, p and q disjoint",
    source="new",
)
def reduction_outwards(p: P, q: P, b: Ex, c: Ex, op: Op, z: Ex, xs: Ex):
    total = reduce_(op, z, xs)
    yield rewrite(app(Fn.lam(p, app(Fn.lam(q, b), total)), c)).to(
        app(Fn.lam(q, app(Fn.lam(p, b), c)), total),
        absent_in_operator(p, op),
        absent(p, z),
        absent(p, xs),
        absent(q, c),
        disjoint(p, q),
    )


@rule(
    "(map f xs, map g ys) = let r = zip (map f xs) (map g ys) in (map (λ(a, b). a) r, map (λ(a, b). b) r),  xs and ys "
    "of one length;  (map f xs, let s = map g ys in c) = let r = zip (map f xs) (map g ys) in (map (λ(a, b). a) r, let "
    "s = map (λ(a, b). b) r in c),  r fresh",
    source="Oancea et al.: horizontal fusion",
)
def maps_of_siblings(e: Ex, f: Fn, xs: Ex, g: Fn, ys: Ex, s: P, c: Ex, n: i64, t: Ty, u: Ty):
    first, second = map_(f, xs), map_(g, ys)
    r, a, b = V(BOTH, Ty.arr(n, Ty.pair(t, u))), V(FIRST, t), V(SECOND, u)
    where = eq(Ty.arr(n, t)).to(ty(first)), eq(Ty.arr(n, u)).to(ty(second))
    each = P.pair(P.var(a), P.var(b))
    one, other = (map_(Fn.lam(each, Ex(component)), Ex(r)) for component in (a, b))
    for left, right, unused in (
        (make_pair(first, second), make_pair(one, other), ()),
        (
            make_pair(first, app(Fn.lam(s, c), second)),
            make_pair(one, app(Fn.lam(s, c), other)),
            (fv(c).not_contains(r),),
        ),
    ):
        yield egglog.rule(eq(e).to(left), *where).then(r)  # the conditions need it to exist
        yield rewrite(left).to(app(Fn.lam(P.var(r), right), zip_(first, second)), *where, *unused)


sibling_rules = (
    *(reduce_of_siblings, zip_of_functions, zip_of_siblings),
    *(lets_together, reduction_outwards, maps_of_siblings),
)
apart_rules = (lets_apart,)
