"""Reductions by sub-groups, whose work-items pass values to each other without memory.

Source: Luitjens, "Faster parallel reductions on Kepler", NVIDIA 2014.
"""

from __future__ import annotations

from lift_egraph.dsl import (
    ONE_CHUNK,
    Ex,
    Op,
    Ty,
    associative,
    at,
    chunked,
    eq,
    i64,
    neutral,
    reduce_,
    reduce_sub,
    rewrite,
    rule,
    tile,
    ty,
)

SOURCE = "reduction with shuffles: Luitjens"


@rule(
    "reduce ⊕ z xs = reduce ⊕ z (reduceSub n ⊕ z xs),  n | length, ⊕ associative, z neutral",
    source=SOURCE,
    phase="lowering",
    reassociates=True,
    notes={"n < m": ONE_CHUNK},
)
def reduce_by_sub_groups(op: Op, z: Ex, xs: Ex, n: i64, m: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        reduce_(op, z, reduce_sub(n, op, z, xs)),
        eq(Ty.arr(m, t)).to(ty(xs)),
        *chunked(m, n),
        associative(op),
        neutral(op, z),
    )


@rule(
    "reduce ⊕ z xs = at 0 (reduceSub n ⊕ z xs),  n = length, ⊕ associative",
    source=SOURCE,
    phase="lowering",
    reassociates=True,
    notes={"associative(op)": "kernels combine what neighbours have first, which is no part of the meaning"},
)
def reduce_by_one_sub_group(op: Op, z: Ex, xs: Ex, n: i64, t: Ty):
    yield rewrite(reduce_(op, z, xs)).to(
        at(0, reduce_sub(n, op, z, xs)), eq(Ty.arr(n, t)).to(ty(xs)), tile(n, n), associative(op)
    )


sub_group_rules = (reduce_by_sub_groups, reduce_by_one_sub_group)
