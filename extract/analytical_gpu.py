"""The time of a kernel on a GPU: warps in lock-step, whose neighbouring accesses merge, on many units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd, prod

import numpy as np

from lift_egraph.codegen.devices import Device, Gpu
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.accesses import Access, Region, neighbour_stride
from lift_egraph.extract.analytical_cpu import Estimate
from lift_egraph.extract.footprint import LINE, Footprint

Local = tuple[int, int, int]  # the work-items of a group in each dimension
_USUAL_GROUP = 256
_OWN_REGISTERS = 24  # beside accumulators and other values that are held
_WARPS_TO_HIDE_ARITHMETIC = 16.0
_SPILL_INSTRUCTIONS = 4.0
_STEP_INSTRUCTIONS = 2.0
_LEAST_MS = 0.002

# all functions of floats; other operations are one instruction
_COST = {"div": 10.0, "mod": 20.0, "sqrt": 10.0, "rsqrt": 8.0, "exp": 10.0, "log": 10.0, "sin": 20.0, "cos": 20.0}
_COST |= {"tan": 40.0, "tanh": 25.0, "pow": 40.0, "floor": 1.0, "ceil": 1.0}


@dataclass
class _Work:
    """Totals over all work-items, in work-item instructions, warp cycles and bytes."""

    instructions: float = 0.0
    load_cycles: float = 0.0
    l2_bytes: float = 0.0
    missed: float = 0.0  # of them, what is lost before it is read again
    barriers: float = 0.0
    registers: float = _OWN_REGISTERS
    chains: int = 1
    bytes_in_flight: float = 4.0


def gpu_time(kernel: Kernel, root: Region, footprint: Footprint, device: Device, gpu: Gpu) -> Estimate:
    """The larger of instructions and traffic, each slowed down where too few warps hide its latency."""
    group = prod(_local_size(kernel))
    groups = max(prod(kernel.launch.global_size) // group, 1)
    used = min(groups, device.compute_units)
    work = _count(root, kernel, device, gpu)

    registers = min(work.registers, gpu.most_registers)
    together = min(
        gpu.resident_items // group,
        int(gpu.registers / registers) // group,
        gpu.local_bytes // kernel.local_bytes if kernel.local_bytes else gpu.resident_items,
        ceil(groups / device.compute_units),
    )
    together = max(together, 1)
    warps = max(together * group / gpu.warp, 1.0)

    share = ceil(groups / used) / groups  # of the compute unit with the most work
    hidden = min(1.0, warps * min(work.chains, 8) / _WARPS_TO_HIDE_ARITHMETIC)
    idle_lanes = gpu.warp / min(group, gpu.warp)
    busy = max(work.instructions / gpu.lanes / hidden, work.load_cycles)
    cycles = busy * idle_lanes * share + work.barriers * gpu.barrier_cycles * share / together
    compute = cycles / (device.clock_mhz * 1000)

    in_flight = warps * gpu.warp * work.bytes_in_flight * used
    reached = min(1.0, in_flight / (gpu.bandwidth * gpu.memory_latency))
    last = device.cache
    moved = 0.0
    if (size := footprint.size()) > last:  # work-items of a group run together, so L1 bounds it too
        moved = max(size, work.missed, min(footprint.fetched(last).lines * LINE, work.l2_bytes))
    memory = max(moved, work.l2_bytes / gpu.l2_bandwidth) / (gpu.bandwidth * reached) / 1e6
    return Estimate(max(compute, memory) + _LEAST_MS, compute, memory, moved, used)


def _local_size(kernel: Kernel) -> Local:
    """The work-items of a group, as the driver takes them where the launch leaves it open."""
    if kernel.launch.local_size:
        return kernel.launch.local_size
    first, second, third = kernel.launch.global_size
    x = min(_USUAL_GROUP, first)
    y = min(_USUAL_GROUP // x, second)
    return x, y, min(_USUAL_GROUP // (x * y), third)


def _count(root: Region, kernel: Kernel, device: Device, gpu: Gpu) -> _Work:
    resident = min(gpu.resident_items, ceil(prod(kernel.launch.global_size) / device.compute_units))
    local = _local_size(kernel)
    work = _Work()
    held: dict[str, int] = {}
    most = 0.0
    for region, times in root.walk():
        held |= region.held
        count = sum(o.width * _COST.get(o.op, 1.0) * (o.element_bytes / 4) for o in region.operations if not o.fused)
        accesses = list(dict.fromkeys(region.accesses))  # the compiler loads one place once
        count += region.index_work + region.shuffles / 4 + len(accesses)
        count += _STEP_INSTRUCTIONS if region.loop is not None and region.loop.kind == "seq" else 0.0
        work.instructions += times * count
        work.barriers += times * region.barriers
        lines = _lines_of_item(accesses, region, local, gpu)
        is_kept = lines * resident * gpu.l1_line <= gpu.l1
        is_kept_beyond = is_kept or lines * resident * device.compute_units * gpu.sector <= device.cache
        for access in accesses:
            work.load_cycles += _executed(access, region, times) / gpu.warp * _load_cycles(access, region, local, gpu)
        traffic = times * sum(_l2_bytes(a, region, local, is_kept, gpu) for a in _beside_each_other(accesses))
        work.l2_bytes += traffic
        work.missed += 0.0 if is_kept_beyond else traffic
        loaded = sum(a.bytes for a in accesses if a.space == "global")
        if region.loop is not None and region.loop.kind == "seq":  # several steps are unrolled, and load side by side
            loaded *= min(region.trips, max(device.emission.unroll_by, 1))
        if times * count > most:
            most, work.chains = times * count, max(len(region.chains), 1)
        work.bytes_in_flight = max(work.bytes_in_flight, min(loaded, 64))
    work.registers += sum(held.values()) / 4
    excess = work.registers - gpu.most_registers
    if excess > 0:
        work.instructions *= 1 + _SPILL_INSTRUCTIONS * excess / work.registers
    return work


def _executed(access: Access, region: Region, times: float) -> float:
    """How often an access is made: what stays in one place of local memory, a loop holds in a register."""
    stays = access.space == "local" and not region.barriers and not access.irregular
    if not stays or region.loop is None or region.loop.kind != "seq" or access.strides[-1]:
        return times
    return times / max(region.trips, 1)


def _load_cycles(access: Access, region: Region, local: Local, gpu: Gpu) -> float:
    """Cycles of a warp for one access."""
    if access.space == "local":
        return _local_cycles(access, region, gpu)
    sectors, lines = _of_warp(access, region, local, gpu)
    return max(sectors / gpu.sectors_a_cycle, lines)


def _of_warp(access: Access, region: Region, local: Local, gpu: Gpu) -> tuple[int, int]:
    """Sectors and cache lines that one access of a warp touches."""
    if access.irregular:
        return gpu.warp * ceil(access.bytes / gpu.sector), gpu.warp
    moves = _moves(access, region)
    sectors, lines = (_touched(moves, (0,), access.bytes, local, gpu.warp, n) for n in (gpu.sector, gpu.l1_line))
    return sectors, lines


def _moves(access: Access, region: Region) -> tuple[float, float, float]:
    """Bytes between the accesses of neighbouring work-items, in each dimension of a group."""
    found = [0.0, 0.0, 0.0]
    for stride, loop in zip(access.strides, region.path, strict=True):
        if loop.kind in ("glb", "lcl"):
            found[loop.dimension] += stride * access.element_bytes
    return found[0], found[1], found[2]


@lru_cache(maxsize=4096)
def _touched(
    moves: tuple[float, float, float], starts: tuple[int, ...], size: int, local: Local, items: int, piece: int
) -> int:
    """How many pieces of memory the first work-items of a group touch, of which each reads `size` bytes from some."""
    lane = np.arange(min(items, prod(local)))
    at = (lane % local[0] * moves[0] + lane // local[0] % local[1] * moves[1]).astype(np.int64)
    at += (lane // (local[0] * local[1]) * moves[2]).astype(np.int64)
    first = at[:, None] + np.array(starts)
    return np.unique(np.concatenate([first // piece, (first + size - 1) // piece], 1)).size


def _lines_of_item(accesses: Sequence[Access], region: Region, local: Local, gpu: Gpu) -> float:
    """The lines of L1 that one step of a region loads, divided by the work-items of a warp."""
    lines: dict[tuple[object, ...], float] = {}
    for access in accesses:
        if access.space == "global" and access.kind == "load":
            place = access.start * access.element_bytes // gpu.l1_line
            lines[access.buffer, access.strides, place] = _of_warp(access, region, local, gpu)[1] / gpu.warp
    return sum(lines.values())


def _beside_each_other(accesses: Sequence[Access]) -> Iterator[list[Access]]:
    """Accesses to global memory, those together that move alike with all loops."""
    found: dict[tuple[object, ...], list[Access]] = {}
    for a in accesses:
        if a.space == "global":
            alike = (a,) if a.irregular else (a.kind, a.buffer, a.element_bytes, a.width, a.strides)
            found.setdefault(alike, []).append(a)
    yield from found.values()


def _l2_bytes(alike: Sequence[Access], region: Region, local: Local, is_kept: bool, gpu: Gpu) -> float:
    """Bytes from beyond L1 for accesses of one work-item: what a group touches is shared by it, and by the steps of a
    loop if L1 keeps their lines.
    """
    access = alike[0]
    if access.irregular:
        return ceil(access.bytes / gpu.sector) * gpu.sector
    group, origin = prod(local), min(a.start for a in alike)
    starts = tuple(sorted({int(a.start - origin) * a.element_bytes for a in alike}))
    traffic = _touched(_moves(access, region), starts, access.bytes, local, group, gpu.sector) * gpu.sector / group
    steps = [abs(s) for s, loop in zip(access.strides, region.path, strict=True) if loop.kind == "seq" and s]
    if steps and is_kept:
        traffic *= min(1.0, steps[-1] * access.element_bytes / gpu.sector)
    for stride, loop in zip(access.strides, region.path, strict=True):
        if loop.kind == "wrg" and stride == 0:  # groups beside each other on a unit read it at nearly the same time
            traffic /= max(1.0, min(gpu.resident_items / group, loop.trips) / 2)
    return traffic


def _local_cycles(access: Access, region: Region, gpu: Gpu) -> float:
    """Cycles of a warp for one access to local memory, with its bank conflicts."""
    words = int(abs(neighbour_stride(access, region.path)) * access.element_bytes) // 4
    cycles = max(gpu.warp * access.bytes / gpu.local_bytes_a_cycle if words else access.bytes / 16, 1.0)
    return cycles * max(gcd(words, gpu.warp) // access.width, 1) if words > access.width else cycles
