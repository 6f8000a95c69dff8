"""The matrix Q of a non-Cartesian magnetic resonance image: for each voxel a sum over the samples of k-space.

On a GPU a sample is a ``float4`` of its place and its squared magnitude, as in Parboil; on a CPU each component
is an array of its own.
"""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from math import pi
from typing import Any

from lift_egraph.language import build as b, ir

from .row import ByHand, Row, Sizes, in_vectors, lanes, on_gpu, one_kernel, parts, repeated

WIDTH = 16  # voxels in a vector, on a CPU
VECTORS = 4  # vectors of a work-item, on a CPU


def add_sample(total: Any, place: Any, sample: Any) -> Any:
    """The real and the imaginary part with one sample added."""
    (x, y, z), (kx, ky, kz, magnitude) = place, sample
    return b.let(
        2 * pi * (kx * x + ky * y + kz * z),
        lambda angle: (b.get(0, total) + magnitude * b.cos(angle), b.get(1, total) + magnitude * b.sin(angle)),
    )


def term(dialect: str) -> ir.Program:
    """A voxel a work-item, with the sums in registers; on a CPU some vectors of voxels."""

    @b.program
    def mri_q(xs: "[f32]N", ys: "[f32]N", zs: "[f32]N", samples: "[f32x4]K"):
        def voxel(x, y, z):
            def step(q, s):
                return add_sample(q, (x, y, z), lanes(s))

            return b.reduce_seq(step, (0.0, 0.0), samples)

        return b.map_glb(0, voxel, b.zip_(xs, ys, zs))

    @b.program
    def mri_q_cpu(xs: "[f32]N", ys: "[f32]N", zs: "[f32]N", samples: "[(f32, f32, f32, f32)]K"):
        def voxels(x, y, z):
            nothing = repeated(WIDTH, 0.0)

            def step(q, s):
                return add_sample(q, (x, y, z), parts(4, s))

            return b.reduce_seq(step, (nothing, nothing), samples)

        return in_vectors(WIDTH, WIDTH * VECTORS, voxels, b.zip_(xs, ys, zs))

    return mri_q if on_gpu(dialect) else mri_q_cpu


def plain(dialect: str) -> ir.Program:
    """For each voxel a fold over the samples."""

    @b.program
    def mri_q(xs: "[f32]N", ys: "[f32]N", zs: "[f32]N", samples: "[f32x4]K"):
        def voxel(x, y, z):
            return b.reduce_seq(lambda q, s: add_sample(q, (x, y, z), lanes(s)), (0.0, 0.0), samples)

        return b.map_(voxel, b.zip_(xs, ys, zs))

    @b.program
    def mri_q_cpu(xs: "[f32]N", ys: "[f32]N", zs: "[f32]N", samples: "[(f32, f32, f32, f32)]K"):
        def voxel(x, y, z):
            return b.reduce_seq(lambda q, s: add_sample(q, (x, y, z), parts(4, s)), (0.0, 0.0), samples)

        return b.map_(voxel, b.zip_(xs, ys, zs))

    return mri_q if on_gpu(dialect) else mri_q_cpu


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    samples = ("samples",) if on_gpu(dialect) else ("samples_0", "samples_1_0", "samples_1_1_0", "samples_1_1_1")
    arguments = ("xs", "ys", "zs", *samples, "result_0", "result_1")
    defines = {"K": sizes["K"], "VECTORS": VECTORS}
    return one_kernel(dialect, "mri_q", arguments, sizes["N"], WIDTH * VECTORS, defines)


ROW = Row(
    "mri_q",
    "MRI-Q",
    "Parboil",
    ("private memory", "coalescing"),
    {
        "small": {"N": 32 << 10, "K": 2048},
        "large": {"N": 256 << 10, "K": 2048},
        "large_cpu": {"N": 64 << 10, "K": 2048},  # the thesis's 262K voxels take six seconds a run on PoCL
        "check": {"N": 15 * WIDTH * VECTORS, "K": 100},
    },
    term,
    plain,
    by_hand,
)
