"""Matrix-vector products: GEMV, and GESUMMV and ATAX, which are made of them.

Rows (`row_sums`): a group takes some rows. The work-items of a row read neighbouring elements (coalesced) and keep
one sum each; the vector's chunk is staged in local memory for all rows; a tree in local memory ends each row.

Columns (`column_sums`): a work-item takes a column, so that neighbours read neighbouring elements of each row;
chunks of the vector are staged in local memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lift_egraph.language import build as b, ir

from .row import halves, on_gpu


@dataclass(frozen=True)
class Shape:
    """A group of `rows` times `lanes` work-items; each reads `steps` elements of its row from a staged chunk."""

    rows: int
    lanes: int
    steps: int

    @property
    def chunk(self) -> int:
        """The elements of the vector that are staged at once."""
        return self.lanes * self.steps

    @property
    def defines(self) -> dict[str, int | float | str]:
        """The same for the hand-written text."""
        return {"ROWS": self.rows, "LANES": self.lanes, "STEPS": self.steps}


def row_shape(dialect: str) -> Shape:
    """A warp per row on a GPU."""
    return Shape(8, 32, 8) if on_gpu(dialect) else Shape(16, 16, 8)


def copied(rows: ir.Expr) -> ir.Expr:
    """A copy of some rows, by all work-items of a group."""
    return b.map_lcl(1, lambda row: b.map_lcl(0, b.id_, row), rows)


def row_sums(shape: Shape, product: Any, rows: ir.Expr, x: ir.Expr) -> ir.Expr:
    """Each work-item's sum of ``product(element, of_x)`` in its row of a block: ``[[f32]lanes]rows``."""

    def lanes(xs: ir.Expr) -> ir.Expr:
        return b.transpose(b.split(shape.lanes, xs))

    def step(sums: ir.Expr, pieces: ir.Expr, piece: ir.Expr) -> ir.Expr:
        def row_step(row_of_sums: ir.Expr, row: ir.Expr, staged: ir.Expr) -> ir.Expr:
            return b.map_lcl(
                0,
                lambda start, mine, of_x: b.reduce_seq(
                    lambda acc, u, v: acc + product(u, v), start, b.zip_(mine, of_x)
                ),
                b.zip_(row_of_sums, lanes(row), lanes(staged)),
            )

        return b.let(
            b.join(b.to_local(copied(b.split(shape.lanes, piece)))),
            lambda staged: b.map_lcl(1, lambda mine, row: row_step(mine, row, staged), b.zip_(sums, pieces)),
        )

    pieces = b.zip_(b.transpose(b.map_(b.split(shape.chunk), rows)), b.split(shape.chunk, x))
    return b.reduce_seq(step, b.fill(shape.rows, b.fill(shape.lanes, 0.0)), pieces)


def tree(shape: Shape, sums: ir.Expr) -> ir.Expr:
    """The sum of a row's work-items, in local memory: ``[f32]1``."""
    return b.iterate(
        shape.lanes.bit_length() - 1,
        lambda xs: b.map_lcl(0, lambda pair: b.to_local(b.reduce_seq(b.add, 0.0, pair)), halves(xs)),
        b.to_local(b.map_lcl(0, b.id_, sums)),
    )


def groups(shape: Shape, block: Any, rows: ir.Expr) -> ir.Expr:
    """``block`` for each block of rows, by a group: its results for the rows."""
    one = b.fill(1, 0)  # of dimension 0 there is one group
    return b.join(b.map_wrg(1, lambda own: b.join(b.map_wrg(0, lambda _: block(own), one)), b.split(shape.rows, rows)))


def columns(shape: Shape, matrix: ir.Expr, x: ir.Expr) -> ir.Expr:
    """The transposed matrix times a vector: a group takes `lanes` columns, with `rows` work-items each."""
    chunk = shape.rows * shape.steps

    def own_rows(pieces: ir.Expr) -> ir.Expr:
        return b.transpose(b.split(shape.rows, pieces))

    def step(sums: ir.Expr, lines: ir.Expr, piece: ir.Expr) -> ir.Expr:
        def row_step(row_of_sums: ir.Expr, mine: ir.Expr, of_x: ir.Expr) -> ir.Expr:
            return b.map_lcl(
                0,
                lambda start, column: b.reduce_seq(lambda acc, u, v: acc + u * v, start, b.zip_(column, of_x)),
                b.zip_(row_of_sums, b.transpose(mine)),
            )

        return b.let(
            b.join(b.to_local(copied(b.split(shape.steps, piece)))),
            lambda staged: b.map_lcl(1, row_step, b.zip_(sums, own_rows(lines), own_rows(staged))),
        )

    def add_lines(lines: ir.Expr) -> ir.Expr:
        return b.map_lcl(
            1,
            lambda pair: b.map_lcl(0, lambda column: b.to_local(b.reduce_seq(b.add, 0.0, column)), b.transpose(pair)),
            halves(lines),
        )

    def block(own: ir.Expr) -> ir.Expr:
        start = b.fill(shape.rows, b.fill(shape.lanes, 0.0))
        sums = b.reduce_seq(step, start, b.zip_(b.split(chunk, b.transpose(own)), b.split(chunk, x)))
        held = b.to_local(copied(sums))
        total = b.iterate(shape.rows.bit_length() - 1, add_lines, held)
        return b.join(copied(total))

    one = b.fill(1, 0)  # of dimension 1 there is one group
    blocks = b.split(shape.lanes, b.transpose(matrix))
    return b.join(b.map_wrg(0, lambda own: b.join(b.map_wrg(1, lambda _: block(own), one)), blocks))
