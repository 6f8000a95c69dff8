"""Plans for maps whose elements take ranges of uneven length, such as the rows of a sparse matrix.

Each work-item takes some rows one after the other: side by side in the lanes of a vector they would all take as long as
the longest of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.workbench.planning.plan import Plan, Step, length_of

FEWEST = 1 << 10  # rows that are worth it


def range_plans(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans for the outermost maps of a stage that fold ranges."""
    for length in dict.fromkeys(_lengths(term)):
        chunk = chunk_size(length, device.groups)
        if chunk is not None and length >= FEWEST:
            yield _in_chunks(length, chunk)


def _lengths(term: ir.Part) -> Iterator[int]:
    if isinstance(term, ir.Map):
        if any(isinstance(t, ir.ReduceRange) for t in ir.subterms(term.function)):
            yield length_of(term.array)
        return
    for part in ir.parts(term):
        yield from _lengths(part)


def _in_chunks(length: int, chunk: int) -> Plan:
    """A chunk of rows for each work-item."""
    each = sk.contains(sk.map_(sk.contains(_RANGE), length=chunk))
    return Plan((Step("rows", sk.contains(sk.map_(each, sk.split(chunk))), {length: (chunk,)}),), ())


_RANGE = sk.PatternSketch(ir.ReduceRange.signature.name, (sk.ANY,) * 5)
