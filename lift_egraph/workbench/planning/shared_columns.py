"""Plans for sums of columns on GPUs: neighbouring work-items read neighbouring columns, and several share each column.

What a group's work-items have of a column meets in local memory. The items of one column alone would read what lies
apart, and there are too few columns to keep a GPU busy with one item for each.

Source: 000 §5.3.1; the transposed products of matrices and vectors of CLBlast.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes, lowered
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, columns_of, length_of
from lift_egraph.workbench.planning.trees import ITEM

SHARED = ((32, 32), (64, 16), (32, 16), (64, 8), (32, 8))  # columns of a group, and the work-items of each
MOST_PLANS = 3


def shared_columns(nest: Nest, device: Device) -> Iterator[Plan]:
    """Reductions of columns that lie side by side, the plan with most work-items first."""
    if len(nest.maps) != 1 or columns_of(nest.maps[-1]) is None:
        return
    columns, made = length_of(nest.maps[-1]), list[Plan]()
    for block, share in SHARED:
        is_cut = columns % block == 0 and columns > block
        fits = is_cut and nest.length % share == 0 and nest.length // share not in (1, share)
        if fits and block * share <= device.max_work_group:
            made.append(_shared(nest, columns, block, share))
    yield from made[:MOST_PLANS]


def shared_sum(of: int, by: int, element: sk.Sketch = sk.ANY) -> sk.Sketch:
    """A sum of so many elements, by items that have elements apart from each other."""
    part = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=of // by))
    return sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(part, sk.transpose(sk.split(by)), length=by), length=by))


def by_sharing_items(of: int, by: int, width: int) -> sk.Sketch:
    """A number of such sums by a group, where what items have of one meets in local memory."""
    part = sk.map_level("mapLcl(1)", sk.contains(sk.reduce_seq(length=of // by)), length=by)
    return ITEM(sk.contains(sk.reduce_seq(sk.ANY, sk.ANY, sk.to_memory("local", part), length=by)), length=width)


def _shared(nest: Nest, columns: int, block: int, share: int) -> Plan:
    """Groups with a `block` of columns, each of which is the work of a `share` of work-items."""
    column = shared_sum(nest.length, share, sk.map_() if nest.reads_map else sk.ANY)
    tiling: Tiling = {nest.length: (share,)}
    blocks: Tiling = {columns: (block,)}
    grid = sk.join(sk.map_(sk.map_(length=block), sk.split(block)))

    groups = sk.map_level("mapWrg(0)", sk.contains(by_sharing_items(nest.length, share, block)))
    steps = (
        Step("groups", sk.contains(sk.map_(column, length=columns)), tiling, (), in_lanes(tiling, share)),
        Step("tiling", sk.contains(grid), blocks),
        Step("sharing_columns", sk.contains(groups), {}, (), lowered),
    )
    return Plan(steps, (), lowered_by=None)
