"""Plans for loops over one array for each element of another, as over all bodies for each body.

A group takes some elements, one a work-item. The loop is outside of the items, over chunks of its array that the group
copies to local memory, so that memory is read once for a group and not once for each item.

Source: Nyland, Harris and Prins, "Fast N-body simulation with CUDA", GPU Gems 3, 2007; 000 Table 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import lowered
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, array
from lift_egraph.workbench.plan import Plan, Step, length_of

MapSketch = Callable[..., sk.PatternSketch]
GROUPS = (128, 256)  # work-items, and the elements of a chunk


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
    own, chunks = sk.of_type(array(element, group), sk.variable()), sk.split(group)
    step = sk.contains(sk.reduce_seq(length=group))
    item = partial(sk.map_level, "mapLcl(0)", length=group)

    def in_groups(grid: MapSketch, loop: sk.Sketch, items: MapSketch) -> sk.Sketch:
        """Groups whose items go on with the result of a loop over chunks."""
        return sk.contains(grid(sk.contains(items(sk.ANY, sk.zip_(sk.contains(loop))))))

    def loop(body: sk.Sketch) -> sk.Sketch:
        return sk.reduce_seq(sk.contains(body), sk.ANY, chunks, length=length // group)

    each, groups = partial(sk.map_, length=group), partial(sk.map_level, "mapWrg(0)")
    staged = sk.let(sk.to_memory("local"), sk.contains(item(step)))
    steps = (
        Step("tiling", sk.contains(sk.map_(sk.contains(sk.map_(length=group)), chunks)), {count: (group,)}),
        Step("item_loops", in_groups(sk.map_, loop(each(step, sk.zip_(sk.ANY, own))), each), {length: (group,)}),
        Step("levels", in_groups(groups, loop(item(step, sk.zip_(sk.ANY, own))), item), {}, (), lowered),
        Step("loop_tile", in_groups(groups, sk.let(sk.to_memory("private"), loop(staged)), item), {}),
    )
    return Plan(steps, (), lowered_by=None)
