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
from lift_egraph.language.types import Scalar
from lift_egraph.workbench.planning.plan import LONG, Nest, Plan, Step, plan_of

BLOCKS = (16, 8)  # elements of a block, for which registers hold the scan of each by itself
MANY = 4  # blocks that are worth it


def scan_plans(nest: Nest, device: Device) -> Iterator[Plan]:
    """The plans for a scan: a long one outside of all loops in chunks, others in blocks."""
    if nest.maps or nest.length < LONG:
        yield from _blocks_alone(nest)
        return
    chunk = chunk_size(nest.length, device.groups)
    if chunk is None:
        return
    width = next((w for w in device.widths if chunk % w == 0 and w < chunk), None)
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


def _blocks_alone(nest: Nest) -> Iterator[Plan]:
    """A scan in blocks as it is; not of columns: those that lie side by side are scanned in the lanes of vectors."""
    in_columns = bool(nest.maps) and isinstance(nest.maps[-1], ir.Transpose)
    if in_columns or nest.fold is not ir.Scan or not isinstance(nest.result, Scalar):
        return
    for block in BLOCKS:
        if nest.length % block == 0 and nest.length >= MANY * block:
            yield plan_of(_only_blocks, nest, block=block)


def _only_blocks(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A scan in blocks."""
    block = numbers["block"]
    return Plan((Step("scan_blocks", sk.contains(_blocks(nest, nest.length, block)), {nest.length: (block,)}),), ())


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
    blocks = _in_each(nest, chunk, _blocks(nest, chunk, block))
    return replace(plan, steps=(*plan.steps, Step("scan_blocks", blocks, {chunk: (block,)})))


def _blocks(nest: Nest, length: int, block: int) -> sk.Sketch:
    """The scan of a length in blocks, each of which is scanned by itself."""
    return _fold(ir.ScanSeq, length // block, operator=sk.contains(_fold(nest.fold, block, _element(nest))))


def _in_each(nest: Nest, chunk: int, scan: sk.Sketch) -> sk.Sketch:
    """A map over chunks, with a scan in it."""
    return sk.contains(sk.map_(sk.contains(scan), length=nest.length // chunk))


def _element(nest: Nest) -> sk.Sketch:
    """What is folded: computed on the fly, where it is computed."""
    return sk.map_() if nest.reads_map else sk.ANY


def _fold(fold: type[ir.Expr], length: int, array: sk.Sketch = sk.ANY, operator: sk.Sketch = sk.ANY) -> sk.Sketch:
    return sk.PatternSketch(fold.signature.name, (operator, sk.ANY, array), (), length)
