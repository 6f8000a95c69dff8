"""Wrong versions of the rules that copy arrays, as one might write them by mistake."""

from __future__ import annotations

from egglog import eq, i64, rewrite

from lift_egraph.egraph.sorts import Ex, Fn, P, Ty, V, map_, map_level, reduce_seq, split, to_memory, transpose, ty
from lift_egraph.rules.packing import packed
from tests.rules.planting import Planted

twins = Planted()


@twins.plant("pack_transposed", "the copy is packed in the order of the original")
def packed_in_order(xss: Ex, m: i64, t: Ty):
    yield rewrite(transpose(xss)).to(packed(xss, m, t), eq(Ty.arr(m, Ty.arr(m, t))).to(ty(xss)))


@twins.plant("pack_chunks", "the chunks are packed in columns")
def packed_in_columns(xs: Ex, k: i64, m: i64, t: Ty):
    yield rewrite(split(k, xs)).to(packed(transpose(split(k, xs)), k, t), eq(Ty.arr(m, t)).to(ty(xs)), eq(m).to(k * k))


@twins.plant("pack_blocks", "the packed blocks = the blocks, though transposed")
def packed_blocks_stay_transposed(xss: Ex, n: i64, m: i64, k: i64, t: Ty):
    chunks = map_(Fn.transpose(Ty.arr(n, Ty.arr(k, t))), split(n, xss))
    yield rewrite(split(n, xss)).to(to_memory("global", chunks), eq(Ty.arr(m, Ty.arr(k, t))).to(ty(xss)))


@twins.plant("keep_block_in_private", "the copy of a square block = the block, though transposed")
def the_copy_is_transposed(f: Fn, z: Ex, xs: Ex, n: i64, t: Ty):
    element, row = V("$element", t), V("$row", Ty.arr(n, t))
    copy_row = map_level("seq", i64(0), Fn.lam(P.var(element), Ex(element)), Ex(row))
    yield rewrite(reduce_seq(f, z, xs)).to(
        map_level("seq", i64(0), Fn.lam(P.var(row), copy_row), to_memory("private", transpose(reduce_seq(f, z, xs)))),
        eq(Ty.arr(n, Ty.arr(n, t))).to(ty(z)),
    )
