"""Plans for loops over one array for each element of another, as over all bodies for each body.

A group takes some elements, one a work-item. The loop is outside of the items, over chunks of its array that the group
copies to local memory, so that memory is read once for a group and not once for each item. On a CPU a group is one
work-item, which has a vector of elements.

Source: Nyland, Harris and Prins, "Fast N-body simulation with CUDA", GPU Gems 3, 2007; 000 Table 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, array
from lift_egraph.workbench.planning.plan import Plan, Step, length_of

GROUPS = (128, 256)  # work-items, and the elements of a chunk
TILE = 512  # elements of a chunk that one work-item copies


def staged_loops(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Maps of a loop over an array that stands in memory, and of what is made of its result; chunk by chunk."""
    match term:
        case ir.Map(
            function=ir.Lambda(binder=binder, body=ir.Apply(argument=ir.ReduceSeq(array=ir.Input() as read) as loop)),
            array=elements,
        ):
            count, length, own = length_of(elements), length_of(read), _read(elements, binder, loop)
        case _:
            return
    if own is None:
        return
    if not device.has_groups:
        width = max(device.widths, default=1)
        if width > 1 and count % width == length % TILE == 0 and count > width and length > TILE:
            yield _in_vectors(own, count, length, width)
        return
    for group in GROUPS:
        fits = group < min(count, length) and group <= device.max_work_group
        if fits and count % group == 0 and length % group == 0:
            yield _staged(own, count, length, group)


def _read(elements: ir.Expr, binder: ir.Binder, loop: ir.Expr) -> DataType | None:
    """The type of what a loop reads of each element, if an input has it."""
    used = ir.free_variables(loop)
    while isinstance(elements, ir.Zip) and isinstance(binder, ir.PairBinder):
        if used.isdisjoint(ir.bound_variables(binder.second)):
            elements, binder = elements.first, binder.first
        elif used.isdisjoint(ir.bound_variables(binder.first)):
            elements, binder = elements.second, binder.second
        else:
            return None
    t = type_of(elements)
    return t.element if isinstance(t, Array) and isinstance(elements, ir.Input) else None


def _staged(element: DataType, count: int, length: int, group: int) -> Plan:
    """Groups of so many of the elements, each a work-item's, and chunks of as many steps of the loop."""
    own, step = sk.of_type(array(element, group), sk.variable()), sk.contains(sk.reduce_seq(length=group))
    item = partial(sk.map_level, "mapLcl(0)", length=group)
    loop, groups = partial(_loop, length, group), partial(sk.map_level, "mapWrg(0)")
    staged = sk.let(sk.to_memory("local"), sk.contains(item(step)))
    steps = (
        *_out_of_items(element, count, group, length, group),
        Step("levels", _in_groups(groups, loop(item(step, sk.zip_(sk.ANY, own))), item), {}, (), lowered),
        Step("loop_tile", _in_groups(groups, sk.let(sk.to_memory("private"), loop(staged)), item), {}),
    )
    return Plan(steps, (), lowered_by=None)


def _in_vectors(element: DataType, count: int, length: int, width: int) -> Plan:
    """Groups of one work-item, which has a vector of elements, and chunks that it copies alone."""
    item, groups = partial(sk.map_level, "mapLcl(0)"), partial(sk.map_level, "mapWrg(0)")

    def vectors(items: sk.MapSketch, grid: sk.MapSketch, copy: sk.Sketch | None = None) -> sk.Sketch:
        """Groups with a loop that keeps its results in a vector; of its chunks there may be a copy."""
        step = sk.contains(items(sk.vectorize(width, sk.contains(sk.reduce_seq(length=TILE))), length=1))
        loop = _loop(length, TILE, step if copy is None else sk.let(copy, step))
        return sk.contains(grid(sk.contains(sk.as_scalar(items(sk.vectorize(width), sk.zip_(loop), length=1)))))

    copy = sk.to_memory("local", sk.contains(item(sk.contains(sk.map_seq(length=TILE)), length=1)))
    steps = (
        *_out_of_items(element, count, width, length, TILE),
        Step("item_vectors", vectors(sk.map_, sk.map_), {}, (width,)),
        Step("levels", vectors(item, groups), {}, (), lowered),
        Step("vector_tile", vectors(item, groups, copy), {TILE: (TILE,)}),
    )
    return Plan(steps, (width,), lowered_by=None)


def _out_of_items(element: DataType, count: int, group: int, length: int, tile: int) -> tuple[Step, Step]:
    """The steps after which a loop over chunks is outside of the elements of each group."""
    own, each = sk.of_type(array(element, group), sk.variable()), partial(sk.map_, length=group)
    step = each(sk.contains(sk.reduce_seq(length=tile)), sk.zip_(sk.ANY, own))
    groups = sk.contains(sk.map_(sk.contains(each()), sk.split(group)))
    return (
        Step("tiling", groups, {count: (group,)}),
        Step("item_loops", _in_groups(sk.map_, _loop(length, tile, step), each), {length: (tile,)}),
    )


def _loop(length: int, tile: int, body: sk.Sketch) -> sk.Sketch:
    """A loop over chunks of an array."""
    return sk.reduce_seq(sk.contains(body), sk.ANY, sk.split(tile), length=length // tile)


def _in_groups(grid: sk.MapSketch, loop: sk.Sketch, items: sk.MapSketch) -> sk.Sketch:
    """Groups whose items go on with the result of a loop over chunks."""
    return sk.contains(grid(sk.contains(items(sk.ANY, sk.zip_(sk.contains(loop))))))
