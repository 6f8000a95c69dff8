"""Rows that the lanes of a vector go along side by side again and again: copied once, lanes beside each other.

A product of each lane's row with all rows of a matrix puts the same vectors together of elements of rows for each row
of the matrix. They are put together once, before the loop over the matrix, and read from private memory.

    for (i = 0; i < m; i += 1)  for (j = 0; j < n; j += 1)  … (x[j], x[j + n], …) …
    becomes
    for (j = 0; j < n; j += 1)  copy[j] = (x[j], x[j + n], …);
    for (i = 0; i < m; i += 1)  for (j = 0; j < n; j += 1)  … copy[j] …

Source: the packing of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lift_egraph.codegen.c_ast import (
    AROUND,
    LONG_ARRAY,
    Allocate,
    Barrier,
    Body,
    Buffer,
    Choose,
    For,
    If,
    LetIndex,
    Load,
    LookBack,
    Pack,
    SetIndex,
    Statement,
    Store,
)
from lift_egraph.codegen.c_walk import mentioned, rewrite, statements, stores, substitute, walk, with_body
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.passes.transposed import LEAST, is_square
from lift_egraph.language.nat import NatVar, nat

LEAST_TIMES = 8  # that what is copied is read
LEAST_BYTES = 1 << 13  # of copies: fewer are put together before the loop by compilers, too
LARGEST = 1 << 15  # bytes of copies: a first cache
_PLACE = NatVar("$place")


def lanes_copied(body: Body, taken: set[str]) -> Body:
    """A kernel's body that copies rows which lanes go along before the loop that goes along them often.

    Parameters
    ----------
    taken
        Names that are in use; those of the copies join them.
    """
    return _changed(body, {place.buffer.name for place in stores(body)}, taken)


def _changed(body: Body, written: set[str], taken: set[str]) -> Body:
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, For) and (found := _copied(statement, written)):
            made += _with_copies(statement, found, taken)
        elif isinstance(statement, AROUND):
            made.append(with_body(statement, _changed(statement.body, written, taken)))
        else:
            made.append(statement)
    return tuple(made)


def _copied(loop: For, written: set[str]) -> dict[Pack, For]:
    """The vectors that a loop's inner loops put together in each of its steps alike, with an inner loop of each."""
    if loop.is_parallel or loop.ticket or loop.count.constant is None or loop.most < LEAST_TIMES:
        return {}
    inside = list(statements(loop.body))
    if any(isinstance(s, Barrier | LookBack | If) for s in inside):
        return {}  # what stands behind a condition may lie outside of the array where it does not hold
    changing = {s.variable.name for s in (loop, *inside) if isinstance(s, For | LetIndex | SetIndex)}
    found: dict[Pack, For] = {}
    for inner in inside:
        if isinstance(inner, For) and not inner.is_parallel and inner.step == 1 and inner.count.constant is not None:
            for pack, general in _packs(inner, written):
                if len(pack.items) >= LEAST and not mentioned(general) & changing:
                    known = found.get(general)
                    found[general] = inner if known is None or inner.most > known.most else known
    fitting, room = dict[Pack, For](), LARGEST
    for general, inner in found.items():
        size = _copy_of(general, inner, "").bytes
        if LONG_ARRAY < size <= room:
            fitting[general], room = inner, room - size
    return fitting if LARGEST - room > LEAST_BYTES else {}


def _packs(loop: For, written: set[str]) -> Iterator[tuple[Pack, Pack]]:
    """The vectors of elements of rows that a loop without others in it reads, and what they are in any loop."""
    inside = dict.fromkeys(walk(loop.body))
    if any(isinstance(part, For | Choose) for part in inside):
        return
    for pack in inside:
        if isinstance(pack, Pack) and is_square(pack, loop.variable, written):
            yield pack, substitute(pack, {loop.variable.name: nat(_PLACE)})


def _copy_of(pack: Pack, loop: For, name: str) -> Buffer:
    return Buffer(name, "private", pack.type, (loop.most,))


def _with_copies(loop: For, found: dict[Pack, For], taken: set[str]) -> Iterator[Statement]:
    copies = {pack: _copy_of(pack, inner, c_name("lanes", taken)) for pack, inner in found.items()}
    for pack, inner in found.items():
        variable = replace(inner.variable, name=c_name("step", taken))
        value = substitute(pack, {_PLACE.name: nat(variable)})
        yield Allocate(copies[pack], origin=loop.origin)
        store = Store(Load(copies[pack], nat(variable)), value, origin=loop.origin)
        yield replace(inner, variable=variable, body=(store,), pragma=False)

    def read(part: object) -> For | None:
        if not isinstance(part, For):
            return None
        known = {pack: copies[general] for pack, general in _packs(part, set()) if general in copies}
        if not known:
            return None
        place = nat(part.variable)
        body = rewrite(part.body, lambda p: Load(known[p], place) if isinstance(p, Pack) and p in known else None)
        return replace(part, body=body)

    yield replace(loop, body=rewrite(loop.body, read))
