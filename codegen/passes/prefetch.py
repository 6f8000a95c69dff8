"""Tiles read ahead: while a group works on one tile, what its work-items will copy to the next is on its way.

A loop that begins with copies from global to local memory waits for them in each of its steps. Here the elements of the
next step are read into registers before the work of this one, and stored to local memory at the beginning of the next:
software pipelining with two stages. The last step reads its own elements once more.

Source: Lam, "Software pipelining", PLDI 1988; kernels of CUTLASS and CLBlast are written so by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from lift_egraph.codegen.c_ast import (
    Allocate,
    Barrier,
    Block,
    Body,
    Buffer,
    Choose,
    For,
    If,
    Let,
    Load,
    Statement,
    Store,
)
from lift_egraph.codegen.c_walk import data_in, loads, rewrite, substitute, walk, with_body
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import Nat, minimum, nat
from lift_egraph.language.types import width_of

MOST_HELD = 32  # scalars of the next tile that a work-item holds
MOST_KEPT = 48  # scalars of its own results; with 64, on an H100, products of matrices are 1 to 6 % faster without


def read_ahead(body: Body, threads: Mapping[int, int | None], taken: set[str]) -> Body:
    """A kernel's body in which loops over tiles in local memory read the next tile before they work on one.

    Parameters
    ----------
    threads
        The number of work-items of a group in each dimension of mapLcl; None where only the launch says it.
    taken
        Names that are in use; those of the arrays for what is read ahead join them.
    """
    made: list[Statement] = []
    for statement in body:
        pipelined = _pipelined(statement, threads, taken) if isinstance(statement, For) else None
        if pipelined is not None:
            made += pipelined
        elif isinstance(statement, For | If | Block):
            made.append(with_body(statement, read_ahead(statement.body, threads, taken)))
        else:
            made.append(statement)
    return tuple(made)


def _pipelined(loop: For, threads: Mapping[int, int | None], taken: set[str]) -> list[Statement] | None:
    """The loop in two stages; None where it is no loop over tiles."""
    steps = loop.count.constant
    copies = list(takewhile(lambda s: not isinstance(s, Barrier), loop.body))
    if loop.is_parallel or loop.step != 1 or steps is None or steps < 2 or len(copies) == len(loop.body):
        return None
    held: list[tuple[Load, Load, int]] = []
    for copy in copies:
        found = _copied(copy, threads, taken)
        if found is None:
            return None
        held += found
    if not held or sum(n * width_of(place.type) for _, place, n in held) > MOST_HELD or _kept(loop) > MOST_KEPT:
        return None
    places = {read: place for read, place, _ in held}
    if len(places) < len(held):  # two copies of the same, each with places of its own
        return None

    def fetched(step: Nat) -> list[Statement]:
        return [substitute(_fetch(copy, places), {loop.variable.name: step}) for copy in copies]

    def stored(part: object) -> Load | None:
        return places.get(part) if isinstance(part, Load) else None

    following = minimum(nat(loop.variable) + 1, steps - 1)
    begin = len(copies) + 1
    body = (*(rewrite(copy, stored) for copy in copies), loop.body[len(copies)], *fetched(following))
    return [
        *(Allocate(place.buffer) for place in places.values()),
        *fetched(nat(0)),
        replace(loop, body=(*body, *loop.body[begin:])),
    ]


def _kept(loop: For) -> int:
    """The scalars that a work-item keeps in private memory from one step of a loop to the next."""
    own = {part.buffer.name for part in walk(loop.body) if isinstance(part, Allocate)}
    used = {part.buffer for part in walk(loop.body) if isinstance(part, Load) and part.buffer.space == "private"}
    return sum(buffer.length * width_of(buffer.element) for buffer in used if buffer.name not in own)


def _copied(copy: Statement, threads: Mapping[int, int | None], taken: set[str]) -> list[tuple[Load, Load, int]] | None:
    """What a nest of loops copies to local memory: what it reads, the place to hold that, and how many.

    None if it does anything else.
    """
    place, rounds, inner = nat(0), 1, copy
    while isinstance(inner, For) and inner.count.constant and inner.step == 1:
        if inner.is_parallel:
            if inner.level.kind != "lcl" or inner.most != threads.get(inner.level.dimension):
                return None
        else:
            place, rounds = place * inner.count + nat(inner.variable), rounds * inner.count.constant
        if len(inner.body) == 1 and isinstance(inner.body[0], For):
            (inner,) = inner.body
        else:
            break
    if not isinstance(inner, For) or not all(isinstance(s, Let) or _is_local_store(s) for s in inner.body):
        return None
    if any(isinstance(part, Choose) for part in walk(inner.body)):  # what is not chosen may lie outside of the array
        return None
    found: list[tuple[Load, Load, int]] = []
    for read in dict.fromkeys(r for s in inner.body for r in loads(s)):
        is_input = read.buffer.space == "global" and not read.buffer.mutable
        if not is_input or data_in(read.index):
            return None
        array = Buffer(c_name("ahead", taken), "private", read.type, (rounds,), origin=read.buffer.origin)
        found.append((read, Load(array, place), rounds))
    return found


def _is_local_store(statement: Statement) -> bool:
    place = statement.place if isinstance(statement, Store) else None
    return isinstance(place, Load) and place.buffer.space == "local"


def _fetch(copy: Statement, places: Mapping[Load, Load]) -> Statement:
    """The nest of loops of a copy, as far as the registers."""
    assert isinstance(copy, For)
    if len(copy.body) == 1 and isinstance(copy.body[0], For):
        return replace(copy, body=(_fetch(copy.body[0], places),))
    return replace(copy, body=tuple(_reads(copy.body, places)))


def _reads(body: Body, places: Mapping[Load, Load]) -> Iterator[Statement]:
    for read in dict.fromkeys(r for s in body for r in loads(s)):
        yield Store(places[read], read)
