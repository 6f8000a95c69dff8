"""Plans for scans: chunks are reduced beside each other, their totals scanned, and the chunks scanned from there.

The totals are reduced in the lanes of vectors. In a chunk, blocks are scanned each by itself, so that a block waits for
one step of the one before it, not for each.

Source: Dotsenko et al., "Fast scan algorithms on graphics processors", ICS 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling, chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes
from lift_egraph.language import ir
from lift_egraph.language.types import WIDTHS, Scalar
from lift_egraph.workbench.plan import Nest, Plan, Step, plan_of

LONG = 1 << 15  # the length from which an array is scanned in chunks
BLOCKS = (16, 8)  # elements of a block, for which registers hold the scan of each by itself


def scan_plans(nest: Nest, device: Device) -> Iterator[Plan]:
    """The plans for a scan outside of all loops."""
    chunk = chunk_size(nest.length, device.groups)
    if nest.maps or nest.length < LONG or chunk is None:
        return
    width = next((w for w in device.widths if w <= WIDTHS[-1] and chunk % w == 0 and w < chunk), None)
    if not isinstance(nest.result, Scalar):
        yield plan_of(_in_chunks, nest, chunk=chunk)
        return
    if width is None:
        return
    numbers = {"chunk": chunk, "width": width}
    for block in BLOCKS:
        if chunk % block == 0 and nest.fold is ir.Scan:
            yield plan_of(_in_blocks, nest, (("chunk", "width"), ("chunk", "block")), **numbers, block=block)
    yield plan_of(_in_vectors, nest, (("chunk", "width"),), **numbers)


def _in_chunks(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A scan in chunks."""
    chunk = numbers["chunk"]
    scans = _in_each(nest, chunk, _fold(nest.fold, chunk, _element(nest)))
    return Plan((Step("scans", scans, {nest.length: (chunk,)}),), ())


def _in_vectors(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A scan in chunks, whose totals are made in vectors of a `width`."""
    chunk, width, plan = numbers["chunk"], numbers["width"], _in_chunks(nest, numbers)
    inner = sk.contains(_fold(ir.Reduce, chunk // width, _element(nest)))
    lanes = sk.as_scalar(sk.map_(sk.vectorize(width, inner), sk.as_vector(width)))
    totals = sk.contains(_fold(ir.Reduce, width, lanes))
    tiling: Tiling = {chunk: (width,)}
    return replace(plan, steps=(*plan.steps, Step("lanes", totals, tiling, (width,), in_lanes(tiling, width))))


def _in_blocks(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same, with the scan of each chunk in blocks."""
    chunk, block, plan = numbers["chunk"], numbers["block"], _in_vectors(nest, numbers)
    own = sk.contains(_fold(nest.fold, block, _element(nest)))
    blocks = _in_each(nest, chunk, _fold(ir.ScanSeq, chunk // block, operator=own))
    return replace(plan, steps=(*plan.steps, Step("scan_blocks", blocks, {chunk: (block,)})))


def _in_each(nest: Nest, chunk: int, scan: sk.Sketch) -> sk.Sketch:
    """A map over chunks, with a scan in it."""
    return sk.contains(sk.map_(sk.contains(scan), length=nest.length // chunk))


def _element(nest: Nest) -> sk.Sketch:
    """What is folded: computed on the fly, where it is computed."""
    return sk.map_() if nest.reads_map else sk.ANY


def _fold(fold: type[ir.Expr], length: int, array: sk.Sketch = sk.ANY, operator: sk.Sketch = sk.ANY) -> sk.Sketch:
    return sk.PatternSketch(fold.signature.name, (operator, sk.ANY, array), (), length)
