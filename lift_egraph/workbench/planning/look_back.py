"""Plans for scans in one pass, on devices whose groups go on while others wait for them: each group scans a chunk, and
looks back over the totals of the chunks before it.

In a group each item has a run of neighbouring elements, as in `lift_egraph.workbench.planning.group_folds`. Words that
are there are scanned at once, and what is before them is added. All else, also what loops compute that act like a
monoid, is folded first, run by run, and scanned when it is known what is before each run.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from lift_egraph.algebra.actions import Action, action_of, seen_first
from lift_egraph.algebra.laws import associative, built_in, right_identity
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.lowering.look_back import words_of
from lift_egraph.extract.tiling import merged
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.types import SCALAR_BYTES, DataType, Pair, Scalar
from lift_egraph.workbench.planning.group_folds import Form, cut_tiling, part_of, reads_scalars, scanned
from lift_egraph.workbench.planning.plan import LONG, Nest, Plan, Recipe, Step, length_of, plan_of

RUNS = (16, 8)  # elements of an item, the best number first, H200
AHEAD = 32  # groups that a group looks back at, at once: 16 are slower and 64 no faster, H200
SEVERAL = 2  # groups of which the local memory of one has room for the copies: smaller groups wait less, H200
SCANS = (ir.Scan, ir.ScanSeq, ir.ScanExclusive, ir.ScanExclusiveSeq)
AnyScan = ir.Scan | ir.ScanSeq | ir.ScanExclusive | ir.ScanExclusiveSeq
WORD = 4  # bytes of a total, or of a part of one
MOST_WORDS = 16  # of a total
MOST_REST = 256  # elements that one work-item scans before all others
MOST_SIDES = 3  # of tuples whose components are read and written in vectors


def look_back(nest: Nest, device: Device) -> Iterator[Plan]:
    """The plans for a scan of an array of scalars that is there already."""
    is_plain = not nest.maps and not nest.reads_map and reads_scalars(nest)
    is_long = nest.fold is ir.Scan and nest.length >= LONG
    is_word = isinstance(nest.result, Scalar) and SCALAR_BYTES[nest.result.name] == WORD
    if not (is_plain and is_long and is_word and device.groups_progress):
        return
    room = device.local_memory // (SEVERAL * WORD)
    for run in RUNS:
        for width in [w for w in device.widths if w < run and run % w == 0][:1]:
            # rows of local arrays may be apart from each other
            fitting = (n for n in device.group_sizes if part_of(n) > 1 and n * (run + width) <= room)
            items = next((n for n in fitting if nest.length % (n * run) == 0), nest.length)
            if items < nest.length // run:
                part, count = part_of(items), nest.length // (items * run)
                ahead = next(n for n in range(AHEAD, 0, -1) if count % n == 0)
                numbers = {"part": part, "left": items // part, "run": run, "ahead": ahead, "width": width}
                yield plan_of(looking_back, nest, (("run", "width"),), **numbers)


@dataclass(frozen=True)
class LongScan:
    """A long scan outside of all loops, by an operator that is associative or acts like a monoid.

    Attributes
    ----------
    scan
        It itself.
    total
        The type of what its chunks give.
    place
        Which one it is of those of a term.
    """

    scan: AnyScan
    total: DataType
    place: int = 0

    @property
    def length(self) -> int:
        """How many elements there are."""
        return length_of(self.scan.array)

    @property
    def is_refused(self) -> bool:
        """Whether what acts may not do so here: for so many elements, or from what the scan begins with."""
        acting = None if associates(self.scan) else action_of(self.scan.operator)
        return isinstance(acting, Action) and acting.against(self.length, seen_first(self.scan)) is not None

    @property
    def is_mapped(self) -> bool:
        """Whether what is folded of a run is computed for that."""
        return isinstance(self.scan.array, ir.Map) or isinstance(self.scan, ir.ScanSeq | ir.ScanExclusiveSeq)


def long_scans(term: ir.Expr) -> Iterator[LongScan]:
    """The scans of a term for which groups may look back, if they are long."""
    places = count()

    def walk(part: ir.Expr) -> Iterator[LongScan]:
        if isinstance(part, SCANS) and (total := total_of(part)) is not None:
            yield LongScan(part, total, next(places))
        if isinstance(part, ir.Apply) and isinstance(part.function, ir.Lambda):
            yield from walk(part.function.body)
        for inner in ir.parts(part):
            if isinstance(inner, ir.Expr):
                yield from walk(inner)

    yield from walk(term)


def associates(scan: AnyScan) -> bool:
    """Whether it is a scan by an operator that is known to be associative."""
    return isinstance(scan, ir.SCANS) and associative(scan.operator) is not None


def total_of(scan: AnyScan) -> DataType | None:
    """The type of what chunks of a scan give, if they may be scanned beside each other; of words, and not too many."""
    if associates(scan):
        operator, one = scan.operator, scan.initial
        while isinstance(one, ir.Reduce | ir.ReduceSeq) and one.operator == operator:
            one = one.initial  # of a scan whose first elements are apart
    elif isinstance(found := action_of(scan.operator), Action) and associative(found.operator):
        operator, one = found.operator, found.one  # the totals of runs are scanned in parts, which takes both laws
    else:
        return None
    if not built_in(operator) and not right_identity(operator, one):
        return None
    words = words_of(type_of(one))
    return type_of(one) if words and words <= MOST_WORDS else None


def looks_back(term: ir.Expr, device: Device) -> bool:
    """Whether there are plans for a scan whose groups look back."""
    if not (isinstance(term, SCANS) and device.has_groups and device.groups_progress):
        return False
    total = total_of(term)
    return total is not None and any(_cuts(LongScan(term, total), device))


def look_back_of_runs(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans for the scans of a term that are no scans of words that are there already, or act like a monoid."""
    for long_scan in long_scans(term) if device.has_groups and device.groups_progress else ():
        for numbers in _cuts(long_scan, device):
            multiples = (("run", "width"),) if "width" in numbers else ()
            recipe = Recipe(looking_back_of_runs, long_scans, long_scan.place, tuple(numbers.items()), multiples)
            yield replace(looking_back_of_runs(long_scan, numbers), recipe=recipe)


