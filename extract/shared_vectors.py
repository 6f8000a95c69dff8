"""What a kernel does where its compiler lets neighbouring work-items share vectors, as Intel's for CPUs does.

The loop over neighbours takes as many fewer steps as a vector has lanes, and each of these steps does with vectors what
those did with scalars: memory that neighbours have side by side is read in one piece, other memory lane by lane.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil

from lift_egraph.extract.accesses import Access, Loop, Region

_GATHERED = 2  # shuffles that an instruction which gathers costs for each lane: a cycle on Zen 3


def in_shared_vectors(root: Region, lanes: int, gathers: bool = False) -> Region:
    """The regions of a kernel with vectors across work-items; as they are where the kernel has vectors of its own.

    `gathers`: whether what neighbours have side by side is read lane by lane, too.
    """
    used = [part.width for region, _ in root.walk() for part in (*region.accesses, *region.operations)]
    return _region(root, (), lanes, gathers) if max(used, default=1) == 1 else root


def _region(region: Region, path: tuple[Loop, ...], lanes: int, gathers: bool) -> Region:
    if region.loop is not None:
        shares = region.loop.is_neighbour and region.loop.trips >= lanes
        path = (*path, region.loop._replace(trips=ceil(region.loop.trips / lanes)) if shares else region.loop)
    children = [_region(child, path, lanes, gathers) for child in region.children]
    place = next((k for k, loop in enumerate(region.path) if loop.is_neighbour and loop.trips >= lanes), None)
    if place is None:
        return replace(region, path=path, children=children)
    accesses = [_access(access, place, lanes, gathers) for access in region.accesses]
    gathered = sum(len(access.starts) for access in accesses) - region.accessed
    return replace(
        region,
        path=path,
        children=children,
        operations=Counter({o._replace(width=lanes * o.width): number for o, number in region.operations.items()}),
        accesses=accesses,
        shuffles=lanes * region.shuffles + _GATHERED * gathered,
        held={name: lanes * size for name, size in region.held.items()},
    )


def _access(access: Access, place: int, lanes: int, gathers: bool) -> Access:
    """Accesses for as many neighbours as a vector has lanes."""
    stride = access.strides[place]
    strides = (*access.strides[:place], lanes * stride, *access.strides[place + 1 :])
    if stride == 0 and not access.irregular:
        return access
    if stride == 1 and not (access.irregular or gathers):
        return access._replace(width=lanes, strides=strides)
    starts = [start + k * stride for start in access.starts for k in range(lanes)]
    return access._replace(starts=starts, strides=strides)
