"""Wrong versions of the lowering and simplification rules, as one might write them by mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import egglog
from egglog import String, eq, i64, rewrite

from lift_egraph.egraph.sorts import (
    ACCUMULATOR,
    LANE,
    Ex,
    Fn,
    Op,
    P,
    Ty,
    V,
    app,
    as_scalar,
    as_vector,
    bvs,
    call2,
    combine,
    component,
    fresh,
    fv,
    gather,
    join,
    lane_width,
    make_pair,
    map_,
    map_level,
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
from lift_egraph.rules.opencl_memory import stage_local, stage_private
from tests.rules.planting import REVERSED, Planted

twins = Planted()


# --- reduction to loops


@twins.plant("reduce_map_to_seq", "acc may be free in b")
def map_to_loop_captures(op: Op, z: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, b), xs))).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), z, xs), eq(t).to(ty(b))
    )


@twins.plant("reduce_map_to_seq", "p may be free in the operator")
def map_to_loop_captures_in_operator(op: Op, z: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, b), xs))).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), z, xs), eq(t).to(ty(b)), fresh(acc, b)
    )


@twins.plant("reduce_map_to_seq", "the accumulator stands on the right")
def map_to_loop_swapped(op: Op, z: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(ACCUMULATOR, t)
    yield rewrite(reduce_(op, z, map_(Fn.lam(p, b), xs))).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), p), combine(op, b, Ex(acc))), z, xs), eq(t).to(ty(b)), fresh(acc, b)
    )


@twins.plant("reduce_to_seq", "from right to left")
def reduce_to_seq_backwards(op: Op, z: Ex, xs: Ex, t: Ty, m: i64):
    acc, x = V(ACCUMULATOR, t), V("$x", t)
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_seq(Fn.lam(P.pair(P.var(acc), P.var(x)), combine(op, Ex(x), Ex(acc))), z, xs),
        eq(Ty.arr(m, t)).to(ty(xs)),
    )


@twins.plant("split_reduce_seq", "every chunk starts from z")
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


@twins.plant("split_reduce_seq", "acc may be free in the operator")
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


@twins.plant("reduce_seq_fusion", "q may be free in b")
def loop_fusion_captures(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex):
    yield rewrite(reduce_seq(Fn.lam(P.pair(a, p), b), z, map_(Fn.lam(q, c), xs))).to(
        reduce_seq(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, xs), eq(fv(c) - bvs(a)).to(fv(c))
    )


@twins.plant("reduce_seq_fusion", "acc may be free in c")
def loop_fusion_captures_accumulator(a: P, p: P, q: P, b: Ex, c: Ex, z: Ex, xs: Ex):
    yield rewrite(reduce_seq(Fn.lam(P.pair(a, p), b), z, map_(Fn.lam(q, c), xs))).to(
        reduce_seq(Fn.lam(P.pair(a, q), app(Fn.lam(p, b), c)), z, xs), eq(fv(b) - bvs(q)).to(fv(b))
    )


@twins.plant("combine_scalars", "every operator is an addition")
def combine_adds(a: Ex, b: Ex, s: String):
    yield rewrite(combine(Op.scalar(s), a, b)).to(call2("add", a, b))


@twins.plant("combine_by_function", "the arguments are swapped")
def combine_swaps(a: Ex, b: Ex, f: Fn):
    yield rewrite(combine(Op.fn(f), a, b)).to(app(f, make_pair(b, a)))


@twins.plant("combine_lifted_with_map", "c may be free in b")
def combine_lifted_captures(op: Op, a: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(LANE, t)
    yield rewrite(combine(op.lift(), a, map_(Fn.lam(p, b), xs))).to(
        map_(Fn.lam(P.pair(P.var(acc), p), combine(op, Ex(acc), b)), zip_(a, xs)), eq(t).to(ty(b))
    )


@twins.plant("combine_lifted_with_map", "the array is combined with itself")
def combine_lifted_forgets(op: Op, a: Ex, p: P, b: Ex, xs: Ex, t: Ty):
    acc = V(LANE, t)
    yield rewrite(combine(op.lift(), a, map_(Fn.lam(p, b), xs))).to(
        map_(Fn.lam(P.pair(P.var(acc), p), combine(op, b, b)), zip_(a, xs)), eq(t).to(ty(b)), fresh(acc, b)
    )


@twins.plant("combine_lifted", "the elements are combined in the other order")
def combine_lifted_swaps(op: Op, a: Ex, b: Ex, t: Ty, n: i64):
    x, y = V("$a", t), V("$b", t)
    yield rewrite(combine(op.lift(), a, b)).to(
        map_(Fn.lam(P.pair(P.var(x), P.var(y)), combine(op, Ex(y), Ex(x))), zip_(a, b)), eq(Ty.arr(n, t)).to(ty(a))
    )


# --- vectors, levels, memory ----------------------------------------------------------------------------


@twins.plant("vectorise_map", "w need not divide the length")
def vectorise_with_rest(p: P, b: Ex, xs: Ex, w: i64, n: i64, t: Ty, u: Ty):
    yield rewrite(map_(Fn.lam(p, b), xs)).to(
        as_scalar(map_(Fn.vec(w, Fn.lam(p, b)), as_vector(w, xs))),
        eq(Ty.arr(n, t)).to(ty(xs)),
        lane_width(w),
        scalar_like(t),
        eq(u).to(ty(b)),
        scalar_like(u),
    )


@twins.plant("vectorise_map", "the function is not vectorised")
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
    twins.plant(_name, "the elements are taken in the wrong order")(_body)


def _copy(space: str, kind: str, d: i64, t: Ty, value: Ex) -> Ex:
    item = V("$item", t)
    return to_memory(space, map_level(kind, d, Fn.lam(P.var(item), Ex(item)), value))


@twins.plant("stage_in_local", "the copy is reversed")
def stage_in_local_reversed(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    copy = _copy("local", "lcl", d, t, gather(REVERSED, Ex(v)))
    yield rewrite(map_level("wrg", d, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
        stage_local(v),
        eq(Ty.arr(n, t)).to(vty(v)),
    )


@twins.plant("stage_in_local", "v need not be an array")
def stage_in_local_of_any(v: V, b: Ex, xs: Ex, d: i64, t: Ty):
    copy = _copy("local", "lcl", d, t, Ex(v))
    yield rewrite(map_level("wrg", d, Fn.lam(P.var(v), b), xs)).to(
        map_level("wrg", d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs), stage_local(v), eq(t).to(vty(v))
    )


@twins.plant("stage_in_private", "the copy is reversed")
def stage_in_private_reversed(v: V, b: Ex, xs: Ex, d: i64, n: i64, t: Ty):
    copy = _copy("private", "seq", i64(0), t, gather(REVERSED, Ex(v)))
    for kind in ("glb", "lcl"):
        yield rewrite(map_level(kind, d, Fn.lam(P.var(v), b), xs)).to(
            map_level(kind, d, Fn.lam(P.var(v), app(Fn.lam(P.var(v), b), copy)), xs),
            stage_private(v),
            eq(Ty.arr(n, t)).to(vty(v)),
        )


# --- simplification -------------------------------------------------------------------------------------


@twins.plant("join_of_split", "a transposition between them is ignored")
def join_of_split_strided(n: i64, xs: Ex):
    yield rewrite(join(split(n, xs))).to(join(transpose(split(n, xs))))


@twins.plant("split_of_join", "the rows may have any length")
def split_of_join_any(n: i64, xs: Ex):
    yield rewrite(split(n, join(xs))).to(xs)


@twins.plant("as_scalar_of_as_vector", "the lanes are reversed")
def as_scalar_reversed(n: i64, xs: Ex):
    yield rewrite(as_scalar(as_vector(n, xs))).to(gather(REVERSED, xs))


@twins.plant("as_vector_of_as_scalar", "the vectors may have any number of lanes")
def as_vector_of_any(n: i64, xs: Ex):
    yield rewrite(as_vector(n, as_scalar(xs))).to(xs)


@twins.plant("transpose_of_transpose", "one transposition is dropped")
def transpose_once(xs: Ex):
    yield rewrite(transpose(transpose(xs))).to(transpose(xs))


@twins.plant("map_transpose_of_map_transpose", "one transposition is dropped")
def map_transpose_once(t: Ty, u: Ty, xs: Ex):
    yield rewrite(map_(Fn.transpose(t), map_(Fn.transpose(u), xs))).to(map_(Fn.transpose(u), xs))


@twins.plant("map_identity", "the body may be another variable")
def map_any_variable(v: V, w: V, xs: Ex):
    yield rewrite(map_(Fn.lam(P.var(v), Ex(w)), xs)).to(xs)


@twins.plant("component_of_pair", "the components are swapped")
def component_swapped(a: Ex, b: Ex):
    yield rewrite(component(i64(0), make_pair(a, b))).to(b)
    yield rewrite(component(i64(1), make_pair(a, b))).to(a)


@twins.plant("apply_pattern", "transpose and join do nothing, split splits by one more")
def apply_pattern_off_by_one(n: i64, t: Ty, f: Fn, op: Op, z: Ex, x: Ex):
    yield rewrite(app(Fn.join(t), x)).to(x)
    yield rewrite(app(Fn.transpose(t), x)).to(x)
    yield rewrite(app(Fn.split(n, t), x)).to(split(n + 1, x))
    yield rewrite(app(Fn.map(n, f), x)).to(x)


@twins.plant("eta", "v may be free in the function")
def eta_captures(f: Fn, n: i64, t: Ty, v: V):
    yield rewrite(Fn.lam(P.var(v), map_(f, Ex(v)))).to(Fn.map(n, f), eq(Ty.arr(n, t)).to(vty(v)))


@twins.plant("eta", "v may be free in z")
def eta_captures_start(op: Op, z: Ex, t: Ty, v: V):
    yield rewrite(Fn.lam(P.var(v), reduce_(op, z, Ex(v)))).to(Fn.reduce(op, z, t), eq(t).to(vty(v)))


@twins.plant("eta", "v may be free in the operator")
def eta_captures_in_operator(f: Fn, z: Ex, t: Ty, v: V):
    op = Op.fn(f)
    yield rewrite(Fn.lam(P.var(v), reduce_(op, z, Ex(v)))).to(
        Fn.reduce(op, z, t), eq(t).to(vty(v)), fv(z).not_contains(v)
    )
