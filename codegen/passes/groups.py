"""Work-items whose number no group size divides are launched in groups all the same: what is over does nothing.

A runtime of a CPU chooses groups that divide the work-items. Where their number is a large prime, each is a group
by itself, or groups take columns: on PoCL 3.0 a vector sum takes 15 times as long, on Intel's runtime rows of 5003
elements 25 times.

Source: new.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod
from typing import Any

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.passes.borders import between
from lift_egraph.codegen.plans.kernel import Launch

LONG = 64  # work-items of a dimension that shall share groups
LEAST_GROUP = 8  # work-items of a group that make up for its start
GROUP = 256  # at the most
LANES = 16  # what compilers make vectors of, at the most


def in_groups(body: c_ast.Body, launch: Launch, largest: int, *, apart: bool = False) -> tuple[c_ast.Body, Launch]:
    """A kernel of mapGlb and its launch, with groups of our own where the device would find no good ones.

    So it would where only those at a border are to ask where they are: it may take whole rows.

    Parameters
    ----------
    launch
        One that leaves the groups to the device.
    largest
        Work-items that a group may have.
    apart
        Whether groups that are at no border do not ask.
    """
    items = launch.global_size
    dimension = next((d for d, n in enumerate(items) if n >= LONG), None)
    if dimension is None:
        return body, launch
    length, before = items[dimension], items[:dimension]
    most = min(GROUP, largest) // prod(before)
    if most < LANES:
        return body, launch
    asks = apart and length >= 2 * most and any(_has_border(part, dimension) for part in c_walk.statements(body))
    if not asks and prod(before) * _largest_divisor(length, most) >= LEAST_GROUP:
        return body, launch
    group = ceil(length / ceil(length / (most // LANES * LANES)) / LANES) * LANES
    count = ceil(length / group) * group

    def guard(part: Any) -> Any:
        if isinstance(part, c_ast.For) and part.level.kind == "glb" and part.level.dimension == dimension:
            return replace(part, threads=count, body=c_walk.rewrite(part.body, guard))
        return None

    x, y, z = (*before, count, *items[dimension + 1 :])
    a, b, c = (*before, group, 1, 1)[:3]
    return c_walk.rewrite(body, guard), Launch((x, y, z), (a, b, c))


def whole_groups(loop: c_ast.For, group: int) -> tuple[c_ast.Body, int, int] | None:
    """What all work-items of a group do that are at no border, and the first of these groups and the one behind the
    last; None where there are no such, or nothing that other groups do otherwise.
    """
    count = loop.count.constant or 0
    if not group:
        return None
    body, low, high = between(loop.body, loop.variable, count)
    first, last = -(-low // group), (high + 1) // group
    return None if first >= last or (group == 1 and (low, high) == (0, count - 1)) else (body, first, last)


def _has_border(part: c_ast.Statement, dimension: int) -> bool:
    """Whether there are groups, of one work-item each, at a border of a mapGlb's dimension."""
    level = c_ast.Level("glb", dimension)
    return isinstance(part, c_ast.For) and part.level == level and whole_groups(part, 1) is not None


def _largest_divisor(number: int, most: int) -> int:
    return next(k for k in range(min(number, most), 0, -1) if number % k == 0)
