"""Convolution: the separable filter of 17 taps of the NVIDIA SDK, along the rows and then along the columns.

Overlapping tiles lie in local memory: 4 rows of 128 elements with 8 more on each side, then 64 rows of 16 elements
with 8 more rows above and below. Outside the image is 0.
"""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.build import (
    constant,
    id_,
    join,
    let,
    map_,
    map_lcl,
    map_seq,
    map_wrg,
    pad,
    program,
    reduce_seq,
    slide,
    split,
    to_global,
    to_local,
    transpose,
    zip_,
)

from .row import ByHand, HandKernel, Row, Sizes

RADIUS = 8
TAPS = 2 * RADIUS + 1
ITEMS = 16  # work-items along a row, in both kernels
ROW_LINES, ROW_STEPS = 4, 8  # rows of a group in the first kernel, and elements of a work-item
COLUMN_LINES, COLUMN_STEPS = 8, 8  # work-items along a column in the second kernel, and elements of each


def in_tiles(block: Any, tiles: ir.Expr) -> ir.Expr:
    """A group for each tile, and the image of their results."""
    rows = map_wrg(1, lambda line: map_wrg(0, block, line), tiles)
    return join(map_(lambda row: map_(join, transpose(row)), rows))


def padded(rows: ir.Expr) -> ir.Expr:
    """Rows with zeros on both sides."""
    return map_(pad(RADIUS, RADIUS, constant(0.0)), rows)


def term(dialect: str) -> ir.Program:
    """Two kernels."""

    @program
    def convolution(image: "[[f32]W]H", weights: "[f32]17"):
        def filtered(window: ir.Expr) -> ir.Expr:
            return reduce_seq(lambda acc, pixel, weight: acc + pixel * weight, 0.0, zip_(window, weights))

        def along_rows(tile: ir.Expr) -> ir.Expr:
            def in_parts(function: Any, row: ir.Expr) -> ir.Expr:
                return join(map_seq(lambda part: map_lcl(0, function, part), split(ITEMS, row)))

            staged = to_local(map_lcl(1, lambda row: in_parts(id_, row), tile))
            return let(staged, lambda held: map_lcl(1, lambda row: in_parts(filtered, slide(TAPS, 1, row)), held))

        def along_columns(tile: ir.Expr) -> ir.Expr:
            def in_parts(function: Any, lines: ir.Expr) -> ir.Expr:
                by_items = lambda line: map_lcl(0, function, line)  # noqa: E731
                return join(map_seq(lambda part: map_lcl(1, by_items, part), split(COLUMN_LINES, lines)))

            def windows(lines: ir.Expr) -> ir.Expr:
                return transpose(map_(slide(TAPS, 1), transpose(lines)))

            return let(to_local(in_parts(id_, tile)), lambda held: in_parts(filtered, windows(held)))

        def row_tiles(rows: ir.Expr) -> ir.Expr:
            wide = ITEMS * ROW_STEPS
            return map_(transpose, split(ROW_LINES, map_(slide(wide + TAPS - 1, wide), padded(rows))))

        def column_tiles(rows: ir.Expr) -> ir.Expr:
            high = COLUMN_LINES * COLUMN_STEPS
            columns = map_(slide(high + TAPS - 1, high), padded(transpose(rows)))  # [W][H / high][high + 16]
            return map_(lambda line: map_(transpose, split(ITEMS, line)), transpose(columns))

        return let(
            to_global(in_tiles(along_rows, row_tiles(image))), lambda rows: in_tiles(along_columns, column_tiles(rows))
        )

    return convolution


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    """The same by hand."""
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
    by_hand,
)
