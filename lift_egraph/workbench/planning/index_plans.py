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
from lift_egraph.workbench.planning.plan import LONG, Plan, Step, length_of

MOST_RESULTS = 4  # elements of a chunk for each result: with fewer, combining the results is the most of the work


def index_plans(term: ir.Expr, device: Device) -> Iterator[Plan]:
    """The plans for the long reductions by index of a stage."""
    known: set[tuple[int, int]] = set()
    for part in ir.subterms(term):
        if not isinstance(part, ir.ReduceByIndex) or associative(part.operator) is None:
            continue
        length = length_of(part.array)
        chunk = chunk_for_results(length, length_of(part), device)
        if scalars(type_of(part).element) is None or chunk is None or (length, chunk) in known:  # pyright: ignore
            continue
        known.add((length, chunk))
        yield _in_chunks(part, length, chunk)


def chunk_for_results(length: int, results: int, device: Device) -> int | None:
    """The size of as many chunks of a long array as are worth results of their own; None if no two are."""
    parts = device.groups
    while length >= LONG and parts > 1 and parts >= device.compute_units:
        chunk = chunk_size(length, parts)
        if chunk is not None and chunk >= MOST_RESULTS * results:
            return chunk
        parts //= 2
    return None


def _in_chunks(part: ir.ReduceByIndex, length: int, chunk: int) -> Plan:
    """Results for each chunk, which computes its own elements, and its own places with them, and then all of them."""
    elements = sk.map_() if isinstance(part.array, ir.Map) else sk.ANY
    places = elements if isinstance(part.indices, ir.Map) else sk.ANY
    inside = sk.contains(sk.PatternSketch("reduceByIndex", (sk.ANY, sk.ANY, places, elements), (), None))
    sketch = sk.contains(sk.transpose(sk.map_(inside, length=length // chunk)))
    return Plan((Step("index_chunks", sketch, {length: (chunk,)}),), ())
