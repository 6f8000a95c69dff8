"""One step of the N-body problem, with positions through local memory (A) and without (B).

On a GPU a position is a ``float4`` whose last component is the mass, as in both vendors' samples. On a CPU
each component is an array of its own, and a vector holds the same component of several bodies.
"""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lift_egraph.language import build, ir

from .row import ByHand, HandKernel, Row, Sizes, in_vectors, lanes, on_gpu, one_kernel, parts, repeated, vector_of

SOFTENING, STEP, DAMPING = 0.01, 0.016, 0.995
DEFINES = {"SOFTENING": f"{SOFTENING}f", "STEP": f"{STEP}f", "DAMPING": f"{DAMPING}f"}
WIDTH = 16  # bodies in a vector, on a CPU
VECTORS = 4  # vectors of a work-item of B, on a CPU
GROUP, TILE = 128, 128  # work-items of a group, and bodies in local memory, on a GPU
TILE_CPU = 512  # on a CPU a group has one work-item

SIZES = {
    "small": {"N": 16 << 10},
    "large": {"N": 128 << 10},
    "large_cpu": {"N": 64 << 10},  # the thesis's 131K bodies take a minute for each run of a CPU
    "check": {"N": 3 * 512},
}


def pull(body: Any, other: Any, acceleration: Any) -> Any:
    """The acceleration of a body with the pull of another one added; arguments are tuples of terms."""
    (x, y, z), (other_x, other_y, other_z, mass), (ax, ay, az) = body, other, acceleration

    def scaled(dx, dy, dz, inverse):
        return build.let(mass * inverse * inverse * inverse, lambda s: (ax + dx * s, ay + dy * s, az + dz * s))

    def distance(dx, dy, dz):
        return build.let(
            build.rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING), lambda inverse: scaled(dx, dy, dz, inverse)
        )

    return build.let((other_x - x, other_y - y, other_z - z), distance)


def step(place: Any, velocity: Any, acceleration: Any, made: Callable[..., Any]) -> Any:
    """What is made of the coordinates and the velocity after a step; all are tuples of components."""
    x, y, z = place

    def moved(ux, uy, uz):
        return made((x + ux * STEP, y + uy * STEP, z + uz * STEP), (ux, uy, uz))

    return build.let(tuple((v + a * STEP) * DAMPING for v, a in zip(velocity, acceleration, strict=True)), moved)


def step_on_gpu(position: Any, velocity: Any, acceleration: Any) -> Any:
    """The new position and velocity, each a ``float4``."""
    (*place, mass), (*old, last) = lanes(position), lanes(velocity)
    return step(place, old, parts(3, acceleration), lambda p, v: (vector_of(*p, mass), vector_of(*v, last)))


def step_on_cpu(position: Any, velocity: Any, acceleration: Any) -> Any:
    """The new position and velocity, each a tuple of vectors."""
    return step(parts(3, position), parts(3, velocity), parts(3, acceleration), lambda p, v: (p, v))


def plain(dialect: str) -> ir.Program:
    """For each body a fold over all of them, and a step."""

    @build.program
    def nbody(positions: "[f32x4]N", velocities: "[f32x4]N"):
        def body(p, v):
            summed = build.reduce_seq(lambda a, q: pull(lanes(p, 3), lanes(q), parts(3, a)), (0.0, 0.0, 0.0), positions)
            return build.let(summed, lambda total: step_on_gpu(p, v, total))

        return build.map_(body, build.zip_(positions, velocities))

    @build.program
    def nbody_cpu(positions: "[(f32, f32, f32, f32)]N", velocities: "[(f32, f32, f32)]N"):
        def body(p, v):
            summed = build.reduce_seq(
                lambda a, q: pull(parts(3, p), parts(4, q), parts(3, a)), (0.0, 0.0, 0.0), positions
            )
            return build.let(summed, lambda total: step_on_cpu(p, v, total))

        return build.map_(body, build.zip_(positions, velocities))

    return nbody if on_gpu(dialect) else nbody_cpu


# --- A: positions through local memory -----------------------------------------------------------------


