"""Plans for many short rows on GPUs: a few work-items read each of them.

Where sub-groups pass values, one has a row, and keeps what it computes of it: nobody waits. Else, for sums, a group has
several rows.

The items of a row read neighbouring elements; what they have of all rows of a group meets in local memory, where one
item adds up what belongs to a row. A group for each row would be too small, and an item for each would read what lies
apart.

Source: CUSP's vector kernels for rows of sparse matrices, a part of a warp for each (Bell and Garland 2009).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import prod

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import at_levels, by_sub_group, lowered
from lift_egraph.language import ir
from lift_egraph.language.nesting import LOCAL
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, length_of, nests
from lift_egraph.workbench.planning.trees import ITEM, in_strides

SHORT = 1024  # the longest such row
ROWS, LANES = 16, 16  # rows of a group, and work-items of each
LONGEST_OWN, MANY = 2048, 1024  # the longest row of a sub-group, and how many make it worth one each
MOST_BATCHES = (1 << 16) - 1  # groups that NVIDIA's GPUs have in a second, and in a third dimension
OWN_ROWS = 4  # of a group, each of a sub-group: of fewer, too few items have work on a unit at a time


def short_rows(nest: Nest, device: Device) -> Iterator[Plan]:
    """Sums of rows that lie in memory one after the other."""
    if len(nest.maps) != 1 or isinstance(nest.maps[-1], ir.Transpose):
        return
    rows, own = length_of(nest.maps[-1]), nest.length // LANES
    fits = rows % ROWS == 0 and rows > ROWS and nest.length % LANES == 0 and own not in (1, LANES)
    if fits and nest.length <= SHORT and device.max_work_group >= ROWS * LANES:
        yield _in_groups(nest, rows, own)


def row_lanes(nest: Nest, device: Device) -> Iterator[Plan]:
    """Rows that lie in memory one after the other, or batches of such, each row read by a sub-group."""
    if not nest.maps or nest.repeats or isinstance(nest.maps[-1], ir.Transpose):
        return
    width, length = device.sub_group, nest.length
    *batches, rows = map(length_of, nest.maps)
    if not has_lanes(prod(batches) * rows, length, device) or length % width:
        return
    if len(batches) > 2 or any(number > MOST_BATCHES for number in batches):
        return
    strides = in_strides(nest, width, lets=True)
    sums = sk.reduce_sub(width, sk.ANY, length=width)
    own = strides, Step("row_lanes", sk.contains(sums), {width: (width,)}, (), by_sub_group(width))
    if rows % OWN_ROWS == 0:
        yield _own_rows(nest, own, width)
    yield Plan(own, (), lowered_by="sharing")


def has_lanes(rows: int, length: int, device: Device) -> bool:
    """Whether each of so many rows of a length may be a sub-group's."""
    return device.has_groups and 0 < device.sub_group < length <= LONGEST_OWN and rows >= MANY


def has_rows_of_lanes(term: ir.Expr, device: Device) -> bool:
    """Whether a term has rows that are a sub-group's each, however many there are."""
    return any(any(row_lanes(nest, device)) for nest in nests(term))


def _own_rows(nest: Nest, own: tuple[Step, ...], width: int) -> Plan:
    """Several rows a group, whose items keep what they compute in registers: nobody else reads it."""
    lengths, *batches = [_lengths(array) for array in (nest.array, *reversed(nest.maps))]
    rows = length_of(nest.maps[-1])
    levels: dict[tuple[int | None, int | None], ir.Level] = {
        **{(n, None): LOCAL for n in lengths},
        (width, nest.length // width): LOCAL,
        **{(OWN_ROWS, n): ir.Level("lcl", 1) for n in lengths},
        (rows // OWN_ROWS, OWN_ROWS): ir.Level("wrg", 0),
    }
    in_groups = sk.map_level("mapWrg(0)", sk.contains(sk.map_level("mapLcl(1)", sk.contains(ITEM()))))
    for dimension, (inner, outer) in enumerate(pairwise(batches), 1):
        level = ir.Level("wrg", dimension)
        levels |= dict.fromkeys(product(outer, inner), level)
        in_groups = sk.map_level(level.name, sk.contains(in_groups))
    own_rows = sk.map_(sk.contains(sk.reduce_sub(width)), length=OWN_ROWS)
    blocks = sk.join(sk.map_(own_rows, sk.split(OWN_ROWS)))
    steps = (
        *own,
        Step("tiling", sk.contains(blocks), {rows: (OWN_ROWS,)}),
        Step("row_lane_levels", sk.contains(in_groups), {}, (), at_levels(levels)),
    )
    return Plan(steps, (), lowered_by=None)


def _lengths(array: ir.Expr) -> set[int]:
    """The length of an array, and of those that are padded to it."""
    return {length_of(array), *(length_of(part.array) for part in ir.subterms(array) if isinstance(part, ir.Pad))}


def _in_groups(nest: Nest, rows: int, own: int) -> Plan:
    tiling: Tiling = {rows: (ROWS,)}
    parts = sk.map_(sk.contains(sk.map_(sk.contains(sk.reduce_(length=own)), length=LANES)), length=ROWS)
    own_rows = sk.one_of(parts, sk.zip_(parts, sk.ANY))  # beside what a row's sum is combined with
    block = sk.map_(sk.contains(sk.reduce_(length=LANES)), own_rows, length=ROWS)
    met = sk.map_level("mapLcl(1)", sk.contains(ITEM(sk.contains(sk.reduce_seq()), length=LANES)), length=ROWS)
    kept = sk.to_memory("local", met)
    sums = ITEM(sk.contains(sk.reduce_seq(length=LANES)), sk.one_of(kept, sk.zip_(kept, sk.ANY)), length=ROWS)
    steps = (
        in_strides(nest, LANES),
        Step("tiling", sk.contains(sk.join(sk.map_(sk.map_(length=ROWS), sk.split(ROWS)))), tiling),
        Step("slices", sk.contains(sk.join(sk.map_(sk.contains(block), sk.split(ROWS)))), {}),
        Step("sharing_columns", sk.contains(sk.map_level("mapWrg(0)", sk.contains(sums))), {}, (), lowered),
    )
    return Plan(steps, (), lowered_by=None)
