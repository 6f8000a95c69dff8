"""Plans for reductions of rows by groups, whose items combine halves in local memory until one element is left.

Source: 000 Listing 2.4; Harris, "Optimizing parallel reduction in CUDA", 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes, lowered
from lift_egraph.language import ir
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, nests

ITEMS = (512, 256, 128, 64)  # of a group
ITEM = partial(sk.map_level, "mapLcl(0)")


def trees(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Rows that lie in memory, of which only a reduction is wanted: a group for each."""
    match term:
        case ir.Map(function=ir.Lambda(body=ir.Reduce())):
            (nest,) = found if len(found := list(nests(term))) == 1 else (None,)
        case _:
            return
    if nest is None or nest.fold is not ir.Reduce or not nest.commutes or isinstance(nest.maps[-1], ir.Transpose):
        return
    items = next((n for n in ITEMS if n <= device.max_work_group and nest.length % (2 * n) == 0), None)
    if items and 1 < items // (device.sub_group or items) <= device.sub_group:
        yield _tree_of_sub_groups(nest, items, device.sub_group)
    if items:
        yield _tree(nest, items)


def halving(count: int) -> Tiling:
    """The facts that let an array of this length, and its halves, be split in two."""
    found: dict[int, tuple[int, ...]] = {}
    while count > 1:
        found[count] = (count // 2,)
        count //= 2
    return found


def halves(count: int, first: sk.Sketch, level: Callable[[int, sk.Sketch], sk.Sketch]) -> sk.Sketch:
    """What is left of an array whose halves are combined, `level` by level."""
    while count > 1:
        count //= 2
        first = level(count, sk.transpose(sk.split(count, first)))
    return first


def combined(count: int, first: sk.Sketch) -> sk.Sketch:
    """A tree of maps."""
    return halves(count, first, lambda n, pairs: sk.map_(sk.ANY, pairs, length=n))


def combined_by_items(count: int, first: sk.Sketch) -> sk.Sketch:
    """A tree whose levels the items of a group compute, into local memory."""
    pair = sk.contains(sk.reduce_seq(length=2))
    return halves(count, first, lambda n, pairs: sk.to_memory("local", ITEM(pair, pairs, length=n)))


def shared_out(nest: Nest, items: int, length: int) -> sk.Sketch:
    """What each of some items makes of the elements of such a length that it has, as its neighbours have theirs."""
    element = sk.map_() if nest.reads_map else sk.ANY
    own = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=length // items))
    return sk.map_(own, sk.transpose(sk.split(items)), length=items)


def in_strides(nest: Nest, items: int, lets: bool = False) -> Step:
    """The step after which each of some items has elements that lie apart, as neighbours have their neighbours; whether
    there may be `lets`.
    """
    tiling: Tiling = {nest.length: (items,)}
    sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, shared_out(nest, items, nest.length)))
    return Step("groups", sketch, tiling, (), in_lanes(tiling, items, (items,), lets=lets))


def _tree_of_sub_groups(nest: Nest, items: int, width: int) -> Plan:
    """A tree of two levels: of what the items of each sub-group have, and of what the sub-groups have."""
    own, left = nest.length // items, items // width

    def levels(first: sk.Sketch) -> sk.Sketch:
        return sk.reduce_sub(left, sk.reduce_sub(width, first, length=items), length=left)

    sums = sk.map_(sk.contains(sk.reduce_(length=own)), length=items)
    total = ITEM(sk.ANY, levels(ITEM(sk.contains(sk.reduce_seq(length=own)), length=items)), length=1)
    steps = (
        in_strides(nest, items),
        Step("sub_group_tree", sk.contains(sk.map_(sk.at(0, levels(sums)))), {items: (width,), left: (left,)}),
        Step("tree_levels", sk.contains(sk.map_level("mapWrg(0)", total)), {}, (), lowered),
    )
    return Plan(steps, (), lowered_by=None)


def _tree(nest: Nest, items: int) -> Plan:
    own = nest.length // items
    sums = sk.map_(sk.contains(sk.reduce_(length=own)), length=items)
    by_items = sk.to_memory("local", ITEM(sk.contains(sk.reduce_seq(length=own)), length=items))
    total = ITEM(sk.ANY, combined_by_items(items, by_items), length=1)
    steps = (
        in_strides(nest, items),
        Step("tree", sk.contains(sk.map_(sk.at(0, combined(items, sums)))), halving(items)),
        Step("tree_levels", sk.contains(sk.map_level("mapWrg(0)", total)), {}, (), lowered),
    )
    return Plan(steps, (), lowered_by=None)
