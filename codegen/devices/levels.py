"""The levels of a device: who works on it, from all of it down to the lanes of a vector.

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
        ``grid``, all of the device; ``group``, what shares local memory; ``sub_group``, what runs in lock-step;
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
    """

    name: LevelName
    workers: tuple[float, ...]
    partition: Literal["contiguous", "strided"]
    synchronises: Literal["launch", "barrier", "lockstep", "order"]

    def __str__(self) -> str:
        numbers = ", ".join(f"{n:g}" for n in self.workers)
        return f"{self.name}: {numbers} {WORKERS[self.name]}, {self.partition}, {self.synchronises}"


def why_not(levels: tuple[Level, ...], max_work_group: int, warp: int | None) -> str:
    """Why no device has these levels; empty if one may.

    Parameters
    ----------
    max_work_group
        Work-items that a group may have.
    warp
        Work-items that run in lock-step, where the device has such.
    """
    names = tuple(level.name for level in levels)
    missing = [name for name in NEEDED if name not in names]
    if missing:
        return f"levels: {', '.join(missing)} missing; there must be {', '.join(NEEDED)}, and may be a sub_group"
    by_name = {level.name: level for level in levels}
    for level in levels:
        if level.name != "vector" and any(n != int(n) for n in level.workers):
            return f"levels, {level.name}: workers must be whole numbers, got {list(level.workers)}"
    least = int(min(by_name["group"].workers))
    if least > max_work_group:
        return f"levels, group: {least} work-items are more than max_work_group, {max_work_group}"
    together = by_name.get("sub_group")
    if (together is None) != (warp is None) or (together and together.workers != (warp,)):
        said = f"workers are {list(together.workers)}" if together else "there is none"
        return f"levels, sub_group: {said}, and throughput.warp is {warp}: they must be the same"
    if together and any(n % together.workers[0] for n in by_name["group"].workers):
        return f"levels, group: {list(by_name['group'].workers)} work-items are not all whole sub-groups of {warp}"
    return ""
