"""Private arrays of numbers that are read and written as whole vectors alone: arrays of vectors.

A block of results that a work-item goes on with in lanes is an array of numbers where the term binds it as rows. Each
step puts a vector together of the numbers of a row, and takes its sum apart again, and so does Intel's compiler:
products of matrices in such blocks take 0.35 to 0.6 of the time as vectors. PoCL's sees that nothing is moved, but in a
text that is five times as long.

    acc[32 * i + 16 * k] … = 0;   v = (acc[32 * i + 16 * k], …, acc[32 * i + 16 * k + 15]) + w;
    acc[32 * i + 16 * k] = v.s0;  …  acc[32 * i + 16 * k + 15] = v.sf;
    becomes
    acc[2 * i + k] = 0;  v = acc[2 * i + k] + w;  acc[2 * i + k] = v;
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lift_egraph.codegen.c_ast import (
    AROUND,
    Allocate,
    Body,
    Buffer,
    CExpr,
    Const,
    For,
    Lane,
    Load,
    Pack,
    Statement,
    Store,
)
from lift_egraph.codegen.c_walk import rewrite, statements, substitute_index, walk, with_body
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.types import Scalar, Vector


def whole_vectors(body: Body) -> Body:
    """A kernel's body whose private arrays are of vectors, where all that it does with them is to move such."""
    widths: dict[str, set[int]] = {}
    for part in walk(body):
        if isinstance(part, Pack) and isinstance(place := part.items[0], Load) and place.buffer.space == "private":
            widths.setdefault(place.buffer.name, set()).add(len(part.items))
    own = [s.buffer for s in statements(body) if isinstance(s, Allocate)]
    for buffer in own:
        width = max(widths.get(buffer.name, ()), default=1)
        is_whole = width > 1 and isinstance(buffer.element, Scalar) and (buffer.elements % width).constant == 0
        if is_whole and not _is_left(made := _Vectors(buffer, width).body(body), buffer):
            body = made
    return body


def _is_left(body: Body, buffer: Buffer) -> bool:
    """Whether a number of an array is still read or written alone, or the array exchanged for another one."""
    return any(
        (isinstance(part, Load) and part.buffer == buffer)
        or any(other == buffer for other in vars(part).values() if isinstance(other, Buffer))
        for part in walk(body)
    )


@dataclass(frozen=True)
class _Vectors:
    """A private array that becomes one of vectors of a width."""

    buffer: Buffer
    width: int

    @property
    def vectors(self) -> Buffer:
        """The array of vectors."""
        assert isinstance(self.buffer.element, Scalar)
        *outer, inner = self.buffer.shape
        is_cut = isinstance(inner, int) and inner % self.width == 0
        shape = (*outer, inner // self.width) if is_cut else (self.buffer.length // self.width,)
        return replace(self.buffer, element=Vector(self.buffer.element, self.width), shape=shape)

    def body(self, body: Body) -> Body:
        """The body with vectors where it moves such, and numbers elsewhere."""
        made, at = list[Statement](), 0
        while at < len(body):
            statement = body[at]
            if (whole := self.stored(body[at : at + self.width])) is not None:
                made.append(whole)
                at += self.width
                continue
            if isinstance(statement, Allocate) and statement.buffer == self.buffer:
                statement = replace(statement, buffer=self.vectors)
            elif isinstance(statement, For) and (filled := self.filled(statement)) is not None:
                statement = filled
            elif isinstance(statement, AROUND):
                statement = with_body(statement, self.body(statement.body))
            else:
                statement = rewrite(statement, self.read)
            made.append(statement)
            at += 1
        return tuple(made)

    def vector(self, places: Sequence[CExpr]) -> Load | None:
        """The vector that stands in some places, if they are all of one."""
        first = places[0]
        if len(places) != self.width or not isinstance(first, Load) or first.buffer != self.buffer:
            return None
        if not all(p == replace(first, index=first.index + lane) for lane, p in enumerate(places)):
            return None
        return self.at(first.index)

    def at(self, index: Nat) -> Load | None:
        """The vector that begins at an index, if one does."""
        return Load(self.vectors, index // self.width) if (index % self.width).constant == 0 else None

    def read(self, part: Any) -> CExpr | None:
        """What is read of an array of vectors in the place of a vector that is put together."""
        return self.vector(part.items) if isinstance(part, Pack) else None

    def stored(self, several: Body) -> Store | None:
        """The store of a vector in the place of those of its lanes, if they are that."""
        lanes = [s for s in several if isinstance(s, Store) and isinstance(s.value, Lane) and not s.by]
        if len(lanes) != self.width or (vector := self.vector([s.place for s in lanes])) is None:
            return None
        value = lanes[0].value.vector if isinstance(lanes[0].value, Lane) else lanes[0].value
        is_whole = value.type == vector.type and all(s.value == Lane(value, nat(n)) for n, s in enumerate(lanes))
        return replace(lanes[0], place=vector, value=rewrite(value, self.read)) if is_whole else None

    def filled(self, loop: For) -> For | None:
        """The loop that fills an array with one number, by vectors, if a loop does that."""
        match loop.body:
            case (Store(place=Load(buffer=buffer, index=index), value=Const() as value, by="") as store,):
                count = loop.count.constant or 0
                if buffer != self.buffer or loop.is_parallel or loop.step != 1 or count % self.width:
                    return None
                own = NatVar(loop.variable.name, 0, count // self.width - 1)
                if index - nat(loop.variable) != substitute_index(index, {own.name: nat(0)}):
                    return None  # it does not go through neighbours
                place = self.at(substitute_index(index, {own.name: self.width * nat(own)}))
                if place is None:
                    return None
                whole = replace(store, place=place, value=Pack((value,), place.type))
                return replace(loop, variable=own, count=nat(count // self.width), body=(whole,))
        return None
