"""What an e-graph knows of its terms: types, free variables, operator laws, and names kept in stock.

These rules run to saturation between all others.
"""

from __future__ import annotations

from itertools import product

import egglog
from egglog import Ruleset, String, eq, i64, rewrite, ruleset, set_
from egglog.egraph import FactLike

from lift_egraph.egraph.sorts import (
    ACCUMULATOR,
    ELEMENT,
    EMPTY,
    LANE,
    LEFT,
    RIGHT,
    Ex,
    Fn,
    Names,
    Op,
    P,
    Ty,
    V,
    app,
    as_scalar,
    as_vector,
    associative,
    at,
    bvs,
    call1,
    call2,
    call3,
    cod,
    combine,
    commutative,
    component,
    dom,
    fill,
    fv,
    fvf,
    fvo,
    gather,
    generate,
    iterate,
    iterate_text,
    join,
    lookup,
    make_pair,
    map_,
    map_level,
    neutral,
    pad,
    pad_constant,
    pty,
    reduce_,
    reduce_seq,
    scalar_like,
    scatter,
    slide,
    split,
    tile,
    to_memory,
    transpose,
    ty,
    vty,
    zip_,
)
from lift_egraph.language.scalar import OPERATIONS


@ruleset
def _types(
    e: Ex, x: Ex, y: Ex, z: Ex, f: Fn, g: Fn, p: P, q: P, r: P, v: V, s: String,
    t: Ty, u: Ty, w: Ty, n: i64, m: i64, k: i64, op: Op,
):  # fmt: skip
    def has(term: Ex, result: Ty, *facts: FactLike):
        return egglog.rule(eq(e).to(term), *facts).then(set_(ty(e)).to(result))

    def is_array(term: Ex, size: i64, element: Ty):
        return eq(Ty.arr(size, element)).to(ty(term))

    yield egglog.rule(eq(v).to(V(s, t))).then(set_(vty(v)).to(t))
    yield egglog.rule(eq(v).to(V.of("chunk", p, n)), eq(t).to(pty(p))).then(set_(vty(v)).to(Ty.arr(n, t)))
    yield egglog.rule(eq(v).to(V.of("slice", p, n)), eq(t).to(pty(p))).then(set_(vty(v)).to(Ty.arr(n, t)))
    yield egglog.rule(eq(v).to(V.of("column", p, n)), eq(t).to(pty(p))).then(set_(vty(v)).to(Ty.arr(n, t)))
    yield egglog.rule(eq(p).to(P.var(v)), eq(t).to(vty(v))).then(set_(pty(p)).to(t))
    yield egglog.rule(eq(r).to(P.pair(p, q)), eq(t).to(pty(p)), eq(u).to(pty(q))).then(set_(pty(r)).to(Ty.pair(t, u)))
    yield has(Ex(v), t, eq(t).to(vty(v)))
    yield has(Ex.input(s, t), t)
    yield has(Ex.literal(s, t), t)
    yield has(make_pair(x, y), Ty.pair(t, u), eq(t).to(ty(x)), eq(u).to(ty(y)))
    yield has(component(i64(0), x), t, eq(Ty.pair(t, u)).to(ty(x)))
    yield has(component(i64(1), x), u, eq(Ty.pair(t, u)).to(ty(x)))
    yield has(app(f, x), u, eq(u).to(cod(f)))
    yield has(combine(op, x, y), t, eq(t).to(ty(x)))
    yield has(map_(f, x), Ty.arr(n, u), is_array(x, n, t), eq(u).to(cod(f)))
    yield has(map_level(s, m, f, x), Ty.arr(n, u), is_array(x, n, t), eq(u).to(cod(f)))
    yield has(reduce_(op, z, x), t, eq(t).to(ty(z)))
    yield has(reduce_seq(f, z, x), t, eq(t).to(ty(z)))
    yield has(zip_(x, y), Ty.arr(n, Ty.pair(t, u)), is_array(x, n, t), is_array(y, n, u))
    yield has(split(n, x), Ty.arr(m / n, Ty.arr(n, t)), is_array(x, m, t), n > 0)
    yield has(join(x), Ty.arr(m * n, t), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(x)))
    yield has(transpose(x), Ty.arr(n, Ty.arr(m, t)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(x)))
    yield has(gather(s, x), t, eq(t).to(ty(x)))
    yield has(scatter(s, x), t, eq(t).to(ty(x)))
    yield has(slide(n, k, x), Ty.arr((m - n) / k + 1, Ty.arr(n, t)), is_array(x, m, t), k > 0)
    yield has(pad(n, k, s, x), Ty.arr(n + m + k, t), is_array(x, m, t))
    yield has(pad_constant(n, k, z, x), Ty.arr(n + m + k, t), is_array(x, m, t))
    yield has(iterate(n, f, x), t, eq(t).to(ty(x)))
    yield has(iterate_text(n, s, t, x), t)
    yield has(at(n, x), t, is_array(x, m, t))
    yield has(generate(n, f), Ty.arr(n, t), eq(t).to(cod(f)))
    yield has(fill(n, x), Ty.arr(n, t), eq(t).to(ty(x)))
    yield has(lookup(x, y), Ty.arr(n, u), is_array(x, n, t), is_array(y, m, u))
    yield has(to_memory(s, x), t, eq(t).to(ty(x)))
    yield has(as_vector(n, x), Ty.arr(m / n, Ty.lanes(n, t)), is_array(x, m, t), n > 0)
    yield has(as_scalar(x), Ty.arr(m * n, t), eq(Ty.arr(m, Ty.lanes(n, t))).to(ty(x)))
    # functions
    yield egglog.rule(eq(f).to(Fn.lam(p, x)), eq(t).to(pty(p)), eq(u).to(ty(x))).then(
        set_(dom(f)).to(t), set_(cod(f)).to(u)
    )
    yield egglog.rule(eq(f).to(Fn.vec(n, g)), eq(t).to(dom(g)), eq(u).to(cod(g))).then(
        set_(dom(f)).to(Ty.lanes(n, t)), set_(cod(f)).to(Ty.lanes(n, u))
    )
    for constant, argument, result in (
        (Fn.join(t), Ty.arr(m, Ty.arr(n, u)), Ty.arr(m * n, u)),
        (Fn.transpose(t), Ty.arr(m, Ty.arr(n, u)), Ty.arr(n, Ty.arr(m, u))),
        (Fn.zip(t), Ty.pair(Ty.arr(n, u), Ty.arr(n, w)), Ty.arr(n, Ty.pair(u, w))),
        (Fn.split(n, t), Ty.arr(m, u), Ty.arr(m / n, Ty.arr(n, u))),
    ):
        yield egglog.rule(eq(f).to(constant), eq(t).to(argument)).then(set_(dom(f)).to(t), set_(cod(f)).to(result))
    yield egglog.rule(eq(f).to(Fn.map(n, g)), eq(t).to(dom(g)), eq(u).to(cod(g))).then(
        set_(dom(f)).to(Ty.arr(n, t)), set_(cod(f)).to(Ty.arr(n, u))
    )
    yield egglog.rule(eq(f).to(Fn.reduce(op, z, t)), eq(u).to(ty(z))).then(set_(dom(f)).to(t), set_(cod(f)).to(u))
    # vectors at the leaves
    yield rewrite(Ty.lanes(n, Ty.scalar(s))).to(Ty.vec(s, n))
    yield rewrite(Ty.lanes(n, Ty.pair(t, u))).to(Ty.pair(Ty.lanes(n, t), Ty.lanes(n, u)))
    yield rewrite(Ty.lanes(n, Ty.arr(m, t))).to(Ty.arr(m, Ty.lanes(n, t)))
    yield rewrite(Ty.vec(s, n)).to(Ty.lanes(n, Ty.scalar(s)))
    yield rewrite(Ty.pair(Ty.lanes(n, t), Ty.lanes(n, u))).to(Ty.lanes(n, Ty.pair(t, u)))
    yield rewrite(Ty.arr(m, Ty.lanes(n, t))).to(Ty.lanes(n, Ty.arr(m, t)))
    yield egglog.rule(eq(t).to(Ty.scalar(s))).then(scalar_like(t))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), scalar_like(u)).then(scalar_like(t))
    yield egglog.rule(eq(t).to(Ty.pair(u, w)), scalar_like(u), scalar_like(w)).then(scalar_like(t))


