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
    around = _around(domain, groups, local)
    if around.is_empty:
        return Together()
    moving = tuple(term for term in address.terms if names_of(term[0]) & around.own.keys())  # a warp shares the rest
    if around.is_even and not is_data(address) and (strides := _strides(moving, around.own)):
        return _of_even(strides, widths, local, warp).in_steps(prod(axis.length for axis in around.steps))
    names = frozenset[str]().union(*(names_of(product) for product, _ in moving))
    inside, steps, others = _looked_at(domain, groups, local, names, frozenset(_that_matter(moving)))
    alike = _in_steps(inside, None if is_data(address) else Nat(moving), widths, steps, local, warp)
    return alike.in_steps(others)


class _Around(NamedTuple):
    """What is asked of a domain for all accesses in it.

    Attributes
    ----------
    steps
        The steps of loops, the groups, and the trips of those that share a loop: of each more than one.
    own
        The names of the work-items' own indices, where a group has several along that dimension, which each has.
    is_even
        Whether each warp does the same in each of the steps.
    is_empty
        Whether there is none.
    """

    steps: tuple[Axis, ...]
    own: dict[str, int]
    is_even: bool
    is_empty: bool


@lru_cache(1 << 12)
def _around(domain: Domain, groups: tuple[int, ...], local: tuple[int, int, int]) -> _Around:
    steps = [axis for axis in domain.axes if axis.kind == "seq"]
    steps += [Axis(_GROUP.format(d), n) for d, n in enumerate(groups)]
    steps += [Axis(_TRIP.format(axis.name), ceil(axis.length / axis.workers)) for axis in domain.axes if axis.own]
    steps = [axis for axis in steps if axis.length != 1]
    items = [axis for axis in domain.axes if axis.kind in ("glb", "lcl") and local[axis.dimension] > 1]
    own = {name: axis.dimension for axis in items for name in (axis.name, axis.own)}
    has_names_of_its_own = len({axis.name for axis in domain.axes}) == len(domain.axes)
    is_even = has_names_of_its_own and not domain.guards and not any(map(_is_ragged, domain.axes))
    is_empty = min((axis.length for axis in (*steps, *domain.axes)), default=1) == 0
    return _Around(tuple(steps), own, is_even, is_empty)


@lru_cache(1 << 12)
def _looked_at(
    domain: Domain,
    groups: tuple[int, ...],
    local: tuple[int, int, int],
    names: frozenset[str],
    that_matter: frozenset[str],
) -> tuple[Domain, tuple[Axis, ...], int]:
    """The part of a domain on which it depends what a warp accesses, in which steps that is not the same, and how many
    others there are for each of these.

    Parameters
    ----------
    names, that_matter
        The indices of what moves the address, and those of `_that_matter`.
    """
    steps, guarding = _around(domain, groups, local).steps, frozenset[str]().union(*map(names_in, domain.guards))
    matter = {*guarding, *that_matter}
    for axis in domain.axes:
        d = axis.dimension
        if axis.kind != "seq" and matter & {axis.name, axis.own}:
            matter |= {_TRIP.format(axis.name), _GROUP.format(d)} if axis.kind != "lcl" else {_TRIP.format(axis.name)}
        elif _is_ragged(axis):
            matter |= {_TRIP.format(axis.name)} | ({_GROUP.format(d)} if axis.kind != "lcl" else set())
    needed = guarding | names
    axes = tuple(axis for axis in domain.axes if needed & {axis.name, axis.own} or _is_ragged(axis))
    others = prod(axis.length for axis in steps if axis.name not in matter)
    return replace(domain, axes=axes), tuple(axis for axis in steps if axis.name in matter), others


def _strides(moving: Terms, own: dict[str, int]) -> tuple[int, int, int] | None:
    """By how many elements an address moves along each dimension of a group; None where it is not linear in these."""
    strides = [0, 0, 0]
    for product, coefficient in moving:
        (index, *others) = product
        if others or isinstance(index, Operation):
            return None
        strides[own[index.name]] += coefficient
    return strides[0], strides[1], strides[2]


class _Alike(NamedTuple):
    """What warps do in steps that are looked at, each of which stands for so many."""

    each: float
    lines: int
    warps: int
    items: int

    def in_steps(self, count: int) -> Together:
        """The same in each of so many other steps."""
        factor = self.each * count
        return Together(factor * self.lines, factor * self.warps, factor * self.items)


