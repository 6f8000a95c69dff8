"""What takes long to compute, by its name, and the name moved outwards: so that it is computed once for all.

It is named where it stands, past other names and out of arrays to a map; `map_of_let_named` makes an array of it where
the map changes it, and `let_out_of_map` moves it out where it does not.
"""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    Ex,
    Fn,
    P,
    String,
    Ty,
    V,
    absent,
    app,
    call1,
    call2,
    disjoint,
    eq,
    fresh,
    fv,
    i64,
    map_,
    named,
    pty,
    reduce_seq,
    rewrite,
    rule,
    ty,
    zip_,
)

NAMED = ("sin", "cos", "tan", "exp", "log", "pow", "tanh")


@rule(
    "g (h a …) b … = let x = h a … in g x b …,  g an operation, h sin, cos, tan, exp, log, pow or tanh, x fresh",
    source="new: what takes long by its name",
)
def name_call(e: Ex, name: String, a: Ex, b: Ex, c: Ex, t: Ty):
    x = V("$called", t)
    for h in NAMED:
        called = call2(h, a, b) if h == "pow" else call1(h, a)
        for form, unused in (
            (lambda r: call1(name, r), ()),
            (lambda r: call2(name, r, c), (fresh(x, c),)),
            (lambda r: call2(name, c, r), (fresh(x, c),)),
        ):
            yield from named(e, x, called, form, (eq(t).to(ty(called)),), *unused)


@rule(
    "let p = c in let q = d in b = let q = d in let p = c in b,  p not free in d, q not free in c, p and q disjoint",
    source="new",
)
def let_past_let(p: P, q: P, b: Ex, c: Ex, d: Ex):
    yield rewrite(app(Fn.lam(p, app(Fn.lam(q, b), d)), c)).to(
        app(Fn.lam(q, app(Fn.lam(p, b), c)), d), absent(p, d), absent(q, c), disjoint(p, q)
    )


@rule(
    "map (λ(p, q, r). b) (zip xs (zip ys zs)) = map (λ(p, r). b) (zip xs zs),  q not free in b;  the same for r and zs",
    source="new: map_of_one_side, of a side that is a zip",
)
def map_of_side_in_zip(p: P, q: P, r: P, b: Ex, xs: Ex, ys: Ex, zs: Ex):
    left = map_(Fn.lam(P.pair(p, P.pair(q, r)), b), zip_(xs, zip_(ys, zs)))
    yield rewrite(left).to(map_(Fn.lam(P.pair(p, r), b), zip_(xs, zs)), absent(q, b))
    yield rewrite(left).to(map_(Fn.lam(P.pair(p, q), b), zip_(xs, ys)), absent(r, b))


@rule(
    "reduceSeq (λ(s, p). let q = c in b) z xs = let r = map (λp. c) xs in reduceSeq (λ(s, q, p). b) z (zip r xs),  s "
    "not free in c, p and q disjoint, r fresh",
    source="new: map_of_let_named, in a loop",
)
def loop_of_let_named(e: Ex, s: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex, n: i64, t: Ty, u: Ty):
    left = reduce_seq(Fn.lam(P.pair(s, p), app(Fn.lam(q, b), c)), z, xs)
    where = eq(t).to(pty(q)), eq(Ty.arr(n, u)).to(ty(xs))
    r = V.of("column", q, n)
    yield egglog.rule(eq(e).to(left), *where).then(r)  # the conditions need it to exist
    loop = reduce_seq(Fn.lam(P.pair(s, P.pair(q, p)), b), z, zip_(Ex(r), xs))
    yield rewrite(left).to(
        app(Fn.lam(P.var(r), loop), map_(Fn.lam(p, c), xs)),
        *(*where, absent(s, c), disjoint(p, q), disjoint(s, q)),
        *(fv(b).not_contains(r), fv(xs).not_contains(r), fv(z).not_contains(r)),
    )


table_rules = (name_call, let_past_let, map_of_side_in_zip, loop_of_let_named)
