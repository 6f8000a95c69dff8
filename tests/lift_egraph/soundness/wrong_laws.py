"""Laws that are nearly right, each wrong for some numbers, orders, sizes, operators or names: the check must see it."""

from __future__ import annotations

import egglog
from egglog import eq, i64, rewrite

from lift_egraph.egraph import sorts as s
from lift_egraph.egraph.rule import Rule, rule

F32, INT = s.Ty.scalar("f32"), s.Ty.scalar("i32")


def number(text: str, t: s.Ty) -> s.Ex:
    return s.Ex.literal(text, t)


@rule("scatter r xs = gather r xs")
def scatter_as_gather(r: s.Order, xs: s.Ex):
    yield rewrite(s.scatter(r, xs)).to(s.gather(r, xs))


@rule("gather r (gather r xs) = xs")
def gather_twice(r: s.Order, xs: s.Ex):
    yield rewrite(s.gather(r, s.gather(r, xs))).to(xs)


@rule("floor x = x")
def floor_of_whole(x: s.Ex):
    yield rewrite(s.call1("floor", x)).to(x)


@rule("0 · x = 0")
def times_zero(x: s.Ex):
    yield rewrite(s.call2("mul", number("0.0", F32), x)).to(number("0.0", F32))


@rule("x - x = 0")
def minus_itself(x: s.Ex):
    yield rewrite(s.call2("sub", x, x)).to(number("0.0", F32), eq(F32).to(s.ty(x)))


@rule("not (a < b) = b <= a")
def not_less(a: s.Ex, b: s.Ex):
    yield rewrite(s.call1("not", s.call2("lt", a, b))).to(s.call2("le", b, a))


@rule("sqrt (x · x) = abs x")
def root_of_square(x: s.Ex):
    yield rewrite(s.call1("sqrt", s.call2("mul", x, x))).to(s.call1("abs", x))


@rule("(x · 2) / 2 = x")
def twice_and_half(x: s.Ex):
    two = number("2", INT)
    yield rewrite(s.call2("div", s.call2("mul", x, two), two)).to(x)


@rule("xs = gather (i -> min i 15) xs")
def short_arrays(xs: s.Ex):
    yield rewrite(s.gather("i", xs)).to(s.gather("min(i, 15)", xs))


@rule("asScalar (asVector w xs) = gather (i -> i - i mod 4 + i mod w mod 4) xs,  w a width")
def narrow_vectors(xs: s.Ex, w: i64, n: i64, t: s.Ty):
    order = egglog.join("i / ", w.to_string(), " * ", w.to_string(), " + i % ", w.to_string(), " % 4")
    yield rewrite(s.as_scalar(s.as_vector(w, xs))).to(s.gather(order, xs), eq(s.Ty.arr(n, t)).to(s.ty(xs)))


@rule("map f xs = join (map (map f) (split n xs)),  but n is asked to be split by its length")
def tile_exchanged(f: s.Fn, xs: s.Ex, n: i64, m: i64, t: s.Ty):
    yield rewrite(s.map_(f, xs)).to(
        s.join(s.map_(s.Fn.map(n, f), s.split(n, xs))),
        eq(s.Ty.arr(m, t)).to(s.ty(xs)), s.tile(n, m), eq(m % n).to(i64(0)), n < m,
    )  # fmt: skip


@rule("x + 0 = x")
def plus_zero(x: s.Ex):
    yield rewrite(s.call2("add", x, number("0.0", F32))).to(x)


@rule("max a b = max b a")
def most_either_way(a: s.Ex, b: s.Ex):
    yield rewrite(s.call2("max", a, b)).to(s.call2("max", b, a))


@rule("map (λp. map (λq. b) ys) xs = …,  where the chunk of p may be free in b")
def chunk_captured(p: s.P, b: s.Ex, xs: s.Ex, t: s.Ty, n: i64, m: i64):
    chunk = s.V.of("chunk", p, n)
    yield rewrite(s.map_(s.Fn.lam(p, b), xs)).to(
        s.join(s.map_(s.Fn.lam(s.P.var(chunk), s.map_(s.Fn.lam(p, b), s.Ex(chunk))), s.split(n, xs))),
        eq(s.Ty.arr(m, t)).to(s.ty(xs)), *s.chunked(m, n), eq(t).to(s.pty(p)),
    )  # fmt: skip


@rule("reduce ⊕ z xs = reduce ⊕ z (reverse xs),  ⊕ associative, z neutral", reassociates=True)
def backwards(op: s.Op, z: s.Ex, xs: s.Ex):
    yield rewrite(s.reduce_(op, z, xs)).to(
        s.reduce_(op, z, s.gather("n - 1 - i", xs)), s.associative(op), s.neutral(op, z)
    )


@rule("every operator associates")
def all_associate(e: s.Ex, op: s.Op, z: s.Ex, xs: s.Ex):
    yield egglog.rule(eq(e).to(s.reduce_(op, z, xs))).then(s.associative(op))


@rule("reduce ⊕ z begins with a neutral z")
def all_are_neutral(e: s.Ex, op: s.Op, z: s.Ex, xs: s.Ex):
    yield egglog.rule(eq(e).to(s.reduce_(op, z, xs))).then(s.neutral(op, z))


WRONG_LAWS: tuple[Rule, ...] = (
    *(scatter_as_gather, gather_twice, floor_of_whole, times_zero, minus_itself, not_less, root_of_square),
    *(twice_and_half, short_arrays, narrow_vectors, tile_exchanged, plus_zero, most_either_way, chunk_captured),
    *(backwards, all_associate, all_are_neutral),
)
