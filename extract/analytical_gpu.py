"""The time of a kernel on a GPU: warps in lock-step, whose neighbouring accesses merge, on many units."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, gcd, inf, prod
from typing import NamedTuple

from lift_egraph.codegen.devices import Device, Gpu
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.accesses import Access, Region, neighbour_stride
from lift_egraph.extract.analytical_cpu import PARTS, Estimate
from lift_egraph.extract.footprint import LINE, Footprint

_OWN_REGISTERS = 24  # beside accumulators and other values that are held
_WARPS_TO_HIDE_ARITHMETIC = 16.0
_SPILL_INSTRUCTIONS = 4.0
_STEP_INSTRUCTIONS = 2.0
_LEAST_MS = 0.002
_UNROLLED = 8  # steps of a loop that is unrolled wholly: what they load of one place is loaded once
_PASS, _PASS_LATENCY = 4.0, 25.0  # instructions, and cycles until a word is there that a sub-group's item passes on
_LATENCIES = 2.0  # until what a group has published is seen by another one, and this one's by the next

# all functions of floats; other operations are one instruction
_COST = {"div": 10.0, "mod": 20.0, "sqrt": 10.0, "rsqrt": 8.0, "exp": 10.0, "log": 10.0, "sin": 20.0, "cos": 20.0}
_COST |= {"tan": 40.0, "tanh": 25.0, "pow": 40.0, "floor": 1.0, "ceil": 1.0, "asin": 25.0, "acos": 25.0, "atan": 20.0}
_COST |= {"atan2": 40.0, "sinh": 25.0, "cosh": 20.0, "erf": 25.0}


@dataclass
class _Work:
    """Totals over all work-items, in work-item instructions, warp cycles and bytes."""

    instructions: float = 0.0
    spilling: float = 0.0  # of them, for values that find no register
    load_cycles: float = 0.0
    l2_bytes: float = 0.0
    missed: float = 0.0  # of them, what is lost before it is read again
    barriers: float = 0.0
    look_backs: float = 0.0
    passes: float = 0.0  # of groups, one after the other
    registers: float = _OWN_REGISTERS
    chains: int = 1
    bytes_in_flight: float = 4.0


def gpu_time(kernel: Kernel, root: Region, footprint: Footprint, device: Device, gpu: Gpu) -> Estimate:
    """The larger of instructions and traffic, each slowed down where too few warps hide its latency."""
    group = prod(kernel.launch.local_size or (min(256, kernel.launch.global_size[0]), 1, 1))
    groups = max(prod(kernel.launch.global_size) // group, 1)
    working = min(group, ceil(_working(root) / groups))  # items of a group
    used = min(groups, device.compute_units)
    lanes = min(working, gpu.warp)  # of a warp, that have anything to do
    work = _count(root, kernel, device, gpu, lanes)

    registers, unit = min(work.registers, device.registers), device.level("group")
    together = min(
        gpu.resident_items // group,
        int(unit.registers / registers) // group,
        unit.local_memory // kernel.local_bytes if kernel.local_bytes else gpu.resident_items,
        ceil(groups / device.compute_units),
    )
    together = max(together, 1)
    warps = together * ceil(working / gpu.warp)

    clock = device.clock_mhz / 1000  # cycles of a nanosecond
    share = ceil(groups / used) / groups  # of the compute unit with the most work
    lanes_a_cycle = gpu.lanes * lanes / gpu.warp
    busy = max(work.instructions / lanes_a_cycle, work.load_cycles)
    hidden = min(1.0, warps * min(work.chains, 8) / _WARPS_TO_HIDE_ARITHMETIC)
    waits = work.barriers * gpu.barrier_cycles + work.passes * _PASS_LATENCY
    waits += work.look_backs * _LATENCIES * gpu.memory_latency * clock
    cycles = busy / hidden * share + waits * share / together
    compute = cycles / (clock * 1e6)

    in_flight = together * working * work.bytes_in_flight * used
    reached = min(1.0, in_flight / (device.bandwidth * gpu.memory_latency))
    last = device.cache
    moved = 0.0
    if (size := footprint.size()) > last:  # work-items of a group run together, so L1 bounds it too
        moved = max(size, work.missed, min(footprint.fetched(last).lines * LINE, work.l2_bytes))
    memory = max(moved, work.l2_bytes / gpu.l2_bandwidth) / (device.bandwidth * reached) / 1e6
    spread = share / (clock * 1e6)
    issued, waiting, passing = work.instructions / lanes_a_cycle, busy * (1 / hidden - 1), waits / together
    spent = issued, waiting, work.spilling / lanes_a_cycle, work.load_cycles, 0.0, 0.0, passing
    parts = {name: cycles * spread for name, cycles in zip(PARTS, spent, strict=True)}
    return Estimate(max(compute, memory) + _LEAST_MS, compute, memory, moved, used, parts, reached)


def _count(root: Region, kernel: Kernel, device: Device, gpu: Gpu, lanes: int) -> _Work:
    resident = min(gpu.resident_items, ceil(prod(kernel.launch.global_size) / device.compute_units))
    local = kernel.launch.local_size or (1, 1, 1)
    work = _Work()
    held: dict[str, int] = {}
    most = 0.0
    for region, times in root.walk():
        held |= region.held
        count = sum(
            number * o.width * _COST.get(o.op, 1.0) * (o.element_bytes / 4)
            for o, number in region.operations.items()
            if not o.fused
        )
        shares = _shares(region, gpu)
        count += region.index_work + region.shuffles / 4 + _PASS * region.passed
        count += sum([shares[number].loads for number in region.order])
        count += _STEP_INSTRUCTIONS if region.loop is not None and region.loop.kind == "seq" else 0.0
        work.instructions += times * count
        work.barriers += times * region.barriers
        work.passes += times * region.passed / prod(loop.trips for loop in region.path if loop.kind == "lcl")
        work.look_backs += times * region.look_backs
        lines = _lines_of_item(region, gpu)
        is_kept = lines * resident * gpu.l1_line <= device.caches[0]
        is_kept_beyond = is_kept or lines * resident * device.compute_units * gpu.sector <= device.cache
        cycles = [
            times / lanes * _load_cycles(access, region, gpu, lanes) * share.loads
            for access, share in zip(region.accesses, shares, strict=True)
        ]
        traffic = [
            times * _l2_bytes(access, region, local, is_kept, gpu) * share.bytes if access.space == "global" else 0.0
            for access, share in zip(region.accesses, shares, strict=True)
        ]
        for number in region.order:
            work.load_cycles += cycles[number]
            work.l2_bytes += traffic[number]
            work.missed += 0.0 if is_kept_beyond else traffic[number]
        loaded = _bytes_at_once(region)
        if region.loop is not None and region.loop.kind == "seq":  # several steps are unrolled, and load side by side
            loaded *= min(region.trips, max(device.emission.unroll_by, 1))
        if times * count > most:
            most, work.chains = times * count, max(len(region.chains), 1)
        work.bytes_in_flight = max(work.bytes_in_flight, min(loaded, 64))
    work.registers += sum(size for place, size in held.items() if place not in root.passing) / 4
    excess = work.registers - device.registers
    if excess > 0:
        work.spilling = work.instructions * _SPILL_INSTRUCTIONS * excess / work.registers
        work.instructions += work.spilling
    return work


def _working(root: Region) -> int:
    """How many work-items have anything to do: a launch may have more."""
    return max(prod(loop.trips for loop in r.path if loop.kind != "seq") for r, _ in root.walk())


class _Share(NamedTuple):
    """What of an access is its own, in loads and in bytes: the rest another one beside it reads too."""

    loads: float = 1.0
    bytes: float = 1.0


def _shares(region: Region, gpu: Gpu) -> list[_Share]:
    """What the accesses of a region have of their own, also over the steps of a short loop, which is unrolled.

    What is read from one place is read once, and stays in registers; what lies in the same bytes stays in L1.
    """
    is_short = region.loop is not None and region.loop.kind == "seq" and region.trips <= _UNROLLED
    alike: dict[object, list[Access]] = {}
    kinds: list[object] = []
    for access in region.accesses:
        is_shared = access.space == "global" and access.kind == "load" and not access.irregular
        around = access.strides[:-1] if is_short else access.strides
        kinds.append((access.buffer, around) if is_shared else len(kinds))
        own = access if is_shared else access._replace(starts=access.starts[:1])  # each of the others is alone
        alike.setdefault(kinds[-1], []).append(own)
    shares = {kind: _share(accesses, region, gpu, is_short) for kind, accesses in alike.items()}
    return [shares[kind] for kind in kinds]


def _share(accesses: list[Access], region: Region, gpu: Gpu, is_short: bool) -> _Share:
    first = accesses[0]
    steps = region.trips if is_short and first.space == "global" else 1
    if len(accesses) * len(first.starts) * steps == 1:
        return _Share()
    moved = [(a, step * (a.strides[-1] if steps > 1 else 0)) for a in accesses for step in range(steps)]
    read = [(start + by, a.width) for a, by in moved for start in a.starts]
    along = abs(neighbour_stride(first, region.path)) * (gpu.warp - 1)
    covered, end = 0.0, -inf
    for start, width in sorted(set(read)):
        covered += max(start + along + width - max(start, end), 0.0)
        end = max(end, start + along + width)
    return _Share(len(set(read)) / len(read), covered / sum(along + width for _, width in read))


def _bytes_at_once(region: Region) -> int:
    """The bytes of global memory that a work-item asks for in one step, also in the parts that are its own."""
    own = sum(len(a.starts) * a.bytes for a in region.accesses if a.space == "global")
    return own + sum(_bytes_at_once(c) for c in region.children if c.loop is not None and c.loop.kind == "lcl")


def _load_cycles(access: Access, region: Region, gpu: Gpu, lanes: int) -> float:
    """Cycles of a warp for one access by so many of its lanes."""
    if access.space == "local":
        return _local_cycles(access, region, gpu)
    sectors, lines = _of_warp(access, region, gpu, lanes)
    return max(sectors / gpu.sectors_a_cycle, lines)


def _of_warp(access: Access, region: Region, gpu: Gpu, lanes: int) -> tuple[int, int]:
    """Sectors and cache lines that one access by so many lanes of a warp touches."""
    stride = gpu.l1_line if access.irregular else abs(neighbour_stride(access, region.path)) * access.element_bytes
    span = stride * (lanes - 1) + access.bytes
    sectors = min(lanes * ceil(access.bytes / gpu.sector), ceil(span / gpu.sector))
    return sectors, min(lanes, ceil(span / gpu.l1_line))


def _lines_of_item(region: Region, gpu: Gpu) -> float:
    """The lines of L1 that one step of a region loads, divided by the work-items of a warp."""
    lines: dict[tuple[object, ...], float] = {}
    for access in region.accesses:
        if access.space == "global" and access.kind == "load":
            of_warp = _of_warp(access, region, gpu, gpu.warp)[1] / gpu.warp
            for start in access.starts:
                lines[access.buffer, access.strides, start * access.element_bytes // gpu.l1_line] = of_warp
    return sum(lines.values())


def _l2_bytes(access: Access, region: Region, local: tuple[int, int, int], is_kept: bool, gpu: Gpu) -> float:
    """Bytes from beyond L1 for one access of one work-item; the steps of a loop share sectors if L1 keeps their lines,
    and so does a group.
    """
    sectors, _ = _of_warp(access, region, gpu, gpu.warp)
    traffic = sectors * gpu.sector / gpu.warp
    steps = [abs(s) for s, loop in zip(access.strides, region.path, strict=True) if loop.kind == "seq" and s]
    if steps and is_kept:
        traffic *= min(1.0, steps[-1] * access.element_bytes / gpu.sector)
    for stride, loop in zip(access.strides, region.path, strict=True):
        if loop.kind in ("glb", "lcl") and loop.dimension > 0 and stride == 0:
            traffic /= min(local[loop.dimension], loop.trips)
    return traffic


def _local_cycles(access: Access, region: Region, gpu: Gpu) -> float:
    """Cycles of a warp for one access to local memory, with its bank conflicts."""
    words = int(abs(neighbour_stride(access, region.path)) * access.element_bytes) // 4
    cycles = max(gpu.warp * access.bytes / gpu.local_bytes_a_cycle if words else access.bytes / 16, 1.0)
    return cycles * max(gcd(words, gpu.warp) // access.width, 1) if words > access.width else cycles
