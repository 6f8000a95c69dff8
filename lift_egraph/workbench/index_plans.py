"""Plans for reductions by index: each work-item has results of its own for a chunk, which are then combined.

Source: Henriksen et al., "Compiling generalized histograms for GPU", SC 2020 (subhistograms).
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.algebra.expressions import scalars
from lift_egraph.algebra.laws import associative
from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.workbench.plan import LONG, Plan, Step, length_of

MOST_RESULTS = 4  # elements of a chunk for each result: with fewer, combining the results is the most of the work


def index_plans(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans for the long reductions by index of a stage."""
    known: set[tuple[int, int]] = set()
    for part in ir.subterms(term):
        if not isinstance(part, ir.ReduceByIndex) or associative(part.operator) is None:
            continue
        length, count = length_of(part.array), length_of(part)
        chunk = chunk_size(length, device.groups) if length >= LONG else None
        if scalars(type_of(part).element) is None or chunk is None or (length, chunk) in known:  # pyright: ignore
            continue
        if chunk >= MOST_RESULTS * count:
            known.add((length, chunk))
            yield _in_chunks(part, length, chunk)


def _in_chunks(part: ir.ReduceByIndex, length: int, chunk: int) -> Plan:
    """Results for each chunk, which computes its own elements, and its own places with them, and then all of them."""
    elements = sk.map_() if isinstance(part.array, ir.Map) else sk.ANY
    places = elements if isinstance(part.indices, ir.Map) else sk.ANY
    inside = sk.contains(sk.PatternSketch("reduceByIndex", (sk.ANY, sk.ANY, places, elements), (), None))
    sketch = sk.contains(sk.transpose(sk.map_(inside, length=length // chunk)))
    return Plan((Step("index_chunks", sketch, {length: (chunk,)}),), ())