@lru_cache(1 << 12)
def _of_even(
    strides: tuple[int, int, int], widths: tuple[int, int, int], local: tuple[int, int, int], warp: int
) -> _Alike:
    """The lines of the warps of a group in one step, where each item takes part: the same in all kernels."""
    (x, y, z), each = _lanes(local, warp)
    return _Warps.of({}, x >= 0, each).lines(strides[0] * x + strides[1] * y + strides[2] * z, widths)


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
    warps = _warps_in(domain, steps, local, warp)
    if moving is None:
        return _Alike(warps.each, warps.running, warps.taking, warps.running)
    return warps.lines(np.broadcast_to(evaluate(moving, warps.indices), warps.active.shape), widths)


class _Warps(NamedTuple):
    """The work-items of some warps in some steps: each row is a warp in a step.

    Attributes
    ----------
    indices
        Of the axes around them.
    active
        Which of them take part.
    each
        For how many warps in how many steps each row stands.
    taking, running
        Warps of which some item takes part, and items that do.
    """

    indices: dict[str, Values]
    active: np.ndarray
    each: float
    taking: int
    running: int

    @staticmethod
    def of(indices: dict[str, Values], active: np.ndarray, each: float) -> _Warps:
        """With the counts."""
        taking, running = (int(np.count_nonzero(a)) for a in (active.any(axis=-1), active))
        return _Warps(indices, active, each, taking, running)

    def lines(self, start: np.ndarray, widths: tuple[int, int, int]) -> _Alike:
        """What they do, and the different lines of each row, where the items access what begins at these elements."""
        element, width, line = widths
        begin, is_whole = start * element, self.running == self.active.size
        if is_whole:
            begin = begin - begin[..., :1]
        else:
            begin = begin - np.take_along_axis(begin, np.argmax(self.active, axis=-1)[..., None], axis=-1)
        touched, most = begin // line, (width - 1) // line + 2
        if width > element or line % element:  # else none goes beyond the line in which it begins
            last = (begin + width - 1) // line
            every = np.stack([np.minimum(touched + k, last) for k in range(most)], axis=-1)
            touched = every.reshape(*begin.shape[:-1], -1)
        if not is_whole:
            active = np.repeat(self.active, touched.shape[-1] // begin.shape[-1], axis=-1)
            touched = np.where(active, touched, 0)  # the first of them is line 0, so what is not active adds none
        apart = np.diff(touched, axis=-1)
        if (apart < 0).any():
            touched.sort(axis=-1)
            apart = np.diff(touched, axis=-1)
        return _Alike(self.each, int(np.count_nonzero(apart)) + self.taking, self.taking, self.running)


@lru_cache(64)
def _warps_in(domain: Domain, steps: tuple[Axis, ...], local: tuple[int, int, int], warp: int) -> _Warps:
    """The work-items of a domain in some steps: the same for all accesses there."""
    lanes, each_lane = _lanes(local, warp)
    values, each = grid(steps, *(max(points // lanes[0].size, 1) for points in (MOST_POINTS, SAMPLE)))
    points = {name: np.asarray(v)[..., None, None] for name, v in values.items()}
    indices, active = _indices(domain, points, lanes, local)
    active = active & domain.holds(indices) & (lanes[0] >= 0)
    shape = (*(len(np.ravel(v)) for v in values.values()), *lanes[0].shape)
    return _Warps.of(indices, np.broadcast_to(active, shape), each * each_lane)


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
def _lanes(
    local: tuple[int, int, int], warp: int
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], float]:
    """The local indices of the items of each warp, -1 where there is none, and for how many warps each one stands."""
    size = prod(local)
    every = ceil(size / warp)
    values, each = grid([Axis("warp", every)], max(MOST_POINTS // warp, 1), max(SAMPLE // warp, 1))
    number = values["warp"][:, None] * warp + np.arange(warp)
    is_item = number < size
    x, y, z = number % local[0], number // local[0] % local[1], number // (local[0] * local[1])
    x, y, z = (np.where(is_item, index, -1) for index in (x, y, z))
    return (x, y, z), each


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
