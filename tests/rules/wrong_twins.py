"""For every rule, wrong versions of it, as one might write them by mistake; the harness must catch each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import egglog
from egglog import String, eq, i64, rewrite

from lift_egraph.rule import Rule, rule
from lift_egraph.sorts import (
    ACCUMULATOR,
    LANE,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    absent,
    app,
    as_scalar,
    as_vector,
    associative,
    bvs,
    call2,
    combine,
    commutative,
    component,
    fill,
    fresh,
    fv,
    gather,
    join,
    lane_width,
    make_pair,
    map_,
    map_level,
    neutral,
    pty,
    reduce_,
    reduce_seq,
    scalar_like,
    split,
    tile,
    to_memory,
    transpose,
    ty,
    vty,
    zip_,
)
from rules.opencl_memory import stage_local, stage_private
from tests.rules.generators import GENERATORS, Generator, map_of_pattern, named_pattern

REVERSED = "n - 1 - i"


@dataclass(frozen=True)
class Twin:
    """A wrong version of the rule `of`; `generator` is what provokes it, if the rule's own does not."""

    of: str
    rule: Rule
    generator: Generator


TWINS: list[Twin] = []


def twin(
    of: str, mistake: str, generator: Generator | None = None
) -> Callable[[Callable[..., Iterable[egglog.RewriteOrRule]]], Rule]:
    """Declare a wrong twin of a rule by the mistake in it."""

    def make(body: Callable[..., Iterable[egglog.RewriteOrRule]]) -> Rule:
        wrong = rule(mistake)(body)
        TWINS.append(Twin(of, wrong, generator or GENERATORS[of]))
        return wrong

    return make


# --- fusion ---------------------------------------------------------------------------------------------


@twin("map_fusion", "p may be free in f")
def fusion_captures(f: Fn, p: P, b: Ex, xs: Ex):
    yield rewrite(map_(f, map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(p, app(f, b)), xs))


@twin("map_fusion", "the functions are composed in the other order")
def fusion_swapped(p: P, q: P, b: Ex, c: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(q, c), map_(Fn.lam(p, b), xs))).to(map_(Fn.lam(q, app(Fn.lam(p, b), c)), xs))


@twin("map_fission", "p may be free in f", Generator(map_of_pattern("map")))
def fission_captures(f: Fn, p: P, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, map_(f, b)), xs)).to(
        map_(Fn.map(n, f), map_(Fn.lam(p, b), xs)), eq(Ty.arr(n, t)).to(ty(b))
    )


@twin("map_fission", "p may be free in the operator", Generator(map_of_pattern("reduce")))
def fission_captures_in_operator(f: Fn, p: P, b: Ex, z: Ex, xs: Ex, t: Ty):
    op = Op.fn(f)
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        map_(Fn.reduce(op, z, t), map_(Fn.lam(p, b), xs)), eq(t).to(ty(b)), absent(p, z)
    )


@twin("map_fission", "a transposition is lost", Generator(map_of_pattern("transpose")))
def fission_loses_transpose(p: P, b: Ex, xs: Ex):
    yield rewrite(map_(Fn.lam(p, transpose(b)), xs)).to(map_(Fn.lam(p, b), xs))


@twin("zip_of_maps", "the variables of one function may be free in the other")
def zip_captures(p: P, q: P, b: Ex, c: Ex, xs: Ex, ys: Ex):
    yield rewrite(zip_(map_(Fn.lam(p, b), xs), map_(Fn.lam(q, c), ys))).to(
        map_(Fn.lam(P.pair(p, q), make_pair(b, c)), zip_(xs, ys))
    )


# --- split_join -----------------------------------------------------------------------------------------


@twin("split_join", "n need not divide the length")
def split_join_with_rest(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, n)
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), split(n, xs))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        n < m,
        eq(t).to(pty(p)),
    )


@twin("split_join", "the chunks are transposed: a strided partition without its inverse")
def split_join_strided(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V.of("chunk", p, m / n)
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        eq(t).to(pty(p)),
    )


@twin("split_join", "the name of the chunk is the name of another row")
def split_join_captures(p: P, b: Ex, xs: Ex, t: Ty, n: i64, m: i64):
    chunk = V("x", Ty.arr(n, t))
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        join(map_(Fn.lam(P.var(chunk), map_(Fn.lam(p, b), Ex(chunk))), split(n, xs))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        eq(t).to(pty(p)),
    )


@twin("split_of_map", "the function is mapped over the chunks, not over their elements")
def split_of_map_too_flat(f: Fn, xs: Ex, n: i64):
    yield rewrite(split(n, map_(f, xs))).to(map_(f, split(n, xs)))


