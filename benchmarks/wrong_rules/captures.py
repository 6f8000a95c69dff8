"""Laws without one of their conditions on names: something gets under a binder, or away from its own."""

from __future__ import annotations

import egglog

from lift_egraph.dsl import (
    ACCUMULATOR,
    LANE,
    Ex,
    Fn,
    Op,
    P,
    String,
    Ty,
    V,
    absent,
    absent_in_operator,
    app,
    bvs,
    call2,
    chunked,
    combine,
    disjoint,
    eq,
    fill,
    fresh,
    fvf,
    fvo,
    generate,
    i64,
    make_pair,
    map_,
    pty,
    reduce_seq,
    rewrite,
    rule,
    scan,
    slide,
    split,
    transpose,
    ty,
    zip_,
)


@rule("map (λp. let q = d in c) xs = let q = d in map (λp. c) xs")
def let_moved_out_of_map(p: P, q: P, c: Ex, d: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, app(Fn.lam(q, c), d)), xs)).to(app(Fn.lam(q, map_(Fn.lam(p, c), xs)), d))


@rule("zip (map (λp. b) xs) (map (λq. c) ys) = map (λ(p, q). (b, c)) (zip xs ys),  q may be free in b")
def zip_of_maps_right_captures(p: P, q: P, b: Ex, c: Ex, xs: Ex, ys: Ex):
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(q, c), ys))).to(
        map_(Fn.lam(P.pair(p, q), make_pair(b, c)), zip_(xs, ys)), absent(p, c), disjoint(p, q)
    )


@rule("map f xs = map (λx. f x) xs,  x may be free in f")
def eta_backwards(e: Ex, f: Fn, xs: Ex, n: i64, t: Ty):
    x = V("$x", t)
    yield rewrite(map_(f, xs)).to(map_(Fn.lam(P.var(x), app(f, Ex(x))), xs), eq(Ty.arr(n, t)).to(ty(xs)))


@rule("λv. f v = f,  v may be free in f")
def eta_captures(f: Fn, v: V, xs: Ex):
    yield rewrite(map_(Fn.lam(P.var(v), app(f, Ex(v))), xs)).to(map_(f, xs))


@rule("let p = c in let q = d in b = let q = d in let p = c in b")
def lets_exchanged(p: P, q: P, b: Ex, c: Ex, d: Ex):
    yield rewrite(app(Fn.lam(p, app(Fn.lam(q, b), d)), c)).to(
        app(Fn.lam(q, app(Fn.lam(p, b), c)), d), disjoint(p, q), absent(q, c)
    )


@rule("let p = c in map (λq. b) xs = map (λq. let p = c in b) xs,  p may be free in xs")
def let_skips_the_array(p: P, q: P, b: Ex, c: Ex, xs: Ex):
    yield rewrite(app(Fn.lam(p, map_(Fn.lam(q, b), xs)), c)).to(
        map_(Fn.lam(q, app(Fn.lam(p, b), c)), xs), absent(q, c), disjoint(p, q)
    )


@rule("reduceSeq (λ(a, p). b) z (map (λq. c) xs) = reduceSeq (λ(a, q). let p = c in b) z xs,  a and q may be one")
def fusion_into_loop(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex):
    yield rewrite(reduce_seq(Fn.lam(P.pair(a, p), b), z, map_(Fn.lam(q, c), xs))).to(
        reduce_seq(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, xs), absent(q, b)
    )


@rule("map (λp. map (λq. b) ys) xs = map (λq. map (λp. b) ys) xs,  p and q of one type")
def binders_exchanged(p: P, q: P, b: Ex, xs: Ex, ys: Ex, t: Ty):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        map_(Fn.lam(q, map_(Fn.lam(p, b), ys)), xs), eq(t).to(pty(p)), eq(t).to(pty(q)), absent(p, ys), absent(q, ys)
    )


@rule("generate n (λi. b) = fill n b")
def generate_as_fill(n: i64, p: P, b: Ex):
    yield rewrite(generate(n, Fn.lam(p, b))).to(fill(n, b))


