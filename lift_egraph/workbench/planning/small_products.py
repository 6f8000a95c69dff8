"""Plans for products of matrices with few results on GPUs, many of them beside each other: a group has all of one.

Its work-items have one result each, and several share the sum of each; what these have meets in local memory. Tiles
would be larger than the matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes, lowered
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, length_of
from lift_egraph.workbench.planning.shared_columns import by_sharing_items, shared_sum

MOST = 256  # results of a product
LEAST = 128  # elements of a sum
SHARES = (32, 16, 8, 4, 2)  # work-items of a result
ENOUGH = 512  # work-items of a group, about
MOST_PLANS = 2


def small_products(nest: Nest, device: Device) -> Iterator[Plan]:
    """A batch of products with few results each, whose sums are long."""
    if len(nest.maps) != 3 or nest.length < LEAST:
        return
    batch, rows, columns = map(length_of, nest.maps)
    if rows * columns > MOST or batch < device.compute_units:
        return
    most = min(ENOUGH, device.max_work_group)
    shares = [n for n in SHARES if nest.length % n == 0 and rows * columns * n <= most and nest.length // n != n]
    for share in shares[:MOST_PLANS]:
        yield _in_groups(nest, (rows, columns), share)


def _in_groups(nest: Nest, results: tuple[int, int], share: int) -> Plan:
    """Groups with the results of one product each, of which each is the work of a `share` of work-items."""
    rows, columns = results
    total = shared_sum(nest.length, share, sk.map_() if nest.reads_map else sk.ANY)
    product = sk.contains(sk.map_(sk.contains(sk.map_(total, length=columns)), length=rows))
    item = by_sharing_items(nest.length, share, columns)
    high: sk.MapSketch = partial(sk.map_level, "mapLcl(2)")
    groups = sk.map_level("mapWrg(0)", sk.contains(high(sk.contains(item), length=rows)))
    tiling = {nest.length: (share,)}
    steps = (
        Step("groups", sk.contains(sk.map_(product)), tiling, (), in_lanes(tiling, share)),
        Step("sharing_columns", sk.contains(groups), {}, (), lowered),
    )
    return Plan(steps, (), lowered_by=None)
