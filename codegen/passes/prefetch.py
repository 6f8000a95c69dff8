"""Tiles read ahead: while a group works on one tile, what its work-items will copy to the next is on its way.

A loop that begins with copies from global to local memory waits for them in each of its steps. Here the elements of the
next step are read into registers before the work of this one, and stored to local memory at the beginning of the next:
software pipelining with two stages. The last step reads its own elements once more.

Work-items with so many results that a unit has few groups have nobody who works while they wait at a barrier. Their
tiles have two places, which are used in turn: the next tile is stored while others still work on this one, and a step
has one barrier, not two.

A term may say how the tiles of a loop follow each other (``toLocalOnce``, ``toLocalAhead``, ``toLocalTwice``); else it
is decided here, by the registers of a work-item.

Source: Lam, "Software pipelining", PLDI 1988; kernels of CUTLASS and CLBlast are written so by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from lift_egraph.codegen.c_ast import (
    AROUND,
    Allocate,
    Barrier,
    Body,
    Buffer,
    Choose,
    For,
    Let,
    Load,
    Name,
    Statement,
    Store,
)
from lift_egraph.codegen.c_walk import data_in, loads, rewrite, stores, substitute, walk, with_body
from lift_egraph.codegen.devices import registers_of
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.plans.kernel import PRIVATE_LIMIT
from lift_egraph.language.nat import Nat, minimum, nat

Read = Load | Choose

MOST_HELD = 32  # registers of the next tile that a work-item holds
MOST_KEPT = 48  # registers of its own results; with 64, on an H100, products of matrices are 1 to 6 % faster without
LEAST_IN_TURN = 128  # of these with which tiles have two places: with 128, on an H100, products are 3 % faster so


def read_ahead(
    body: Body,
    arrays: tuple[Buffer, ...],
    threads: Mapping[int, int | None],
    taken: set[str],
    most_local: int,
    *,
    unasked: bool = True,
) -> tuple[Body, tuple[Buffer, ...]]:
    """A kernel's body in which loops over tiles in local memory read the next tile before they work on one.

    Parameters
    ----------
    arrays
        Those in local memory; some may have two places then.
    threads
        The number of work-items of a group in each dimension of mapLcl; None where only the launch says it.
    taken
        Names that are in use; those of the arrays for what is read ahead join them.
    most_local
        The bytes of local memory that a group may have.
    unasked
        Whether loops whose tiles do not say how they follow each other read ahead.
    """
    if not unasked and not any(array.tiles for array in arrays):
        return body, arrays
    found = _Ahead(threads, taken, most_local, unasked, list(arrays), body)
    return found.in_body(body), tuple(found.arrays)


@dataclass
class _Ahead:
    """The change of one kernel, and its arrays in local memory."""

    threads: Mapping[int, int | None]
    taken: set[str]
    most_local: int
    unasked: bool
    arrays: list[Buffer]
    kernel: Body

    def in_body(self, body: Body) -> Body:
        """Statements with their loops over tiles in two stages."""
        made: list[Statement] = []
        for statement in body:
            pipelined = self._pipelined(statement) if isinstance(statement, For) else None
            if pipelined is not None:
                made += pipelined
            elif isinstance(statement, AROUND):
                made.append(with_body(statement, self.in_body(statement.body)))
            else:
                made.append(statement)
        return tuple(made)

    def _pipelined(self, loop: For) -> list[Statement] | None:
        """The loop in two stages; None where it is no loop over tiles."""
        steps, kept = loop.count.constant, _kept(loop)
        copies = list(takewhile(lambda s: not isinstance(s, Barrier), loop.body))
        if loop.is_parallel or loop.step != 1 or steps is None or steps < 2 or len(copies) == len(loop.body):
            return None
        asked = _asked(copies)
        if asked == "localOnce" or not (asked or self.unasked):
            return None
        in_turn = asked == "localTwice" or (not asked and kept >= LEAST_IN_TURN)
        twice = self._twice(loop, copies) if in_turn else {}
        if kept > MOST_KEPT and not twice and not asked:
            return None
        held: list[tuple[Read, Load, int]] = []
        for copy in copies:
            found = _copied(copy, self.threads, self.taken)
            if found is None:
                return None
            held += found
        most = PRIVATE_LIMIT if asked else MOST_HELD
        if not held or sum(n * registers_of(place.type) for _, place, n in held) > most:
            return None
        places = {read: place for read, place, _ in held}
        if len(places) < len(held):  # two copies of the same, each with places of its own
            return None

        def fetched(step: Nat) -> list[Statement]:
            return [substitute(_fetch(copy, places), {loop.variable.name: step}) for copy in copies]

        def stored(part: object) -> Load | None:
            return places.get(part) if isinstance(part, Read) else None

        stores_all = [rewrite(copy, stored) for copy in copies]
        barrier, work = loop.body[len(copies)], loop.body[len(copies) + 1 :]
        following = fetched(minimum(nat(loop.variable) + 1, steps - 1))
        begin = [*(Allocate(place.buffer) for place in places.values()), *fetched(nat(0))]
        if not twice:
            return [*begin, replace(loop, body=(*stores_all, barrier, *following, *work))]
        self.arrays = [twice.get(array, array) for array in self.arrays]
        number = nat(loop.variable)

        def at(part: Statement | Body, place: Nat) -> Body:
            """Statements with the tiles in one of their places."""

            def moved(load: object) -> Load | None:
                if isinstance(load, Load) and load.buffer in twice:
                    index = rewrite(load.index, moved) if data_in(load.index) else load.index
                    return replace(load, buffer=twice[load.buffer], index=index + load.buffer.length * place)
                return None

            return rewrite(part if isinstance(part, tuple) else (part,), moved)

        first, after = ([s for copy in stores_all for s in at(copy, n)] for n in (nat(0), (number + 1) % 2))
        step = (*following, *at(work[:-1], number % 2), *after, work[-1])
        return [*begin, *first, barrier, replace(loop, body=step)]

    def _twice(self, loop: For, copies: list[Statement]) -> dict[Buffer, Buffer]:
        """The arrays of a loop's tiles with two places each; none where these are used elsewhere, or do not fit."""
        tiles = {place.buffer for place in stores(tuple(copies)) if place.buffer.space == "local"}
        uses = [sum(a.buffer in tiles for a in (*loads(part), *stores(part))) for part in (self.kernel, loop.body)]
        pointed = any(isinstance(p, Load) and p.buffer.targets for p in walk(loop.body))
        room = sum(array.bytes * (2 if array in tiles else 1) for array in self.arrays) <= self.most_local
        if uses[0] != uses[1] or pointed or not room or not isinstance(loop.body[-1], Barrier):
            return {}
        return {tile: replace(tile, shape=(2, *tile.shape)) for tile in tiles}


