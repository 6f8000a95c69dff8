"""How many cache lines the work-items of a warp touch when they access memory together.

The distances from the first item's address count, not where that lies in its line. What the lines of a warp do not
depend on is not enumerated: an index that is linear in the work-items' own needs one group and one step.

Source: 000 §6.3.2.3; 002 §4.2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import ceil, prod
from typing import NamedTuple

import numpy as np

from lift_egraph.codegen.devices import Device, Gpu
from lift_egraph.codegen.plans.kernel import Launch
from lift_egraph.extract.events import MemoryAccess
from lift_egraph.extract.footprint import LINE
from lift_egraph.extract.iteration_domain import (
    Axis,
    Domain,
    Terms,
    Values,
    evaluate,
    grid,
    is_data,
    names_in,
    names_of,
)
from lift_egraph.language.nat import Nat, Operation

MOST_POINTS, SAMPLE = 1 << 13, 1 << 11  # of work-items and steps: how many are all looked at, and how many of more
_GROUP, _TRIP = "group of {}", "trip of {}"


class Together(NamedTuple):
    """Accesses of warps, summed up: the lines that each touches, the accesses, and the work-items that take part."""

    lines: float = 0.0
    warps: float = 0.0
    items: float = 0.0

    @property
    def lines_per_access(self) -> float:
        """On the average; 0 where there is no access."""
        return self.lines / self.warps if self.warps else 0.0

    def times(self, count: int) -> Together:
        """As many of them."""
        return Together(*(count * number for number in self))

    @staticmethod
    def sum(parts: Iterable[Together]) -> Together:
        """All of them."""
        return Together(*map(sum, zip(Together(), *parts, strict=True)))


def warp_and_line(device: Device) -> tuple[int, int]:
    """Work-items that run together, and bytes of a cache line; on a CPU, those that can share a vector."""
    if isinstance(device.throughput, Gpu):
        return device.throughput.warp, device.throughput.l1_line
    return device.lanes, LINE


def lines_of(access: MemoryAccess, launch: Launch, warp: int, line: int) -> Together:
    """The lines that an access touches in all steps; where its address depends on data, each item has its own.

    Parameters
    ----------
    warp
        Work-items, with consecutive numbers in their group, that run together. Where the device chooses the groups, all
        items count as one.
    line
        Bytes of a cache line.
    """
    local = launch.local_size or launch.global_size
    groups = tuple(n // k for n, k in zip(launch.global_size, local, strict=True))
    return _lines(access.domain, access.address, (access.element_bytes, access.bytes, line), groups, local, warp)


@lru_cache(1 << 12)
def _lines(
    domain: Domain,
    address: Nat,
    widths: tuple[int, int, int],
    groups: tuple[int, ...],
    local: tuple[int, int, int],
    warp: int,
) -> Together:
    """The same for all accesses that move alike, in all kernels; `widths` as in `_in_steps`."""
    if prod(local) == 1 and not any(map(is_data, domain.guards)):  # each access is a warp's
        count, (_, width, line) = float(domain.size), widths
        return Together(count if is_data(address) else ((width - 1) // line + 1) * count, count, count)
    steps = [axis for axis in domain.axes if axis.kind == "seq"]
    steps += [Axis(_GROUP.format(d), n) for d, n in enumerate(groups)]
    steps += [Axis(_TRIP.format(axis.name), ceil(axis.length / axis.workers)) for axis in domain.axes if axis.own]
    steps = [axis for axis in steps if axis.length != 1]
    if min((axis.length for axis in (*steps, *domain.axes)), default=1) == 0:
        return Together()
    items = [axis for axis in domain.axes if axis.kind in ("glb", "lcl") and local[axis.dimension] > 1]
    own = {name for axis in items for name in (axis.name, axis.own)}
    moving = tuple(term for term in address.terms if names_of(term[0]) & own)  # the rest is the same for a warp
    guarding = frozenset[str]().union(*map(names_in, domain.guards))
    matter = {*guarding, *_that_matter(moving)}
    for axis in domain.axes:
        d = axis.dimension
        if axis.kind != "seq" and matter & {axis.name, axis.own}:
            matter |= {_TRIP.format(axis.name), _GROUP.format(d)} if axis.kind != "lcl" else {_TRIP.format(axis.name)}
        elif _is_ragged(axis):
            matter |= {_TRIP.format(axis.name)} | ({_GROUP.format(d)} if axis.kind != "lcl" else set())
    needed = guarding.union(*(names_of(product) for product, _ in moving))
    axes = tuple(axis for axis in domain.axes if needed & {axis.name, axis.own} or _is_ragged(axis))
    alike = _in_steps(
        replace(domain, axes=axes),
        None if is_data(address) else Nat(moving),
        widths,
        tuple(axis for axis in steps if axis.name in matter),
        local,
        warp,
    )
    factor = alike.each * prod(axis.length for axis in steps if axis.name not in matter)
    return Together(factor * alike.lines, factor * alike.warps, factor * alike.items)


class _Alike(NamedTuple):
    """What warps do in steps that are looked at, each of which stands for so many."""

    each: float
    lines: int
    warps: int
    items: int


@lru_cache(1 << 12)
def _in_steps(
    domain: Domain,
    moving: Nat | None,
    widths: tuple[int, int, int],
    steps: tuple[Axis, ...],
    local: tuple[int, int, int],
    warp: int,
) -> _Alike:
    """The lines of the warps in some steps: the same for all accesses that move alike, in all kernels.

    Parameters
    ----------
    moving
        What of the index is not the same for all items of a warp; none if data decides.
    widths
        Bytes of an element, of the access and of a line.
    """
    element, width, line = widths
    lanes, each_lane = _lanes(local, warp)
    values, each = grid(steps, *(max(points // lanes[0].size, 1) for points in (MOST_POINTS, SAMPLE)))
    points = {name: np.asarray(v)[..., None, None] for name, v in values.items()}
    indices, active = _indices(domain, points, lanes, local)
    active = active & domain.holds(indices) & (lanes[0] >= 0)
    shape = (*(len(np.ravel(v)) for v in values.values()), *lanes[0].shape)
    active = np.broadcast_to(active, shape)
    warps, running = (int(np.count_nonzero(a)) for a in (active.any(axis=-1), active))
    if moving is None:
        return _Alike(each * each_lane, running, warps, running)
    start = np.broadcast_to(evaluate(moving, indices), shape) * element
    return _Alike(each * each_lane, _distinct(start, active, width, line), warps, running)


def _is_ragged(axis: Axis) -> bool:
    """Whether not all items, or groups, run the last step."""
    return bool(axis.own) and axis.length % axis.workers != 0


def _that_matter(moving: Terms) -> Iterator[str]:
    """The indices on which it depends how the addresses of a warp lie to each other: those beside which others stand in
    a product, or in an operation.
    """
    for product, _ in moving:
        if len(product) > 1 or any(isinstance(atom, Operation) for atom in product):
            yield from names_of(product)


@lru_cache(64)
def _lanes(local: tuple[int, int, int], warp: int) -> tuple[tuple[np.ndarray, ...], float]:
    """The local indices of the items of each warp, -1 where there is none, and for how many warps each one stands."""
    size = prod(local)
    every = ceil(size / warp)
    values, each = grid([Axis("warp", every)], max(MOST_POINTS // warp, 1), max(SAMPLE // warp, 1))
    number = values["warp"][:, None] * warp + np.arange(warp)
    is_item = number < size
    x, y, z = number % local[0], number // local[0] % local[1], number // (local[0] * local[1])
    return tuple(np.where(is_item, index, -1) for index in (x, y, z)), each


def _indices(
    domain: Domain, points: dict[str, Values], lanes: tuple[np.ndarray, ...], local: tuple[int, int, int]
) -> tuple[dict[str, Values], Values]:
    """The indices of the domain's axes at steps and items, and whether they are below the lengths."""
    indices, active = dict[str, Values](), np.True_
    for axis in domain.axes:
        if axis.kind == "seq":
            indices[axis.name] = points.get(axis.name, 0)
            continue
        d = axis.dimension
        group = points.get(_GROUP.format(d), 0)
        own = {"wrg": group, "lcl": lanes[d], "glb": group * local[d] + lanes[d]}[axis.kind]
        index = own + points.get(_TRIP.format(axis.name), 0) * axis.workers
        indices[axis.name] = index
        if axis.own:
            indices[axis.own] = own
            active = active & (index < axis.length)
    return indices, active


def _distinct(start: np.ndarray, active: np.ndarray, width: int, line: int) -> int:
    """The different lines of each row's active entries, summed up; their distance is from the first of them."""
    first = np.argmax(active, axis=-1)[..., None]
    begin = start - np.take_along_axis(start, first, axis=-1)
    low, high = begin // line, (begin + width - 1) // line
    touched = np.concatenate([np.minimum(low + k, high) for k in range((width - 1) // line + 2)], axis=-1)
    touched = np.where(np.concatenate([active] * (touched.shape[-1] // active.shape[-1]), axis=-1), touched, 0)
    touched.sort(axis=-1)  # the first of them is line 0, so what is not active adds none
    rows = active.any(axis=-1)
    return int(np.count_nonzero(np.diff(touched, axis=-1) != 0) + np.count_nonzero(rows))
