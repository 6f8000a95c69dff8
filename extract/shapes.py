"""The shapes of terms: what the structural cost knows of a term beside a number, and which terms are legal by it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple


class Shape(NamedTuple):
    """What a term contains.

    Attributes
    ----------
    computes
        Whether it does more than rearrange data.
    levels
        The parallel levels that are open in it: ``glb0``, ``wrg1`` …
    host
        Whether it needs more than one kernel, so that it may stand in no loop.
    mapped
        Whether it is a computing map itself, which a reduction around it absorbs.
    block
        The largest accumulator of its reductions, in scalars: terms that block differently are kept apart.
    width
        The widest vector in it, or 1 for loops whose length, or the place of whose result, is computed: no lanes share
        these, unless there are `shared_ranges`.
    staged
        The address spaces that it copies data to.
    local
        Whether its value lies in local memory, so that it is no group's result.
    """

    computes: bool = False
    levels: frozenset[str] = frozenset()
    host: bool = False
    mapped: bool = False
    block: int = 0
    width: int = 0
    staged: frozenset[str] = frozenset()
    local: bool = False


LAYOUT = Shape()
COMPUTATION = Shape(computes=True)


@lru_cache(1 << 14)
def together(shapes: tuple[Hashable, ...], base: Shape) -> Shape:
    """What contains all of these, and what `base` says of it itself."""
    inside = [base, *(s for s in shapes if isinstance(s, Shape))]
    return Shape(
        computes=any(s.computes for s in inside),
        levels=frozenset[str]().union(*(s.levels for s in inside)),
        host=any(s.host for s in inside),
        block=max(s.block for s in inside),
        width=max(s.width for s in inside),
        staged=frozenset[str]().union(*(s.staged for s in inside)),
    )


def outer(levels: frozenset[str]) -> frozenset[str]:
    """The levels that are not of the work-items of a group."""
    return frozenset(level for level in levels if not level.startswith("lcl"))


def is_open(shape: Shape) -> bool:
    """Whether work-items of a group share what no group is around."""
    return any(level.startswith("lcl") for level in shape.levels)


def nested(kind: str, dimension: int, inside: Shape, array: Shape) -> Shape | None:
    """The shape of a map at a level, or None where OpenCL's thread hierarchy forbids it (000 §2.2)."""
    if inside.host:
        return None
    levels = inside.levels
    merged = together((inside, array), COMPUTATION)
    if kind == "seq":
        if outer(levels):
            return None
        if not (array.host or outer(array.levels)):
            return merged
        return None if levels or is_open(array) else merged._replace(levels=frozenset(), host=True)
    allowed = {f"{kind}{d}" for d in range(dimension)}
    if kind == "lcl" and (array.host or outer(array.levels)):
        return None
    if kind == "wrg":
        if inside.local:
            return None
        allowed |= {f"lcl{d}" for d in range(3)}
        if f"lcl{dimension}" not in levels and not (dimension and f"wrg{dimension - 1}" in levels):
            return None  # a group of one item, but for those in rows of groups
    if not levels <= allowed or (dimension and f"{kind}{dimension - 1}" not in levels):
        return None
    if kind != "lcl" and array.levels - outer(array.levels):  # it would stand outside of the groups
        return None
    if kind != "lcl" and (array.levels or array.host):
        return merged._replace(levels=frozenset(), host=True)
    closed = levels - {f"lcl{dimension}"} if kind == "wrg" else levels
    return merged._replace(levels=closed | {f"{kind}{dimension}"} | array.levels, host=array.host)
