"""Matrix multiplication in register blocks, with or without tiles in local memory; ``A`` is stored by columns, as
CLBlast's kernels want it.
"""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from dataclasses import asdict, dataclass

from lift_egraph.language import build, ir

from .row import map_vectors, repeated


@dataclass(frozen=True)
class Blocks:
    """A group of `items_m` times `items_n` work-items computes a tile of the result, in steps of `depth`.

    Each work-item has `lines` rows and `vectors` vectors of `width` columns; it reads its rows of A in vectors of
    `line_width`.
    """

    items_m: int
    items_n: int
    lines: int
    vectors: int
    width: int
    depth: int
    line_width: int

    @property
    def tile_m(self) -> int:
        """The rows of a tile of the result."""
        return self.items_m * self.lines

    @property
    def tile_n(self) -> int:
        """The columns of a tile of the result."""
        return self.items_n * self.vectors * self.width

    @property
    def defines(self) -> dict[str, int | float | str]:
        """The same for the hand-written text."""
        return {name.upper(): value for name, value in asdict(self).items()}


def vectors_of(width: int, xs: ir.Expr) -> ir.Expr:
    """The array in vectors; itself for a width of 1."""
    return build.as_vector(width, xs) if width > 1 else xs


def scalars_of(width: int, xs: ir.Expr) -> ir.Expr:
    """The way back."""
    return build.as_scalar(xs) if width > 1 else xs


def shares(items: int, width: int, rows: ir.Expr) -> ir.Expr:
    """Each work-item's vectors of some rows, those of neighbours next to each other: ``[[[vector]count]rows]items``."""
    return build.transpose(build.map_(lambda row: build.transpose(build.split(items, vectors_of(width, row))), rows))