@ruleset
def _calls(e: Ex, x: Ex, y: Ex, z: Ex, q: String, r: String, s: String, n: i64):
    """A call has the scalar of its last argument, or its own, in as many lanes as its vectors have; dot has none."""
    for op in OPERATIONS.values():
        given, scalars = (x, y, z)[: op.arity], (q, r, s)[-op.arity :]
        term = (call1, call2, call3)[op.arity - 1](op.name, *given)
        scalar = s if op.result is None else op.result.name
        for wide in product((False, True), repeat=op.arity):
            result = Ty.vec(scalar, n) if any(wide) and op.kind != "lanes" else Ty.scalar(scalar)
            types = (Ty.vec(u, n) if w else Ty.scalar(u) for u, w in zip(scalars, wide, strict=True))
            facts = (eq(t).to(ty(a)) for t, a in zip(types, given, strict=True))
            yield egglog.rule(eq(e).to(term), *facts).then(set_(ty(e)).to(result))


@ruleset
def _scopes(
    e: Ex, x: Ex, y: Ex, z: Ex, f: Fn, g: Fn, p: P, q: P, v: V, s: String, t: Ty, n: i64, m: i64, k: i64, op: Op, r: P,
    other: Op,
):  # fmt: skip
    def names_in(part: Ex | Fn | Op) -> Names:
        if isinstance(part, Op):
            return fvo(part)
        return fvf(part) if isinstance(part, Fn) else fv(part)

    def mentions(term: Ex, *inside: Ex | Fn | Op):
        names = [names_in(i) for i in inside]
        bound = [egglog.var(f"names{i}", Names) for i in range(len(inside))]
        total = EMPTY
        for b in bound:
            total = total | b
        return egglog.rule(eq(e).to(term), *(eq(b).to(a) for a, b in zip(names, bound, strict=True))).then(
            set_(fv(e)).to(total)
        )

    yield egglog.rule(eq(p).to(P.var(v))).then(set_(bvs(p)).to(EMPTY.insert(v)))
    yield egglog.rule(
        eq(r).to(P.pair(p, q)), eq(a := egglog.var("a", Names)).to(bvs(p)), eq(b := egglog.var("b", Names)).to(bvs(q))
    ).then(set_(bvs(r)).to(a | b))
    yield egglog.rule(eq(e).to(Ex(v))).then(set_(fv(e)).to(EMPTY.insert(v)))
    for closed in (Ex.input(s, t), Ex.literal(s, t)):
        yield mentions(closed)
    for unary in (
        call1(s, x), component(n, x), split(n, x), join(x), transpose(x), gather(s, x), scatter(s, x), slide(n, m, x),
        pad(n, m, s, x), iterate_text(n, s, t, x), at(n, x), fill(n, x), to_memory(s, x), as_vector(n, x), as_scalar(x),
    ):  # fmt: skip
        yield mentions(unary, x)
    for binary in (call2(s, x, y), make_pair(x, y), zip_(x, y), pad_constant(n, m, x, y), lookup(x, y)):
        yield mentions(binary, x, y)
    yield mentions(call3(s, x, y, z), x, y, z)
    yield mentions(generate(n, f), f)
    for applied in (app(f, x), map_(f, x), iterate(n, f, x), map_level(s, n, f, x)):
        yield mentions(applied, f, x)
    yield mentions(reduce_seq(f, z, x), f, z, x)
    yield mentions(reduce_(op, z, x), op, z, x)
    yield mentions(combine(op, x, y), op, x, y)
    yield egglog.rule(
        eq(f).to(Fn.lam(p, x)), eq(a).to(fv(x)), eq(b).to(bvs(p))
    ).then(set_(fvf(f)).to(a - b))  # fmt: skip
    for same in (Fn.vec(n, g), Fn.map(n, g)):
        yield egglog.rule(eq(f).to(same), eq(a).to(fvf(g))).then(set_(fvf(f)).to(a))
    for constant in (Fn.join(t), Fn.transpose(t), Fn.zip(t), Fn.split(n, t)):
        yield egglog.rule(eq(f).to(constant)).then(set_(fvf(f)).to(EMPTY))
    yield egglog.rule(eq(f).to(Fn.reduce(op, z, t)), eq(a).to(fv(z)), eq(b).to(fvo(op))).then(set_(fvf(f)).to(a | b))
    yield egglog.rule(eq(op).to(Op.scalar(s))).then(set_(fvo(op)).to(EMPTY))
    yield egglog.rule(eq(op).to(Op.fn(f)), eq(a).to(fvf(f))).then(set_(fvo(op)).to(a))
    yield egglog.rule(eq(op).to(other.lift()), eq(a).to(fvo(other))).then(set_(fvo(op)).to(a))


