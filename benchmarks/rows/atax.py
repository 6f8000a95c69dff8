"""ATAX: a matrix and its transpose times a vector, ``A'(A x)``, in two kernels."""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from lift_egraph.language import ir
from lift_egraph.language.build import add, id_, join, let, map_, map_lcl, mul, program, reduce_, transpose, zip_

from .matrix_vector import Shape, columns, groups, row_shape, row_sums, tree
from .row import ByHand, HandKernel, Row, Sizes, on_gpu


def column_shape(dialect: str) -> Shape:
    """Work-items of a column, columns, and rows of each work-item in a staged chunk."""
    return Shape(32, 32, 4) if on_gpu(dialect) else Shape(8, 64, 8)


def term(dialect: str) -> ir.Program:
    """Rows, then columns in groups; the vectors are staged in local memory."""
    rows, deep = row_shape(dialect), column_shape(dialect)

    @program
    def atax(A: "[[f32]K]M", x: "[f32]K"):
        def block(own):
            sums = row_sums(rows, lambda a, b: a * b, own, x)
            return join(map_lcl(1, lambda mine: map_lcl(0, id_, tree(rows, mine)), sums))

        return let(groups(rows, block, A), lambda between: columns(deep, A, between))

    return atax


def plain(dialect: str) -> ir.Program:
    """The rows times the vector, then the columns times that."""

    @program
    def atax(A: "[[f32]K]M", x: "[f32]K"):
        def products(rows, vector):
            return map_(lambda row: reduce_(add, 0.0, map_(mul, zip_(row, vector))), rows)

        return let(products(A, x), lambda between: products(transpose(A), between))

    return atax


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    rows, deep = row_shape(dialect), column_shape(dialect)
    kernels = (
        HandKernel("product", ("A", "x", "between"), (rows.lanes, sizes["M"]), (rows.lanes, rows.rows)),
        HandKernel("transposed", ("A", "between", "result"), (sizes["K"], deep.rows), (deep.lanes, deep.rows)),
    )
    defines = {**rows.defines, "COLUMNS": deep.lanes, "DEPTH": deep.rows, "STRIDES": deep.steps, **sizes}
    temporaries = {"between": sizes["M"]}
    return ByHand("atax.cl", kernels, defines, temporaries)


ROW = Row(
    "atax",
    "ATAX",
    "CLBlast",
    ("local memory", "coalescing"),
    {"small": {"M": 4096, "K": 4096}, "large": {"M": 8192, "K": 8192}, "check": {"M": 128, "K": 1024}},
    term,
    plain,
    by_hand,
)
