"""GESUMMV: the weighted sum of two matrix-vector products, ``alpha A x + beta B x``."""

# ruff: noqa: F722, F821, UP037 - annotations are types of LIFT
from __future__ import annotations

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir
from lift_egraph.language.build import get, id_, join, map_, map_lcl, program, zip_
from lift_egraph.language.check import specialise

from .matrix_vector import groups, row_shape, row_sums, tree
from .row import HandKernel, Row, Sizes, plan_by_hand


def term(dialect: str, sizes: Sizes) -> ir.Program:
    """Rows in groups, of both matrices at once; the vector is staged in local memory."""
    shape = row_shape(dialect)

    @program
    def gesummv(A: "[[f32]K]M", B: "[[f32]K]M", x: "[f32]K", alpha: "f32", beta: "f32"):
        def block(rows):
            sums = row_sums(shape, lambda ab, of_x: (alpha * get(0, ab) + beta * get(1, ab)) * of_x, rows, x)
            return join(map_lcl(1, lambda mine: map_lcl(0, id_, tree(shape, mine)), sums))

        def in_pairs(of_a, of_b):
            return zip_(of_a, of_b)

        return groups(shape, block, map_(in_pairs, zip_(A, B)))

    return specialise(gesummv, sizes)


def by_hand(dialect: str, sizes: Sizes) -> Plan:
    """The same by hand."""
    shape = row_shape(dialect)
    arguments = ("A", "B", "x", "alpha", "beta", "result")
    kernel = HandKernel("gesummv", arguments, (shape.lanes, sizes["M"]), (shape.lanes, shape.rows))
    defines = {**shape.defines, "K": sizes["K"]}
    return plan_by_hand(term(dialect, sizes), dialect, "gesummv.cl", (kernel,), defines=defines)


ROW = Row(
    "gesummv",
    "GESUMMV",
    "CLBlast",
    ("local memory", "coalescing"),
    {"small": {"M": 4096, "K": 4096}, "large": {"M": 8192, "K": 8192}, "check": {"M": 64, "K": 1024}},
    term,
    by_hand,
)
