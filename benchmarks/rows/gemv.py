"""GEMV: a matrix times a vector, ``alpha A x + beta y``."""

from __future__ import annotations

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir

from .matrix_vector import gemv, row_shape
from .row import HandKernel, Row, Sizes, plan_by_hand


def term(dialect: str, sizes: Sizes) -> ir.Program:
    """Rows in groups; the vector is staged in local memory."""
    return gemv(dialect, sizes)


def by_hand(dialect: str, sizes: Sizes) -> Plan:
    """The same by hand."""
    shape = row_shape(dialect)
    arguments = ("A", "x", "y", "alpha", "beta", "result")
    kernel = HandKernel("gemv", arguments, (shape.lanes, sizes["M"]), (shape.lanes, shape.rows))
    defines = {**shape.defines, "K": sizes["K"]}
    return plan_by_hand(term(dialect, sizes), dialect, "gemv.cl", (kernel,), defines=defines)


ROW = Row(
    "gemv",
    "GEMV",
    "CLBlast",
    ("local memory", "coalescing"),
    {"small": {"M": 4096, "K": 4096}, "large": {"M": 8192, "K": 8192}, "check": {"M": 64, "K": 1024}},
    term,
    by_hand,
)
