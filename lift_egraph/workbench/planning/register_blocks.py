"""Plans for products of matrices whose work-items keep blocks of results in registers, and read what is in memory.

No tile stands in local memory: the caches serve the work-items of a group, whose blocks lie side by side.

Source: 000 §5.3.1 and Figure 5.5; CLBlast's kernels for GPUs of AMD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.rules.macros import chunk_facts, untiled
from lift_egraph.workbench.planning.block_sketches import block_of, item_in_lanes, sums_of
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, plan_of
from lift_egraph.workbench.planning.products import product_of

ITEMS = ((16, 16), (8, 16), (8, 8), (4, 4))  # of a group
ROWS, VECTORS = (8, 4), (2, 1)  # of a work-item
GRID: dict[str, sk.MapSketch] = {
    name: partial(sk.map_level, level)
    for name, level in (("outer", "mapWrg(1)"), ("inner", "mapWrg(0)"), ("high", "mapLcl(1)"), ("wide", "mapLcl(0)"))
}


def register_blocks(nest: Nest, device: Device) -> Iterator[Plan]:
    """Products of matrices that stand in memory, with blocks in registers: the largest that fit, in large groups."""
    factors = product_of(nest)
    if factors is None or factors.views or factors.products > 1 or not device.widths:
        return
    width = max(device.widths) // factors.words
    if width < 2:
        return
    for (high, wide), tall, vectors in product(ITEMS, ROWS, VECTORS):
        tile, block = (high * tall, wide * vectors * width), (tall, vectors * width)
        parts = (*zip((factors.rows, factors.columns), tile, strict=True), *zip(tile, block, strict=True))
        if all(n % m == 0 and m < n for n, m in parts) and high * wide <= device.max_work_group:
            numbers = {"tall": tall, "broad": vectors * width, "high": high, "wide": wide, "width": width}
            make = InRegisters(holds_rows=tall % width == 0 and factors.lies_across[0])
            yield plan_of(make, nest, (("tall", "width"),) * make.holds_rows + (("broad", "width"),), **numbers)
            return


@dataclass(frozen=True)
class InRegisters:
    """Groups of `high` times `wide` work-items, with `tall` times `broad` results each, in vectors of a `width`.

    What a work-item reads of both matrices in a step is held in vectors, if it `holds_rows`.
    """

    holds_rows: bool

    def __call__(self, nest: Nest, numbers: Mapping[str, int]) -> Plan:
        """The plan for a nest."""
        factors = product_of(nest)
        assert factors is not None
        tall, broad, high, wide, width = (numbers[name] for name in ("tall", "broad", "high", "wide", "width"))
        lengths, tile = (factors.rows, factors.columns), (high * tall, wide * broad)
        counts = lengths[0] // tile[0], lengths[1] // tile[1]

        def blocks(held: sk.Sketch, levels: Mapping[str, sk.MapSketch] | None = None) -> sk.Sketch:
            """The tiles of groups, put together of the blocks of work-items."""
            maps = levels or dict.fromkeys(GRID, sk.map_)
            items = untiled((high, wide), held, outer=maps["high"], inner=maps["wide"])
            return sk.contains(untiled(counts, sk.contains(items), outer=maps["outer"], inner=maps["inner"]))

        block = block_of(tall, broad)
        sums = sums_of(block, nest.length)
        item = item_in_lanes(tall, broad, width, nest.length)
        held = sk.contains(sk.to_memory("private")) if self.holds_rows else sk.ANY
        stored = sk.map_seq(sk.as_scalar(), sk.reduce_seq(held, length=nest.length), length=tall)
        grid = sk.contains(untiled(counts, block_of(*tile)))
        steps = (
            Step("tiling", grid, chunk_facts(lengths, tile)),
            Step("items", blocks(block), chunk_facts(tile, (tall, broad))),
            Step("blocking", blocks(sums if nest.is_whole else sk.contains(sums)), {}),
            Step("block_levels", blocks(sk.contains(item), GRID), {}, (width,), lowered),
            Step("block_registers", blocks(sk.contains(stored), GRID), {}, (width,)),
        )
        return Plan(steps, (width,), lowered_by=None)
