"""Copies that prepare data for a loop: arrays repacked in global memory, results of a block kept in registers."""

from __future__ import annotations

from egglog import eq, i64, rewrite

from lift_egraph.rule import rule
from lift_egraph.sorts import (
    EMPTY,
    Ex,
    Fn,
    P,
    Ty,
    V,
    fv,
    map_,
    map_level,
    reduce_seq,
    scalar_like,
    split,
    to_memory,
    ty,
)


@rule(
    "split n xss = map transpose (toGlobal (map (map (map id)) (map transpose (split n xss)))),  xss closed",
    source="new: array packing of 'Guided equality saturation', POPL 2024",
    phase="memory",
)
def pack_blocks(xss: Ex, n: i64, m: i64, k: i64, t: Ty):
    element = V("$element", t)
    copy = Fn.map(k, Fn.map(n, Fn.lam(P.var(element), Ex(element))))
    packed = to_memory("global", map_(copy, map_(Fn.transpose(Ty.arr(n, Ty.arr(k, t))), split(n, xss))))
    yield rewrite(split(n, xss)).to(
        map_(Fn.transpose(Ty.arr(k, Ty.arr(n, t))), packed),
        eq(Ty.arr(m, Ty.arr(k, t))).to(ty(xss)),
        scalar_like(t),
        eq(fv(xss)).to(EMPTY),
        n > 1,
    )


@rule(
    "reduceSeq f z xs = mapSeq (mapSeq id) (toPrivate (reduceSeq f z xs)),  z a matrix",
    source="new: cache blocks of 'Guided equality saturation', POPL 2024",
    phase="memory",
)
def keep_block_in_private(f: Fn, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    element, row = V("$element", t), V("$row", Ty.arr(n, t))
    copy_row = map_level("seq", 0, Fn.lam(P.var(element), Ex(element)), Ex(row))
    yield rewrite(reduce_seq(f, z, xs)).to(
        map_level("seq", 0, Fn.lam(P.var(row), copy_row), to_memory("private", reduce_seq(f, z, xs))),
        eq(Ty.arr(m, Ty.arr(n, t))).to(ty(z)),
        scalar_like(t),
    )


packing_rules = (pack_blocks, keep_block_in_private)