def of_items(blocks: Blocks, a_lines: ir.Expr, b_lines: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """What each work-item reads of A, and of B."""
    return shares(blocks.items_m, blocks.line_width, a_lines), shares(blocks.items_n, blocks.width, b_lines)


def staged(blocks: Blocks, width: int, tile: ir.Expr, columns: int) -> ir.Expr:
    """A tile copied to local memory, in vectors, by all work-items: neighbours copy neighbours."""
    parts = build.split(blocks.items_m, build.split(blocks.items_n, build.as_vector(width, build.join(tile))))
    copied = build.to_local(
        build.map_seq(lambda part: build.map_lcl(1, lambda line: build.map_lcl(0, build.id_, line), part), parts)
    )
    return build.split(columns, build.as_scalar(build.join(build.join(copied))))


def accumulate(blocks: Blocks, block: ir.Expr, of_a: ir.Expr, of_b: ir.Expr) -> ir.Expr:
    """The outer products of a work-item's rows and columns, added to its block: ``[[vector]vectors]lines``."""

    def step(sums: ir.Expr, lines: ir.Expr, columns: ir.Expr) -> ir.Expr:
        def update(a_held: ir.Expr, b_held: ir.Expr) -> ir.Expr:
            return build.map_seq(
                lambda line, a: map_vectors(blocks.width, lambda c, b: c + a * b, build.zip_(line, b_held)),
                build.zip_(sums, scalars_of(blocks.line_width, a_held)),
            )

        def with_columns(a_held: ir.Expr) -> ir.Expr:
            return build.let(build.to_private(build.map_seq(build.id_, columns)), lambda b_held: update(a_held, b_held))

        if blocks.line_width == 1:  # each is read once: a register is found without asking
            return with_columns(lines)
        return build.let(build.to_private(build.map_seq(build.id_, lines)), with_columns)

    return build.reduce_seq(step, block, build.zip_(of_a, of_b))


def in_rows(blocks: Blocks, parts: ir.Expr) -> ir.Expr:
    """A tile of the result from the blocks of its work-items: ``[[[[vector]vectors]lines]items_n]items_m``."""

    def line(of_items: ir.Expr) -> ir.Expr:
        return build.as_scalar(build.join(build.transpose(of_items)))

    lines = build.map_(lambda of_item: build.map_(line, build.transpose(of_item)), parts)
    return build.join(build.join(build.transpose(build.map_(build.split(blocks.line_width), lines))))


def zero_block(blocks: Blocks) -> ir.Expr:
    """Where a work-item's sums start."""
    return build.fill(blocks.lines, build.fill(blocks.vectors, repeated(blocks.width, 0.0)))


def tiled(matrix: ir.Expr, rows: int, columns: int) -> ir.Expr:
    """A matrix of rows in tiles: ``[[[[..]columns]rows]]`` by blocks of columns, then of rows."""
    return build.map_(build.split(rows), build.transpose(build.map_(build.split(columns), matrix)))


def joined(tiles: ir.Expr) -> ir.Expr:
    """The matrix of tiles."""
    return build.join(build.map_(lambda row: build.map_(build.join, build.transpose(row)), tiles))


def in_local_memory(blocks: Blocks) -> ir.Program:
    """Tiles in local memory, then register blocks."""

    @build.program
    def mm(A: "[[f32]M]K", B: "[[f32]N]K"):
        def step(sums: ir.Expr, a_tile: ir.Expr, b_tile: ir.Expr) -> ir.Expr:
            def by_items(a_local: ir.Expr, b_local: ir.Expr) -> ir.Expr:
                of_lines, of_columns = of_items(blocks, a_local, b_local)
                return build.map_lcl(
                    1,
                    lambda line, of_a: build.map_lcl(
                        0, lambda block, of_b: accumulate(blocks, block, of_a, of_b), build.zip_(line, of_columns)
                    ),
                    build.zip_(sums, of_lines),
                )

            return build.let(
                staged(blocks, blocks.width, a_tile, blocks.tile_m),
                lambda a_local: build.let(
                    staged(blocks, blocks.width, b_tile, blocks.tile_n), lambda b_local: by_items(a_local, b_local)
                ),
            )

        def tile(a_tiles: ir.Expr, b_tiles: ir.Expr) -> ir.Expr:
            start = build.fill(blocks.items_m, build.fill(blocks.items_n, zero_block(blocks)))
            sums = build.reduce_seq(step, start, build.zip_(a_tiles, b_tiles))
            stored = build.map_lcl(
                1,
                lambda line: build.map_lcl(0, lambda block: build.map_seq(build.map_seq(build.id_), block), line),
                sums,
            )
            return in_rows(blocks, stored)

        a_tiles, b_tiles = tiled(A, blocks.depth, blocks.tile_m), tiled(B, blocks.depth, blocks.tile_n)
        return joined(build.map_wrg(1, lambda a: build.map_wrg(0, lambda b: tile(a, b), b_tiles), a_tiles))

    return mm


def in_registers(blocks: Blocks) -> ir.Program:
    """Register blocks read from global memory."""

    @build.program
    def mm(A: "[[f32]M]K", B: "[[f32]N]K"):
        def tile(a_lines: ir.Expr, b_lines: ir.Expr) -> ir.Expr:
            of_lines, of_columns = of_items(blocks, a_lines, b_lines)

            def block(of_a: ir.Expr, of_b: ir.Expr) -> ir.Expr:
                return build.map_seq(build.map_seq(build.id_), accumulate(blocks, zero_block(blocks), of_a, of_b))

            return in_rows(
                blocks,
                build.map_lcl(1, lambda of_a: build.map_lcl(0, lambda of_b: block(of_a, of_b), of_columns), of_lines),
            )

        a_blocks, b_blocks = (
            build.transpose(build.map_(build.split(size), matrix))
            for size, matrix in ((blocks.tile_m, A), (blocks.tile_n, B))
        )
        return joined(build.map_wrg(1, lambda a: build.map_wrg(0, lambda b: tile(a, b), b_blocks), a_blocks))

    return mm
