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

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import by_sub_group, lowered
from lift_egraph.language import ir
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, length_of
from lift_egraph.workbench.planning.trees import ITEM, in_strides

SHORT = 1024  # the longest such row
ROWS, LANES = 16, 16  # rows of a group, and work-items of each
LONGEST_OWN, MANY = 2048, 1024  # the longest row of a sub-group, and how many make it worth one each


def short_rows(nest: Nest, device: Device) -> Iterator[Plan]:
    """Sums of rows that lie in memory one after the other."""
    if len(nest.maps) != 1 or isinstance(nest.maps[-1], ir.Transpose):
        return
    rows, own = length_of(nest.maps[-1]), nest.length // LANES
    fits = rows % ROWS == 0 and rows > ROWS and nest.length % LANES == 0 and own not in (1, LANES)
    if fits and nest.length <= SHORT and device.max_work_group >= ROWS * LANES:
        yield _in_groups(nest, rows, own)


def row_lanes(nest: Nest, device: Device) -> Iterator[Plan]:
    """Rows that lie in memory one after the other, each read by a sub-group."""
    width, length = device.sub_group, nest.length
    if len(nest.maps) != 1 or isinstance(nest.maps[-1], ir.Transpose) or not width:
        return
    if width < length <= LONGEST_OWN and length % width == 0 and length_of(nest.maps[-1]) >= MANY:
        cuts: Tiling = {length: (width, length // width), width: (width,)}
        together = sk.contains(sk.reduce_sub(width, sk.ANY, length=width))
        steps = (
            in_strides(nest, width, lets=True),
            Step("row_lanes", together, cuts, (), by_sub_group(length, width)),
        )
        yield Plan(steps, (), lowered_by="sharing")


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