@twin("split_of_map", "the function is lost")
def split_of_map_loses_function(f: Fn, xs: Ex, n: i64):
    yield rewrite(split(n, map_(f, xs))).to(split(n, xs))


@twin("split_of_zip", "the second array is the first")
def split_of_zip_repeats(xs: Ex, ys: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(split(n, zip_(xs, ys))).to(
        map_(Fn.zip(Ty.pair(Ty.arr(n, t), Ty.arr(n, t))), zip_(split(n, xs), split(n, xs))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(Ty.arr(m, t)).to(ty(ys)),
    )


@twin("zip_takes_names", "the parts are zipped in the other order")
def zip_takes_names_swapped(xss: Ex, yss: Ex, m: i64, n: i64, t: Ty, u: Ty):
    left, right = V("$left", Ty.arr(m, t)), V("$right", Ty.arr(m, u))
    yield rewrite(map_(Fn.zip(Ty.pair(Ty.arr(m, t), Ty.arr(m, u))), zip_(xss, yss))).to(
        map_(Fn.lam(P.pair(P.var(left), P.var(right)), zip_(Ex(right), Ex(left))), zip_(xss, yss)),
        eq(Ty.arr(n, Ty.arr(m, t))).to(ty(xss)),
        eq(Ty.arr(n, Ty.arr(m, u))).to(ty(yss)),
    )


# --- interchange ----------------------------------------------------------------------------------------


@twin("map_map_on_matrix", "the outer transposition is missing")
def on_matrix_without_transpose(f: Fn, n: i64, m: i64, xss: Ex, t: Ty):
    yield rewrite(map_(Fn.map(n, f), xss)).to(
        map_(Fn.map(m, f), transpose(xss)), eq(Ty.arr(m, Ty.arr(n, t))).to(ty(xss))
    )


@twin("map_map_interchange", "p may be free in ys")
def interchange_captures(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)), absent(q, xs)
    )


@twin("map_map_interchange", "q may be free in xs")
def interchange_captures_inside(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)), absent(p, ys), eq(bvs(p) - bvs(q)).to(bvs(p))
    )


@twin("map_map_interchange", "p and q may be one variable")
def interchange_shadows(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        transpose(map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys)), absent(p, ys), absent(q, xs)
    )


@twin("map_map_interchange", "the transposition is missing")
def interchange_without_transpose(p: P, q: P, b: Ex, xs: Ex, ys: Ex):
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(q, b), ys)), xs)).to(
        map_(Fn.lam(q, map_(Fn.lam(p, b), xs)), ys), absent(p, ys), absent(q, xs), eq(bvs(p) - bvs(q)).to(bvs(p))
    )


def _zip_right(s: V, p: P, q: P, v: V, b: Ex, ws: Ex, rows: Ex) -> Ex:
    return map_(Fn.lam(P.pair(q, P.var(s)), map_(Fn.lam(P.var(v), b), Ex(s))), zip_(ws, rows))


@twin("map_map_zip_right", "p may be free in b")
def zip_right_captures(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(q, P.var(v)), b), zip_(ws, ys))), xs)).to(
        transpose(_zip_right(s, p, q, v, b, ws, transpose(map_(Fn.lam(p, ys), xs)))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
    )


@twin("map_map_zip_right", "the columns are not transposed")
def zip_right_by_rows(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(q, P.var(v)), b), zip_(ws, ys))), xs)).to(
        transpose(_zip_right(s, p, q, v, b, ws, map_(Fn.lam(p, ys), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
    )


def _zip_left(s: V, q: P, v: V, b: Ex, ws: Ex, rows: Ex) -> Ex:
    return map_(Fn.lam(P.pair(P.var(s), q), map_(Fn.lam(P.var(v), b), Ex(s))), zip_(rows, ws))


@twin("map_map_zip_left", "p may be free in ws")
def zip_left_captures(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(P.var(v), q), b), zip_(ys, ws))), xs)).to(
        transpose(_zip_left(s, q, v, b, ws, transpose(map_(Fn.lam(p, ys), xs)))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, b),
    )


@twin("map_map_zip_left", "the result is not transposed")
def zip_left_without_transpose(p: P, q: P, v: V, b: Ex, ws: Ex, ys: Ex, xs: Ex, n: i64, t: Ty):
    s = V.of("slice", P.var(v), n)
    yield rewrite(map_(Fn.lam(p, map_(Fn.lam(P.pair(P.var(v), q), b), zip_(ys, ws))), xs)).to(
        _zip_left(s, q, v, b, ws, transpose(map_(Fn.lam(p, ys), xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        absent(p, ws),
        absent(p, b),
    )


@twin("map_reduce_interchange", "p may be free in z")
def reduce_interchange_captures(p: P, op: Op, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, b), xs))), eq(Ty.arr(n, t)).to(ty(xs))
    )


