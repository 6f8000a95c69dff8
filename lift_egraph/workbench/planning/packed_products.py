"""Plans for products of matrices by blocks of rows times vectors of columns, with what is read packed before.

An element of the columns that is read once serves all rows of a block; what is read in vectors is packed in the order
of its use. Where everything is read as it lies in memory, columns are in tiles that a unit's own cache holds while all
rows pass.

Registers hold the results of six rows where powers of two leave a third of them empty: rows that six does not divide
are padded with copies of the last one, of which nothing is kept. Nothing of that is in memory.

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.types import array
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, length_of, plan_of

WASTE = 32  # which part of the rows may be added to them at most
FAR, NEAR, ELEMENT = 4, 2, 4  # the parts of the last cache, and of a unit's own, for what is read again; bytes of f32
PACKED = sk.as_scalar(sk.to_memory("global"))


def packed_products(nest: Nest, width: int, blocks: Sequence[int], pads: bool = False) -> Iterator[Plan]:
    """Blocks of rows, of the first two lengths that divide them, times vectors of columns; where it `pads`, also of
    the first of all lengths.
    """
    packs = can_pack(nest, width)
    for block in _fitting(nest, blocks, pads, 2):
        packed, direct = (_plan(make, nest, block=block, width=width) for make in (_packed_product, _product))
        both = (direct, packed) if isinstance(nest.maps[-1], ir.Transpose) else (packed, direct)
        yield from both if packs else (direct,)


def can_pack(nest: Nest, width: int) -> bool:
    """Whether columns can be packed in vectors: beside the map that takes them, a row computes nothing."""
    return nest.is_row and length_of(nest.maps[-1]) % width == 0


def products_of_lines(nest: Nest, width: int, blocks: Sequence[int], device: Device) -> Iterator[Plan]:
    """Products for which everything is read as it lies in memory: with packed rows, where these are columns there.

    Columns are in tiles that a unit's own cache holds while all rows pass, where the last cache does not hold all of
    them: else each block of rows brings them from memory.
    """
    if not can_pack(nest, width):
        return
    columns = length_of(nest.maps[-1])
    fitting = _fitting(nest, blocks, not device.has_groups, 1)
    for block in fitting if _packs_rows(nest, width) else ():
        yield _plan(_twice_packed_product, nest, block=block, width=width)
    if FAR * ELEMENT * nest.length * columns <= device.cache or device.has_groups:
        return
    most = max(device.caches[-1] // (NEAR * ELEMENT * nest.length), width)
    tile = next((n for n in range(most // width * width, 0, -width) if columns % n == 0 and n < columns), None)
    if tile is None:
        return
    for block in fitting:
        yield _plan(_cached_product, nest, (("tile", "width"),), block=block, width=width, tile=tile)


def _fitting(nest: Nest, blocks: Sequence[int], pads: bool, most: int) -> list[int]:
    """The first of all lengths of blocks, if rows may be padded for it, and of those that divide the rows so many."""
    rows = length_of(nest.rows)
    padded = [b for b in blocks[:1] if pads and rows % b and -rows % b * WASTE <= rows]
    return [*padded, *[b for b in blocks if rows % b == 0 and b < rows][:most]]


def _plan(
    make: Callable[[Nest, Mapping[str, int]], Plan],
    nest: Nest,
    multiples: tuple[tuple[str, str], ...] = (),
    **numbers: int,
) -> Plan:
    """A plan; of padded rows at these sizes alone, as at others they are padded in another way, or not."""
    plan = plan_of(make, nest, multiples, **numbers)
    return replace(plan, recipe=None) if length_of(nest.rows) % numbers["block"] else plan


def _padded(nest: Nest, block: int) -> tuple[int, tuple[Step, ...]]:
    """How many rows there are in whole blocks, and the step that adds those that lack."""
    rows = length_of(nest.rows)
    count = rows + -rows % block
    if count == rows:
        return rows, ()
    sums = sk.contains(sk.map_(sk.contains(sk.reduce_(length=nest.length)), length=length_of(nest.maps[-1])))
    return count, (Step("padding", sk.contains(sk.map_(sums, length=count)), {rows: (block,)}),)


def _product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A `block` of rows times vectors of a `width`."""
    block = numbers["block"]
    rows, padding = _padded(nest, block)
    of_rows = sk.ANY if padding else _written(nest.rows)
    sketch = _in_blocks(nest, block, rows, length_of(nest.maps[-1]), of_rows)
    return Plan((*padding, Step("blocking", sketch, {rows: (block,)})), (numbers["width"],))