def _asked(copies: list[Statement]) -> str | None:
    """How the tiles of a loop are to follow each other, by those that say it; None if none do, or not all alike."""
    asked = {place.buffer.tiles for place in stores(tuple(copies)) if place.buffer.tiles}
    return asked.pop() if len(asked) == 1 else None


def _kept(loop: For) -> int:
    """The registers of what a work-item keeps in private memory from one step of a loop to the next."""
    own = {part.buffer.name for part in walk(loop.body) if isinstance(part, Allocate)}
    used = {part.buffer for part in walk(loop.body) if isinstance(part, Load) and part.buffer.space == "private"}
    return sum(buffer.length * registers_of(buffer.element) for buffer in used if buffer.name not in own)


def _copied(copy: Statement, threads: Mapping[int, int | None], taken: set[str]) -> list[tuple[Read, Load, int]] | None:
    """What a nest of loops copies to local memory: what it reads, the place to hold that, and how many.

    What is chosen between elements and what stands beside an array is held as it was chosen: what is not chosen may lie
    outside.

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
    found: list[tuple[Read, Load, int]] = []
    for read in _reads_of(inner.body):
        if not all(load.buffer.space == "global" and not load.buffer.mutable for load in loads(read)):
            return None
        if any(isinstance(part, Name) or (isinstance(part, Nat) and data_in(part)) for part in walk(read)):
            return None
        origin = next(iter(loads(read))).buffer.origin
        array = Buffer(c_name("ahead", taken), "private", read.type, (rounds,), origin=origin)
        found.append((read, Load(array, place), rounds))
    return found


def _is_local_store(statement: Statement) -> bool:
    place = statement.place if isinstance(statement, Store) else None
    return isinstance(place, Load) and place.buffer.space == "local"


def _fetch(copy: Statement, places: Mapping[Read, Load]) -> Statement:
    """The nest of loops of a copy, as far as the registers."""
    assert isinstance(copy, For)
    if len(copy.body) == 1 and isinstance(copy.body[0], For):
        return replace(copy, body=(_fetch(copy.body[0], places),))
    return replace(copy, body=tuple(Store(places[read], read) for read in _reads_of(copy.body)))


def _reads_of(body: Body) -> list[Read]:
    """What statements read of memory, each once, and of what is chosen the choice."""
    found: dict[Read, None] = {}

    def note(part: object) -> object:
        if isinstance(part, Load) or (isinstance(part, Choose) and any(loads(part))):
            found[part] = None
            return part
        return None

    for statement in body:
        assert isinstance(statement, Let | Store)
        rewrite(statement.value, note)
    return list(found)
