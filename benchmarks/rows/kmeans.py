"""The nearest of some centres for each point; the points' features lie feature by feature."""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.build import (
    as_scalar,
    as_vector,
    generate,
    get,
    id_,
    join,
    let,
    lt,
    map_glb,
    map_seq,
    program,
    reduce_seq,
    select,
    split,
    transpose,
    zip_,
)

from .row import ByHand, Row, Sizes, on_gpu, one_kernel, repeated

WIDTH = 16  # points in a vector, on a CPU
CHUNK = 800  # points of a work-item, on a CPU
FAR = 3.4e38


def nearest(point: Any, centres: Any, width: int) -> Any:
    """The number of the centre that is nearest to a point (or to each of a vector of points)."""

    def distance(centre):
        return reduce_seq(
            lambda total, pc: let(get(0, pc) - get(1, pc), lambda d: total + d * d),
            repeated(width, 0.0),
            zip_(point, centre),
        )

    def step(best, centre):
        return let(distance(get(0, centre)), lambda d: nearer(best, d, get(1, centre)))

    def nearer(best, d, number):
        return let(
            lt(d, get(0, best)),
            lambda is_nearer: (select(is_nearer, d, get(0, best)), select(is_nearer, number, get(1, best))),
        )

    none = repeated(width, 0)
    found = reduce_seq(step, (repeated(width, FAR), none), zip_(centres, generate("C", id_)))
    return let(found, lambda best: get(1, best))


def term(dialect: str) -> ir.Program:
    """A point a work-item; on a CPU a chunk of them, in vectors."""

    @program
    def kmeans(features: "[[f32]N]F", centres: "[[f32]F]C"):
        points = transpose(features)
        if on_gpu(dialect):
            return map_glb(0, lambda point: nearest(point, centres, 1), points)
        return join(
            map_glb(
                0,
                lambda chunk: as_scalar(map_seq(lambda point: nearest(point, centres, WIDTH), as_vector(WIDTH, chunk))),
                split(CHUNK, points),
            )
        )

    return kmeans


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    """The same by hand."""
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
    by_hand,
)
