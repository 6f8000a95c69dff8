"""Plans for scans in one pass, on devices whose groups go on while others wait for them: each group scans a chunk, and
looks back over the totals of the chunks before it.

In a group each item has a run of neighbouring elements, as in `lift_egraph.workbench.planning.group_folds`.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import merged
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.types import SCALAR_BYTES, Scalar
from lift_egraph.workbench.planning.group_folds import Form, cut_tiling, part_of, reads_scalars, scanned
from lift_egraph.workbench.planning.plan import LONG, Nest, Plan, Step, plan_of

RUNS = (16, 8)  # elements of an item, the best number first, H200
AHEAD = 32  # groups that a group looks back at, at once: 16 are slower and 64 no faster, H200
SEVERAL = 2  # groups of which the local memory of one has room for the copies: smaller groups wait less, H200
WORD = 4  # bytes of a total


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