@twin("map_reduce_interchange", "p may be free in the operator")
def reduce_interchange_captures_in_operator(p: P, f: Fn, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    op = Op.fn(f)
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), transpose(map_(Fn.lam(p, b), xs))), eq(Ty.arr(n, t)).to(ty(xs)), absent(p, z)
    )


@twin("map_reduce_interchange", "the transposition is missing")
def reduce_interchange_without_transpose(p: P, s: String, z: Ex, b: Ex, xs: Ex, n: i64, t: Ty):
    op = Op.scalar(s)
    yield rewrite(map_(Fn.lam(p, reduce_(op, z, b)), xs)).to(
        reduce_(op.lift(), fill(n, z), map_(Fn.lam(p, b), xs)), eq(Ty.arr(n, t)).to(ty(xs)), absent(p, z)
    )


# --- reduction ------------------------------------------------------------------------------------------


def _partial(op: Op, z: Ex, xs: Ex, n: i64, t: Ty) -> Ex:
    return reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), split(n, xs)))


@twin("partial_reduce", "⊕ need not be associative")
def partial_reduce_of_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        _partial(op, z, xs, n, t), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), eq(m % n).to(i64(0)), n < m
    )


@twin("partial_reduce", "z need not be neutral")
def partial_reduce_from_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        _partial(op, z, xs, n, t), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), eq(m % n).to(i64(0)), n < m, associative(op)
    )


@twin("partial_reduce", "n need not divide the length")
def partial_reduce_with_rest(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        _partial(op, z, xs, n, t), eq(Ty.arr(m, t)).to(ty(xs)), tile(m, n), n < m, associative(op), neutral(op, z)
    )


@twin("partial_reduce_strided", "⊕ need not be commutative or associative")
def partial_reduce_strided_of_any(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(m / n, t)), transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        n < m,
    )


@twin("partial_reduce_strided", "the length of the parts is n, not length / n")
def partial_reduce_strided_wrong_stride(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, map_(Fn.reduce(op, z, Ty.arr(n, t)), transpose(split(n, xs)))),
        eq(Ty.arr(m, t)).to(ty(xs)),
        tile(m, n),
        eq(m % n).to(i64(0)),
        n < m,
        associative(op),
        commutative(op),
        neutral(op, z),
    )


@twin("reduce_map_to_seq", "acc may be free in b")
def map_to_loop_captures(op: Op, z: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, b), xs))).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), z, xs), eq(t).to(ty(b))
    )


@twin("reduce_map_to_seq", "p may be free in the operator")
def map_to_loop_captures_in_operator(op: Op, z: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, b), xs))).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), z, xs), eq(t).to(ty(b)), fresh(acc, b)
    )


@twin("reduce_map_to_seq", "the accumulator stands on the right")
def map_to_loop_swapped(op: Op, z: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, b), xs))).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, b, Ex(acc))), z, xs), eq(t).to(ty(b)), fresh(acc, b)
    )


@twin("reduce_to_seq", "from right to left")
def reduce_to_seq_backwards(op: Op, z: Ex, xs: Ex, t: Ty, m: i64):
    acc, x = V(ACCUMULATOR, t), V("$x", t)
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(x)), combine(op, Ex(x), Ex(acc))), z, xs),
        eq(Ty.arr(m, t)).to(ty(xs)),
    )


@twin("split_reduce_seq", "every chunk starts from z")
def split_loop_forgets(a: P, p: P, b: Ex, z: Ex, xs: Ex, n: i64, m: i64, t: Ty, u: Ty):
    acc, chunk = V(ACCUMULATOR, u), V.of("chunk", p, n)
    loop = Fn.lam(P.pair(a, p), b)
    yield rewrite(reduce_seq(loop, z, xs)).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(chunk)), reduce_seq(loop, z, Ex(chunk))), z, split(n, xs)),
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(u).to(ty(z)),
        tile(m, n),
        eq(m % n).to(i64(0)),
    )


