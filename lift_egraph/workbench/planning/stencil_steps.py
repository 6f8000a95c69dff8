"""Plans for several steps of a stencil in one kernel, whose groups compute overlapping tiles of all steps but the last.

A group has a tile of the result. What the last step reads of the one before it computes itself, from a larger tile of
what that reads, and so on: all but the input and the result stays in local memory. On CPUs a tile is a band of rows,
or of planes, in vectors.

Source: Krishnamoorthy et al., "Effective automatic parallelization of stencil computations", PLDI 2007; Holewinski et
al., "High-performance code generation for stencil computations on GPU architectures", ICS 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.baseline import computes
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, Scalar, array, bytes_of
from lift_egraph.workbench.planning.plan import Plan, Step

Kept = Callable[[sk.Sketch], sk.Sketch]
ROWS = (16, 8, 32)  # of the band of a group on a CPU
PARTS = (256, 512, 128)  # elements of the tile of a group on a GPU
BLOCKS = (32, 16, 24, 20, 28, 18, 14, 12, 8)  # rows and columns of the same in two dimensions, where they divide both


LAYOUT = (ir.Slide, ir.Pad, ir.Transpose)


@dataclass(frozen=True)
class StencilStep:
    """A step over windows of a `size`, at steps of one, in its result's outermost dimension."""

    result: Array
    size: int

    @property
    def length(self) -> int:
        """Of the result."""
        return self.result.size.constant or 0


