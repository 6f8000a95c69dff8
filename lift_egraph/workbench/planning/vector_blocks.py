"""Plans for products of matrices on devices whose work-items do much work each: each has a block of results in vectors.

A block is as many rows high and as many vectors wide as registers hold: what is loaded of either matrix serves all of
it. Work-items that come one after the other take the rows below: the cache of a core keeps the columns that they share.

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.rules.macros import chunk_facts, untiled
from lift_egraph.workbench.planning.block_sketches import block_of, item_in_lanes, sums_of
from lift_egraph.workbench.planning.packed_products import can_pack
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, plan_of
from lift_egraph.workbench.planning.products import product_of

VECTORS = (2, 4, 3)  # of a row of a block, the first numbers that fit …
SHAPES = 2  # … so many of them: low and broad blocks of doubles take 0.7 to 0.85 of the processor time of high ones
BESIDE = 1  # registers beside results and columns: for an element of the rows


def vector_blocks(nest: Nest, device: Device) -> Iterator[Plan]:
    """Products of matrices that stand in memory, in the highest blocks that registers hold."""
    factors = product_of(nest)
    if factors is None or factors.views or device.lanes not in device.widths or device.lanes // factors.words < 2:
        return
    width = device.lanes // factors.words
    heights = [int(n) for n in device.level("item").workers if factors.rows % n == 0 and n < factors.rows]
    shapes: list[tuple[int, int]] = []
    for vectors in VECTORS:
        broad = vectors * width
        tall = max((n for n in heights if (n + 1) * vectors + BESIDE <= device.registers), default=None)
        if tall and factors.columns % broad == 0 and broad < factors.columns:
            shapes.append((tall, broad))
    for tall, broad in shapes[:SHAPES]:
        numbers = {"tall": tall, "broad": broad, "width": width}
        packed, direct = (plan_of(make, nest, (("broad", "width"),), **numbers) for make in (_packed, _direct))
        # what stands inside of a loop of the host is packed there, not beside the blocks
        if factors.products > 1 or not can_pack(nest, width):
            yield direct
        elif isinstance(nest.maps[-1], ir.Transpose):
            yield from (direct, packed) if broad == shapes[0][1] else (direct,)
        else:
            yield from (packed, direct) if broad == shapes[0][1] else (packed,)


def _direct(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Blocks of `tall` rows and `broad` columns, in vectors of a `width`."""
    factors = product_of(nest)
    assert factors is not None
    tall, broad, width = (numbers[name] for name in ("tall", "broad", "width"))
    lengths = factors.rows, factors.columns
    counts = factors.rows // tall, factors.columns // broad

    def blocks(each: sk.Sketch, outer: sk.MapSketch = sk.map_, inner: sk.MapSketch = sk.map_) -> sk.Sketch:
        """All results, put together of the blocks of work-items."""
        return sk.contains(untiled(counts, sk.contains(each), outer=outer, inner=inner))

    block = block_of(tall, broad)
    item = item_in_lanes(tall, broad, width, nest.length)
    by_items = blocks(sk.map_(sk.ANY, item), partial(sk.map_level, "mapGlb(0)"), partial(sk.map_level, "mapGlb(1)"))
    if factors.products > 1:
        by_items = sk.contains(sk.map_level("mapGlb(2)", by_items))
    steps = (
        Step("tiling", blocks(block), chunk_facts(lengths, (tall, broad))),
        Step("blocking", blocks(sums_of(block, nest.length)), {}),
        Step("vector_levels", by_items, {}, (width,), lowered),
    )
    return Plan(steps, (width,), lowered_by=None)


def _packed(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same, with the columns packed before in the order of their use."""
    direct = _direct(nest, numbers)
    packing = Step("packing", sk.contains(sk.to_memory("global")), {}, direct.widths)
    return replace(direct, steps=(packing, *direct.steps))
