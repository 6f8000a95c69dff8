"""Which private arrays of a kernel become variables, and which stay arrays.

A variable for each element is what compilers put into registers; of many, or where the element is chosen at run time,
they make long texts that take them seconds, and spill in the end.

Source: 000 §4.3.5 (private memory arrays); when an array stays one: new.
"""

from __future__ import annotations

from lift_egraph.codegen.c_ast import Allocate, Body, Buffer, Computed, For, Load
from lift_egraph.codegen.c_walk import loads, mentioning, statements, stores
from lift_egraph.codegen.devices import Device, Gpu
from lift_egraph.codegen.passes.unrolling import (
    LONG_TEXT,
    UNROLL_LIMIT,
    Stays,
    UnrollingProblem,
    as_asked,
    by_itself,
    extent,
    is_grid,
    nothing_stays,
    unroll,
)

SOME_VARIABLES = 16  # of an array that is variables, where these make a long text
MOST_CHOICES = 1024  # variables that all elements at computed places are chosen among: PoCL took 25 s for 3072 times 16
ALONE_LIMIT = 1536  # statements of a GPU's kernel whose work-items share nothing, up to which all arrays are variables:
# NVIDIA's compiler took 18 s for rows of 254 results with a sine each, and more than 40 s for attention with 256 scores
OWN_LIMIT = 3072  # statements that the loops which a CPU's compiler unrolls by itself may make: PoCL took 18 s for 49
# differences of blocks of 8 by 8


def as_variables(body: Body, device: Device, alone: bool, shares: bool) -> tuple[Body, Stays]:
    """The body with private arrays as variables, and which of them stay arrays.

    Those that no registers hold do, where one work-item a group is right, and those that loops of an unknown length
    select from, or that are written at computed places. So do more of them where the text would become long, also by
    the loops that the compiler unrolls, or by elements at computed places, which are chosen among all variables: it
    takes seconds for what is spilt in the end. Blocks of results of groups that share tiles are meant to be variables.

    Parameters
    ----------
    alone
        Whether one work-item a group is right.
    shares
        Whether the work-items of a group share something.
    """
    named = device.emission.named_arrays
    if not alone and not device.emission.indexed_private:
        return unroll(body, named_arrays=named), nothing_stays
    open_arrays = of_open_loops(body) | _of_computed_places(body)
    made, stays = _as_variables_but(open_arrays, body, device, named, shares)
    if not named or device.emission.indexed_private or sum((chosen := _choices(made, stays)).values()) <= MOST_CHOICES:
        return made, stays
    return _as_variables_but(open_arrays | chosen.keys(), body, device, named, shares)


def _as_variables_but(
    open_arrays: frozenset[str], body: Body, device: Device, named: bool, shares: bool
) -> tuple[Body, Stays]:
    """The body with private arrays as variables but for some, and which of them stay arrays."""

    def unrolled(by_length: Stays, limit: int = UNROLL_LIMIT) -> tuple[Body, Stays]:
        def stays_open(buffer: Buffer) -> bool:
            return buffer.name in open_arrays or by_length(buffer)

        stays = stays_open if open_arrays else by_length
        return unroll(body, named_arrays=named, stays=stays, limit=limit), stays

    if isinstance(device.throughput, Gpu):
        made = unrolled(is_long)
        return made if shares or as_asked(made[0], device.emission) <= ALONE_LIMIT else unrolled(_has_many)
    foreseen = extent(body, named_arrays=named, stays=is_long)
    if foreseen and foreseen.least > LONG_TEXT:
        return unrolled(_has_many)
    if not foreseen or foreseen.most > LONG_TEXT or foreseen.by_itself <= OWN_LIMIT:
        try:
            made = unrolled(is_long, LONG_TEXT)
        except UnrollingProblem:
            return unrolled(_has_many)
        if by_itself(made[0]) <= OWN_LIMIT:
            return made
    return unrolled(_has_some)


def is_long(buffer: Buffer) -> bool:
    """Whether an array is longer than what registers hold."""
    return buffer.is_long


def _has_many(buffer: Buffer) -> bool:
    return buffer.has_many


def _has_some(buffer: Buffer) -> bool:
    return buffer.space == "private" and bool(buffer.shape) and buffer.length > SOME_VARIABLES


def keeps_arrays(body: Body, stays: Stays) -> bool:
    """Whether a kernel has private arrays that stay arrays."""
    return any(isinstance(s, Allocate) and stays(s.buffer) for s in statements(body))


def of_open_loops(body: Body) -> frozenset[str]:
    """The names of the private arrays that loops of an unknown length select from: they cannot be variables."""
    loops = (s for s in statements(body) if isinstance(s, For) and s.count.constant is None)
    return frozenset(
        part.buffer.name
        for loop in loops
        if not is_grid(loop)
        for part in mentioning(loop.body, loop.variable)
        if isinstance(part, Load) and part.buffer.space == "private" and loop.variable in part.index.variables
    )


def _of_computed_places(body: Body) -> frozenset[str]:
    """The names of the private arrays that are written at places which no loop counts: one of variables is each."""
    return frozenset(
        place.buffer.name
        for place in stores(body)
        if place.buffer.space == "private" and any(isinstance(v, Computed) for v in place.index.variables)
    )


def _choices(body: Body, stays: Stays) -> dict[str, int]:
    """Among how many variables the elements of private arrays at computed places are chosen, all places together."""
    made: dict[str, int] = {}
    for load in loads(body):
        buffer = load.buffer
        if buffer.space == "private" and buffer.shape and load.index.constant is None and not stays(buffer):
            made[buffer.name] = made.get(buffer.name, 0) + buffer.length
    return made
