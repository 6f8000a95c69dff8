"""Molecular dynamics: the Lennard-Jones force on each atom from the atoms in its list of neighbours."""

# ruff: noqa: F722 - annotations are types of LIFT
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from lift_egraph.language import build, ir
from lift_egraph.language.types import Array

from .row import ByHand, Row, Sizes, lane, lanes, on_gpu, one_kernel, parts, repeated, vector_of

CUT_OFF, LJ1, LJ2 = 16.0, 1.5, 2.0
CHUNK = 500  # atoms of a work-item, on a CPU


def strength(square: Any) -> Any:
    """The force between two atoms over their distance, from its square."""
    return build.let(
        1.0 / square,
        lambda inverse: build.let(inverse * inverse * inverse, lambda sixth: inverse * sixth * (LJ1 * sixth - LJ2)),
    )


def force(atom: Any, neighbour: Any, total: Any) -> Any:
    """The force on an atom with that of a neighbour added, if it is near enough; component by component."""
    (x, y, z), (other_x, other_y, other_z) = (lanes(p, 3) for p in (atom, neighbour))
    fx, fy, fz = parts(3, total)

    def added(dx, dy, dz, scale):
        return fx + dx * scale, fy + dy * scale, fz + dz * scale

    def pulled(dx, dy, dz):
        return build.let(
            dx * dx + dy * dy + dz * dz,
            lambda square: build.let(
                build.select(square < CUT_OFF, strength(square), 0.0), lambda scale: added(dx, dy, dz, scale)
            ),
        )

    return build.let((x - other_x, y - other_y, z - other_z), pulled)


def vector_force(atom: Any, neighbour: Any, total: Any) -> Any:
    """The same in a vector of four."""

    def pulled(d):
        return build.let(d * d, lambda squares: added(d, lane(0, squares) + lane(1, squares) + lane(2, squares)))

    def added(d, sum_of_squares):
        return build.let(
            sum_of_squares, lambda square: total + d * build.select(square < CUT_OFF, strength(square), 0.0)
        )

    return build.let(atom - neighbour, pulled)


def of_atom(dialect: str, p: Any, others: Any) -> Any:
    """The force on an atom: component by component on a GPU, in a vector on a CPU."""
    if on_gpu(dialect):
        total = build.reduce_seq(lambda f, q: force(p, q, f), (0.0, 0.0, 0.0), others)
        return build.let(total, lambda f: vector_of(*parts(3, f), build.literal(0.0)))
    total = build.reduce_seq(lambda f, q: vector_force(p, q, f), repeated(4, 0.0), others)
    return build.let(total, lambda f: vector_of(*lanes(f, 3), build.literal(0.0)))


def term(dialect: str) -> ir.Program:
    """An atom a work-item, with the force in registers; on a CPU a chunk of atoms."""

    @build.program
    def md(positions: "[f32x4]N", neighbours: "[[i32]N]M"):
        def forces(p, numbers):
            return of_atom(dialect, p, build.lookup(numbers, positions))

        atoms = build.zip_(positions, build.transpose(neighbours))
        if on_gpu(dialect):
            return build.map_glb(0, forces, atoms)
        return build.join(build.map_glb(0, lambda chunk: build.map_seq(forces, chunk), build.split(CHUNK, atoms)))

    return md


def plain(dialect: str) -> ir.Program:
    """For each atom a fold over its neighbours."""

    @build.program
    def md(positions: "[f32x4]N", neighbours: "[[i32]N]M"):
        def forces(p, numbers):
            return of_atom(dialect, p, build.lookup(numbers, positions))

        return build.map_(forces, build.zip_(positions, build.transpose(neighbours)))

    return md


def inputs(made: ir.Program, seed: int, kind: Any) -> dict[str, Any]:
    """Atoms near the points of a cubic lattice, with the nearest points' atoms as neighbours.

    No two atoms are in one place, and an atom is not its own neighbour: the force is finite.
    """
    neighbour_type = made.inputs[1].type
    assert isinstance(neighbour_type, Array)
    assert isinstance(neighbour_type.element, Array)
    count, atoms = neighbour_type.size.evaluate({}), neighbour_type.element.size.evaluate({})
    side = int(np.ceil(np.cbrt(atoms)))
    numbers = np.arange(atoms)
    places = np.stack([numbers // side**2, numbers // side % side, numbers % side, 0 * numbers], axis=1)
    jitter = np.random.default_rng(seed).uniform(-0.1, 0.1, (atoms, 4)) * [1, 1, 1, 0]
    around = sorted(product(range(-4, 5), repeat=3), key=lambda d: (sum(x * x for x in d), d))[1 : count + 1]
    steps = np.array([(a * side + b) * side + c for a, b, c in around])
    return {
        "positions": (places + jitter * (kind == "float")).astype(np.float32),
        "neighbours": ((numbers[None, :] + steps[:, None]) % atoms).astype(np.int32),
    }


def by_hand(dialect: str, sizes: Sizes) -> ByHand:
    defines = {"NEIGHBOURS": sizes["M"], "CUT_OFF": f"{CUT_OFF}f", "LJ1": f"{LJ1}f", "LJ2": f"{LJ2}f"}
    return one_kernel(dialect, "md", ("positions", "neighbours", "result"), sizes["N"], CHUNK, defines)


ROW = Row(
    "md",
    "MD",
    "SHOC",
    ("private memory", "coalescing"),
    {"small": {"N": 12_000, "M": 128}, "large": {"N": 74_000, "M": 128}, "check": {"N": 3 * CHUNK, "M": 30}},
    term,
    plain,
    by_hand,
    inputs,
)
