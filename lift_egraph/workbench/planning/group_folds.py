"""Plans for scans, and reductions in order, by groups of work-items: each group reduces a chunk, and one group the
totals; or it scans the totals, and then each group scans its chunk from there.

In a group each item reduces a run of neighbouring elements, what the items have is scanned in local memory, part by
part, and each item scans its run from there. Or pairs of what the items have are summed up, and pairs of these, in a
tree; and what stands before each comes down again (`group_sweeps`).

Source: Dotsenko et al., "Fast scan algorithms on graphics processors", ICS 2008; Blelloch, "Prefix sums and their
applications", 1990.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import isqrt, prod
from typing import Self

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling, merged
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, Scalar
from lift_egraph.workbench.planning.plan import LONG, Nest, Plan, Step, length_of, plan_of

RUNS = (8, 4, 16, 2)  # elements of an item, the best number first
LONG_RUNS = (16, 8, 32)  # … of one whose run is only reduced: of sums of 2^28 elements in order, H100
LEAST, ROW_PLANS = 32, 2  # items of a group; how many cuts of rows are tried
MOST_SWEPT = 512  # items of a group that scans what they have as a tree
LONGEST_RUN, MOST_LAST = 64, 512  # elements of an item, and the items, of the one group that scans the totals
SEQUENTIAL: dict[type[ir.Expr], str] = {
    loop: sequential.signature.name
    for loop, sequential in ((ir.Reduce, ir.ReduceSeq), (ir.Scan, ir.ScanSeq), (ir.ScanExclusive, ir.ScanExclusiveSeq))
}


def group_folds(nest: Nest, device: Device, most: int | None = None) -> Iterator[Plan]:
    """The plans for a scan, or a reduction in order, on a device whose groups have several work-items: of an array, or
    of rows of one. A group has at `most` so many items, or as many as groups of the device have.
    """
    most = most or max(device.group_sizes)
    if not nest.maps:
        # the fewer totals, the less the one group has to do that folds them, while all others are done
        reduces = nest.fold is ir.Reduce and nest.length >= LONG
        runs, most = (LONG_RUNS, device.max_work_group) if reduces else (RUNS, most)
        cuts = ((run, _items(nest.length, run, most)) for run in runs)
    elif len(nest.maps) == 1 and not isinstance(nest.maps[0], ir.Transpose):
        cuts = islice(_cuts_of_row(nest.length, most), ROW_PLANS)
    else:
        return
    for run, items in cuts:
        if items is None:
            continue
        width = next((w for w in device.widths if run % w == 0), 1)
        for part, passes in _parts(nest, items, device.sub_group):
            numbers = {"part": part, "left": items // part}
            if not nest.maps:
                numbers |= {"run": run, **_last(nest.length // (items * run), max(items, MOST_LAST))}
            in_vectors = width > 1 and (reads_scalars(nest) or writes_scalars(nest))
            numbers |= {"width": width} if in_vectors else {}
            multiples = (("run", "width"),) if in_vectors and not nest.maps else ()
            yield plan_of(_by_sub_groups if passes else _by_items, nest, multiples, **numbers)


def group_sweeps(nest: Nest, device: Device) -> Iterator[Plan]:
    """The plans for a scan whose groups scan what their items have as a tree: the same cuts, of a power of two items,
    for all devices.
    """
    most = min(MOST_SWEPT, device.max_work_group)
    for plan in group_folds(nest, device, most) if nest.fold is not ir.Reduce else ():
        assert plan.recipe is not None
        numbers = dict(plan.recipe.numbers)
        if all(n & (n - 1) == 0 for name, n in numbers.items() if name in ("part", "left")):
            yield plan_of(_by_sweeps, nest, plan.recipe.multiples, **numbers)


def _parts(nest: Nest, items: int, sub_group: int) -> Iterator[tuple[int, bool]]:
    """In parts of how many items what these have is folded, and whether by sub-groups: by these first, if there are
    several that reduce.
    """
    if nest.fold is ir.Reduce and sub_group and items % sub_group == 0 and items > sub_group:
        yield sub_group, True
    yield part_of(items), False


def reads_scalars(nest: Nest) -> bool:
    """Whether items read one array of scalars, for what they fold."""
    array = nest.array
    while isinstance(array, ir.Map):
        array = array.array
    read = type_of(array)
    return isinstance(read, Array) and isinstance(read.element, Scalar)


def writes_scalars(nest: Nest) -> bool:
    """Whether items write scalars."""
    return nest.fold is not ir.Reduce and isinstance(nest.result, Scalar)


def _cuts_of_row(length: int, most: int) -> Iterator[tuple[int, int]]:
    """Runs of a row, and as many items as it has, the most first."""
    for items in range(most, LEAST - 1, -1):
        if length % items == 0 and 1 < length // items <= LONGEST_RUN and part_of(items) > 1:
            yield length // items, items


def _items(length: int, run: int, most: int) -> int | None:
    """The most items of a group that runs of a length divide an array among, if a last group can have the totals."""
    fitting = (n for n in range(most, LEAST - 1, -1) if length % (n * run) == 0 and part_of(n) > 1)
    return next((n for n in fitting if _run_of_totals(length // (n * run), max(most, MOST_LAST))), None)


def _run_of_totals(count: int, most: int) -> int | None:
    """How many of the totals an item of the last group has, at least; none if it has too few items."""
    return next((r for r in range(1, LONGEST_RUN + 1) if count % r == 0 and count // r <= most), None)


def _last(count: int, most: int) -> dict[str, int]:
    """How the last group, of at `most` so many items, cuts so many totals, beside the runs that this leaves."""
    run = _run_of_totals(count, most) or count
    items = count // run
    part = part_of(items)
    if part == 1:
        return {"last_left": items} if 1 < items < count else {}
    return {"last_left": items // part} if run == 1 else {"last_part": part, "last_left": items // part}


def part_of(items: int) -> int:
    """The number that divides a number of items next to its root, from below; 1 for primes."""
    return next(n for n in range(isqrt(items), 0, -1) if items % n == 0)


def _by_items(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Groups of `part` times `left` items, with runs of `run` elements each, whose totals are folded in such parts; the
    runs are read and written in vectors, if there is a `width` of them.
    """
    return _folds(nest, ChunkCut.of(nest, numbers), numbers.get("width"))


