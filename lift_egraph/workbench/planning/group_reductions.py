"""Plans for reductions by the work-items of a group, neighbours of neighbouring elements, and then of what these have.

What the items have meets in local memory, in two levels, or is passed on in sub-groups. Of a long reduction each group
has a chunk, and a second kernel adds up what they have.

Source: 000 Listing 2.4; Harris, "Optimizing parallel reduction in CUDA", 2007.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling, chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes
from lift_egraph.workbench.planning.plan import Nest, Plan, Step
from lift_egraph.workbench.planning.trees import shared_out

LONG_RUN = 32  # elements of each work-item of a largest group that is worth it for one row
SHARED_RUN = 4  # elements of each work-item of a largest group that is worth a second kernel
FEW, GROUP_PLANS = 16, 2  # last results of a group's work-items; how many plans are tried
MORE_GROUPS = 2  # times the groups, of half as many items: as fast for one array, and faster for two, H100


def group_reductions(nest: Nest, device: Device, lets: bool) -> Iterator[Plan]:
    """Reductions of which each group has one, or a chunk of one that is long."""
    largest = int(device.level("group").workers[0])
    shared = SHARED_RUN * largest
    long = nest.length >= shared and not nest.maps
    chunk = chunk_size(nest.length, min(device.groups, max(nest.length // shared, 2))) if long else nest.length
    if chunk is None:
        return
    cuts = [*product(device.group_sizes, (chunk, 2 * chunk) if long else (chunk,))]
    if long and chunk % MORE_GROUPS == 0:
        cuts.insert(1, (int(largest) // 2, chunk // MORE_GROUPS))
    for items, chunk in [
        (n, c)
        for n, c in cuts
        if (long or n < largest or nest.length >= n * LONG_RUN)
        and nest.length % c == c % n == 0
        and c // n not in (1, n)  # sketches tell chunks, and what is in them, by their lengths
        and nest.length // c not in (n, c)
    ][:GROUP_PLANS]:
        parts, count, width = items // FEW, nest.length // chunk, device.sub_group
        shared = shared_out(nest, items, chunk)
        meetings = [("groups", parts, sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.ANY, sk.split(parts, shared), length=FEW)))]
        if width and items % width == 0 and items > width:  # one barrier instead of two
            by_sub_groups = sk.reduce_(sk.ANY, sk.ANY, sk.reduce_sub(width, shared, length=items))
            meetings.insert(0, ("sub_groups", width, by_sub_groups))
        for name, part, meeting in meetings:
            sketch = sk.contains(meeting)
            tiling: Tiling = {chunk: (items,), items: (part,)}
            if long:
                sketch = sk.contains(sk.map_(sketch, sk.split(chunk), length=count))
                tiling = {nest.length: (chunk,), **tiling}
            weigh = in_lanes(tiling, items, (chunk, items), lets=lets)
            yield Plan((Step(name, sketch, tiling, (), weigh),), (), lowered_by="sharing")