@twin("split_reduce_seq", "acc may be free in the operator")
def split_loop_captures(a: P, p: P, b: Ex, z: Ex, xs: Ex, n: i64, m: i64, t: Ty, u: Ty):
    acc, chunk = V(ACCUMULATOR, u), V.of("chunk", p, n)
    loop = Fn.lam(P.pair(a, p), b)
    yield rewrite(reduce_seq(loop, z, xs)).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(chunk)), reduce_seq(loop, Ex(acc), Ex(chunk))), z, split(n, xs)),
        eq(Ty.arr(m, t)).to(ty(xs)),
        eq(u).to(ty(z)),
        tile(m, n),
        eq(m % n).to(i64(0)),
    )


@twin("reduce_seq_fusion", "q may be free in b")
def loop_fusion_captures(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex):
    yield rewrite(reduce_seq(Fn.lam(P.pair(a, p), b), z, map_(Fn.lam(q, c), xs))).to(
        reduce_seq(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, xs), eq(fv(c) - bvs(a)).to(fv(c))
    )


@twin("reduce_seq_fusion", "acc may be free in c")
def loop_fusion_captures_accumulator(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex):
    yield rewrite(reduce_seq(Fn.lam(P.pair(a, p), b), z, map_(Fn.lam(q, c), xs))).to(
        reduce_seq(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, xs), eq(fv(b) - bvs(q)).to(fv(b))
    )


@twin("combine_scalars", "every operator is an addition")
def combine_adds(a: Ex, b: Ex, s: String):
    yield rewrite(combine(Op.scalar(s), a, b)).to(call2("add", a, b))


@twin("combine_by_function", "the arguments are swapped")
def combine_swaps(a: Ex, b: Ex, f: Fn):
    yield rewrite(combine(Op.fn(f), a, b)).to(app(f, make_pair(b, a)))


@twin("combine_lifted_with_map", "c may be free in b")
def combine_lifted_captures(op: Op, a: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(LANE, t)
    yield rewrite(combine(op.lift(), a, map_(Fn.lam(p, b), xs))).to(
        map_(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), zip_(a, xs)), eq(t).to(ty(b))
    )


