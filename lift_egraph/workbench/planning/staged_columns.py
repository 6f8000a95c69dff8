"""Plans for columns of a matrix times a vector, of which a group keeps chunks in local memory for all of its columns.

Neighbouring work-items read neighbouring columns, and several share each. What these have of all columns of a group
are lines in local memory, of which a tree combines halves until one line is left.

Source: CLBlast's kernels for products of transposed matrices and vectors; 000 Table 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.types import F32, array
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, length_of, nests
from lift_egraph.workbench.planning.staged_rows import loop_of_chunks
from lift_egraph.workbench.planning.trees import ITEM, combined, halves, halving, in_strides

COLUMNS, SHARE, STEPS = 32, 16, 8  # columns of a group, work-items of each, and rows that one of them takes of a chunk


def staged_columns(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Maps over columns that lie side by side, to one sum of products with an input in each."""
    found = list(nests(term)) if isinstance(term, ir.Map) else []
    if len(found) != 1 or len(found[0].maps) != 1 or not found[0].commutes or found[0].result != F32:
        return
    (nest,) = found
    match term, nest.array:
        case (
            ir.Map(function=ir.Lambda(body=ir.Reduce())),
            ir.Map(array=ir.Zip(first=ir.Var(), second=ir.Input(name=x))),
        ):
            columns, chunk = length_of(nest.maps[0]), SHARE * STEPS
        case _:
            return
    fits = columns % COLUMNS == 0 and columns > COLUMNS and nest.length % chunk == 0 and nest.length > chunk
    fits &= nest.length // SHARE not in (COLUMNS, SHARE)  # sketches tell them by their lengths
    if isinstance(nest.maps[0], ir.Transpose) and fits and device.max_work_group >= COLUMNS * SHARE:
        yield _staged(nest, columns, x)


def _staged(nest: Nest, columns: int, vector: str) -> Plan:
    own, chunks = nest.length // SHARE, nest.length // (SHARE * STEPS)
    high: sk.MapSketch = partial(sk.map_level, "mapLcl(1)")
    grid: tuple[sk.MapSketch, sk.MapSketch] = partial(sk.map_level, "mapWrg(0)"), partial(sk.map_level, "mapWrg(1)")

    def blocks(inner: sk.Sketch, outer: sk.MapSketch = sk.map_, one: sk.MapSketch = sk.map_) -> sk.Sketch:
        """Blocks of columns, each the only one of its kind: groups have two dimensions, as their items."""
        return sk.contains(sk.join(outer(sk.join(one(inner, sk.split(COLUMNS), length=1)), sk.split(COLUMNS))))

    def in_groups(inner: sk.Sketch) -> sk.Sketch:
        """Blocks that groups compute, each a line that is joined to the others."""
        line, lines = partial(grid[1], length=1), partial(grid[0], length=columns // COLUMNS)
        return sk.contains(sk.join(lines(sk.join(sk.join(line(inner, sk.split(COLUMNS)))), sk.split(COLUMNS))))

    def loop(by_lines: sk.MapSketch, by_columns: sk.MapSketch, copy: sk.Sketch | None = None) -> sk.Sketch:
        """A loop over chunks of the vector, of which there may be a copy."""
        item = by_columns(sk.contains(sk.reduce_seq(length=STEPS)), length=COLUMNS)
        pieces = sk.of_type(array(F32, chunks, SHARE, STEPS))
        return loop_of_chunks(by_lines(sk.contains(item), length=SHARE), pieces, chunks, copy)

    def tree(lines: sk.Sketch) -> sk.Sketch:
        """A copy of the line that is left of lines in local memory, by the items of a group."""
        pair = sk.contains(ITEM(sk.contains(sk.reduce_seq(length=2)), length=COLUMNS))
        left = halves(SHARE, lines, lambda n, pairs: sk.to_memory("local", high(pair, pairs, length=n)))
        return high(sk.contains(ITEM(length=COLUMNS)), left, length=1)

    share = sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.ANY, sk.zip_()), length=own)
    pieces = sk.transpose(sk.split(SHARE, sk.input_(vector)))
    line = sk.map_(sk.contains(sk.map_(sk.contains(share), length=COLUMNS)), sk.zip_(sk.ANY, pieces), length=SHARE)
    by_maps = loop(sk.map_, sk.map_)
    copy = sk.to_memory("local", sk.transpose(high(ITEM(length=SHARE), length=STEPS)))
    met = sk.to_memory("local", high(ITEM(length=COLUMNS), loop(high, ITEM, copy), length=SHARE))
    in_blocks = sk.contains(sk.map_(sk.contains(sk.map_(length=COLUMNS)), sk.split(COLUMNS)))
    steps = (
        in_strides(nest, SHARE),
        Step("tiling", in_blocks, {columns: (COLUMNS,)}),
        Step("column_sums", blocks(sk.contains(sk.reduce_(sk.ANY, sk.ANY, line, length=SHARE))), {COLUMNS: (COLUMNS,)}),
        Step("row_loops", blocks(sk.contains(sk.reduce_(sk.ANY, sk.ANY, by_maps, length=SHARE))), {own: (STEPS,)}),
        Step("tree", blocks(sk.contains(sk.at(0, sk.contains(combined(SHARE, by_maps))))), halving(SHARE)),
        Step("column_levels", in_groups(tree(loop(high, ITEM))), {}, (), lowered),
        Step("column_tile", in_groups(tree(met)), {}),
    )
    return Plan(steps, (), lowered_by=None)