def stencil_steps(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Maps over windows of what another such map computes, all in one kernel."""
    steps = tuple(steps_of(term))
    if len(steps) < 2:
        return
    lengths = list(sizes_of(steps[0].result))
    widths = [w for w in device.widths if len(lengths) > 1 and w <= lengths[-1]]
    if device.has_groups:
        made = (Tiles(steps, n) for n in PARTS if len(lengths) == 1)
    else:
        made = (Tiles(steps, n, widths[0]) for n in ROWS if widths)
    for tiles in made:
        if tiles.own < lengths[0] and tiles.bytes <= device.local_memory:
            yield tiles.plan()


def window_blocks(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Maps over windows of a matrix in two dimensions, for GPUs: a group copies what all windows of its block read."""
    steps = tuple(steps_of(term))
    lengths = list(sizes_of(steps[0].result)) if len(steps) == 1 else []
    for own in BLOCKS if len(lengths) == 2 else ():
        blocks = Blocks(steps[0], own)
        fits = 4 * blocks.read**2 <= device.local_memory and own**2 <= device.max_work_group
        if fits and own < min(lengths) and all(length % own == 0 for length in lengths):
            yield blocks.plan()
            return


def steps_of(term: ir.Expr) -> Iterator[StencilStep]:
    """The steps that a term takes, the last one first."""
    while isinstance(term, ir.Map) and computes(term.function):
        result, windows = type_of(term), list[ir.Slide]()
        term = term.array
        while isinstance(term, (ir.Slide, ir.Pad, ir.Transpose)) or (
            isinstance(term, ir.Map) and not computes(term.function)
        ):
            windows += [term] if isinstance(term, ir.Slide) else []
            term = term.array
        if len(windows) != 1 or windows[0].step.constant != 1 or not isinstance(result, Array):
            return
        size = windows[0].size.constant
        if not size or not result.size.constant or not isinstance(leaf_of(result), Scalar):
            return
        yield StencilStep(result, size)


def sizes_of(t: DataType) -> Iterator[int]:
    """The lengths of nested arrays from outside to inside, 0 if they are open."""
    while isinstance(t, Array):
        yield t.size.constant or 0
        t = t.element


def leaf_of(t: DataType) -> DataType:
    """What nested arrays have inside."""
    while isinstance(t, Array):
        t = t.element
    return t


def as_it_is(made: sk.Sketch) -> sk.Sketch:
    """What is made, wherever it lies."""
    return made


def in_local(made: sk.Sketch) -> sk.Sketch:
    """What is made in local memory."""
    return sk.to_memory("local", made)


@dataclass(frozen=True)
class Tiles:
    """Tiles of `own` elements, or rows, of the result of steps, the last of which is the first here.

    `width` is that of vectors in rows, 0 for none.
    """

    steps: tuple[StencilStep, ...]
    own: int
    width: int = 0

    @property
    def lengths(self) -> tuple[int, ...]:
        """Of the tile of the input, and then of those of each step's result, the first step first."""
        found = [self.own]
        for step in self.steps:
            found.append(found[-1] + step.size - 1)
        return tuple(found[::-1])

    @property
    def bytes(self) -> int:
        """Of what a group keeps in local memory."""
        return sum(bytes_of(self.tile(n, step)) for n, step in self.kept)

    @property
    def kept(self) -> list[tuple[int, StencilStep]]:
        """The steps whose results a group keeps, the last one first, and the lengths of its tiles of them."""
        return list(zip(self.lengths[-2:0:-1], self.steps[1:], strict=True))

    def tile(self, length: int, step: StencilStep) -> DataType:
        """The type of a tile of a step's result."""
        return array(step.result.element, length)

    def plan(self) -> Plan:
        """The tiles of all steps; then the levels of the device, and what groups keep."""
        count = self.steps[0].length
        tiling: Tiling = dict.fromkeys((count, -(-count // self.own) * self.own), (self.own,))
        *_, last = sizes_of(self.steps[0].result)
        rests: Tiling = {last: (self.width,)} if self.width else {}
        item: sk.MapSketch = partial(sk.map_level, "mapLcl(0)")
        row = sk.contains(sk.map_seq(sk.vectorize(self.width))) if self.width else sk.ANY
        staged = self.groups(partial(sk.map_level, "mapWrg(0)"), self.lets(partial(item, row), in_local))
        steps = (
            Step("rows_of_steps", self.chain(), {}),
            Step("stencil_steps", self.groups(sk.map_, self.lets(sk.map_)), tiling),
            Step("step_levels", staged, rests, (self.width,) if self.width else (), lowered),
        )
        return Plan(steps, (), lowered_by=None)

    def chain(self) -> sk.Sketch:
        """The steps, with what each computes of a window of elements, or rows, in its function."""
        found: sk.Sketch = sk.ANY
        for step in self.steps[::-1]:
            read = sk.of_type(array(step.result.element, step.length + step.size - 1), found)
            made = sk.map_(sk.ANY, sk.slide(step.size, 1, read), length=step.length)
            found = sk.contains(sk.of_type(step.result, made))
        return found

    def groups(self, level: sk.MapSketch, made: sk.Sketch) -> sk.Sketch:
        """The tiles of the result, each made of a tile of the input, and the numbers of the tiles."""
        tiles: sk.Sketch = sk.slide(self.lengths[0], self.own)
        for _ in self.steps[1:]:
            tiles = sk.zip_(tiles)
        return sk.contains(sk.join(level(sk.contains(made), tiles)))

    def lets(self, level: sk.MapSketch, kept: Kept = as_it_is) -> sk.Sketch:
        """What is made of a tile of the input, step by step."""

        def made(length: int, step: StencilStep) -> sk.Sketch:
            return level(array=sk.slide(step.size, 1), length=length)

        last = self.steps[0]
        body: sk.Sketch = sk.of_type(self.tile(self.own, last), made(self.own, last))
        for length, step in self.kept:
            body = sk.let(sk.of_type(self.tile(length, step), kept(made(length, step))), sk.contains(body))
        return body


@dataclass(frozen=True)
class Blocks:
    """Blocks of `own` rows and columns of the result of a step in two dimensions, without vectors."""

    step: StencilStep
    own: int

    @property
    def read(self) -> int:
        """Rows and columns that all windows of a block read."""
        return self.own + self.step.size - 1

    @property
    def tile(self) -> DataType:
        """The type of a block."""
        return array(leaf_of(self.step.result), self.own, self.own)

    @property
    def levels(self) -> list[sk.MapSketch]:
        """The maps over rows of groups, the groups of each, and the rows and columns of their work-items."""
        return [partial(sk.map_level, f"{kind}({d})") for kind in ("mapWrg", "mapLcl") for d in (1, 0)]

    def plan(self) -> Plan:
        """The blocks; then the levels of the device, and what groups copy to local memory."""
        tiling: Tiling = dict.fromkeys(sizes_of(self.step.result), (self.own,))
        copy = in_local(self.levels[2](self.levels[3](length=self.read), length=self.read))
        steps = (
            Step("step_tiles", sk.contains(sk.slide(self.read, self.own)), tiling),
            Step("tiles_of_steps", self.blocks((sk.map_,) * 4), {}),
            Step("step_levels", self.blocks(self.levels), {}, (), lowered),
            Step("window_copies", self.blocks(self.levels, lambda body: sk.let(copy, sk.contains(body))), {}),
        )
        return Plan(steps, (), lowered_by=None)

    def blocks(self, levels: Sequence[sk.MapSketch], around: Kept = as_it_is) -> sk.Sketch:
        """Rows of blocks of the result, each made of a tile of the input."""
        outer, inner, high, wide = levels
        rows, columns = (n // self.own for n in sizes_of(self.step.result))
        windows = sk.contains(sk.slide(self.step.size, 1))
        made = sk.of_type(self.tile, high(wide(length=self.own), windows, length=self.own))
        return sk.contains(outer(sk.contains(inner(sk.contains(around(made)), length=columns)), length=rows))
