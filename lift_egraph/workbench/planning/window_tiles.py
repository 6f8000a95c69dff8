"""Plans for windows along the lines of a matrix, whose groups keep overlapping tiles in local memory.

Windows along rows: a group takes some rows, and of each a long part, which its work-items copy and then compute in
rounds, neighbours beside each other. Windows along columns: the same with both directions exchanged, so that
neighbours still lie side by side in memory.

Source: Podlozhnyuk, "Image convolution with CUDA", NVIDIA, 2007; 000 §2.4.2 and Table 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, Scalar
from lift_egraph.rules.macros import untiled
from lift_egraph.workbench.planning.plan import Plan, Step, length_of

ALONG_ROWS = (4, 16, 8)  # lines of a tile, work-items along each, and rounds in which they compute its windows
ALONG_COLUMNS = (16, 8, 8)


@dataclass(frozen=True)
class Lines:
    """Windows of a `size` along `lines`, so many of each, with a `step` between neighbours; the tile that a group has.

    `turned`: the lines are columns in memory.
    """

    lines: int
    windows: int
    size: int
    step: int
    turned: bool

    @property
    def tile(self) -> tuple[int, int, int]:
        """How many lines it has, the work-items along each, and the windows of each."""
        lines, items, rounds = ALONG_COLUMNS if self.turned else ALONG_ROWS
        return lines, items, items * rounds

    @property
    def length(self) -> int:
        """Of the lines of a tile: with all that its windows read."""
        return self.size + (self.tile[2] - 1) * self.step

    def fits(self, device: Device) -> bool:
        """Whether tiles divide what there is, and the device can hold them."""
        lines, items, windows = self.tile
        numbers = {self.lines // lines, self.windows // windows}
        return (
            self.lines % lines == self.windows % windows == self.length % items == 0
            and 1 not in numbers
            and lines * items <= device.max_work_group
            and lines * self.length * 4 <= device.local_memory
        )


def window_tiles(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Maps over windows along all lines of a matrix."""
    match term:
        case ir.Map(
            function=ir.Lambda(binder=ir.Var() as line, body=ir.Map(array=ir.Slide(array=read) as windows) as each),
            array=lines,
        ) if read == line:
            t, turned = type_of(each), any(isinstance(part, ir.Transpose) for part in ir.subterms(lines))
        case _:
            return
    size, step = windows.size.constant, windows.step.constant
    if not (size and step and isinstance(t, Array) and isinstance(t.element, Scalar)):
        return
    found = Lines(length_of(lines), length_of(windows), size, step, turned)
    if found.fits(device):
        yield _staged(found)


def _staged(of: Lines) -> Plan:
    lines, items, windows = of.tile
    counts = of.lines // lines, of.windows // windows
    slide = sk.slide(of.size, of.step)
    high: sk.MapSketch = partial(sk.map_level, "mapLcl(1)")
    wide: sk.MapSketch = partial(sk.map_level, "mapLcl(0)")
    grid: dict[str, sk.MapSketch] = {
        "outer": partial(sk.map_level, "mapWrg(1)"),
        "inner": partial(sk.map_level, "mapWrg(0)"),
    }

    def in_order(outer: sk.MapSketch, inner: sk.MapSketch, element: sk.Sketch = sk.ANY) -> sk.Sketch:
        """The windows of a tile: line by line, or turned, all that begin in one place."""
        if of.turned:
            return sk.transpose(outer(sk.contains(inner(element, length=lines)), length=windows))
        return outer(sk.contains(inner(element, slide, length=windows)), length=lines)

    def in_rounds(count: int) -> sk.Sketch:
        """So many elements of each line, of which the items of a group take neighbours in each round."""
        if of.turned:
            each = sk.contains(high(sk.contains(wide(length=lines)), length=items))
            return sk.transpose(sk.join(sk.map_seq(each, sk.split(items), length=count // items)))
        each = sk.contains(wide(length=items))
        return high(sk.contains(sk.join(sk.map_seq(each, sk.split(items), length=count // items))), length=lines)

    tiles = sk.map_(sk.contains(sk.map_(sk.ANY, slide, length=windows)), sk.slide(of.length, windows * of.step))
    blocks = sk.contains(untiled(counts, sk.contains(sk.map_(sk.contains(sk.map_(sk.ANY, slide)), length=lines))))
    turned = sk.contains(untiled(counts, sk.contains(in_order(sk.map_, sk.map_))))
    by_items = sk.contains(untiled(counts, sk.contains(in_order(high, wide)), **grid))
    copy = sk.to_memory("local", in_rounds(of.length))
    staged = sk.contains(untiled(counts, sk.contains(sk.let(copy, sk.contains(in_rounds(windows)))), **grid))
    parts: Tiling = dict.fromkeys((windows, of.length), (items,))
    steps = (
        Step("window_tiles", sk.contains(sk.map_(sk.contains(sk.join(tiles)))), {of.windows: (windows,)}),
        Step("rows", blocks, {of.lines: (lines,)}),
        *((Step("rows", turned, {}),) if of.turned else ()),
        Step("window_levels", by_items, {}, (), lowered),
        Step("window_copies", staged, parts),
    )
    return Plan(steps, (), lowered_by=None)
