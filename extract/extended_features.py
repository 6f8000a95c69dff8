"""Features that the published ones lack: caches, vectors, registers, and how the work is shared out.

Source: new. 000 §6.7 finds its outliers where an input fits into a cache, and names working sets as what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from lift_egraph.codegen.devices import Cpu, Device
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.accesses import Region, analyse
from lift_egraph.extract.cache_lines import Together, warp_and_line
from lift_egraph.extract.events import Events, MemoryAccess
from lift_egraph.extract.footprint import LINE, footprint_of
from lift_egraph.extract.iteration_domain import slope
from lift_egraph.extract.private_vectors import in_private_vectors
from lift_egraph.language.scalar import OPERATIONS

EXTENDED: tuple[str, ...] = (
    "launches", "lines_per_load", "lines_per_store", "idle_lanes", "vector_width", "contiguous_items",
    "contiguous_steps", "operations", "functions", "register_tile", "registers", "operations_per_byte",
    "operations_per_touched_byte", "working_set_l1", "working_set_l2", "working_set_last", "beyond_l1", "beyond_l2",
    "beyond_last", "items_per_unit", "groups_per_unit", "imbalance", "operation_lanes",
)  # fmt: skip
"""In this order:

launches, lines_per_load, lines_per_store
    Kernels; lines of a warp as in `PUBLISHED`, apart.
idle_lanes
    The share of a warp's work-items that do not take part in an access: borders, and groups that fill no warp.
vector_width
    Elements of an access to global memory.
contiguous_items, contiguous_steps
    The share of accesses to global memory at which the next work-item, or the next step of the innermost loop that
    moves the address, finds what it needs in the same place or beside it.
operations, functions
    Arithmetic on single elements, and how much of it is functions of floats, per work-item.
register_tile
    Partial results that the busiest loop updates, in elements.
registers
    What private variables need, of the registers that a work-item has.
operations_per_byte, operations_per_touched_byte
    Arithmetic intensity: by the bytes that accesses to global memory ask for, and by those that lie there.
working_set_l1, working_set_l2, working_set_last
    How many times what a cache holds one group touches, or one work-item where the device chooses the groups; for the
    last cache, the kernel. Where a unit has one cache of its own, the shared one is the second and the last.
beyond_l1, beyond_l2, beyond_last
    Bytes that come from beyond a cache, per work-item.
items_per_unit, groups_per_unit, imbalance
    Parallel slack; and what the unit with the most groups has to do, by what each has on the average.
operation_lanes
    The share of the lanes of its hardware vectors that arithmetic fills.
