"""Results that the units' own caches do not hold to their end are written around the caches.

A processor that stores to memory first reads the line that it overwrites, and gives up another line for it. Where a
whole line is written in a row, and nobody reads it soon, both are lost time: such stores go to memory directly (a copy
of 64 MB takes three quarters of the time, also below a shared cache that reports 480 MB).

Source: "non-temporal" stores: Intel 64 and IA-32 Architectures Optimization Reference Manual, §9.4.
"""

from __future__ import annotations

from dataclasses import replace

from lift_egraph.codegen.c_ast import Block, Body, For, If, Load, Statement, Store
from lift_egraph.codegen.c_walk import loads, statements, walk, with_body
from lift_egraph.codegen.plans.kernel import LINE
from lift_egraph.language.nat import divides, nat
from lift_egraph.language.types import BOOL, F16, SCALAR_BYTES, scalar_of


def settle_streams(body: Body, least: float) -> Body:
    """A kernel's body in which streams are what may be one: vectors that fill the lines of a long array in a row.

    Parameters
    ----------
    least
        Bytes of the shortest array that is a stream: caches hold others.
    """
    written = [s.place for s in statements(body) if isinstance(s, Store) and s.streamed]
    if not written:
        return body
    read = {place.buffer.name for place in loads(body)}
    pointers = [part.buffer for part in walk(body) if isinstance(part, Load) and part.buffer.targets]
    read |= {name for pointer in pointers for name in (pointer.name, *pointer.targets)}
    lengths = {p.buffer.name: p.buffer.elements.constant or 0 for p in written if isinstance(p, Load)}
    return _settled(body, None, {name: n for name, n in lengths.items() if name not in read}, least)


def _settled(body: Body, loop: For | None, lengths: dict[str, int], least: float) -> Body:
    """The statements of a body, the innermost loop around them known."""
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, For):
            made.append(with_body(statement, _settled(statement.body, statement, lengths, least)))
        elif isinstance(statement, If | Block):
            made.append(with_body(statement, _settled(statement.body, loop, lengths, least)))
        elif isinstance(statement, Store) and statement.streamed:
            made.append(replace(statement, streamed=_is_stream(statement.place, loop, lengths, least)))
        else:
            made.append(statement)
    return tuple(made)


def _is_stream(place: object, loop: For | None, lengths: dict[str, int], least: float) -> bool:
    """Whether a store is one of those that fill the lines of a long array one after the other."""
    if not isinstance(place, Load) or place.width == 1 or not divides(place.width, place.index):
        return False
    scalar = scalar_of(place.buffer.element)
    size = SCALAR_BYTES[scalar.name]
    if scalar in (BOOL, F16) or size * lengths.get(place.buffer.name, 0) < least:
        return False
    if size * place.width % LINE == 0:
        return True
    stored = [s.place for s in statements(loop.body) if isinstance(s, Store)] if loop else []
    beside = sum(p.width for p in stored if isinstance(p, Load) and p.buffer == place.buffer)
    return loop is not None and place.index.coefficient_of(loop.variable) == nat(beside)