@ruleset
def _operators(op: Op, z: Ex, x: Ex, y: Ex, f: Fn, t: Ty, n: i64):
    """Laws of operators lifted to arrays, for those in use."""
    lifted, start = op.lift(), fill(n, z)
    for with_operator, with_start in (
        (eq(y).to(reduce_(lifted, z, x)), eq(y).to(reduce_(lifted, start, x))),
        (eq(f).to(Fn.reduce(lifted, z, t)), eq(f).to(Fn.reduce(lifted, start, t))),
    ):
        yield egglog.rule(associative(op), with_operator).then(associative(lifted))
        yield egglog.rule(commutative(op), with_operator).then(commutative(lifted))
        yield egglog.rule(neutral(op, z), with_start).then(neutral(lifted, start))


@ruleset
def _names(f: Fn, p: P, q: P, x: Ex, z: Ex, op: Op, t: Ty, u: Ty, n: i64, m: i64, v: V):
    """Names that side conditions mention must exist first: a query matches existing terms only."""
    yield egglog.rule(eq(f).to(Fn.lam(p, x)), tile(m, n)).then(V.of("chunk", p, n))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), eq(f).to(Fn.lam(P.pair(P.var(v), q), x))).then(V.of("slice", P.var(v), n))
    yield egglog.rule(eq(t).to(Ty.arr(n, u)), eq(f).to(Fn.lam(P.pair(q, P.var(v)), x))).then(V.of("slice", P.var(v), n))
    yield egglog.rule(eq(t).to(ty(reduce_(op, z, x)))).then(V(ACCUMULATOR, t), V(ELEMENT, t))
    yield egglog.rule(eq(Ty.arr(n, t)).to(ty(combine(op.lift(), z, x)))).then(V(LANE, t), V(LEFT, t), V(RIGHT, t))


analyses: tuple[Ruleset, ...] = (_types, _calls, _scopes, _operators, _names)