@rule("map (λp. g b c) xs = map (λx. g x c) (map (λp. b) xs),  p may be free in c")
def argument_left_behind(s: String, p: P, b: Ex, c: Ex, xs: Ex, t: Ty):
    x = V("$argument", t)
    yield rewrite(map_(Fn.lam(p, call2(s, b, c)), xs)).to(
        map_(Fn.lam(P.var(x), call2(s, Ex(x), c)), map_(Fn.lam(p, b), xs)), eq(t).to(ty(b))
    )


@rule("map (λp. map (λ(q, v). b) (zip ws ys)) xs = …  (000 Listing 5.17),  p may be free in ws")
def zip_right_captures(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s, columns = V.of("slice", P.var(v), n), transpose(map_(Fn.lam(p, ys), xs))
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(q, P.var(v)), b), zip_(ws, ys))), xs)).to(
        transpose(map_(Fn.lam(P.pair(q, P.var(s)), map_(Fn.lam(P.var(v), b), Ex(s))), zip_(ws, columns))),
        *(eq(Ty.arr(n, t)).to(ty(xs)), absent(p, b), fresh(s, b), bvs(q).not_contains(s)),
    )


@rule("map (λp. b) (slide n s xs) = map (λw. let p = w in b) (slide n s xs),  w may be free in b")
def window_captures(e: Ex, p: P, b: Ex, n: i64, s: i64, xs: Ex, m: i64, t: Ty):
    window = V("$window", Ty.arr(n, t))
    yield rewrite(map_(Fn.lam(p, b), slide(n, s, xs))).to(
        map_(Fn.lam(P.var(window), app(Fn.lam(p, b), Ex(window))), slide(n, s, xs)), eq(Ty.arr(m, t)).to(ty(xs))
    )


@rule("let v = c in map (λp. b) xs = map (λp. let v = c in b) (let v = c in xs),  v may be in p")
def let_under_its_own_name(v: V, c: Ex, p: P, b: Ex, xs: Ex, m: i64, t: Ty):
    def let(body: Ex) -> Ex:
        return app(Fn.lam(P.var(v), body), c)

    yield rewrite(let(map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(p, let(b)), let(xs)), absent(p, c))


@rule("a (lift ⊕) (map (λp. b) xs) = map (λ(c, p). c ⊕ b) (zip a xs),  c may be in p")
def lane_captures(op: Op, a: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(LANE, t)
    yield rewrite(combine(op.lift(), a, map_(Fn.lam(p, b), xs))).to(
        map_(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), zip_(a, xs)),
        *(eq(t).to(ty(b)), fresh(acc, b), absent_in_operator(p, op), fvo(op).not_contains(acc)),
    )


@rule("reduceSeq f z xs = reduceSeq (λ(acc, c). reduceSeq f acc c) z (split n xs),  c may be free in f")
def chunk_in_loop_captures(e: Ex, a: P, p: P, b: Ex, z: Ex, xs: Ex, n: i64, m: i64, t: Ty, u: Ty):
    acc, chunk = V(ACCUMULATOR, u), V.of("chunk", p, n)
    loop = Fn.lam(P.pair(a, p), b)
    where = (eq(Ty.arr(m, t)).to(ty(xs)), eq(t).to(pty(p)), eq(u).to(ty(z)), *chunked(m, n))
    yield egglog.rule(eq(e).to(reduce_seq(loop, z, xs)), *where).then(acc, chunk)
    yield rewrite(reduce_seq(loop, z, xs)).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(chunk)), reduce_seq(loop, Ex(acc), Ex(chunk))), z, split(n, xs)),
        *where,
        eq(fvf(loop)).to(fvf(loop).remove(acc)),
    )


@rule("map (λ(p, q). b) (zip xs ys) = map (λp. b) xs,  q may be free in b")
def other_side_lost(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(P.pair(p, q), b), zip_(xs, ys))).to(map_(Fn.lam(p, b), xs))


@rule("map (λp. scan ⊕ z c) xs = transpose (scan (lift ⊕) (fill n z) (transpose (map (λp. c) xs))),  p may be in ⊕")
def scans_capture(p: P, op: Op, z: Ex, c: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, scan(op, z, c)), xs)).to(
        transpose(scan(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, c), xs)))),
        *(eq(Ty.arr(n, t)).to(ty(xs)), absent(p, z)),
    )