"""


@dataclass
class _Totals:
    """Of all kernels; the largest where one kernel decides."""

    items: float = 0.0
    groups: float = 0.0
    accesses: float = 0.0
    elements: float = 0.0
    bytes: float = 0.0
    beside_items: float = 0.0
    beside_steps: float = 0.0
    operations: float = 0.0
    functions: float = 0.0
    touched: float = 0.0
    beyond: tuple[float, ...] = (0.0, 0.0, 0.0)
    working_sets: tuple[float, ...] = (0.0, 0.0, 0.0)
    tile: float = 0.0
    registers: float = 0.0
    imbalance: float = 1.0
    vectors: float = 0.0
    filled: float = 0.0


def extended(
    kernels: Sequence[Kernel], events: Sequence[Events], lines: Sequence[dict[str, Together]], device: Device
) -> tuple[dict[str, float], float, tuple[float, ...]]:
    """The features of `EXTENDED`, the bytes that the kernels touch, and those that come from beyond each cache.

    Parameters
    ----------
    events, lines
        Of each kernel; of the lines those of its loads and of its stores.
    """
    totals = _Totals()
    for kernel, found in zip(kernels, events, strict=True):
        _add_events(totals, found)
        _add_regions(totals, kernel, device)
    loads, stores = (Together.sum(of_kernel[kind] for of_kernel in lines) for kind in ("load", "store"))
    both = Together.sum((loads, stores))
    warp, _ = warp_and_line(device)
    found = (
        float(len(kernels)),
        loads.lines_per_access,
        stores.lines_per_access,
        1 - _share(both.items, both.warps * warp, 1.0),
        _share(totals.elements, totals.accesses),
        _share(totals.beside_items, totals.accesses),
        _share(totals.beside_steps, totals.accesses),
        totals.operations / totals.items,
        totals.functions / totals.items,
        totals.tile,
        totals.registers,
        _share(totals.operations, totals.bytes),
        _share(totals.operations, totals.touched),
        *totals.working_sets,
        *(moved / totals.items for moved in totals.beyond),
        totals.items / device.compute_units,
        totals.groups / device.compute_units,
        totals.imbalance,
        _share(totals.filled, totals.vectors),
    )
    return dict(zip(EXTENDED, found, strict=True)), totals.touched, totals.beyond


def _share(part: float, whole: float, of_nothing: float = 0.0) -> float:
    return part / whole if whole else of_nothing


def _add_events(totals: _Totals, events: Events) -> None:
    totals.items += events.items
    for operation, number in events.operations.items():
        done = number * operation.lanes * operation.domain.size
        totals.operations += done
        totals.functions += done if OPERATIONS[operation.op].kind == "float" else 0
    for access, number in events.accesses.items():
        if access.space == "global":
            times = number * access.domain.size
            totals.accesses += times
            totals.bytes += times * access.bytes
            totals.elements += times * (access.bytes // access.element_bytes)
            totals.beside_items += times * _is_beside_items(access)
            totals.beside_steps += times * _is_beside_steps(access)


def _is_beside_items(access: MemoryAccess) -> bool:
    axes = [axis for axis in access.domain.axes if axis.kind in ("glb", "lcl") and axis.dimension == 0]
    return all(_is_near(access, name) for axis in axes for name in (axis.name, axis.own))


def _is_beside_steps(access: MemoryAccess) -> bool:
    moving = (axis for axis in reversed(access.domain.axes) if axis.kind == "seq" and axis.length > 1)
    innermost = next((axis for axis in moving if slope(access.address, axis.name) != 0), None)
    return innermost is None or _is_near(access, innermost.name)


def _is_near(access: MemoryAccess, name: str) -> bool:
    stride = slope(access.address, name)
    return stride is not None and abs(stride) <= access.bytes // access.element_bytes


def _add_regions(totals: _Totals, kernel: Kernel, device: Device) -> None:
    root, launch = analyse(kernel), kernel.launch
    footprint = footprint_of(kernel)  # vectors of private places access the same memory
    items = prod(launch.global_size)
    groups = items // prod(launch.local_size) if launch.local_size else ceil(items / device.max_work_group)
    totals.groups += groups
    used = min(groups, device.compute_units)
    totals.imbalance = max(totals.imbalance, ceil(groups / used) * device.compute_units / groups)
    l1, l2, *_ = *device.caches, device.cache
    totals.touched += footprint.size()
    beyond = (footprint.fetched(capacity).lines * LINE for capacity in (l1, l2, device.cache))
    totals.beyond = tuple(a + b for a, b in zip(totals.beyond, beyond, strict=True))
    shared = list(_of_one_group(root))
    sets = (*(max(footprint.pressure(r, c) for r in shared) for c in (l1, l2)), footprint.pressure(root, device.cache))
    totals.working_sets = tuple(map(max, zip(totals.working_sets, sets, strict=True)))
    held, vector = dict[str, int](), 4 * device.lanes
    most, tile = -1, 0
    if isinstance(device.throughput, Cpu) and device.throughput.joins_scalars:
        root = in_private_vectors(root)
    for region, times in root.walk():
        held |= region.held
        for operation, number in region.operations.items():
            filled = operation.width * operation.element_bytes / vector
            totals.filled += times * number * filled
            totals.vectors += times * number * ceil(filled)
        done = times * region.operated_lanes
        if done > most:  # the busiest region, so far
            most, tile = done, len(region.chains) * max((operation.width for operation in region.operations), default=1)
    totals.tile = max(totals.tile, float(tile))
    needed = sum(ceil(size / vector) for size in held.values())
    totals.registers = max(totals.registers, needed / device.registers)


def _of_one_group(region: Region) -> list[Region]:
    """The regions that one group, or one work-item of a mapGlb, runs as a whole."""
    outer = [child for child in region.children if child.loop is not None and child.loop.kind in ("glb", "wrg")]
    return [inner for child in outer for inner in _of_one_group(child)] or [region]
