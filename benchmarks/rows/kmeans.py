"""The nearest of some centres for each point; the points' features lie feature by feature."""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from typing import Any

from lift_egraph.language import build as b, ir

from .row import ByHand, Row, Sizes, in_vectors, on_gpu, one_kernel, repeated

WIDTH = 16  # points in a vector, on a CPU
CHUNK = 800  # points of a work-item, on a CPU
FAR = 3.4e38


def nearer(best: Any, d: Any, number: Any) -> Any:
    """The better of two pairs of a distance and a number."""
    return b.let(
        b.lt(d, b.get(0, best)),
        lambda is_nearer: (b.select(is_nearer, d, b.get(0, best)), b.select(is_nearer, number, b.get(1, best))),
    )


def nearest(point: Any, centres: Any, width: int) -> Any:
    """The number of the centre that is nearest to a point (or to each of a vector of points)."""

    def distance(centre):
        return b.reduce_seq(
            lambda total, pc: b.let(b.get(0, pc) - b.get(1, pc), lambda d: total + d * d),
            repeated(width, 0.0),
            b.zip_(point, centre),
        )

    def step(best, centre):
        return b.let(distance(b.get(0, centre)), lambda d: nearer(best, d, b.get(1, centre)))

    none = repeated(width, 0)
    found = b.reduce_seq(step, (repeated(width, FAR), none), b.zip_(centres, b.generate("C", b.id_)))
    return b.let(found, lambda best: b.get(1, best))


def term(dialect: str) -> ir.Program:
    """A point a work-item; on a CPU a chunk of them, in vectors."""

    @b.program
    def kmeans(features: "[[f32]N]F", centres: "[[f32]F]C"):
        points = b.transpose(features)
        if on_gpu(dialect):
            return b.map_glb(0, lambda point: nearest(point, centres, 1), points)
        return in_vectors(WIDTH, CHUNK, lambda point: nearest(point, centres, WIDTH), points)

    return kmeans


def plain(dialect: str) -> ir.Program:
    """For each point a fold over the centres, and for each of these a sum over the features."""

    @b.program
    def kmeans(features: "[[f32]N]F", centres: "[[f32]F]C"):
        def square(of_point, of_centre):
            return b.let(of_point - of_centre, lambda d: d * d)

        def number(point):
            def step(best, centre):
                distance = b.reduce_(b.add, 0.0, b.map_(square, b.zip_(point, b.get(0, centre))))
                return b.let(distance, lambda d: nearer(best, d, b.get(1, centre)))

            found = b.reduce_seq(step, (FAR, 0), b.zip_(centres, b.generate("C", b.id_)))
            return b.let(found, lambda best: b.get(1, best))

        return b.map_(number, b.transpose(features))

    return kmeans


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    defines = {"FEATURES": sizes["F"], "CENTRES": sizes["C"]}
    return one_kernel(dialect, "kmeans", ("features", "centres", "result"), sizes["N"], CHUNK, defines)


ROW = Row(
    "kmeans",
    "K-Means",
    "Rodinia",
    ("coalescing",),
    {
        "small": {"N": 200_000, "F": 34, "C": 5},
        "large": {"N": 800_000, "F": 34, "C": 5},
        "check": {"N": 3 * CHUNK, "F": 7, "C": 5},
    },
    term,
    plain,
    by_hand,
)
