"""Programs of several stages: what a ``let`` binds is computed where it is used, and layouts move past maps to it.

Without these rules a bound array stands in memory. With them it need not: each use computes what it reads of it.
"""

import egglog

from lift_egraph.dsl import (
    Ex,
    Fn,
    Op,
    Order,
    P,
    String,
    Ty,
    V,
    absent,
    app,
    at,
    bvs,
    call1,
    call2,
    call3,
    component,
    eq,
    fresh,
    fvf,
    fvo,
    gather,
    generate,
    i64,
    join,
    make_pair,
    map_,
    pad,
    reduce_,
    rewrite,
    rule,
    scan,
    scan_exclusive,
    scatter,
    slice_,
    slide,
    split,
    transpose,
    ty,
    zip_,
)


@rule("let p = c in b = b,  p not free in b", phase="simplification")
def let_unused(p: P, b: Ex, c: Ex):
    yield rewrite(app(Fn.lam(p, b), c)).to(b, absent(p, b))


@rule("let v = c in g a b … = g (let v = c in a) (let v = c in b) …,  g a pattern or an operation, c an array")
def let_inwards(
    v: V, c: Ex, a: Ex, b: Ex, d: Ex, m: i64, n: i64, s: i64, t: Ty, order: Order, boundary: String, name: String
):
    def let(body: Ex) -> Ex:
        return app(Fn.lam(P.var(v), body), c)

    is_array = eq(Ty.arr(m, t)).to(ty(c))
    one = (join, transpose, lambda x: split(n, x), lambda x: slide(n, s, x), lambda x: pad(n, s, boundary, x),
           lambda x: gather(order, x), lambda x: scatter(order, x), lambda x: at(n, x), lambda x: component(0, x),
           lambda x: component(1, x), lambda x: call1(name, x), lambda x: slice_(s, n, x))  # fmt: skip
    for g in one:
        yield rewrite(let(g(a))).to(g(let(a)), is_array)
    for g in (zip_, make_pair, lambda x, y: call2(name, x, y)):
        yield rewrite(let(g(a, b))).to(g(let(a), let(b)), is_array)
    yield rewrite(let(call3(name, a, b, d))).to(call3(name, let(a), let(b), let(d)), is_array)


@rule(
    "let v = c in map (λp. b) xs = map (λp. let v = c in b) (let v = c in xs),  p not free in c, v not in p, c an "
    "array;  the same for reduce ⊕ z xs, scan ⊕ z xs and scanExclusive ⊕ z xs, v not free in ⊕, and for let p = xs in b"
)
def let_into_function(v: V, c: Ex, p: P, b: Ex, xs: Ex, f: Fn, op: Op, z: Ex, m: i64, t: Ty):
    def let(body: Ex) -> Ex:
        return app(Fn.lam(P.var(v), body), c)

    is_array = eq(Ty.arr(m, t)).to(ty(c))
    binds_another = (absent(p, c), bvs(p).not_contains(v))
    yield rewrite(let(map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(p, let(b)), let(xs)), is_array, *binds_another)
    yield rewrite(let(app(Fn.lam(p, b), xs))).to(app(Fn.lam(p, let(b)), let(xs)), is_array, *binds_another)
    yield rewrite(let(map_(f, xs))).to(map_(f, let(xs)), is_array, fvf(f).not_contains(v))
    for fold in (reduce_, scan, scan_exclusive):
        yield rewrite(let(fold(op, z, xs))).to(fold(op, let(z), let(xs)), is_array, fvo(op).not_contains(v))


@rule(
    "map (λp. map f (zip (map g a) b)) xs = let s = map g a in map (λp. map f (zip s b)) xs,  p not free in g and a, s "
    "fresh",
    source="new: what does not change in a loop is computed before it",
)
def side_outwards(e: Ex, p: P, f: Fn, g: Fn, a: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    side = map_(g, a)
    left, rows = map_(Fn.lam(p, map_(f, zip_(side, b))), xs), eq(Ty.arr(n, t)).to(ty(side))
    s = V("$side", Ty.arr(n, t))
    yield egglog.rule(eq(e).to(left), rows).then(s)  # the conditions need it to exist
    each = Fn.lam(p, map_(f, zip_(Ex(s), b)))
    unused = fresh(s, b), fresh(s, xs), fvf(f).not_contains(s), bvs(p).not_contains(s)
    yield rewrite(left).to(app(Fn.lam(P.var(s), map_(each, xs)), side), rows, absent(p, side), *unused)


@rule("gather r (map f xs) = map f (gather r xs)")
def gather_of_map(f: Fn, xs: Ex, r: Order):
    yield rewrite(gather(r, map_(f, xs))).to(map_(f, gather(r, xs)))


@rule("at i (map f xs) = f (at i xs)")
def at_of_map(f: Fn, xs: Ex, n: i64):
    yield rewrite(at(n, map_(f, xs))).to(app(f, at(n, xs)))


@rule(
    "let v = xs in b = at 0 (map (λv. b) (split n xs)),  n > 0 elements in xs;  "
    "let v = xs in at 0 (map (λp. b) yss) = at 0 (map (λ(v, p). b) (zip (split n xs) yss)),  one row in yss, v not "
    "free in yss, v not in p",
    source="new: what one group computes alone",
)
def let_as_row(v: V, p: P, b: Ex, xs: Ex, yss: Ex, n: i64, t: Ty, u: Ty):
    row, some = split(n, xs), (eq(Ty.arr(n, t)).to(ty(xs)), n > i64(0))
    yield rewrite(app(Fn.lam(P.var(v), b), xs)).to(at(0, map_(Fn.lam(P.var(v), b), row)), *some)
    inside = app(Fn.lam(P.var(v), at(0, map_(Fn.lam(p, b), yss))), xs)
    both = map_(Fn.lam(P.pair(P.var(v), p), b), zip_(row, yss))
    one_row = eq(Ty.arr(1, u)).to(ty(yss)), absent(P.var(v), yss), bvs(p).not_contains(v)
    yield rewrite(inside).to(at(0, both), *some, *one_row)


@rule("generate n f = map f (generate n (λi. i))", phase="lowering")
def generate_by_map(f: Fn, n: i64):
    i = V("$i", Ty.scalar("i32"))
    yield rewrite(generate(n, f)).to(map_(f, generate(n, Fn.lam(P.var(i), Ex(i)))))


inlining_rules = (let_inwards, let_into_function)
invariant_rules = (side_outwards,)
element_rules = (gather_of_map, at_of_map)
generate_rules = (generate_by_map,)
let_simplification = (let_unused,)
one_row_rules = (let_as_row,)