def _by_sub_groups(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same of `left` sub-groups of `part` items each, which pass on the totals of their runs."""
    return _folds(nest, replace(ChunkCut.of(nest, numbers), passes=True), numbers.get("width"))


def _by_sweeps(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same as `_by_items`, but for the scan of what the items have: pair by pair."""
    return _folds(nest, replace(ChunkCut.of(nest, numbers), sweeps=True), numbers.get("width"))


def _folds(nest: Nest, cut: ChunkCut, width: int | None) -> Plan:
    tiling = merged(cut_tiling(cut.chunk, *cut.levels), cut_tiling(cut.chunk, *cut.scan_levels))
    if not nest.maps:
        one = cut.count if cut.last else nest.length
        of_totals = cut_tiling(cut.count, *cut.last) if cut.last else {}
        tiling = merged({nest.length: (cut.chunk,)}, tiling, {one: (one,)}, of_totals)
    folds = "sub_group_folds" if cut.passes else "group_sweeps" if cut.sweeps else "group_folds"
    steps = (
        Step(folds, cut.kernels(Form(low=False, computes=nest.reads_map)), tiling),
        Step("group_fold_levels", cut.kernels(Form(low=True)), {}, (), lowered),
    )
    if width is None:
        return Plan(steps, (), lowered_by=None)
    vectors = cut.kernels(Form(True, width if writes_scalars(nest) else 0, holds=reads_scalars(nest)))
    return Plan((*steps, Step("item_folds", vectors, {}, (width,))), (width,), lowered_by=None)


@dataclass(frozen=True)
class Form:
    """How scans by items stand in a term: as high-level patterns, or mapped to groups and items.

    With a `width` what the items scan is written in vectors, and what they fold is read so if it `holds`: each of the
    components of tuples, if these have several `sides`. They compute what they fold themselves, if it `computes`.
    """

    low: bool
    width: int = 0
    holds: bool = False
    computes: bool = False
    sides_read: int = 1
    sides_written: int = 1

    def groups(self, body: sk.Sketch, count: int, array: sk.Sketch = sk.ANY) -> sk.Sketch:
        """A map over the chunks of groups."""
        if self.low:
            return sk.map_level("mapWrg(0)", body, array, length=count)
        return sk.map_(body, array, length=count)

    def items(self, body: sk.Sketch, count: int, array: sk.Sketch = sk.ANY) -> sk.Sketch:
        """A map over what a group's items have."""
        if self.low:
            return sk.map_level("mapLcl(0)", body, array, length=count)
        return sk.map_(body, array, length=count)

    def kept(self, space: str, value: sk.Sketch) -> sk.Sketch:
        """What a let binds, in a memory."""
        return sk.to_memory(space, value) if self.low else value

    def fold(self, fold: type[ir.Expr], length: int, array: sk.Sketch = sk.ANY) -> sk.Sketch:
        """A fold of so many elements."""
        name = SEQUENTIAL.get(fold, fold.signature.name) if self.low else fold.signature.name
        return sk.PatternSketch(name, (sk.ANY, sk.ANY, array), (), length)

    @property
    def read(self) -> sk.Sketch:
        """What an item folds first; by a loop it is computed in the loop."""
        if not self.low:
            return sk.map_() if self.computes else sk.ANY
        return _zipped(sk.as_scalar(sk.to_memory("private")), self.sides_read) if self.holds else sk.variable()

    @property
    def bare(self) -> Form:
        """The same, for what is in local memory."""
        return Form(self.low)

    def written(self, scanned: sk.Sketch) -> sk.Sketch:
        """What an item scans last."""
        if not self.width:
            return scanned
        own = sk.to_memory("private", scanned)
        if self.sides_written == 1:
            return sk.as_scalar(sk.map_seq(sk.ANY, sk.as_vector(self.width, own)))
        return sk.let(own, _zipped(sk.as_scalar(sk.map_seq(sk.ANY, sk.as_vector(self.width))), self.sides_written))


def _zipped(side: sk.Sketch, count: int) -> sk.Sketch:
    return side if count == 1 else sk.zip_(side, _zipped(side, count - 1))


@dataclass(frozen=True)
class ChunkCut:
    """How a fold is cut.

    Attributes
    ----------
    fold
        Which one it is.
    count, levels
        How many chunks there are, each a group's, or rows; and how a group folds one: runs of the first number for each
        item, parts of the second of what these have, and what is left for one item.
    last
        How one group folds the totals of the chunks, likewise; nothing where there are none.
    passes
        Whether the parts of a chunk are those of sub-groups, whose items pass on what they have.
    sweeps
        Whether what the items have is scanned pair by pair.
    """

    fold: type[ir.Expr]
    count: int
    levels: tuple[int, ...]
    last: tuple[int, ...]
    passes: bool = False
    sweeps: bool = False

    @classmethod
    def of(cls, nest: Nest, numbers: Mapping[str, int]) -> Self:
        """The cut of a fold by the numbers of a plan."""
        items = numbers["part"], numbers["left"]
        if nest.maps:
            levels = nest.length // prod(items), *items
            return cls(nest.fold, length_of(nest.maps[0]), levels, ())
        levels = numbers["run"], *items
        count = nest.length // prod(levels)
        last = tuple(numbers[name] for name in ("last_part", "last_left") if name in numbers)
        return cls(nest.fold, count, levels, (count // prod(last), *last) if count > 1 else ())

    @property
    def chunk(self) -> int:
        """The elements of a chunk."""
        return prod(self.levels)

    @property
    def scan_levels(self) -> tuple[int, ...]:
        """How a group scans a chunk, if that is otherwise than how it folds one."""
        run, *items = self.levels
        return (run, *(2,) * (prod(items).bit_length() - 1)) if self.sweeps else self.levels

    def kernels(self, form: Form) -> sk.Sketch:
        """The totals of all chunks, what stands before each, and the scans of the chunks; or these alone. Of a
        reduction, the totals and their total.
        """
        reduced = _passed_on if self.passes else _reduced
        totals, offsets = form.groups(reduced(self.levels, form), self.count), sk.ANY
        if self.fold is ir.Reduce and self.last:
            return sk.contains(form.groups(_reduced(self.last, form.bare), 1, sk.contains(totals)))
        if self.fold is ir.Reduce:
            return sk.contains(totals)
        if self.last:
            before = form.kept("global", form.groups(scanned(ir.ScanExclusive, self.last, form.bare), 1))
            offsets = sk.zip_(sk.contains(sk.let(sk.contains(form.kept("global", totals)), sk.contains(before))))
        pairs = sk.contains(sk.at(1)) if self.sweeps else None
        return sk.contains(form.groups(scanned(self.fold, self.scan_levels, form, None, pairs), self.count, offsets))


def _reduced(levels: tuple[int, ...], form: Form) -> sk.Sketch:
    """The total of a chunk: of runs of the first number, of what these have in parts of the second, and so on."""
    *levels_of_items, left = levels
    count, array, read = prod(levels), sk.ANY, form.read
    for n in levels_of_items:
        count //= n
        own = form.items(sk.contains(form.fold(ir.Reduce, n, read)), count, array)
        array, read = sk.contains(form.kept("local", own)), sk.ANY
    return sk.contains(form.fold(ir.Reduce, left, array))


def _passed_on(levels: tuple[int, ...], form: Form) -> sk.Sketch:
    """The same by sub-groups, to whose items their runs belong."""
    run, items, left = levels
    own = form.items(sk.contains(form.fold(ir.Reduce, run, form.read)), items * left)
    return sk.contains(form.fold(ir.Reduce, left, sk.reduce_sub(items, own, length=items * left)))


def scanned(
    fold: type[ir.Expr],
    levels: tuple[int, ...],
    form: Form,
    total: sk.Sketch | None = None,
    totals_of_these: sk.Sketch | None = None,
) -> sk.Sketch:
    """The scan by the items of a group, by the same levels; one item scans what is left.

    Totals are reductions, if nothing else is said of the `total` of each run, and of the totals of these.
    """
    first, *others = levels
    if not others:
        return sk.contains(form.items(sk.contains(form.fold(fold, first)), 1))
    count = prod(others)
    totals = form.items(total or sk.contains(form.fold(ir.Reduce, first, form.read)), count)
    before = scanned(ir.ScanExclusive, tuple(others), form.bare, totals_of_these, totals_of_these)
    if form.low:
        before = sk.contains(sk.to_memory("local", before))
    offsets = sk.let(sk.contains(form.kept("local", totals)), before)
    own = sk.contains(form.written(form.fold(fold, first, form.read)))
    return sk.contains(form.items(own, count, sk.zip_(sk.contains(offsets))))


def cut_tiling(chunk: int, *levels: int) -> Tiling:
    """The facts that cut a chunk level by level; what is left at the end is one chunk."""
    made: Tiling = {}
    for n in levels[:-1]:
        made = merged(made, {chunk: (n,)})
        chunk //= n
    return merged(made, {chunk: (chunk,)})
