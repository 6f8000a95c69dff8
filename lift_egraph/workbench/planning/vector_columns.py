"""Plans for sums of columns by vectors: neighbouring columns, whose elements lie side by side in each row, are lanes.

A work-item has a block of several vectors of columns, or a strip of as many as the first cache holds, to which it adds
a few rows at a time: what lies side by side in memory is read for longer than a block is wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.types import array
from lift_egraph.workbench.planning.plan import Nest, Plan, Step, length_of, plan_of
from lift_egraph.workbench.planning.vectors import width_for

STRIP, STRIP_ROWS = (256, 4096), (8, 4)  # columns of a strip, from and to, and rows that are added at a time


def vector_columns(nest: Nest, device: Device) -> Iterator[Plan]:
    """Blocks of several vectors of columns, whose elements lie side by side in each row that is reduced."""
    columns = length_of(nest.maps[-1]) if nest.maps else 1
    width = width_for(columns, device)
    if width is None:
        return
    for vectors in [c for c in (8, 4) if columns % (c * width) == 0 and c * width < columns][:1]:
        yield plan_of(_in_columns, nest, vectors=vectors, width=width)
    widest = columns // max(device.compute_units, 2) // width * width
    strip = next((n for n in range(min(widest, STRIP[1]), STRIP[0] - 1, -width) if columns % n == 0), None)
    rows = next((n for n in STRIP_ROWS if nest.length % n == 0 and n < nest.length), None)
    of_several = isinstance(nest.array, ir.Map) and isinstance(nest.array.array, ir.Zip)
    if strip and rows and of_several and isinstance(nest.maps[-1], ir.Transpose):
        yield plan_of(_in_strips, nest, vectors=strip // width, width=width, rows=rows)


def _in_columns(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Blocks of some `vectors` of a `width`."""
    columns, held, width = length_of(nest.maps[-1]), numbers["vectors"], numbers["width"]
    block = held * width
    element = sk.map_(sk.map_(length=held)) if nest.reads_map else sk.ANY
    inner = sk.of_type(array(nest.result, held), sk.reduce_(sk.ANY, sk.ANY, element, length=nest.length))
    vectors = sk.contains(sk.map_(sk.contains(inner), sk.transpose(sk.split(width)), length=width))
    step = Step("columns", sk.contains(sk.map_(vectors, sk.split(block))), {columns: (block,), block: (held,)})
    return Plan((step,), (width,))


def _in_strips(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Strips of some `vectors` of a `width`, of which some `rows` are added at a time.

    What lies side by side in memory is so read from a few rows at a time, for longer than a block of columns is wide,
    and each partial result, which the first cache holds, is stored once for these rows.
    """
    columns, held, width, rows = length_of(nest.maps[-1]), numbers["vectors"], numbers["width"], numbers["rows"]
    strip, count = held * width, nest.length // numbers["rows"]
    own = sk.contains(sk.reduce_(length=rows))
    in_rows = sk.contains(sk.map_(sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(own, sk.zip_(), length=count)))))
    sums = sk.reduce_(sk.ANY, sk.ANY, sk.map_(sk.map_(own, length=held)), length=count)
    vectors = sk.map_(
        sk.contains(sk.of_type(array(nest.result, held), sums)), sk.transpose(sk.split(width)), length=width
    )
    in_strips = sk.contains(sk.map_(sk.contains(vectors), sk.split(strip)))
    steps = (
        Step("rows_at_a_time", in_rows, {nest.length: (rows,)}),
        Step("columns", in_strips, {columns: (strip,), strip: (held,)}),
    )
    return Plan(steps, (width,))
