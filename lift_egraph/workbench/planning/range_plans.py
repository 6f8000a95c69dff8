"""Plans for maps whose elements take ranges of uneven length, such as the rows of a sparse matrix.

Each work-item takes some rows one after the other: side by side in the lanes of a vector they would all take as long as
the longest of them. Where each row has many results of one range, as in a sparse matrix times the columns of a dense
one, these are in the lanes of vectors, or a few that fill none are scalars, and the range is taken once for as many of
them as registers hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import fused_ranges
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.lane_ranges import has_differing_ranges
from lift_egraph.language.types import Array, DataType, Scalar, array
from lift_egraph.workbench.planning.plan import SPARE, Plan, Step, length_of
from lift_egraph.workbench.planning.vectors import beside, width_for

FEWEST = 1 << 10  # rows that are worth it


def range_plans(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans for the outermost maps of a stage that fold ranges."""
    for rows in dict.fromkeys(_rows(term)):
        length = length_of(rows.array)
        chunk = chunk_size(length, device.groups)
        if chunk is None or length < FEWEST:
            continue
        for columns in dict.fromkeys(_columns(rows.function)):
            if width := width_for(columns.count, device):
                yield _of_columns(length, chunk, columns, _block(columns, width, device), width)
            elif 1 < columns.count <= device.registers - SPARE:
                yield _of_columns(length, chunk, columns, columns.count)
        yield _in_chunks(length, chunk)


def _rows(term: ir.Part) -> Iterator[ir.Map]:
    """The outermost maps that fold ranges."""
    if isinstance(term, ir.Map):
        if any(isinstance(t, ir.ReduceRange) for t in ir.subterms(term.function)):
            yield term
        return
    for part in ir.parts(term):
        yield from _rows(part)


@dataclass(frozen=True)
class _Columns:
    """Results of one range beside each other: how many, and of which type; whether what is combined is computed for
    them, and whether they are `rows` that are combined already.
    """

    count: int
    result: DataType
    reads_map: bool
    are_rows: bool


def _columns(function: ir.Part) -> Iterator[_Columns]:
    """The results of ranges that a row has."""
    for part in ir.subterms(function):
        fold: ir.Part = part
        if isinstance(part, ir.Map) and isinstance(part.function, ir.Lambda):
            fold = part if has_differing_ranges(part.function) else part.function.body
        if isinstance(fold, ir.ReduceRange) and isinstance(part, ir.Map | ir.ReduceRange):
            found = type_of(part)
            if isinstance(found, Array) and isinstance(found.element, Scalar):
                reads_map, are_rows = isinstance(fold.array, ir.Map), isinstance(part, ir.ReduceRange)
                yield _Columns(length_of(part), found.element, reads_map, are_rows)


def _block(columns: _Columns, width: int, device: Device) -> int:
    """The most columns, in vectors of a width, whose results registers hold; rows are not taken apart."""
    vectors = columns.count // width
    held = vectors if columns.are_rows else min(vectors, max(beside(width, device), default=1))
    return next(n * width for n in range(held, 0, -1) if vectors % n == 0)


def _in_chunks(length: int, chunk: int) -> Plan:
    """A chunk of rows for each work-item."""
    each = sk.contains(sk.map_(sk.contains(_range()), length=chunk))
    return Plan((Step("rows", sk.contains(sk.map_(each, sk.split(chunk))), {length: (chunk,)}),), ())


def _of_columns(length: int, chunk: int, columns: _Columns, block: int, width: int | None = None) -> Plan:
    """A chunk of rows for each work-item, of which each range is taken for a `block` of columns, in vectors if these
    have a width.
    """
    elements = sk.map_(sk.map_(length=block)) if columns.reads_map else sk.ANY
    in_blocks = sk.contains(sk.of_type(array(columns.result, block), _range(elements)))
    if block < columns.count:
        in_blocks = sk.contains(sk.map_(in_blocks, sk.split(block)))
    each = sk.contains(sk.map_(in_blocks, length=chunk))
    loop = _range_seq(sk.map_seq(length=block))
    if width:
        loop = sk.as_scalar(_range_seq(sk.map_seq(sk.vectorize(width), length=block // width)))
    widths = (width,) if width else ()
    item = sk.map_level("mapGlb(0)", sk.contains(sk.map_seq(sk.contains(loop), length=chunk)))
    steps = (
        Step("range_columns", sk.contains(sk.map_(each, sk.split(chunk))), {length: (chunk,), columns.count: (block,)}),
        Step("range_column_levels", sk.contains(item), {}, widths, fused_ranges),
    )
    return Plan(steps, widths, lowered_by=None)


def _range(array: sk.Sketch = sk.ANY) -> sk.Sketch:
    return sk.PatternSketch(ir.ReduceRange.signature.name, (sk.ANY,) * 4 + (array,))


def _range_seq(function: sk.Sketch) -> sk.Sketch:
    return sk.PatternSketch(ir.ReduceRangeSeq.signature.name, (function,) + (sk.ANY,) * 4)
