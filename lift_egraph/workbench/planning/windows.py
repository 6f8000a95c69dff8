"""Plans for stencils, whose work-items compute several neighbours each.

On GPUs neighbouring work-items still read neighbouring elements, or vectors of them: a work-item goes along the last
dimension but one, so that what the windows of its rows have in common is read once, and stays in registers. On CPUs a
work-item has a band of neighbouring rows, which it computes in vectors: what their windows have in common is read from
memory once, and stays in the core's cache.

Source: 000 §5.3.1 on thread coarsening; Rawat et al., "Register optimizations for stencils on GPUs", PPoPP 2018.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lift_egraph.codegen.devices import Device
from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, array
from lift_egraph.workbench.planning.plan import Plan, Recipe, Step

WINDOW_ROWS = (8, 4)  # of a work-item on a GPU, of single elements …
VECTOR_ROWS = (
    4,
    2,
    8,
)  # … and of vectors: 0.95 to 0.98 of a copy's speed with 5 and 9 points on an H200, 0.47 to 0.83 of elements
BAND_ROWS = (32, 16, 8)  # of a work-item on a CPU, as far as every core has several bands
BANDS, BAND_WIDTHS = 4, 2  # of each core at the least; how many widths of vectors are tried


@dataclass(frozen=True)
class Stencil:
    """A result in at least two dimensions of these lengths, and what is inside, with windows in two of them."""

    lengths: tuple[int, ...]
    leaf: DataType


def rows_of_windows(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Stencils in at least two dimensions whose work-items compute some rows of a column, or of a vector of columns."""
    for stencil in stencils(term):
        rows, columns = stencil.lengths[-2:]
        widths = [width for width in device.widths if columns % width == 0 and width < columns][:1]
        for width, counts in ((width, VECTOR_ROWS) for width in widths):
            for own in _fitting(counts, rows):
                numbers = {"rows": own, "width": width}
                yield replace(_blocks(stencil, numbers), recipe=Recipe(_blocks, stencils, 0, tuple(numbers.items())))
        for own in () if widths else _fitting(WINDOW_ROWS, rows):
            yield Plan((_columns(stencil, own),), ())


def _fitting(counts: tuple[int, ...], rows: int) -> list[int]:
    return [n for n in counts if rows % n == 0 and n < rows]


def _columns(stencil: Stencil, own: int) -> Step:
    """Columns of some rows each, beside each other in those rows."""
    rows, columns = stencil.lengths[-2:]
    column = sk.map_(sk.of_type(array(stencil.leaf, own), sk.map_(length=own)), length=columns)
    return Step("rows", sk.contains(sk.map_(sk.contains(column), sk.split(own), length=rows // own)), {rows: (own,)})


def _blocks(stencil: Stencil, numbers: Mapping[str, int]) -> Plan:
    """Blocks of some `rows` and of as many columns as a vector of a `width` has elements."""
    (rows, columns), own, width = stencil.lengths[-2:], numbers["rows"], numbers["width"]
    block = sk.vectorize(width, sk.contains(sk.map_(length=own)))
    vectors = sk.as_scalar(sk.map_(block, sk.as_vector(width), length=columns // width))
    of_rows = sk.contains(sk.map_(sk.contains(vectors), sk.split(own), length=rows // own))
    return Plan((_columns(stencil, own), Step("item_vectors", of_rows, {}, (width,))), ())


def bands_of_rows(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """Stencils in at least two dimensions whose work-items compute bands of rows, or of planes, in vectors."""
    for stencil in stencils(term):
        rows, columns = stencil.lengths[0], stencil.lengths[-1]
        fitting = [own for own in BAND_ROWS if rows % own == 0 and rows >= own * BANDS * device.compute_units]
        widths = [width for width in device.widths if columns % width == 0]
        for own in fitting[:1]:
            for width in widths[:BAND_WIDTHS]:
                numbers = {"rows": own, "width": width}
                yield replace(_bands(stencil, numbers), recipe=Recipe(_bands, stencils, 0, tuple(numbers.items())))


def _bands(stencil: Stencil, numbers: Mapping[str, int]) -> Plan:
    """Bands of some `rows`, in vectors of a `width`."""
    rows, own = stencil.lengths[0], numbers["rows"]
    made = sk.of_type(array(stencil.leaf, own, *stencil.lengths[1:]), sk.map_(length=own))
    band = sk.map_(sk.contains(made), sk.split(own), length=rows // own)
    return Plan((Step("rows", sk.contains(band), {rows: (own,)}),), (numbers["width"],))


def stencils(term: ir.Expr) -> Iterator[Stencil]:
    """The stencil that a term is, if it is one."""
    lengths, leaf = _lengths(term)
    if sum(isinstance(part, ir.Slide) for part in ir.subterms(term)) >= 2 and len(lengths) >= 2:
        yield Stencil(tuple(lengths), leaf)


def _lengths(term: ir.Expr) -> tuple[list[int], DataType]:
    """The lengths of a result in each dimension, as far as they are numbers, and the type of what is inside."""
    lengths: list[int] = []
    t = type_of(term)
    while isinstance(t, Array) and t.size.constant:
        lengths.append(t.size.constant)
        t = t.element
    return lengths, t
