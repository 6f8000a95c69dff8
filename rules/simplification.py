"""Layout patterns that undo each other, and definitions unfolded; run to saturation between the other rules."""

from __future__ import annotations

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    app,
    as_scalar,
    as_vector,
    call1,
    call2,
    component,
    eq,
    fv,
    fvf,
    fvo,
    i64,
    join,
    make_pair,
    map_,
    reduce_,
    rewrite,
    rule,
    split,
    transpose,
    ty,
    vty,
    zip_,
)

ANOTHER_BINDER = "a value that names a binder of the same name outside would be moved into itself for ever"


@rule("join (split n xs) = xs", source="000 Listing 5.19", phase="simplification")
def join_of_split(n: i64, xs: Ex):
    yield rewrite(join(split(n, xs))).to(xs)


@rule("split n (join xs) = xs,  the rows of xs have length n", source="000 Listing 5.19", phase="simplification")
def split_of_join(n: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(split(n, join(xs))).to(xs, eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xs)))


@rule("asScalar (asVector n xs) = xs", source="000 Listing 5.19", phase="simplification")
def as_scalar_of_as_vector(n: i64, xs: Ex):
    yield rewrite(as_scalar(as_vector(n, xs))).to(xs)


@rule(
    "asVector n (asScalar xs) = xs,  the vectors of xs have n lanes", source="000 Listing 5.19", phase="simplification"
)
def as_vector_of_as_scalar(n: i64, m: i64, xs: Ex, t: Ty):
    yield rewrite(as_vector(n, as_scalar(xs))).to(xs, eq(Ty.arr(m, Ty.lanes(n, t))).to(ty(xs)))


@rule("transpose (transpose xs) = xs", source="000 Listing 5.20", phase="simplification")
def transpose_of_transpose(xs: Ex):
    yield rewrite(transpose(transpose(xs))).to(xs)


@rule("map transpose (map transpose xs) = xs", source="000 Listing 5.20", phase="simplification")
def map_transpose_of_map_transpose(t: Ty, u: Ty, xs: Ex):
    yield rewrite(map_(Fn.transpose(t), map_(Fn.transpose(u), xs))).to(xs)


@rule("map (λx. x) xs = xs", source="000 Listing 5.21", phase="simplification")
def map_identity(v: V, xs: Ex):
    yield rewrite(map_(Fn.lam(P.var(v), Ex(v)), xs)).to(xs)


@rule("fst (a, b) = a,  snd (a, b) = b", phase="simplification")
def component_of_pair(a: Ex, b: Ex):
    yield rewrite(component(0, make_pair(a, b))).to(a)
    yield rewrite(component(1, make_pair(a, b))).to(b)


@rule("(λv. g v) x = g x,  g a pattern", phase="simplification")
def apply_pattern(f: Fn, n: i64, op: Op, z: Ex, t: Ty, x: Ex, y: Ex, v: V):
    yield rewrite(app(Fn.join(t), x)).to(join(x))
    yield rewrite(app(Fn.transpose(t), x)).to(transpose(x))
    yield rewrite(app(Fn.split(n, t), x)).to(split(n, x))
    yield rewrite(app(Fn.zip(t), make_pair(x, y))).to(zip_(x, y))
    yield rewrite(app(Fn.map(n, f), x)).to(map_(f, x))
    yield rewrite(app(Fn.reduce(op, z, t), x)).to(reduce_(op, z, x))
    yield rewrite(app(Fn.lam(P.var(v), Ex(v)), x)).to(x)


@rule("λv. g v = g,  g a pattern in which v is not free", phase="simplification")
def eta(f: Fn, n: i64, op: Op, z: Ex, t: Ty, v: V):
    yield rewrite(Fn.lam(P.var(v), map_(f, Ex(v)))).to(
        Fn.map(n, f), eq(Ty.arr(n, t)).to(vty(v)), fvf(f).not_contains(v)
    )
    yield rewrite(Fn.lam(P.var(v), join(Ex(v)))).to(Fn.join(t), eq(t).to(vty(v)))
    yield rewrite(Fn.lam(P.var(v), transpose(Ex(v)))).to(Fn.transpose(t), eq(t).to(vty(v)))
    yield rewrite(Fn.lam(P.var(v), split(n, Ex(v)))).to(Fn.split(n, t), eq(t).to(vty(v)))
    yield rewrite(Fn.lam(P.var(v), reduce_(op, z, Ex(v)))).to(
        Fn.reduce(op, z, t), eq(t).to(vty(v)), fv(z).not_contains(v), fvo(op).not_contains(v)
    )


@rule(
    "let v = c in g a b = g (let v = c in a) b,  v free in a, not in b and c, g an operation;  let v = c in g v b = "
    "g c b,  v not free in b;  the same for b, and for one argument",
    phase="simplification",
    notes={"fv(c).not_contains(v)": ANOTHER_BINDER},
)
def let_used_once(v: V, c: Ex, a: Ex, b: Ex, name: String):
    def let(body: Ex) -> Ex:
        return app(Fn.lam(P.var(v), body), c)

    for g in (lambda x: call1(name, x), lambda x: component(0, x), lambda x: component(1, x)):
        yield rewrite(let(g(a))).to(g(let(a)), fv(a).contains(v), fv(c).not_contains(v))
        yield rewrite(let(g(Ex(v)))).to(g(c))
    for g in (lambda x, y: call2(name, x, y), make_pair):
        for beside in (lambda one, other: (one, other), lambda one, other: (other, one)):
            once = fv(b).not_contains(v), fv(c).not_contains(v)
            yield rewrite(let(g(*beside(a, b)))).to(g(*beside(let(a), b)), fv(a).contains(v), *once)
            yield rewrite(let(g(*beside(Ex(v), b)))).to(g(*beside(c, b)), fv(b).not_contains(v))


@rule("let v = v in b = b", phase="simplification")
def let_of_itself(v: V, b: Ex):
    yield rewrite(app(Fn.lam(P.var(v), b), Ex(v))).to(b)


simplification_rules = (
    join_of_split,
    split_of_join,
    as_scalar_of_as_vector,
    as_vector_of_as_scalar,
    transpose_of_transpose,
    map_transpose_of_map_transpose,
    map_identity,
    component_of_pair,
    apply_pattern,
    eta,
    let_used_once,
    let_of_itself,
)
