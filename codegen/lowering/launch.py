"""Launch sizes of a kernel, from the lengths that its parallel maps run over.

Lengths that are numbers give a launch with as many work-items, and kernels without loops over them. Where a length
depends on an open size, or any launch shall do, the work-items share out what there is in a loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.lowering.atomics import groups_with_bins
from lift_egraph.codegen.plans.kernel import Freedom, Launch
from lift_egraph.errors import DeviceProblem
from lift_egraph.language import ir
from lift_egraph.language.check import iterate_step, size_of
from lift_egraph.language.describe import blame
from lift_egraph.language.nat import Nat, maximum, nat
from lift_egraph.language.nesting import LOCAL, OWN_LEVELS

_GROUPS_OF_256 = {1: (256, 1, 1), 2: (32, 8, 1), 3: (32, 4, 2)}  # 1.2 times as fast as (16, 16, 1), H100
_OPEN_GROUP = {1: 64, 2: 8, 3: 4}  # work-items in each dimension of mapLcl whose length is open, by their number

_OWN_ELEMENTS = 64  # of a row that is one sub-group's: what its items keep of a longer one fills their registers

# of groups in one dimension, whose maps have other lengths: with 256 and 128 items softmax and layer norm of rows of
# 1024 take half of the time that they take with 1024, 512 is between (H100)
_SMALL_GROUP, _DEFAULT_GROUP, _LARGE_GROUP = 64, 256, 512

Sizes = tuple[Nat, Nat, Nat]
Parallel = ir.MapLevel | ir.AtOnce | ir.LookBack | ir.ReduceSub


@dataclass(frozen=True)
class Threads:
    """How a kernel is launched, and what it takes for granted of that.

    `global_size` may depend on open sizes. `counts` are the work-items or groups of each parallel level, None where
    the kernel reads them at run time. `freedom` says how another launch may differ; None if it may not.
    """

    global_size: Sizes
    local_size: tuple[int, int, int] | None
    counts: dict[ir.Level, int | None]
    freedom: Freedom | None


def parallel_lengths(term: ir.Part) -> dict[ir.Level, Nat]:
    """The greatest length that each parallel level maps over."""
    lengths: dict[ir.Level, Nat] = {}
    for found in _maps(term):
        level = _level(found)
        if level.kind != "seq":
            size = size_of(found.array)
            most = size.range[1]
            length = size if most is None else nat(max(most, 1))
            lengths[level] = maximum(lengths.get(level, nat(1)), length)
    return lengths


def _level(term: Parallel) -> ir.Level:
    return term.level if isinstance(term, ir.MapLevel) else OWN_LEVELS[type(term)]


def _maps(term: ir.Part) -> tuple[Parallel, ...]:
    """The parallel patterns of a term, outermost first (found once per node)."""
    known = term.__dict__.get("_maps")
    if known is None:
        found: list[Parallel] = [term] if isinstance(term, Parallel) else []
        for part in ir.parts(term):
            if isinstance(term, ir.Iterate) and part is term.function:
                part = iterate_step(term, size_of(term.array))
            found += _maps(part)
        known = term.__dict__["_maps"] = tuple(found)
    return known


def launch_sizes(term: ir.Part, device: Device, wanted: Launch | None, *, any_launch: bool = False) -> Threads:
    """The launch of a kernel; `wanted` replaces the inferred one.

    With `any_launch` the kernel is right for other launches too; a local size in `wanted` is kept.

    Raises
    ------
    DeviceProblem
        If the wanted group is larger than the device allows, or not given where the kernel must know it.
    """
    lengths = parallel_lengths(term)
    kinds = {level.kind for level in lengths}
    if not kinds:
        return Threads((nat(1), nat(1), nat(1)), (1, 1, 1), {}, None)
    if wanted and wanted.local_size and prod(wanted.local_size) > device.max_work_group:
        problem = DeviceProblem(
            f"a group of {prod(wanted.local_size)} work-items is more than "
            f"{device.name} allows ({device.max_work_group})"
        )
        raise blame(problem, _maps(term)[0])
    if wanted and wanted.local_size is None and "wrg" in kinds and not any_launch:
        problem = DeviceProblem("a kernel of mapWrg is made for groups of a known size: the launch needs a local size")
        raise blame(problem, _maps(term)[0])
    if wanted:
        x, y, z = wanted.global_size
        size: Sizes = (nat(x), nat(y), nat(z))
        local = wanted.local_size
    else:
        passes = any(isinstance(found, ir.ReduceSub) for found in _maps(term))
        in_groups = _groups(_of_groups(term, lengths, device), device, passes) if "wrg" in kinds else None
        size, local = in_groups or _items(lengths, device)
    if local and not (wanted or any_launch) and (groups := groups_with_bins(term, device)):
        size, lengths = (nat(groups * local[0]), nat(1), nat(1)), {**lengths, LOCAL: nat(local[0])}
    is_free = any_launch or any(length.constant is None for length in lengths.values())
    keeps_local = not any_launch or bool(wanted and wanted.local_size)
    items = local or (1, 1, 1)
    counts: dict[ir.Level, int | None] = {}
    for level in lengths:
        d = level.dimension
        if level.kind == "lcl":
            counts[level] = items[d] if keeps_local else None
        else:
            number = None if is_free else size[d].constant
            counts[level] = number if number is None or level.kind == "glb" else max(number // items[d], 1)
    if not is_free:
        return Threads(size, local, counts, None)
    own = "lcl" if "wrg" in kinds else "glb"
    freedom = Freedom(
        tuple(sorted(level.dimension for level in lengths if level.kind in ("wrg", "glb"))),
        tuple(sorted(level.dimension for level in lengths if level.kind == own)) if not keeps_local else (),
    )
    return Threads(size, local, counts, freedom)


def is_of_one(term: ir.ReduceSub, sub_group: int) -> bool:
    """Whether one sub-group of so many work-items has all elements, each one of them."""
    return size_of(term.array) == term.items == nat(sub_group)


def _of_groups(term: ir.Part, lengths: dict[ir.Level, Nat], device: Device) -> dict[ir.Level, Nat]:
    """The lengths, where groups of many work-items are slow without the longest: those are loops then."""
    local = [level for level in lengths if level.kind == "lcl"]
    first, longest = LOCAL, lengths.get(LOCAL, nat(1)).constant
    reduced = [found for found in _maps(term) if isinstance(found, ir.ReduceSub)]
    is_short = longest is not None and longest <= _OWN_ELEMENTS * device.sub_group
    if reduced and is_short and all(is_of_one(found, device.sub_group) for found in reduced):
        return {**lengths, LOCAL: nat(device.sub_group)}  # each item knows then what the sub-group has
    if not device.emission.groups_of_256 or local != [first] or longest is None or longest <= _LARGE_GROUP:
        return lengths
    shorter = {size_of(found.array).constant or 0 for found in _maps(term) if _level(found) == first}
    most = max((n for n in shorter if _SMALL_GROUP <= n <= _LARGE_GROUP), default=_DEFAULT_GROUP)
    return {**lengths, first: nat(most)}


def _groups(lengths: dict[ir.Level, Nat], device: Device, passes: bool) -> tuple[Sizes, tuple[int, int, int]]:
    """The launch of groups, of whole sub-groups where their items pass values."""
    together = device.sub_group if passes and device.sub_group else 1
    wanted = [lengths.get(ir.Level("lcl", d), nat(1)) for d in range(3)]
    number_open = sum(1 for n in wanted if n.constant is None)
    local = [n.constant or _OPEN_GROUP[number_open] for n in wanted]
    local[0] = -(-local[0] // together) * together
    while prod(local) > device.max_work_group:
        shorter = [d for d in range(3) if local[d] > (1 if d else together)]
        if not shorter:
            raise DeviceProblem(f"{device.name} has {device.max_work_group} work-items a group, fewer than a sub-group")
        largest = max(shorter, key=lambda d: (local[d], d))  # the work-items of the first are neighbours in memory
        local[largest] = (local[largest] + 1) // 2
        local[0] = -(-local[0] // together) * together
    x, y, z = (lengths.get(ir.Level("wrg", d), nat(1)) * local[d] for d in range(3))
    return (x, y, z), (local[0], local[1], local[2])


def _items(lengths: dict[ir.Level, Nat], device: Device) -> tuple[Sizes, tuple[int, int, int] | None]:
    x, y, z = (lengths.get(ir.Level("glb", d), nat(1)) for d in range(3))
    if not device.emission.groups_of_256:
        return (x, y, z), None
    used = sum(1 for level in lengths if level.kind == "glb")
    a, b, c = _GROUPS_OF_256[used] if used == max(level.dimension for level in lengths) + 1 else (1, 1, 1)
    while used > 1 and a > 1 and x.constant is not None and x.constant <= a // 2:
        a, b = a // 2, b * 2
    return (_rounded(x, a), _rounded(y, b), _rounded(z, c)), (a, b, c)


def _rounded(length: Nat, group: int) -> Nat:
    """The least multiple of the group size that covers a length."""
    return (length + (group - 1)) // group * group
