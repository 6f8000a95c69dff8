"""Lanes of a vector that are added up half by half: tried with the kernels for CPUs that are the best so far.

One after the other each lane waits for the sum of those before it; by halves there are as many steps as their number
can be halved. It counts where rows are short: a layer norm of rows of 1024 takes 0.8 of the processor time on PoCL, and
0.93 on Intel's runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Array, Vector
from lift_egraph.rules.opencl_vector import HALVED
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.phases import Found

T = TypeVar("T", bound=ir.Part)
HALVES = "halves"


def halved(candidate: Candidate, device: Device) -> Iterator[Found]:
    """A low-level program in which loops over the lanes of one vector take them half by half, if it has such loops.

    It is the rule ``reduce_by_halves``, applied until two lanes are left.
    """
    term, way = candidate.program.body, candidate.way
    if device.kind != "cpu" or not way or way[-1].exact or any(leg.name == HALVES for leg in way):
        return
    made, steps = _in_loops(term)
    if steps:
        yield candidate.then(HALVES, made, steps, device)


def _in_loops(term: T) -> tuple[T, int]:
    """The term with its loops over the lanes of one vector by halves, and how often the longest was halved."""
    steps = 0

    def changed(part: ir.Part) -> ir.Part:
        nonlocal steps
        made, own = _in_loops(part)
        steps = max(steps, own)
        return made

    made = ir.map_parts(term, changed)
    if isinstance(made, ir.ReduceSeq) and (width := _lanes(made)):
        return _by_halves(made, width), max(steps, width.bit_length() - 2)  # pyright: ignore[reportReturnType]
    return made, steps


def _lanes(loop: ir.ReduceSeq) -> int:
    """The lanes of the one vector that a loop combines by an operation whose operands may change places; 0 if it does
    not, or there are no more than two.
    """
    match loop:
        case ir.ReduceSeq(
            operator=ir.Lambda(binder=ir.PairBinder(first=x, second=y), body=ir.Call(op=op, arguments=arguments)),
            array=ir.AsScalar(array=vectors),
        ) if op in HALVED and arguments == (x, y):
            match type_of(vectors):
                case Array(size=size, element=Vector(width=width)) if size == nat(1) and width > 2:
                    return width
    return 0


def _by_halves(loop: ir.ReduceSeq, width: int) -> ir.Expr:
    """A loop over the lanes of one vector as one over those of a vector of half as many, until there are two."""
    if width == 2:
        return loop
    half = width // 2
    c = ir.Var("column", Array(nat(2), type_of(loop.initial)))
    column = ir.ReduceSeq(loop.operator, ir.At(nat(0), c), ir.Slice(nat(1), nat(1), c))
    columns = ir.AsVector(half, ir.Transpose(ir.Split(nat(half), loop.array)))
    vector = ir.MapLevel(ir.SEQ, ir.Vectorize(half, ir.Lambda(c, column)), columns)
    return _by_halves(ir.ReduceSeq(loop.operator, loop.initial, ir.AsScalar(vector)), half)