@twin("combine_lifted_with_map", "the array is combined with itself")
def combine_lifted_forgets(op: Op, a: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(LANE, t)
    yield rewrite(combine(op.lift(), a, map_(Fn.lam(p, b), xs))).to(
        map_(Fn.lam(P.pair(P.var(acc), p), combine(op, b, b)), zip_(a, xs)), eq(t).to(ty(b)), fresh(acc, b)
    )


@twin("combine_lifted", "the elements are combined in the other order")
def combine_lifted_swaps(op: Op, a: Ex, b: Ex, t: Ty, n: i64):
    x, y = V("$a", t), V("$b", t)
    yield rewrite(combine(op.lift(), a, b)).to(
        map_(Fn.lam(P.pair(P.var(x), P.var(y)), combine(op, Ex(y), Ex(x))), zip_(a, b)), eq(Ty.arr(n, t)).to(ty(a))
    )


# --- vectors, levels, memory ----------------------------------------------------------------------------


@twin("vectorise_map", "w need not divide the length")
def vectorise_with_rest(p: P, b: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty):
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        as_scalar(map_(Fn.vec(w, Fn.lam(p, b)), as_vector(w, xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        lane_width(w),
        scalar_like(t),
        eq(u).to(ty(b)),
        scalar_like(u),
    )


@twin("vectorise_map", "the function is not vectorised")
def vectorise_data_only(p: P, b: Ex, xs: Ex, w: i64, n: i64, t: Ty):
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        as_scalar(map_(Fn.lam(p, b), as_vector(w, xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        lane_width(w),
        eq(n % w).to(i64(0)),
        scalar_like(t),
    )


def _backwards(kind: str, dimension: int) -> Callable[[Fn, Ex], Iterable[egglog.RewriteOrRule]]:
    def body(f: Fn, xs: Ex) -> Iterable[egglog.RewriteOrRule]:
        yield rewrite(map_(f, xs)).to(map_level(kind, dimension, f, gather(REVERSED, xs)))

    body.__annotations__ = {"f": Fn, "xs": Ex}
    return body


for _kind, _dimension in (("seq", 0), ("glb", 0), ("glb", 1), ("wrg", 0), ("wrg", 1), ("lcl", 0), ("lcl", 1)):
    _name = f"map_to_{_kind}{'' if _kind == 'seq' else _dimension}"
    _body = _backwards(_kind, _dimension)
    _body.__name__ = f"{_name}_backwards"
    twin(_name, "the elements are taken in the wrong order")(_body)


def _copy(space: str, kind: str, d: i64, t: Ty, value: Ex) -> Ex:
    item = V("$item", t)
    return to_memory(space, map_level(kind, d, Fn.lam(P.var(item), Ex(item)), value))


@twin("stage_in_local", "the copy is reversed")
def stage_in_local_reversed(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    copy = _copy("local", "lcl", d, t, gather(REVERSED, Ex(v)))
    yield rewrite(map_level("wrg", d, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
        stage_local(v),
        eq(Ty.arr(n, t)).to(vty(v)),
    )


@twin("stage_in_local", "v need not be an array")
def stage_in_local_of_any(v: V, b: Ex, xs: Ex, d: i64, t: Ty):
    copy = _copy("local", "lcl", d, t, Ex(v))
    yield rewrite(map_level("wrg", d, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs), stage_local(v), eq(t).to(vty(v))
    )


@twin("stage_in_private", "the copy is reversed")
def stage_in_private_reversed(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    copy = _copy("private", "seq", i64(0), t, gather(REVERSED, Ex(v)))
    for kind in ("glb", "lcl"):
        yield rewrite(map_level(kind, d, Fn.lam(P.var(v), b), xs)).to(
            map_level(kind, d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
            stage_private(v),
            eq(Ty.arr(n, t)).to(vty(v)),
        )


# --- simplification -------------------------------------------------------------------------------------


@twin("join_of_split", "a transposition between them is ignored")
def join_of_split_strided(n: i64, xs: Ex):
    yield rewrite(join(split(n, xs))).to(join(transpose(split(n, xs))))


@twin("split_of_join", "the rows may have any length")
def split_of_join_any(n: i64, xs: Ex):
    yield rewrite(split(n, join(xs))).to(xs)


@twin("as_scalar_of_as_vector", "the lanes are reversed")
def as_scalar_reversed(n: i64, xs: Ex):
    yield rewrite(as_scalar(as_vector(n, xs))).to(gather(REVERSED, xs))


@twin("as_vector_of_as_scalar", "the vectors may have any number of lanes")
def as_vector_of_any(n: i64, xs: Ex):
    yield rewrite(as_vector(n, as_scalar(xs))).to(xs)


@twin("transpose_of_transpose", "one transposition is dropped")
def transpose_once(xs: Ex):
    yield rewrite(transpose(transpose(xs))).to(transpose(xs))


@twin("map_transpose_of_map_transpose", "one transposition is dropped")
def map_transpose_once(t: Ty, u: Ty, xs: Ex):
    yield rewrite(map_(Fn.transpose(t), map_(Fn.transpose(u), xs))).to(map_(Fn.transpose(u), xs))


@twin("map_identity", "the body may be another variable")
def map_any_variable(v: V, w: V, xs: Ex):
    yield rewrite(map_(Fn.lam(P.var(v), Ex(w)), xs)).to(xs)


@twin("component_of_pair", "the components are swapped")
def component_swapped(a: Ex, b: Ex):
    yield rewrite(component(i64(0), make_pair(a, b))).to(b)
    yield rewrite(component(i64(1), make_pair(a, b))).to(a)


@twin("apply_pattern", "transpose and join do nothing, split splits by one more")
def apply_pattern_off_by_one(n: i64, t: Ty, f: Fn, op: Op, z: Ex, x: Ex):
    yield rewrite(app(Fn.join(t), x)).to(x)
    yield rewrite(app(Fn.transpose(t), x)).to(x)
    yield rewrite(app(Fn.split(n, t), x)).to(split(n + 1, x))
    yield rewrite(app(Fn.map(n, f), x)).to(x)


@twin("eta", "v may be free in the function", Generator(named_pattern("map")))
def eta_captures(f: Fn, n: i64, t: Ty, v: V):
    yield rewrite(Fn.lam(P.var(v), map_(f, Ex(v)))).to(Fn.map(n, f), eq(Ty.arr(n, t)).to(vty(v)))


@twin("eta", "v may be free in z", Generator(named_pattern("reduce")))
def eta_captures_start(op: Op, z: Ex, t: Ty, v: V):
    yield rewrite(Fn.lam(P.var(v), reduce_(op, z, Ex(v)))).to(Fn.reduce(op, z, t), eq(t).to(vty(v)))


@twin("eta", "v may be free in the operator", Generator(named_pattern("reduce")))
def eta_captures_in_operator(f: Fn, z: Ex, t: Ty, v: V):
    op = Op.fn(f)
    yield rewrite(Fn.lam(P.var(v), reduce_(op, z, Ex(v)))).to(
        Fn.reduce(op, z, t), eq(t).to(vty(v)), fv(z).not_contains(v)
    )
