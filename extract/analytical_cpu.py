"""The time of a kernel on a CPU: a group is a loop on one core, its work-items one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, prod

from lift_egraph.codegen.devices import Cpu, Device
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.accesses import Operated, Region
from lift_egraph.extract.footprint import LINE, PAGE, Footprint, Touched, footprint_of
from lift_egraph.extract.private_vectors import in_private_vectors
from lift_egraph.extract.shared_vectors import in_shared_vectors
from lift_egraph.extract.unrolled import in_one_step

# cycles for one instruction, at full throughput; on some runtimes other functions of floats are calls
_COST = {"div": 5.0, "mod": 12.0, "sqrt": 6.0, "rsqrt": 10.0, "floor": 2.0, "ceil": 2.0}
_CALL = {"exp": 40.0, "log": 40.0, "sin": 90.0, "cos": 90.0, "tan": 120.0, "tanh": 100.0, "pow": 120.0}
_CALL |= {"asin": 60.0, "acos": 60.0, "atan": 60.0, "atan2": 90.0, "sinh": 100.0, "cosh": 80.0, "erf": 80.0}
_DIVIDES = ("div", "sqrt")  # done by a unit that takes half as long for half a vector …
_CALL_DIVIDES = (*_DIVIDES, "rsqrt")  # … and so is this where it is a call; inlined, it is an estimate, improved …
_LEAST_DIVIDED = 0.25  # … down to this part of one
_INLINE_CALL = 0.4  # the part of that which inlined functions cost: other compilers', and those in a kernel's text, …
_SPELLED, _SPELLED_LANES = ("exp", "log", "pow", "sin", "cos"), ("pow", "sin", "cos")  # … of one float, and of lanes, …
_STRAIGHT = ("exp", "pow")  # … of which these have no branch, so that loops with them become vectors
_LATENCY = {"div": 11.0, "sqrt": 14.0, "rsqrt": 25.0, "and": 1.0, "or": 1.0, "select": 2.0}
_ADD_LATENCY = 4.0
_ISSUE = 4.0  # instructions a cycle
_WINDOW = 300  # instructions in flight: shorter loops overlap with what follows
_STEP = 1.0  # cycles of a loop's own
_INTERLEAVED = 4  # vectors that compilers add up beside each other where they make them of a loop
_TEMPORARIES = 3  # registers beside accumulators
_SPILL, _SPILL_LATENCY = 2.5, 16.0  # cycles for each value that is kept in memory, and in the way of a chain

# cycles of a core for one line from L2, L3 and memory: foreseen by a prefetcher, or strided
_STREAMED = (1.5, 4.0, 6.0)
_STRIDED = (6.0, 12.0, 32.0)
_PAGES, _PAGE_MISS = 2048, 20.0  # pages that the address translation holds; cycles for one more

_STORE_MOVES = 2.0  # of a line that is stored to: caches fetch it first
_EXPOSED = 0.5  # the part of waiting for strided lines that instructions do not hide


PARTS = ("instructions", "chains", "spills", "strided", "streamed", "groups", "barriers")


@dataclass(frozen=True)
class Estimate:
    """Milliseconds, and bytes between global memory and the caches.

    `parts` has the milliseconds of each of `PARTS`, which overlap; `reached` is the share of the bandwidth that the
    launch can ask for.
    """

    ms: float
    compute_ms: float
    memory_ms: float
    bytes_moved: float
    parallelism: int
    parts: Mapping[str, float]
    reached: float


def cpu_time(kernel: Kernel, root: Region, device: Device, cpu: Cpu) -> Estimate:
    """The larger of instructions and memory traffic, on the cores that have work."""
    launch = kernel.launch
    if cpu.joins_scalars:
        root = in_private_vectors(root)
    if cpu.vectorises_items and (launch.local_size is None or launch.local_size[0] > 1):
        root = in_shared_vectors(root, device.lanes, cpu.gathers_items)
        footprint = Footprint(root)
    else:
        footprint = footprint_of(kernel)  # vectors of private places access the same memory
    items = prod(launch.global_size)
    groups = items // prod(launch.local_size) if launch.local_size else ceil(items / device.max_work_group)
    used = min(groups if launch.local_size else items, device.compute_units)
    share = ceil(groups / used) / groups if launch.local_size else 1 / used  # of the core with the most work
    core = _Core(device, cpu)
    instructions, barriers = core.cycles(root), core.barriers(root)
    cycles = instructions + barriers
    strided, streamed, beyond = _misses(footprint, device)
    ns = 1000 / device.clock_mhz
    busy = max(cycles, strided) + _EXPOSED * min(cycles, strided)
    compute = (max(busy, streamed) * ns + groups * cpu.group_ns) * share
    moved = beyond.lines * LINE
    reached = min(1.0, 1.4 * used / device.compute_units)
    memory = moved / (device.bandwidth * reached)
    spent = (instructions, core.waiting, core.spilling, strided, streamed, groups * cpu.group_ns / ns, barriers)
    parts = {name: cycles * ns * share / 1e6 for name, cycles in zip(PARTS, spent, strict=True)}
    return Estimate(max(compute, memory) / 1e6, compute / 1e6, memory / 1e6, moved, used, parts, reached)


def _misses(footprint: Footprint, device: Device) -> tuple[float, float, Touched]:
    """Cycles for lines that are not in the first cache, the strided ones and the streamed ones; and the lines that come
    from memory.
    """
    fits = footprint.size(_STORE_MOVES) <= device.cache
    beyond = Touched() if fits else footprint.fetched(device.cache, store_moves=_STORE_MOVES)
    levels = [*(footprint.fetched(size, store_moves=_STORE_MOVES) for size in device.caches), beyond, Touched()]
    strided = streamed = 0.0
    for level, (near, far) in enumerate(pairwise(levels)):
        strided += max(near.strided - far.strided, 0) * _STRIDED[level]
        streamed += max(near.streamed - far.streamed, 0) * _STREAMED[level]
    strided += footprint.fetched(_PAGES * PAGE, PAGE, _STORE_MOVES).strided * _PAGE_MISS
    return strided, streamed, beyond


class _Core:
    """Cycles of one core for the instructions of a kernel; of these, `waiting` for chains, and `spilling`."""

    def __init__(self, device: Device, cpu: Cpu) -> None:
        self.lanes, self.registers = device.lanes, device.registers
        self.calls, self.barrier, self.reassociates = cpu.calls_functions, cpu.barrier_cycles, cpu.reassociates
        self.spells_out = device.emission.inline_math
        self.waiting = self.spilling = 0.0

    def cycles(self, region: Region, around: tuple[Region, ...] = (), times: float = 1.0) -> float:
        """For all steps of a region's loop, which stands in other regions, the kernel itself first, and so runs so many
        times in all.
        """
        times *= region.trips
        if region.children and (whole := in_one_step(region)) is not None and self.is_vectorised(whole):
            region = whole
        inner = sum(self.cycles(child, (*around, region), times) for child in region.children)
        is_vectorised = self.is_vectorised(region)
        issue, count = self.instructions(region, is_vectorised)
        lanes = self.lanes if is_vectorised else 1
        if region.loop is None:
            return inner + issue
        spilled = 0 if region.children else self.spilled(region)
        issue += spilled * _SPILL
        latency = 0.0
        if region.loop.kind == "seq":
            for place, chain in region.chains.items():
                cycles = sum(_LATENCY.get(op, _ADD_LATENCY) for op in chain) + (_SPILL_LATENCY if spilled else 0.0)
                steps = 1 if place in region.begun else region.trips * _carried(place, around)
                latency = max(latency, cycles * min(1.0, steps * count / _WINDOW))
        if is_vectorised:
            latency /= _INTERLEAVED
        busy = max(issue + _STEP / _ISSUE, _STEP)
        self.spilling += times * spilled * _SPILL / lanes
        self.waiting += times * max(latency - busy, 0.0) / lanes
        return region.trips * (max(busy, latency) / lanes + inner)

    def barriers(self, root: Region) -> float:
        """Each barrier ends the loop over work-items and starts another one."""
        total = 0.0
        for region, times in root.walk():
            if region.barriers:
                total += times * region.barriers * self.barrier * _items_inside(region)
        return total

    def instructions(self, region: Region, is_vectorised: bool = False) -> tuple[float, float]:
        """Cycles and instructions of one step of a region, or of as many as fill a vector, without its inner loops."""
        arithmetic = count = 0.0
        for operated, number in region.operations.items():
            if not operated.fused:
                parts = self.parts(operated.width, operated.element_bytes)
                filled = parts if is_vectorised else operated.width * operated.element_bytes / (4 * self.lanes)
                arithmetic += number * self.cost(operated, parts, filled)
                count += number * parts
        loads = stored = 0
        for access in region.accesses:
            parts = len(access.starts) * self.parts(access.width, access.element_bytes)
            loads, stored = (loads + parts, stored) if access.kind == "load" else (loads, stored + parts)
        extra = (region.shuffles + region.passed + region.index_work) / 2
        count += loads + stored + extra
        return max(arithmetic, loads / 2, stored, extra, count / _ISSUE), count

    def parts(self, width: int, element_bytes: int) -> int:
        """Hardware vectors for a value."""
        return ceil(width * element_bytes / (4 * self.lanes))

    def cost(self, operated: Operated, parts: float, filled: float) -> float:
        """Cycles of an operation on so many hardware vectors, which it fills so many of."""
        if operated.op in (_CALL_DIVIDES if self.calls else _DIVIDES):
            parts = max(filled, _LEAST_DIVIDED)
        call = _CALL.get(operated.op)
        if call is None:
            return parts * _COST.get(operated.op, 0.5)
        return parts * call * (1.0 if self.calls and not self.is_spelled(operated) else _INLINE_CALL)

    def is_spelled(self, operated: Operated) -> bool:
        """Whether a function is text of the kernel itself (`lift_egraph.codegen.text.inline_math`)."""
        names = _SPELLED if operated.width == 1 else _SPELLED_LANES
        return self.spells_out and operated.element_bytes == 4 and operated.op in names

    def stays_scalar(self, operated: Operated) -> bool:
        """Whether no loop with this operation becomes vectors: it has lanes of its own, or calls a function."""
        is_text = self.is_spelled(operated) and operated.op in _STRAIGHT
        return operated.width > 1 or (operated.op in _CALL and not is_text)

    def spilled(self, region: Region) -> int:
        """Values of an innermost loop that find no register."""
        needed = sum(ceil(size / (4 * self.lanes)) for size in region.held.values())
        return max(needed + _TEMPORARIES - self.registers, 0)

    def is_vectorised(self, region: Region) -> bool:
        """Whether the compiler turns scalar steps of an innermost loop into vectors."""
        loop = region.loop
        if loop is None or region.children or region.shuffles or loop.trips < self.lanes:
            return False
        carried = [chain for place, chain in region.chains.items() if place not in region.begun]
        if carried and not (self.reassociates and all(map(_is_sum, carried))):
            return False
        if region.bent:  # what one step and the next read need not lie side by side
            return False
        if any(map(self.stays_scalar, region.operations)):
            return False
        return all(a.width == 1 and not a.irregular and a.strides[-1] in (0, 1) for a in region.accesses)


def _is_sum(chain: list[str]) -> bool:
    """Whether all that is done to a value in a step is to add to it, or to multiply it."""
    return {*chain} <= {"add", "sub"} or {*chain} == {"mul"}


def _carried(place: str, around: tuple[Region, ...]) -> int:
    """How many times a chain goes on after a loop's end: the steps of the loops around that leave its place alone."""
    steps = 1
    for region in reversed(around):
        if region.loop is None or region.loop.kind != "seq" or place in region.held or place in region.moved:
            break
        steps *= region.trips
    return steps


def _items_inside(region: Region) -> int:
    """Work-items that meet at the barriers of a region: the widest mapLcl in it."""
    sizes = [1]
    for inner, _ in region.walk():
        sizes.append(prod(loop.trips for loop in inner.path[len(region.path) :] if loop.kind == "lcl"))
    return max(sizes)
