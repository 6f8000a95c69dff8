"""How tiles in local memory follow each other: each way is tried with the kernels that are the best so far.

What a work-item reads ahead takes registers, and a second place for tiles takes local memory: both leave room for fewer
groups on a unit, whose work hides the same latency. Which gains more depends on all else that a kernel does, so it is
measured: on an H200, of 54 kernels for products of matrices 24 are more than 2 % faster in another way than the code
generator's own, up to 1.5 times; the fastest of each product are up to 3 %. From 2048 rows on, work-items with 16 by 8
results take 1.1 to 1.4 times as long with two places for tiles as with one and the next tile in registers, and those
with 8 by 16 results 1.04 to 1.08 times as long the other way around.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.phases import Found

T = TypeVar("T", bound=ir.Part)
TURNS = "turns"


def in_turns(candidate: Candidate, device: Device) -> Iterator[Found]:
    """A low-level program whose loops over tiles say how these follow each other, in each way.

    It is the rule ``tiles_in_turn``, applied to what loops copy to local memory.
    """
    term, way = candidate.program.body, candidate.way
    if not (device.emission.reads_ahead and way and way[-1].name != TURNS):
        return
    for space in ir.TILE_SPACES:
        made = _in_loops(term, space)
        if made is not term:
            yield candidate.then(TURNS, made, 1, device)


def _in_loops(term: T, space: str, in_loop: bool = False) -> T:
    """The term with what loops copy to local memory there in a way; the same term where they copy nothing."""

    def changed(part: T) -> T:
        is_step = isinstance(term, ir.ReduceSeq) and part is term.operator
        return _in_loops(part, space, in_loop or is_step)

    made = ir.map_parts(term, changed)
    if in_loop and isinstance(made, ir.ToMemory) and made.space == "local":
        return ir.ToMemory(space, made.value)  # pyright: ignore[reportReturnType]
    return made
