"""Convolution: the separable filter of 17 taps of the NVIDIA SDK, along the rows and then along the columns.

Overlapping tiles lie in local memory: 4 rows of 128 elements with 8 more on each side, then 64 rows of 16 elements
with 8 more rows above and below. Outside the image is 0.
"""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from typing import Any

from lift_egraph.language import build as b, ir

from .row import ByHand, HandKernel, Row, Sizes

RADIUS = 8
TAPS = 2 * RADIUS + 1
ITEMS = 16  # work-items along a row, in both kernels
ROW_LINES, ROW_STEPS = 4, 8  # rows of a group in the first kernel, and elements of a work-item
COLUMN_LINES, COLUMN_STEPS = 8, 8  # work-items along a column in the second kernel, and elements of each


def in_tiles(block: Any, tiles: ir.Expr) -> ir.Expr:
    """A group for each tile, and the image of their results."""
    rows = b.map_wrg(1, lambda line: b.map_wrg(0, block, line), tiles)
    return b.join(b.map_(lambda row: b.map_(b.join, b.transpose(row)), rows))


def padded(rows: ir.Expr) -> ir.Expr:
    """Rows with zeros on both sides."""
    return b.map_(b.pad(RADIUS, RADIUS, b.constant(0.0)), rows)


def term(dialect: str) -> ir.Program:
    """Two kernels."""

    @b.program
    def convolution(image: "[[f32]W]H", weights: "[f32]17"):
        def filtered(window: ir.Expr) -> ir.Expr:
            return b.reduce_seq(lambda acc, pixel, weight: acc + pixel * weight, 0.0, b.zip_(window, weights))

        def along_rows(tile: ir.Expr) -> ir.Expr:
            def in_parts(function: Any, row: ir.Expr) -> ir.Expr:
                return b.join(b.map_seq(lambda part: b.map_lcl(0, function, part), b.split(ITEMS, row)))

            staged = b.to_local(b.map_lcl(1, lambda row: in_parts(b.id_, row), tile))
            return b.let(staged, lambda held: b.map_lcl(1, lambda row: in_parts(filtered, b.slide(TAPS, 1, row)), held))

        def along_columns(tile: ir.Expr) -> ir.Expr:
            def in_parts(function: Any, lines: ir.Expr) -> ir.Expr:
                by_items = lambda line: b.map_lcl(0, function, line)  # noqa: E731
                return b.join(b.map_seq(lambda part: b.map_lcl(1, by_items, part), b.split(COLUMN_LINES, lines)))

            def windows(lines: ir.Expr) -> ir.Expr:
                return b.transpose(b.map_(b.slide(TAPS, 1), b.transpose(lines)))

            return b.let(b.to_local(in_parts(b.id_, tile)), lambda held: in_parts(filtered, windows(held)))

        def row_tiles(rows: ir.Expr) -> ir.Expr:
            wide = ITEMS * ROW_STEPS
            return b.map_(b.transpose, b.split(ROW_LINES, b.map_(b.slide(wide + TAPS - 1, wide), padded(rows))))

        def column_tiles(rows: ir.Expr) -> ir.Expr:
            high = COLUMN_LINES * COLUMN_STEPS
            columns = b.map_(b.slide(high + TAPS - 1, high), padded(b.transpose(rows)))  # [W][H / high][high + 16]
            return b.map_(lambda line: b.map_(b.transpose, b.split(ITEMS, line)), b.transpose(columns))

        return b.let(
            b.to_global(in_tiles(along_rows, row_tiles(image))),
            lambda rows: in_tiles(along_columns, column_tiles(rows)),
        )

    return convolution


def plain(dialect: str) -> ir.Program:
    """Along the rows, then along the columns."""

    @b.program
    def convolution(image: "[[f32]W]H", weights: "[f32]17"):
        def filtered(window: ir.Expr) -> ir.Expr:
            return b.reduce_(b.add, 0.0, b.map_(b.mul, b.zip_(window, weights)))

        def along(rows: ir.Expr) -> ir.Expr:
            return b.map_(lambda row: b.map_(filtered, b.slide(TAPS, 1, row)), padded(rows))

        return b.let(along(image), lambda rows: b.transpose(along(b.transpose(rows))))

    return convolution


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    width, height = sizes["W"], sizes["H"]
    kernels = (
        HandKernel("rows", ("image", "weights", "between"), (width // ROW_STEPS, height), (ITEMS, ROW_LINES)),
        HandKernel("columns", ("between", "weights", "result"), (width, height // COLUMN_STEPS), (ITEMS, COLUMN_LINES)),
    )
    temporaries = {"between": width * height}
    return ByHand("convolution.cl", kernels, dict(sizes), temporaries)


ROW = Row(
    "convolution",
    "Convolution",
    "NVIDIA SDK",
    ("local memory", "coalescing", "2D"),
    {"small": {"W": 4096, "H": 4096}, "large": {"W": 8192, "H": 8192}, "check": {"W": 256, "H": 128}},
    term,
    plain,
    by_hand,
)
