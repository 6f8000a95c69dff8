"""Plans for reductions in the lanes of vectors: of a long one by chunks, which work-items share out.

Where elements may change places, the lanes take neighbours, and several vectors have sums that do not wait for each
other; where they must stay in order, each lane has a run of neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lift_egraph.codegen.devices import Device
from lift_egraph.extract.tiling import Tiling, chunk_size
from lift_egraph.guided import sketch as sk
from lift_egraph.guided.weights import in_lanes
from lift_egraph.workbench.planning.plan import LONG, Nest, Plan, Step, plan_of
from lift_egraph.workbench.planning.vectors import width_for

CHAINS, CHAIN = 4, 4  # vectors of partial results beside each other, and the fewest elements that each adds up
RUN = 2048  # the most elements that a lane takes one after the other


def lanes(nest: Nest, device: Device) -> Iterator[Plan]:
    """Reductions of a length, whose partial results are the lanes of a vector: of a long one, by chunks.

    They are in several vectors at first, whose sums do not wait for each other.
    """
    long = nest.length >= LONG and not nest.maps
    chunk = chunk_size(nest.length, device.groups) if long else nest.length
    width = width_for(chunk or 1, device)
    if chunk is None or width is None or width >= chunk:
        return
    own = {"chunk": chunk} if long else {}
    if chunk % (width * CHAINS) == 0 and chunk >= width * CHAINS * CHAIN:
        yield plan_of(_in_lanes, nest, (("chunk", "width"),), width=width, chains=CHAINS, **own)
    yield plan_of(_in_lanes, nest, (("chunk", "width"),), width=width, **own)


def _in_lanes(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Partial results in the lanes of vectors of a `width`, of each `chunk` if there is one."""
    width, chunk, chains = numbers["width"], numbers.get("chunk", nest.length), numbers.get("chains", 1)
    element = sk.map_() if nest.reads_map else sk.ANY
    own = chunk // width
    inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=own // chains))
    tiling: Tiling = {chunk: (width,)}
    if chains > 1:
        inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.map_(inner, sk.transpose(sk.split(chains))), length=chains))
        tiling = {**tiling, own: (chains,)}
    lanes = sk.map_(sk.vectorize(width, inner), sk.as_vector(width, sk.transpose(sk.split(width))))
    sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.as_scalar(lanes), length=width))
    if "chunk" in numbers:
        chunks = sk.map_(sketch, sk.split(chunk))
        sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, chunks, length=nest.length // chunk))
        tiling = {nest.length: (chunk,), **tiling}
    weigh = in_lanes(tiling, width, chains=numbers.get("chains", 0))
    return Plan((Step("lanes", sketch, tiling, (width,), weigh),), (width,))


def runs(nest: Nest, device: Device) -> Iterator[Plan]:
    """Reductions whose elements must stay in order: each lane of a vector has a run of neighbouring elements."""
    for width in [w for w in device.widths if w <= device.lanes]:
        parts = nest.length // (width * RUN)
        chunk = chunk_size(nest.length, parts) if nest.length >= LONG else nest.length
        run = chunk and next((r for r in range(RUN, 1, -1) if chunk % (r * width) == 0), None)
        if chunk and run and len({nest.length, chunk, run, chunk // run, nest.length // chunk}) >= 4:
            long = {"chunk": chunk} if chunk < nest.length else {}
            yield plan_of(_in_runs, nest, (("chunk", "run"),) if long else (), run=run, width=width, **long)


def _in_runs(nest: Nest, numbers: Mapping[str, int]) -> Plan:
    """Partial results of a `run` of elements in each lane of vectors of a `width`, of each `chunk` if there is one."""
    width, run, chunk = numbers["width"], numbers["run"], numbers.get("chunk", nest.length)
    element = sk.map_() if nest.reads_map else sk.ANY
    inner = sk.contains(sk.reduce_(sk.ANY, sk.ANY, element, length=run))
    lanes = sk.map_(sk.vectorize(width, inner), sk.as_vector(width, sk.split(run)))
    sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, sk.as_scalar(lanes), length=chunk // run))
    tiling: Tiling = {chunk: (run,)}
    if "chunk" in numbers:
        chunks = sk.map_(sketch, sk.split(chunk))
        sketch = sk.contains(sk.reduce_(sk.ANY, sk.ANY, chunks, length=nest.length // chunk))
        tiling = {nest.length: (chunk,), **tiling}
    return Plan((Step("lanes", sketch, tiling, (width,), in_lanes(tiling, width)),), (width,))
