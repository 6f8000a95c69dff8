"""Low-level terms in the shapes that devices like, for the tests of code generation."""

# ruff: noqa: F722, F821, UP037 - annotations are types of LIFT
from __future__ import annotations

from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.build import (
    abs_,
    add,
    as_scalar,
    as_vector,
    at,
    fill,
    get,
    id_,
    iterate,
    join,
    let,
    map_,
    map_glb,
    map_lcl,
    map_seq,
    map_wrg,
    pad2d,
    program,
    reduce_seq,
    slide,
    split,
    to_global,
    to_local,
    to_private,
    transpose,
    zip_,
)
from lift_egraph.language.check import type_of
from lift_egraph.language.functions import to_function
from lift_egraph.language.types import without_lanes


def map_vectors(width: int, function: Any, xs: ir.Expr) -> ir.Expr:
    """``mapSeq(vectorize(width, f), xs)``; the elements may be arrays."""
    _, lane = without_lanes(type_of(xs).element)
    return map_seq(ir.Vectorize(width, to_function(function, lane, "vectorize")), xs)


def mm_naive() -> ir.Program:
    """One work-item per element."""

    @program
    def mm(A: "[[f32]K]M", B: "[[f32]N]K"):
        def element(row, col):
            return reduce_seq(lambda acc, ab: acc + ab_product(ab), 0.0, zip_(row, col))

        return map_glb(0, lambda row: map_glb(1, lambda col: element(row, col), transpose(B)), A)

    return mm


def ab_product(ab):
    return get(0, ab) * get(1, ab)


def mm_blocked(rows: int = 8, width: int = 16) -> ir.Program:
    """Register blocks of some rows by one vector of columns."""

    @program
    def mm(A: "[[f32]K]M", B: "[[f32]N]K"):
        def block(rowblk):
            def column(col):
                return reduce_seq(
                    lambda acc, ab: map_seq(lambda c, a: c + a * snd(ab), zip_(acc, fst(ab))),
                    fill(rows, 0.0),
                    zip_(transpose(rowblk), col),
                )

            return transpose(as_scalar(map_vectors(width, column, as_vector(width, transpose(B)))))

        return join(map_glb(0, block, split(rows, A)))

    return mm


def fst(pair):
    return get(0, pair)


def snd(pair):
    return get(1, pair)


def mm_tiled(tile: int = 16) -> ir.Program:
    """Square tiles in local memory; each work-item keeps one element in a register."""

    @program
    def mm(A: "[[f32]K]M", B: "[[f32]N]K"):
        def copied(block):
            return to_local(map_lcl(1, lambda row: map_lcl(0, id_, row), block))

        def step(acc, a_tile, b_tile):
            def row_of(acc_row, a_row, b_local):
                return map_lcl(
                    0,
                    lambda c, b_col: reduce_seq(lambda s, ab: s + ab_product(ab), c, zip_(a_row, b_col)),
                    zip_(acc_row, transpose(b_local)),
                )

            return let(
                copied(a_tile),
                lambda a_local: let(
                    copied(b_tile),
                    lambda b_local: map_lcl(
                        1, lambda acc_row, a_row: row_of(acc_row, a_row, b_local), zip_(acc, a_local)
                    ),
                ),
            )

        def tile_of(a_tiles, b_tiles):
            accumulated = reduce_seq(
                lambda acc, tiles: step(acc, fst(tiles), snd(tiles)),
                fill(tile, fill(tile, 0.0)),
                zip_(a_tiles, b_tiles),
            )
            return map_lcl(1, lambda row: map_lcl(0, id_, row), accumulated)

        a_blocks = map_(transpose, split(tile, map_(split(tile), A)))  # [M/t][K/t][t][t]
        b_blocks = transpose(map_(transpose, split(tile, map_(split(tile), B))))  # [N/t][K/t][t][t]
        rows = map_wrg(1, lambda a: map_wrg(0, lambda b: tile_of(a, b), b_blocks), a_blocks)
        return join(map_(lambda r: map_(join, transpose(r)), rows))

    return mm


