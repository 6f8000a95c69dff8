"""Plans for scans: chunks are reduced beside each other, their totals scanned, and the chunks scanned from there.

The totals are reduced in the lanes of vectors. In a chunk, blocks are scanned each by itself, so that a block waits for
one step of the one before it, not for each.

Source: Dotsenko et al., "Fast scan algorithms on graphics processors", ICS 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling, chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes
from lift_egraph.language import ir
from lift_egraph.language.types import WIDTHS
from lift_egraph.workbench.plan import Nest, Plan, Step, plan_of

LONG = 1 << 15  # the length from which an array is scanned in chunks
BLOCKS = (16, 8)  # elements of a block, for which registers hold the scan of each by itself


def scan_plans(nest: Nest, device: Device) -> Iterator[Plan]:
    """The plans for a scan outside of all loops."""
    chunk = chunk_size(nest.length, device.groups)
    if nest.maps or nest.length < LONG or chunk is None:
        return
    width = next((w for w in device.widths if w <= WIDTHS[-1] and chunk % w == 0 and w < chunk), None)
    if width is None:
        return
    for block in BLOCKS:
        if chunk % block == 0 and nest.fold is ir.Scan:
            yield plan_of(_in_blocks, nest, (("chunk", "width"), ("chunk", "block")), chunk=chunk, width=width, block=block)
    yield plan_of(_in_chunks, nest, (("chunk", "width"),), chunk=chunk, width=width)


def _in_chunks(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """A scan in chunks, whose totals are made in vectors of a `width`."""
    chunk, width = numbers["chunk"], numbers["width"]
    lanes = sk.map_(sk.vectorize(width, sk.contains(sk.reduce_(length=chunk // width))), sk.as_vector(width))
    totals = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.as_scalar(lanes), length=width))
    tiling: Tiling = {chunk: (width,)}
    steps = (
        Step("scans", _scanned(nest, chunk, nest.fold.signature.name, chunk), {nest.length: (chunk,)}),
        Step("lanes", totals, tiling, (width,), in_lanes(tiling, width)),
    )
    return Plan(steps, ())


def _in_blocks(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """The same, with the scan of each chunk in blocks."""
    chunk, block, plan = numbers["chunk"], numbers["block"], _in_chunks(nest, numbers)
    blocks = _scanned(nest, chunk, ir.ScanSeq.signature.name, chunk // block)
    return Plan((*plan.steps, Step("scan_blocks", blocks, {chunk: (block,)})), plan.widths)


def _scanned(nest: Nest, chunk: int, name: str, length: int) -> sk.Sketch:
    """Chunks in each of which is a scan of a length."""
    scan = sk.PatternSketch(name, (sk.ANY, sk.ANY, sk.ANY), (), length)
    return sk.contains(sk.map_(sk.contains(scan), length=nest.length // chunk))