def _packed_product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same, with what is read in vectors packed before in the order of its use."""
    direct = _product(nest, numbers)
    packing = Step("packing", sk.contains(sk.to_memory("global")), {}, direct.widths)
    return replace(direct, steps=(packing, *direct.steps))


def _twice_packed_product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A packed product, with packed rows."""
    packed, block, columns = _packed_product(nest, numbers), numbers["block"], length_of(nest.maps[-1])
    rows, padding = _padded(nest, block)
    of_rows = sk.contains(sk.map_(sk.ANY, PACKED, length=length_of(nest.rows)))
    row_packing = Step("row_packing", of_rows, {}, packed.widths)
    sketch = _in_blocks(nest, block, rows, columns, sk.ANY if padding else PACKED)
    return replace(packed, steps=(packed.steps[0], row_packing, *padding, Step("blocking", sketch, {rows: (block,)})))


def _cached_product(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A packed product of a `block` of rows and vectors of a `width`, in tiles of some columns."""
    columns, block, tile = length_of(nest.maps[-1]), numbers["block"], numbers["tile"]
    rows, padding = _padded(nest, block)
    of_rows = sk.ANY if padding else _written(nest.rows)

    def tiled(inner: sk.Sketch) -> sk.Sketch:
        return sk.contains(sk.map_(inner, sk.split(tile), length=columns // tile))

    sums = sk.contains(sk.reduce_(length=nest.length))
    each_row = sk.map_(sk.contains(sk.map_(sums, sk.variable(), length=tile)), of_rows, length=rows)
    packed = _packed_product(nest, numbers)
    tiling = Step("tiling", tiled(sk.contains(each_row)), {columns: (tile,)})
    blocking = Step("blocking", tiled(_in_blocks(nest, block, rows, tile, of_rows)), {rows: (block,)})
    return replace(packed, steps=(packed.steps[0], *padding, tiling, blocking))


def _packs_rows(nest: Nest, width: int) -> bool:
    """Whether the rows are columns in memory: elements of one after the other lie in other lines of the caches."""
    rows = nest.rows
    is_transposed = rows is nest.maps[0] and isinstance(rows, ir.Transpose) and not ir.free_variables(rows)
    return is_transposed and length_of(rows) % width == 0


def _in_blocks(nest: Nest, block: int, rows: int, columns: int, of_rows: sk.Sketch) -> sk.Sketch:
    """Blocks of so many rows, each with so many columns."""
    element = sk.map_(sk.map_(length=block)) if nest.reads_map else sk.ANY
    inner = sk.of_type(array(nest.result, block), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
    across = sk.contains(sk.map_(sk.contains(inner), length=columns))
    return sk.contains(sk.map_(across, sk.split(block, of_rows), length=rows // block))


def _written(array: ir.Expr) -> sk.Sketch:
    """The sketch of an input or a variable, also in another layout; any array otherwise."""
    match array:
        case ir.Input(name=name):
            return sk.input_(name)
        case ir.Var():
            return sk.variable()
        case ir.Transpose(array=inner):
            return sk.transpose(_written(inner))
        case ir.Zip(first=first, second=second):
            return sk.zip_(_written(first), _written(second))
        case _:
            return sk.ANY