def sum_chunk(f, width: int = 16):
    """The sum of f over a chunk, in vector lanes first."""

    def lanes(col):
        return reduce_seq(lambda acc, x: acc + f(x), 0.0, col)

    def whole(chunk):
        return reduce_seq(
            add, 0.0, as_scalar(map_vectors(width, lanes, as_vector(width, transpose(split(width, chunk)))))
        )

    return whole


def dot(chunk: int = 65536, width: int = 16) -> ir.Program:
    """Contiguous chunks, then one work-item for the partial sums."""

    @program
    def dot(xs: "[f32]N", ys: "[f32]N"):
        return reduce_seq(add, 0.0, map_glb(0, sum_chunk(ab_product, width), split(chunk, zip_(xs, ys))))

    return dot


def asum(chunk: int = 65536, width: int = 16) -> ir.Program:
    """The same with absolute values."""

    @program
    def asum(xs: "[f32]N"):
        return reduce_seq(add, 0.0, map_glb(0, sum_chunk(abs_, width), split(chunk, xs)))

    return asum


def scal(chunk: int = 65536, width: int = 16) -> ir.Program:
    """A scaled vector, in chunks."""

    @program
    def scal(alpha: "f32", xs: "[f32]N"):
        def scaled(piece):
            return as_scalar(map_vectors(width, lambda x: alpha * x, as_vector(width, piece)))

        return join(map_glb(0, scaled, split(chunk, xs)))

    return scal


def gemv(width: int = 16) -> ir.Program:
    """A dot product per row, in vector lanes."""

    @program
    def gemv(A: "[[f32]K]M", x: "[f32]K"):
        return map_glb(0, lambda row: sum_chunk(ab_product, width)(zip_(row, x)), A)

    return gemv


def j2d5pt(rows: int = 16, width: int = 16) -> ir.Program:
    """A five-point stencil: blocks of rows, vectors along x, the edges clamped."""

    @program
    def j2d5pt(A: "[[f32]N]M"):
        def point(up, left, mid, right, down):
            return (up + left + mid + right + down) * 0.2

        def line(window):
            up, mid, down = at(0, window), at(1, window), at(2, window)
            vectors = as_vector(
                width,
                zip_(
                    map_(at(1), slide(3, 1, up)),
                    map_(at(0), slide(3, 1, mid)),
                    map_(at(1), slide(3, 1, mid)),
                    map_(at(2), slide(3, 1, mid)),
                    map_(at(1), slide(3, 1, down)),
                ),
            )
            return as_scalar(map_vectors(width, point, vectors))

        windows = slide(3, 1, pad2d(1, 1, "clamp", A))
        return join(map_glb(0, lambda block: map_seq(line, block), split(rows, windows)))

    return j2d5pt


def partial_dot(group: int = 128, times: int = 6) -> ir.Program:
    """Listing 4.5: products, then a tree of sums in local memory."""

    @program
    def partialDot(xs: "[f32]N", ys: "[f32]N"):
        def work_group(chunk):
            products = join(
                map_lcl(
                    0,
                    lambda pairs: to_local(
                        map_seq(id_, fill(1, reduce_seq(lambda acc, ab: acc + ab_product(ab), 0.0, pairs)))
                    ),
                    split(2, chunk),
                )
            )
            summed = iterate(
                times,
                lambda values: join(
                    map_lcl(
                        0,
                        lambda pair: to_local(map_seq(id_, fill(1, reduce_seq(add, 0.0, pair)))),
                        split(2, values),
                    )
                ),
                products,
            )
            return join(to_global(map_lcl(0, map_seq(id_), split(1, summed))))

        return join(map_wrg(0, work_group, split(group, zip_(xs, ys))))

    return partialDot


def prefetched(width: int = 4) -> ir.Program:
    """Each element copied to registers before it is used twice."""

    @program
    def squares(xs: "[f32]N"):
        def square(piece):
            return let(to_private(map_seq(id_, piece)), lambda held: map_seq(lambda a, b: a * b, zip_(held, held)))

        return join(map_glb(0, square, split(width, xs)))

    return squares
