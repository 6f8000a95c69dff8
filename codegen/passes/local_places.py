"""Local arrays in one place, where a group needs one of them only after it has done with the other.

A group that takes less local memory leaves room for others on its compute unit, which hide its latency.

Source: new; Chaitin, "Register allocation and spilling via graph coloring", 1982, does so for registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lift_egraph.codegen.c_ast import Barrier, Block, Body, Buffer, For, Load, Statement
from lift_egraph.codegen.c_walk import loads, rewrite, statements, stores, walk
from lift_egraph.codegen.passes.barriers import place_barriers

LEAST = 4096  # bytes of an array for which it is worth looking


def in_one_place(
    body: Body, arrays: tuple[Buffer, ...], threads: Mapping[int, int | None]
) -> tuple[Body, tuple[Buffer, ...]]:
    """A kernel's body and its local arrays, with fewer of these where that needs no further barrier.

    Parameters
    ----------
    threads
        As in `lift_egraph.codegen.passes.barriers.place_barriers`.
    """
    long = [b for b in arrays if b.bytes >= LEAST and not _is_pointed_at(body, b)]
    for number, later in enumerate(long):
        for earlier in long[:number]:
            forms = [(array.element, array.shape, array.tiles) for array in (earlier, later)]
            if forms[0] != forms[1] or not _is_done(body, earlier, later):
                continue
            joined = rewrite(body, lambda p, a=earlier, b=later: _moved(p, b, a))
            if _barriers(joined, threads) <= _barriers(body, threads):
                return in_one_place(joined, tuple(a for a in arrays if a != later), threads)
    return body, arrays


def _moved(part: object, old: Buffer, new: Buffer) -> Load | None:
    return replace(part, buffer=new) if isinstance(part, Load) and part.buffer == old else None


def _is_done(body: Body, earlier: Buffer, later: Buffer) -> bool:
    """Whether a step in which the first array is read or written comes before all those with the other one."""
    found = {b: [n for n, s in enumerate(_steps(body)) if b.name in _local(s)] for b in (earlier, later)}
    return bool(found[earlier] and found[later]) and max(found[earlier]) < min(found[later])


def _steps(body: Body) -> Iterator[Statement]:
    """What a work-item does, one after the other; a loop that it runs through more than once is one step."""
    for statement in body:
        if isinstance(statement, Block) or (isinstance(statement, For) and statement.trips == 1):
            yield from _steps(statement.body)
        else:
            yield statement


def _local(step: Statement) -> set[str]:
    places = (*loads(step), *stores(step))
    return {place.buffer.name for place in places if place.buffer.space == "local"}


def _is_pointed_at(body: Body, buffer: Buffer) -> bool:
    return any(isinstance(p, Load) and buffer.name in p.buffer.targets for p in walk(body))


def _barriers(body: Body, threads: Mapping[int, int | None]) -> int:
    return sum(isinstance(s, Barrier) for s in statements(place_barriers(body, threads)))
