"""The distance of each record (a latitude and a longitude) to one point."""

# ruff: noqa: F722, F821, UP037 - annotations are types of LIFT
from __future__ import annotations

from lift_egraph.language import ir
from lift_egraph.language.build import as_scalar, as_vector, join, map_, map_glb, program, split, sqrt

from .row import ByHand, Row, Sizes, map_vectors, on_gpu, one_kernel

CHUNK = 8192  # records of a work-item on a CPU
WIDTH = 16  # lanes on a CPU


def term(dialect: str) -> ir.Program:
    """One record a work-item on a GPU; on a CPU a chunk of them, in vectors."""

    @program
    def nn(records: "[(f32, f32)]N", lat: "f32", lng: "f32"):
        def distance(record_lat, record_lng):
            north, east = lat - record_lat, lng - record_lng
            return sqrt(north * north + east * east)

        if on_gpu(dialect):
            return map_glb(0, distance, records)
        return join(
            map_glb(
                0, lambda chunk: as_scalar(map_vectors(WIDTH, distance, as_vector(WIDTH, chunk))), split(CHUNK, records)
            )
        )

    return nn


def plain(dialect: str) -> ir.Program:
    """A map."""

    @program
    def nn(records: "[(f32, f32)]N", lat: "f32", lng: "f32"):
        def distance(record_lat, record_lng):
            north, east = lat - record_lat, lng - record_lng
            return sqrt(north * north + east * east)

        return map_(distance, records)

    return nn


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    return one_kernel(dialect, "nn", ("records_0", "records_1", "lat", "lng", "result"), sizes["N"], CHUNK, {})


ROW = Row(
    "nn",
    "NN",
    "Rodinia",
    ("coalescing",),
    {"small": {"N": 8 << 20}, "large": {"N": 32 << 20}, "check": {"N": 3 * CHUNK}},
    term,
    plain,
    by_hand,
)