def chunk_beside_rest(term: ir.Expr, device: Device) -> int | None:
    """The chunk whose multiple a scan is, if its first elements are scanned apart, so that then groups look back; the
    longest that leaves few elements, as one work-item scans them.
    """
    if not (isinstance(term, SCANS) and device.has_groups and device.groups_progress) or looks_back(term, device):
        return None
    total, n = total_of(term), length_of(term.array)
    if total is None or n < LONG or LongScan(term, total).is_refused:
        return None
    chunks = sorted(run * items for run in RUNS for items in _groups(total, device))
    few = [chunk for chunk in chunks if n % chunk <= MOST_REST and n - n % chunk >= LONG]
    return max(few, default=min(chunks, default=None, key=lambda chunk: n % chunk))


def _groups(total: DataType, device: Device) -> Iterator[int]:
    """How many items groups may have, whose totals are kept twice."""
    room, words = device.local_memory // (SEVERAL * WORD), words_of(total) or 1
    return (items for items in device.group_sizes if part_of(items) > 1 and items * 2 * words <= room)


def _cuts(long_scan: LongScan, device: Device) -> Iterator[dict[str, int]]:
    """The numbers of the plans for a scan, the best first."""
    n = long_scan.length
    if n < LONG or long_scan.is_refused:
        return
    for run in RUNS:
        fitting = (i for i in _groups(long_scan.total, device) if n % (i * run) == 0)
        items = next((i for i in fitting if i < n // run), None)
        if items is None:
            continue
        part, groups = part_of(items), n // (items * run)
        numbers = {"part": part, "left": items // part, "run": run, "ahead": min(AHEAD, groups)}
        widths = [w for w in device.widths if w < run and run % w == 0]
        yield numbers | {"width": widths[0]} if widths and any(_sides(long_scan.scan)) else numbers


def _sides(scan: AnyScan) -> tuple[int, int]:
    """How many arrays of scalars items read, and how many they write: 0 where they do not do so in vectors."""
    array: ir.Expr = scan.array
    while isinstance(array, ir.Map):
        array = array.array
    return _scalars(element_type(array)), _scalars(type_of(scan.initial))


def _scalars(t: DataType) -> int:
    """How many scalars a tuple has, one after the other; 0 if it has too many, or anything else."""
    count = 1
    while isinstance(t, Pair) and isinstance(t.first, Scalar):
        t, count = t.second, count + 1
    return count if isinstance(t, Scalar) and count <= MOST_SIDES else 0


def looking_back_of_runs(long_scan: LongScan, numbers: Mapping[str, int]) -> Plan:
    """Groups of `part` times `left` items with runs of `run` elements, read and written in vectors if there is a
    `width` of them, that look at `ahead` totals at once.
    """
    part, left, run, ahead = (numbers[name] for name in ("part", "left", "run", "ahead"))
    items, width = part * left, numbers.get("width", 0)
    chunk = items * run
    groups = long_scan.length // chunk

    fold, high = type(long_scan.scan), Form(low=False, computes=long_scan.is_mapped)

    def kernel(form: Form, before: sk.Sketch) -> sk.Sketch:
        own = replace(form, computes=form.computes and fold in ir.SCANS)
        totals = form.items(sk.contains(form.fold(ir.Reduce, run, form.read)), items)
        first = sk.let(sk.contains(form.kept("local", totals)), sk.contains(sk.let(sk.contains(before))))
        second = sk.contains(form.items(sk.contains(own.written(form.fold(fold, run, own.read))), items))
        return sk.contains(sk.PatternSketch("lookBack", (first, sk.ANY, sk.ANY, second, sk.ANY), (ahead,), groups))

    def by_items(form: Form) -> sk.Sketch:
        return kernel(form, form.kept("local", scanned(ir.ScanExclusive, (part, left), form.bare)))

    tiling = {long_scan.length: (chunk,), groups: (ahead,), chunk: (run,)}
    steps = (
        Step("look_back_runs", kernel(high, high.fold(ir.ScanExclusive, items)), tiling),
        Step("group_folds", by_items(high), cut_tiling(items, part, left)),
        Step("group_fold_levels", by_items(Form(low=True)), {}, (), lowered),
    )
    if not width:
        return Plan(steps, (), lowered_by=None)
    read, written = _sides(long_scan.scan)
    vectors = Form(True, width if written else 0, bool(read), sides_read=max(read, 1), sides_written=max(written, 1))
    phase = "item_sides" if max(read, written) > 1 else "item_folds"
    return Plan((*steps, Step(phase, by_items(vectors), {}, (width,))), (width,), lowered_by=None)


def looking_back(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Groups of `part` times `left` items with runs of `run` elements, read and written in vectors of a `width`, that
    look at `ahead` totals at once.
    """
    cut = Cut(nest, *(numbers[name] for name in ("run", "part", "left", "ahead", "width")))
    tiling = merged({nest.length: (cut.chunk,), cut.count: (cut.ahead,)}, cut_tiling(cut.chunk, *cut.levels))
    staging = {cut.chunk: (cut.run,), cut.chunk // cut.width: (cut.items,)}
    steps = (
        Step("look_back", cut.kernel(Form(low=False)), tiling),
        Step("look_back_levels", cut.kernel(Form(low=True)), {}, (cut.width,), lowered),
        Step("chunk_staging", cut.kernel(Form(low=True, width=cut.width, holds=True)), staging, (cut.width,)),
    )
    return Plan(steps, (cut.width,), lowered_by=None)


@dataclass(frozen=True)
class Cut:
    """How a scan is cut: into chunks of groups, and these into the runs of items, whose totals are scanned in parts."""

    nest: Nest
    run: int
    part: int
    left: int
    ahead: int
    width: int

    @property
    def items(self) -> int:
        """The items of a group."""
        return self.part * self.left

    @property
    def levels(self) -> tuple[int, int, int]:
        """As in `lift_egraph.workbench.planning.group_folds`."""
        return self.run, self.part, self.left

    @property
    def chunk(self) -> int:
        """The elements of a group."""
        return self.run * self.items

    @property
    def count(self) -> int:
        """The groups."""
        return self.nest.length // self.chunk

    def kernel(self, form: Form) -> sk.Sketch:
        """The groups: what each scans, kept for what it makes of that when it knows what is before it."""
        vectors, of_vectors = self.chunk // self.width, sk.as_vector(self.width)
        first = sk.let(sk.contains(form.kept("local", scanned(self.nest.fold, self.levels, form))))
        second: sk.Sketch = sk.map_(length=self.chunk)
        if form.low:
            moved = sk.map_level("mapLcl(0)", sk.vectorize(self.width), length=vectors)
            second = sk.as_scalar(moved)
        if form.width:
            rounds = sk.join(sk.map_seq(sk.map_level("mapLcl(0)", length=self.items), sk.split(self.items, of_vectors)))
            first = sk.let(sk.contains(sk.to_memory("local", sk.split(self.run, sk.as_scalar(rounds)))), first)
            second = sk.as_scalar(rounds)
        return sk.contains(
            sk.PatternSketch("lookBack", (first, sk.ANY, sk.ANY, second, sk.ANY), (self.ahead,), self.count)
        )
