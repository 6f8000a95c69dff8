"""GEMV, ``alpha A x + beta y``, and GESUMMV, ``alpha A x + beta B x``: rows of matrices times a vector."""

# ruff: noqa: F722, F821, UP037 - annotations are types of LIFT
from __future__ import annotations

from collections.abc import Callable

from lift_egraph.language import ir
from lift_egraph.language.build import add, get, id_, join, map_, map_lcl, mul, program, reduce_, zip_

from .matrix_vector import groups, row_shape, row_sums, tree
from .row import ByHand, HandKernel, Row, Sizes


def gemv_term(dialect: str) -> ir.Program:
    """Rows in groups; the vector is staged in local memory."""
    shape = row_shape(dialect)

    @program
    def gemv(A: "[[f32]K]M", x: "[f32]K", y: "[f32]M", alpha: "f32", beta: "f32"):
        def block(rows):
            sums = row_sums(shape, lambda a, b: a * b, map_(get(0), rows), x)
            return join(
                map_lcl(
                    1,
                    lambda mine, old: map_lcl(0, lambda total: alpha * total + beta * old, tree(shape, mine)),
                    zip_(sums, map_(get(1), rows)),
                )
            )

        return groups(shape, block, zip_(A, y))

    return gemv


def gesummv_term(dialect: str) -> ir.Program:
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

    return gesummv


def gemv_plain(dialect: str) -> ir.Program:
    """For each row the sum of products, and what follows it."""

    @program
    def gemv(A: "[[f32]K]M", x: "[f32]K", y: "[f32]M", alpha: "f32", beta: "f32"):
        def line(own, old):
            return alpha * reduce_(add, 0.0, map_(mul, zip_(own, x))) + beta * old

        return map_(line, zip_(A, y))

    return gemv


def gesummv_plain(dialect: str) -> ir.Program:
    """For each row the sum of products with the weighted sum of both matrices."""

    @program
    def gesummv(A: "[[f32]K]M", B: "[[f32]K]M", x: "[f32]K", alpha: "f32", beta: "f32"):
        def product(of_a, of_b, of_x):
            return (alpha * of_a + beta * of_b) * of_x

        return map_(lambda own, other: reduce_(add, 0.0, map_(product, zip_(own, other, x))), zip_(A, B))

    return gesummv


def row(name: str, term: Callable[[str], ir.Program], plain: Callable[[str], ir.Program], *arguments: str) -> Row:
    def by_hand(dialect: str, sizes: Sizes) -> ByHand:
        shape = row_shape(dialect)
        kernel = HandKernel(name, arguments, (shape.lanes, sizes["M"]), (shape.lanes, shape.rows))
        return ByHand(f"{name}.cl", (kernel,), {**shape.defines, "K": sizes["K"]})

    return Row(
        name,
        name.upper(),
        "CLBlast",
        ("local memory", "coalescing"),
        {"small": {"M": 4096, "K": 4096}, "large": {"M": 8192, "K": 8192}, "check": {"M": 64, "K": 1024}},
        term,
        plain,
        by_hand,
    )


GEMV = row("gemv", gemv_term, gemv_plain, "A", "x", "y", "alpha", "beta", "result")
GESUMMV = row("gesummv", gesummv_term, gesummv_plain, "A", "B", "x", "alpha", "beta", "result")
