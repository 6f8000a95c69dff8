"""Plans for rows of a matrix times a vector, of which a group keeps chunks in local memory for all of its rows.

The items of a row read neighbouring elements of it, and keep one sum each; a tree in local memory ends each row.

Source: CLBlast's kernels for products of matrices and vectors; 000 Table 4.2.
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
from lift_egraph.workbench.planning.trees import ITEM, combined, combined_by_items, halving, in_strides

ROWS, LANES = 8, 32  # rows of a group, and work-items of each; as many steps for each chunk as rows, to copy it at once


def staged_rows(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Maps over rows that lie in memory, with one sum of products with an input in each."""
    found = list(nests(term)) if isinstance(term, ir.Map) else []
    if len(found) != 1 or len(found[0].maps) != 1 or not found[0].commutes or found[0].result != F32:
        return
    (nest,) = found
    rows, vector = length_of(nest.maps[0]), _vector(nest.array)
    fits = rows % ROWS == 0 and rows > ROWS and nest.length % (LANES * ROWS) == 0 and nest.length > LANES * ROWS
    lie_apart = isinstance(nest.maps[0], ir.Transpose)
    if vector and fits and not lie_apart and device.max_work_group >= ROWS * LANES:
        yield _staged(nest, rows, vector)


def _vector(products: ir.Expr) -> str | None:
    """The input that is last in all products of elements."""
    if not (isinstance(products, ir.Map) and isinstance(products.array, ir.Zip)):
        return None
    *others, last = _zipped(products.array)
    return last.name if isinstance(last, ir.Input) and all(map(ir.free_variables, others)) else None


def _zipped(arrays: ir.Expr) -> list[ir.Expr]:
    return [arrays.first, *_zipped(arrays.second)] if isinstance(arrays, ir.Zip) else [arrays]


def _staged(nest: Nest, rows: int, vector: str) -> Plan:
    steps, chunks = nest.length // LANES, nest.length // (LANES * ROWS)
    products = sk.map_(sk.ANY, sk.zip_(sk.ANY, sk.input_(vector)), length=nest.length)
    partial_sum = sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.ANY, sk.zip_()), length=steps)
    lanes = sk.map_(partial_sum, sk.zip_(sk.ANY, sk.transpose(sk.split(LANES, sk.input_(vector)))), length=LANES)
    high: sk.MapSketch = partial(sk.map_level, "mapLcl(1)")
    grid: tuple[sk.MapSketch, sk.MapSketch] = partial(sk.map_level, "mapWrg(1)"), partial(sk.map_level, "mapWrg(0)")

    def blocks(inner: sk.Sketch, outer: sk.MapSketch = sk.map_, one: sk.MapSketch = sk.map_) -> sk.Sketch:
        """Blocks of rows, each the only one of its kind: groups have two dimensions, as their items."""
        block = one(sk.contains(inner), sk.split(ROWS), length=1)
        return sk.contains(sk.join(outer(sk.join(block), sk.split(ROWS), length=rows // ROWS)))

    def made_of(sums: sk.Sketch, last: sk.Sketch, level: sk.MapSketch = sk.map_) -> sk.Sketch:
        """What is made of the sums of a row, for the rows of a block."""
        return level(last, sk.contains(sums), length=ROWS)

    def loop(by_rows: sk.MapSketch, by_lanes: sk.MapSketch, copy: sk.Sketch | None = None) -> sk.Sketch:
        """A loop over chunks of the vector, of which there may be a copy."""
        item = by_lanes(sk.contains(sk.reduce_seq(length=ROWS)), length=LANES)
        pieces = sk.of_type(array(F32, chunks, LANES, ROWS))
        return loop_of_chunks(by_rows(sk.contains(item), length=ROWS), pieces, chunks, copy)

    ends = sk.contains(sk.reduce_(length=LANES))
    tree = sk.at(0, sk.contains(combined(LANES, sk.variable())))
    by_items = ITEM(sk.ANY, combined_by_items(LANES, sk.variable()), length=1)
    met = sk.let(sk.to_memory("local", ITEM(sk.ANY, sk.variable(), length=LANES)), by_items)
    copy = sk.to_memory("local", sk.transpose(high(ITEM(length=LANES), length=ROWS)))
    in_blocks = sk.contains(sk.map_(sk.contains(sk.map_(length=ROWS)), sk.split(ROWS)))
    whole = made_of(sk.map_(sk.contains(lanes), length=ROWS), ends)
    plan = (
        Step("row_sums", sk.contains(sk.reduce_(sk.ANY, sk.ANY, products, length=nest.length)), {}),
        in_strides(nest, LANES),
        Step("tiling", in_blocks, {rows: (ROWS,)}),
        Step("row_sums", blocks(whole), {ROWS: (ROWS,)}),
        Step("row_loops", blocks(made_of(loop(sk.map_, sk.map_), ends)), {steps: (ROWS,)}),
        Step("tree", blocks(made_of(loop(sk.map_, sk.map_), tree)), halving(LANES)),
        Step("tree_levels", blocks(made_of(loop(high, ITEM), by_items, high), *grid), {}, (), lowered),
        Step("row_tile", blocks(made_of(loop(high, ITEM, copy), met, high), *grid), {}),
    )
    return Plan(plan, (), lowered_by=None)


def loop_of_chunks(step: sk.Sketch, pieces: sk.Sketch, chunks: int, copy: sk.Sketch | None = None) -> sk.Sketch:
    """A loop that zips something with the chunks of a vector, of each of which there may be a copy."""
    body = sk.contains(step) if copy is None else sk.contains(sk.let(copy, sk.contains(step)))
    return sk.reduce_seq(body, sk.ANY, sk.zip_(sk.ANY, pieces), length=chunks)
