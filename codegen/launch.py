"""Launch sizes of a kernel, from the lengths that its parallel maps run over."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from codegen.dialect import Dialect
from codegen.kernel import Launch
from codegen.layout import size_of
from lift_egraph import ir
from lift_egraph.check import iterate_step
from lift_egraph.describe import blame
from lift_egraph.errors import DeviceProblem

_GROUPS_OF_256 = {1: (256, 1, 1), 2: (16, 16, 1), 3: (16, 4, 4)}


def parallel_lengths(term: ir.Part) -> dict[ir.Level, int]:
    """The greatest length that each parallel level maps over."""
    lengths: dict[ir.Level, int] = {}
    for found in _maps(term):
        if found.level.kind != "seq":
            length = size_of(found.array).range[1] or 1
            lengths[found.level] = max(lengths.get(found.level, 1), length)
    return lengths


def _maps(term: ir.Part) -> Iterator[ir.MapLevel]:
    if isinstance(term, ir.MapLevel):
        yield term
    for part in ir.parts(term):
        if isinstance(term, ir.Iterate) and part is term.function:
            part = iterate_step(term, size_of(term.array))
        yield from _maps(part)


def launch_sizes(term: ir.Part, dialect: Dialect, wanted: Launch | None) -> tuple[Launch, dict[ir.Level, int]]:
    """The launch of a kernel and the number of work-items or groups of each level.

    Raises
    ------
    DeviceProblem
        If the wanted group is larger than the device allows.
    """
    lengths = parallel_lengths(term)
    kinds = {level.kind for level in lengths}
    if not kinds:
        return Launch((1, 1, 1), (1, 1, 1)), {}
    if wanted and wanted.local_size and prod(wanted.local_size) > dialect.max_work_group:
        problem = DeviceProblem(
            f"a group of {prod(wanted.local_size)} work-items is more than "
            f"{dialect.name} allows ({dialect.max_work_group})"
        )
        raise blame(problem, next(_maps(term)))
    launch = wanted or (_groups(lengths, dialect) if "wrg" in kinds else _items(lengths, dialect))
    local = launch.local_size or (1, 1, 1)
    threads = {}
    for level in lengths:
        d = level.dimension
        threads[level] = {
            "glb": launch.global_size[d],
            "wrg": max(launch.global_size[d] // local[d], 1),
            "lcl": local[d],
        }[level.kind]
    return launch, threads


def _groups(lengths: dict[ir.Level, int], dialect: Dialect) -> Launch:
    local = [lengths.get(ir.Level("lcl", d), 1) for d in range(3)]
    while prod(local) > dialect.max_work_group:
        largest = local.index(max(local))
        local[largest] = (local[largest] + 1) // 2
    groups = [lengths.get(ir.Level("wrg", d), 1) for d in range(3)]
    x, y, z = (g * s for g, s in zip(groups, local, strict=True))
    return Launch((x, y, z), (local[0], local[1], local[2]))


def _items(lengths: dict[ir.Level, int], dialect: Dialect) -> Launch:
    x, y, z = (lengths.get(ir.Level("glb", d), 1) for d in range(3))
    if dialect.group_items is None:
        return Launch((x, y, z), None)
    used = sum(1 for level in lengths if level.kind == "glb")
    a, b, c = _GROUPS_OF_256[used] if used == max(level.dimension for level in lengths) + 1 else (1, 1, 1)
    return Launch((-(-x // a) * a, -(-y // b) * b, -(-z // c) * c), (a, b, c))
