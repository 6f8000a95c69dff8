"""Long results written around the caches: tried with the kernels that are the best so far.

Whether it gains depends on the memory, on what else a kernel reads, and on the host: a copy of 64 MB takes three
quarters of the time, a stencil the same or more. What is reported of a shared cache says little: a virtual machine may
report all of it, and have a part. So it is measured for all results that the units' own caches do not hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import bytes_of
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.phases import Found


def streamed(candidate: Candidate, device: Device) -> Iterator[Found]:
    """A low-level program with its result as a stream, where that is longer than the units' own caches.

    It is the rule ``result_as_stream``, applied to the map that computes the result.
    """
    term, way = candidate.program.body, candidate.way
    if not (
        device.emission.streams and way and way[-1].name != "streams" and bytes_of(type_of(term)) >= device.own_caches
    ):
        return
    made = _as_stream(term)
    if made is not None:
        yield candidate.then("streams", made, 1, device)


def _as_stream(term: ir.Expr) -> ir.Expr | None:
    """The term with its outermost mapGlb as a stream; None where there is none below what moves data alone."""
    match term:
        case ir.MapLevel(level=level) if level.kind == "glb":
            return ir.ToMemory("stream", term)
        case ir.Apply(function=ir.Lambda(binder, body), argument=argument):
            inner = _as_stream(body)
            return inner and ir.Apply(ir.Lambda(binder, inner), argument)
        case ir.Map() | ir.Join() | ir.Split() | ir.Transpose() | ir.AsScalar() | ir.AsVector() | ir.Scatter():
            inner = _as_stream(term.array)
            return inner and ir.map_parts(term, lambda part: inner if part is term.array else part)
    return None