def term_a(dialect: str) -> ir.Program:
    """A work-item a body (on a CPU: a vector of bodies); a group copies a tile of positions at a time."""

    @build.program
    def nbody_a(positions: "[f32x4]N", velocities: "[f32x4]N"):
        def group(chunk):
            mine = build.to_private(build.map_lcl(0, build.id_, build.map_(lambda p, v: p, chunk)))
            return build.let(mine, lambda own: group_of(chunk, own))

        def group_of(chunk, own):
            def tile_step(accelerations, tile):
                def all_pulls(local):
                    return build.map_lcl(
                        0,
                        lambda acc, p: build.reduce_seq(
                            lambda a, q: pull(lanes(p, 3), lanes(q), parts(3, a)), acc, local
                        ),
                        build.zip_(accelerations, own),
                    )

                return build.let(build.to_local(build.map_lcl(0, build.id_, tile)), all_pulls)

            summed = build.reduce_seq(tile_step, build.fill(GROUP, (0.0, 0.0, 0.0)), build.split(TILE, positions))
            return build.map_lcl(
                0, lambda acc, b: step_on_gpu(build.get(0, b), build.rest(b), acc), build.zip_(summed, chunk)
            )

        return build.join(build.map_wrg(0, group, build.split(GROUP, build.zip_(positions, velocities))))

    @build.program
    def nbody_a_cpu(positions: "[(f32, f32, f32, f32)]N", velocities: "[(f32, f32, f32)]N"):
        def group(chunk):
            def tile_step(accelerations, tile):
                return build.let(
                    build.to_local(build.map_lcl(0, build.map_seq(build.id_), build.split(TILE_CPU, tile))),
                    lambda t: pulls(accelerations, build.join(t)),
                )

            def pulls(accelerations, local):
                return build.map_lcl(
                    0,
                    lambda acc, b: build.reduce_seq(
                        lambda a, q: pull(parts(3, build.get(0, b)), parts(4, q), parts(3, a)), acc, local
                    ),
                    build.zip_(accelerations, build.as_vector(WIDTH, chunk)),
                )

            nothing = repeated(WIDTH, 0.0)
            summed = build.reduce_seq(
                tile_step, build.fill(1, (nothing, nothing, nothing)), build.split(TILE_CPU, positions)
            )
            return build.as_scalar(
                build.map_lcl(
                    0,
                    lambda acc, b: step_on_cpu(build.get(0, b), build.rest(b), acc),
                    build.zip_(summed, build.as_vector(WIDTH, chunk)),
                )
            )

        return build.join(build.map_wrg(0, group, build.split(WIDTH, build.zip_(positions, velocities))))

    return nbody_a if on_gpu(dialect) else nbody_a_cpu


def by_hand_a(dialect: str, sizes: Sizes) -> ByHand:
    n = sizes["N"]
    defines = {"N": n, **DEFINES}
    if on_gpu(dialect):
        kernel = HandKernel("nbody_a", GPU_ARGUMENTS, (n,), (GROUP,), 16 * TILE)
        return ByHand("nbody_a_gpu.cl", (kernel,), {**defines, "GROUP": GROUP})
    kernel = HandKernel("nbody_a", CPU_ARGUMENTS, (n // WIDTH,), (1,), 16 * TILE_CPU)
    return ByHand("nbody_a_cpu.cl", (kernel,), {**defines, "TILE": TILE_CPU})


# --- B: everything from global memory, in vectors -------------------------------------------------------


def term_b(dialect: str) -> ir.Program:
    """A work-item a body (on a CPU: some vectors of bodies), without local memory."""

    @build.program
    def nbody_b(positions: "[f32x4]N", velocities: "[f32x4]N"):
        def body(p, v):
            summed = build.reduce_seq(lambda a, q: pull(lanes(p, 3), lanes(q), parts(3, a)), (0.0, 0.0, 0.0), positions)
            return build.let(summed, lambda total: step_on_gpu(p, v, total))

        return build.map_glb(0, body, build.zip_(positions, velocities))

    @build.program
    def nbody_b_cpu(positions: "[(f32, f32, f32, f32)]N", velocities: "[(f32, f32, f32)]N"):
        def bodies(p, v):
            nothing = repeated(WIDTH, 0.0)
            summed = build.reduce_seq(
                lambda a, q: pull(parts(3, p), parts(4, q), parts(3, a)), (nothing, nothing, nothing), positions
            )
            return build.let(summed, lambda total: step_on_cpu(p, v, total))

        return in_vectors(WIDTH, WIDTH * VECTORS, bodies, build.zip_(positions, velocities))

    return nbody_b if on_gpu(dialect) else nbody_b_cpu


def by_hand_b(dialect: str, sizes: Sizes) -> ByHand:
    arguments = GPU_ARGUMENTS if on_gpu(dialect) else CPU_ARGUMENTS
    return one_kernel(dialect, "nbody_b", arguments, sizes["N"], WIDTH * VECTORS, {**DEFINES, "VECTORS": VECTORS})


GPU_ARGUMENTS = ("positions", "velocities", "result_0", "result_1")
CPU_ARGUMENTS = (
    "positions_0", "positions_1_0", "positions_1_1_0", "positions_1_1_1",
    "velocities_0", "velocities_1_0", "velocities_1_1",
    "result_0_0", "result_0_1_0", "result_0_1_1", "result_1_0", "result_1_1_0", "result_1_1_1",
)  # fmt: skip

ROW_A = Row(
    "nbody_a",
    "N-Body, A",
    "NVIDIA SDK",
    ("local memory", "private memory", "vectorisation", "coalescing"),
    SIZES,
    term_a,
    plain,
    by_hand_a,
)
ROW_B = Row(
    "nbody_b",
    "N-Body, B",
    "AMD SDK",
    ("private memory", "vectorisation", "coalescing"),
    SIZES,
    term_b,
    plain,
    by_hand_b,
)
