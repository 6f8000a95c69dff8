"""The levels of a device: who works on it, from all of it down to the lanes of a vector, with which memory.

Each level's workers are those of the level below it. Which maps may be parallel, over contiguous or strided parts, and
how many of them are worth trying follows from this, so that a device of another build needs no other code.

Source: 001 §5.1, levels with a capability, a level below and a way to synchronise that; 001 §6.6, Figure 6.5, the
partition that a level prefers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

LevelName = Literal["grid", "group", "sub_group", "item", "vector"]
ORDER: tuple[LevelName, ...] = get_args(LevelName)
NEEDED = tuple(name for name in ORDER if name != "sub_group")
MEMORIES: dict[str, tuple[LevelName, ...]] = {
    "bandwidth": ("grid", "group"),
    "caches": ("group",),
    "local_memory": ("group",),
    "registers": ("group", "item"),
}
WORKERS = {
    "grid": "groups a unit",
    "group": "work-items",
    "sub_group": "work-items",
    "item": "results at once",
    "vector": "registers of lanes",
}


@dataclass(frozen=True)
class Level:
    """One level of a device.

    Parameters
    ----------
    name
        ``grid``, all of the device; ``group``, what shares local memory; ``sub_group``, what runs in lock-step, or
        passes values without memory;
        ``item``, a work-item; ``vector``, what one of its instructions works on.
    workers
        How many there are worth trying of what it is made of, the best number first: groups for each compute unit of a
        grid, work-items of a group or sub-group, independent results of a work-item, which its instructions work on at
        once, and hardware registers of `Device.lanes` elements that make a vector.
    partition
        Which elements its workers take best: each a ``contiguous`` part, or ``strided`` ones, neighbours those that lie
        beside each other.
    synchronises
        How its workers wait for each other: by the end of a kernel (``launch``), by a ``barrier``, in ``lockstep``, or
        as they are done in ``order``.
    bandwidth
        GB/s between global memory and all compute units (``grid``), at the most; and what each of them adds, where one
        alone does not reach all (``group``, which runs on one).
    caches
        Bytes of a compute unit's own caches (``group``): two, the nearest first, where it runs groups as loops; one
        where it has warps.
    local_memory
        Bytes of local memory that a compute unit has for all its groups, where that is more than one may have
        (``group``).
    registers
        Of 32 bits, that a compute unit has for all its work-items (``group``), and the most of one (``item``); vectors
        say how many where work-items are no lanes.
    """

    name: LevelName
    workers: tuple[float, ...]
    partition: Literal["contiguous", "strided"]
    synchronises: Literal["launch", "barrier", "lockstep", "order"]
    bandwidth: float = 0.0
    caches: tuple[int, ...] = ()
    local_memory: int = 0
    registers: int = 0

    def __str__(self) -> str:
        numbers = ", ".join(f"{n:g}" for n in self.workers)
        facts = [f"{self.bandwidth:g} GB/s"] if self.bandwidth else []
        facts += [f"caches of {' and '.join(f'{n >> 10} KiB' for n in self.caches)}"] if self.caches else []
        facts += [f"{self.local_memory >> 10} KiB of local memory"] if self.local_memory else []
        facts += [f"{self.registers} registers"] if self.registers else []
        facts = [f"{numbers} {WORKERS[self.name]}", self.partition, self.synchronises, *facts]
        return f"{self.name}: {', '.join(facts)}"


def why_not(levels: tuple[Level, ...], max_work_group: int, warp: int | None, cache: int, local_memory: int) -> str:
    """Why no device has these levels; empty if one may.

    Parameters
    ----------
    max_work_group
        Work-items that a group may have.
    warp
        Work-items that run in lock-step, where the device has such.
    cache, local_memory
        Bytes of the largest cache, and of local memory that a group may have.
    """
    names = tuple(level.name for level in levels)
    missing = [name for name in NEEDED if name not in names]
    if missing:
        return f"levels: {', '.join(missing)} missing; there must be {', '.join(NEEDED)}, and may be a sub_group"
    by_name: dict[LevelName, Level] = {level.name: level for level in levels}
    for level in levels:
        if level.name != "vector" and any(n != int(n) for n in level.workers):
            return f"levels, {level.name}: workers must be whole numbers, got {list(level.workers)}"
    least = int(min(by_name["group"].workers))
    if least > max_work_group:
        return f"levels, group: {least} work-items are more than max_work_group, {max_work_group}"
    together = by_name.get("sub_group")
    if warp is not None and (together is None or together.workers != (warp,)):
        said = f"workers are {list(together.workers)}" if together else "there is none"
        return f"levels, sub_group: {said}, and throughput.warp is {warp}: they must be the same"
    if together and any(int(n).bit_count() != 1 for n in together.workers):
        return f"levels, sub_group: workers must be powers of two, got {list(together.workers)}"
    if together and warp and any(n % together.workers[0] for n in by_name["group"].workers):
        return f"levels, group: {list(by_name['group'].workers)} work-items are not all whole sub-groups of {warp}"
    return _why_no_memory(by_name, warp is not None, cache, local_memory)


def _why_no_memory(levels: dict[LevelName, Level], has_warps: bool, cache: int, local_memory: int) -> str:
    """Why no device has these memories; empty if one may."""
    for name, level in levels.items():
        for key, where in MEMORIES.items():
            if name not in where and getattr(level, key):
                return f"levels, {name}: {key} stands at the level {' or '.join(where)}"
    grid, group, item = levels["grid"], levels["group"], levels["item"]
    needed: dict[LevelName, tuple[str, ...]] = {"grid": ("bandwidth",), "group": ("caches",)}
    if has_warps:
        needed = {"grid": ("bandwidth",), "group": ("caches", "local_memory", "registers"), "item": ("registers",)}
    missing = [f"{name}: {key}" for name, keys in needed.items() for key in keys if not getattr(levels[name], key)]
    if missing:
        return f"levels, {', '.join(missing)}: missing"
    if group.bandwidth > grid.bandwidth:
        return f"levels, group: a unit's bandwidth, {group.bandwidth:g}, is more than that of all, {grid.bandwidth:g}"
    if len(group.caches) != (count := 1 if has_warps else 2):
        return f"levels, group: {count} of a unit's own caches must be given, got {list(group.caches)}"
    if list(group.caches) != sorted(set(group.caches)) or group.caches[-1] > cache:
        return f"levels, group: caches {list(group.caches)} must grow, and be at most the cache of all, {cache}"
    if has_warps and local_memory > group.local_memory:
        return f"levels, group: local_memory, {group.local_memory}, is less than one group may have, {local_memory}"
    if item.registers > group.registers:
        return f"levels, item: {item.registers} registers are more than those of a unit, {group.registers}"
    return ""
