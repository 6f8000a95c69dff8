"""The partial dot product of Listing 2.4 (Listing 4.5): one number for each chunk of 128.

The listing adds neighbours; here each half of an array is added to the other, so that neighbouring work-items
read neighbouring elements: a ``gather`` before each ``split(2)``.
"""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from lift_egraph.language import build, ir

from .row import ByHand, HandKernel, Row, Sizes, halves

CHUNK = 128  # elements of a group: 2 to the power of 6 + 1
STEPS = 6


def term(dialect: str) -> ir.Program:
    """The listing, with the halves of an array in pairs."""

    def one(value: ir.Expr) -> ir.Expr:
        return build.to_local(build.map_seq(build.id_, build.fill(1, value)))

    @build.program
    def partial_dot(x: "[f32]N", y: "[f32]N"):
        def group(chunk):
            products = build.join(
                build.map_lcl(
                    0, lambda pairs: one(build.reduce_seq(lambda acc, a, b: acc + a * b, 0.0, pairs)), halves(chunk)
                )
            )
            summed = build.iterate(
                STEPS,
                lambda sums: build.join(
                    build.map_lcl(0, lambda pair: one(build.reduce_seq(build.add, 0.0, pair)), halves(sums))
                ),
                products,
            )
            return build.join(build.to_global(build.map_lcl(0, build.map_seq(build.id_), build.split(1, summed))))

        return build.join(build.map_wrg(0, group, build.split(CHUNK, build.zip_(x, y))))

    return partial_dot


def plain(dialect: str) -> ir.Program:
    """The sum of the products of each chunk."""

    @build.program
    def partial_dot(x: "[f32]N", y: "[f32]N"):
        def total(pairs):
            return build.reduce_(build.add, 0.0, build.map_(build.mul, pairs))

        return build.map_(total, build.split(CHUNK, build.zip_(x, y)))

    return partial_dot


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    """A tree of sums in local memory, in place."""
    kernel = HandKernel("partial_dot", ("x", "y", "result"), (sizes["N"] // 2,), (CHUNK // 2,), 4 * CHUNK // 2)
    defines = {"ITEM": "get_local_id(0)" if dialect == "pocl" else "item"}
    return ByHand("partial_dot.cl", (kernel,), defines)


ROW = Row(
    "partial_dot",
    "Partial dot product",
    "000, Listing 2.4",
    ("local memory", "coalescing", "1D"),
    {"small": {"N": 1 << 22}, "large": {"N": 1 << 26}, "large_cpu": {"N": 1 << 24}, "check": {"N": 1 << 12}},
    term,
    plain,
    by_hand,
)
