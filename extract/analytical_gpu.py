"""The time of a kernel on a GPU: warps in lock-step, whose neighbouring accesses merge, on many units."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, gcd, prod

from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.accesses import Access, Region, neighbour_stride
from lift_egraph.extract.analytical_cpu import Estimate
from lift_egraph.extract.devices import Device
from lift_egraph.extract.footprint import LINE, Footprint

# of one compute unit of an NVIDIA GPU from 2020 on
_RESIDENT_ITEMS = 2048
_REGISTERS, _MOST_REGISTERS, _OWN_REGISTERS = 65536, 255, 24
_LOCAL_BYTES = 228 << 10
_LOCAL_BYTES_A_CYCLE = 128
_SECTOR, _SECTORS_A_CYCLE, _L1_LINE, _L1 = 32, 4, 128, 192 << 10
_WARPS_TO_HIDE_ARITHMETIC = 16.0
_MEMORY_LATENCY_NS = 600.0
_BARRIER_CYCLES = 40.0
_SPILL_INSTRUCTIONS = 4.0
_STEP_INSTRUCTIONS = 2.0
_LEAST_MS = 0.002

_L2_BANDWIDTH = 1.8  # of that of global memory
# all functions of floats; other operations are one instruction
_COST = {"div": 10.0, "mod": 20.0, "sqrt": 10.0, "rsqrt": 8.0, "exp": 10.0, "log": 10.0, "sin": 20.0, "cos": 20.0}
_COST |= {"tan": 40.0, "tanh": 25.0, "pow": 40.0, "floor": 1.0, "ceil": 1.0}


@dataclass
class _Work:
    """Totals over all work-items, in work-item instructions, warp cycles and bytes."""

    instructions: float = 0.0
    load_cycles: float = 0.0
    l2_bytes: float = 0.0
    barriers: float = 0.0
    registers: float = _OWN_REGISTERS
    chains: int = 1
    bytes_in_flight: float = 4.0


def gpu_time(kernel: Kernel, root: Region, footprint: Footprint, device: Device) -> Estimate:
    """The larger of instructions and traffic, each slowed down where too few warps hide its latency."""
    group = prod(kernel.launch.local_size or (min(256, kernel.launch.global_size[0]), 1, 1))
    groups = max(prod(kernel.launch.global_size) // group, 1)
    used = min(groups, device.compute_units)
    work = _count(root, kernel, device)

    registers = min(work.registers, _MOST_REGISTERS)
    together = min(
        _RESIDENT_ITEMS // group,
        int(_REGISTERS / registers) // group,
        _LOCAL_BYTES // kernel.local_bytes if kernel.local_bytes else _RESIDENT_ITEMS,
        ceil(groups / device.compute_units),
    )
    together = max(together, 1)
    warps = max(together * group / device.warp, 1.0)

    share = ceil(groups / used) / groups  # of the compute unit with the most work
    lanes = device.flops_per_cycle / 2
    busy = max(work.instructions / lanes, work.load_cycles)
    hidden = min(1.0, warps * min(work.chains, 8) / _WARPS_TO_HIDE_ARITHMETIC)
    idle_lanes = device.warp / min(group, device.warp)
    cycles = busy * idle_lanes / hidden * share + work.barriers * _BARRIER_CYCLES * share / together
    compute = cycles / (device.clock_mhz * 1000)

    in_flight = warps * device.warp * work.bytes_in_flight * used
    reached = min(1.0, in_flight / (device.bandwidth * _MEMORY_LATENCY_NS))
    last = device.cache * 0.9
    moved = 0.0
    if (size := footprint.size()) > last:  # work-items of a group run together, so L1 bounds it too
        moved = max(size, min(footprint.fetched(last).lines * LINE, work.l2_bytes))
    memory = max(moved, work.l2_bytes / _L2_BANDWIDTH) / (device.bandwidth * reached) / 1e6
    return Estimate(max(compute, memory) + _LEAST_MS, compute, memory, moved, used)


def _count(root: Region, kernel: Kernel, device: Device) -> _Work:
    resident = min(_RESIDENT_ITEMS, ceil(prod(kernel.launch.global_size) / device.compute_units))
    local = kernel.launch.local_size or (1, 1, 1)
    work = _Work()
    held: dict[str, int] = {}
    most = 0.0
    for region, times in root.walk():
        held |= region.held
        count = sum(o.width * _COST.get(o.op, 1.0) * (o.element_bytes / 4) for o in region.operations if not o.fused)
        count += region.index_work + region.shuffles / 4 + len(region.accesses)
        count += _STEP_INSTRUCTIONS if region.loop is not None and region.loop.kind == "seq" else 0.0
        work.instructions += times * count
        work.barriers += times * region.barriers
        for access in region.accesses:
            work.load_cycles += times / device.warp * _load_cycles(access, region, device.warp)
            if access.space == "global":
                work.l2_bytes += times * _l2_bytes(access, region, local, resident, device.warp)
        loaded = sum(a.bytes for a in region.accesses if a.space == "global")
        if times * count > most:
            most, work.chains = times * count, max(len(region.chains), 1)
        work.bytes_in_flight = max(work.bytes_in_flight, min(loaded, 64))
    work.registers += sum(held.values()) / 4
    excess = work.registers - _MOST_REGISTERS
    if excess > 0:
        work.instructions *= 1 + _SPILL_INSTRUCTIONS * excess / work.registers
    return work


def _load_cycles(access: Access, region: Region, warp: int) -> float:
    """Cycles of a warp for one access."""
    if access.space == "local":
        return _local_cycles(access, region, warp)
    sectors, lines = _of_warp(access, region, warp)
    return max(sectors / _SECTORS_A_CYCLE, lines)


def _of_warp(access: Access, region: Region, warp: int) -> tuple[int, int]:
    """Sectors and cache lines that one access of a warp touches."""
    stride = _L1_LINE if access.irregular else abs(neighbour_stride(access, region.path)) * access.element_bytes
    span = stride * (warp - 1) + access.bytes
    sectors = min(warp * ceil(access.bytes / _SECTOR), ceil(span / _SECTOR))
    return sectors, min(warp, ceil(span / _L1_LINE))


def _l2_bytes(access: Access, region: Region, local: tuple[int, int, int], resident: int, warp: int) -> float:
    """Bytes from beyond L1 for one access of one work-item; the steps of a loop share sectors, and so does a group."""
    sectors, lines = _of_warp(access, region, warp)
    traffic = sectors * _SECTOR / warp
    steps = [abs(s) for s, loop in zip(access.strides, region.path, strict=True) if loop.kind == "seq" and s]
    if steps and lines / warp * resident * _L1_LINE <= _L1:
        traffic *= min(1.0, steps[-1] * access.element_bytes / _SECTOR)
    for stride, loop in zip(access.strides, region.path, strict=True):
        if loop.kind in ("glb", "lcl") and loop.dimension > 0 and stride == 0:
            traffic /= min(local[loop.dimension], loop.trips)
    return traffic


def _local_cycles(access: Access, region: Region, warp: int) -> float:
    """Cycles of a warp for one access to local memory, with its bank conflicts."""
    words = int(abs(neighbour_stride(access, region.path)) * access.element_bytes) // 4
    cycles = max(warp * access.bytes / _LOCAL_BYTES_A_CYCLE if words else access.bytes / 16, 1.0)
    return cycles * max(gcd(words, warp) // access.width, 1) if words > access.width else cycles
