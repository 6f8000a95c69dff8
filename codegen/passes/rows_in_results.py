"""A row that a work-item keeps to compute a row of the result of it, element by element, is kept in that row.

Softmax keeps the exponentials of a row until their sum is known, and divides each by it: written where the quotients
go, they are not stored twice, and the lines of the result are in the cache when the quotients follow.

    float own[n];  … own[i] …  for (i = 0; i < n; i += 1)  result[n * row + i] = own[i] / sum;
    becomes
    … result[n * row + i] …  for (i = 0; i < n; i += 1)  result[n * row + i] = result[n * row + i] / sum;

Source: the kernels of softmax by hand (`lift_egraph/bench/by_hand/rows.cl`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from lift_egraph.codegen.c_ast import (
    AROUND,
    Allocate,
    Block,
    Body,
    Buffer,
    For,
    If,
    Let,
    LetIndex,
    Load,
    SetIndex,
    Statement,
    Store,
)
from lift_egraph.codegen.c_walk import data_in, loads, mentioned, rewrite, statements, walk, with_body
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.types import BOOL, F16, Scalar, scalar_of, width_of

KNOWN = (Let, Allocate, Store, For, If, Block)


def rows_in_results(body: Body, stays: Callable[[Buffer], bool]) -> Body:
    """A kernel's body in which private arrays that no registers hold lie in the result, where they can.

    Parameters
    ----------
    stays
        Whether a private array is one in memory.
    """
    used = Counter(part.buffer.name for part in walk(body) if isinstance(part, Load))
    pointed = {name for part in walk(body) if isinstance(part, Load) for name in part.buffer.targets}
    return _laid(body, stays, {name for name, count in used.items() if count == 1} - pointed)


def _laid(body: Body, stays: Callable[[Buffer], bool], once: set[str]) -> Body:
    """Statements with what they declare laid in the results that are used but `once`, and not after that."""
    made = [with_body(s, _laid(s.body, stays, once)) if isinstance(s, AROUND) else s for s in body]
    if not all(isinstance(s, KNOWN) for s in statements(tuple(made))):
        return tuple(made)
    for statement in body:
        if isinstance(statement, Allocate) and stays(statement.buffer):
            own = statement.buffer
            found = _place_of(own, [s for s in made if s is not statement], once)
            if found is not None:
                made = [_moved(s, own, *found) for s in made if s is not statement]
                once.discard(found[0].name)
    return tuple(made)


def _place_of(own: Buffer, others: list[Statement], once: set[str]) -> tuple[Buffer, Nat] | None:
    """The result, and from where on, that the last loop that reads an array computes of it element by element."""
    using = [s for s in others if any(isinstance(p, Load) and p.buffer.name == own.name for p in walk(s))]
    last = using[-1] if using else None
    if not isinstance(last, For) or last.is_parallel or last.ticket:
        return None
    *before, store = last.body
    if not isinstance(store, Store) or store.streamed or store.by or not all(isinstance(s, Let) for s in before):
        return None
    place, lanes = store.place, width_of(own.element)
    if not isinstance(place, Load) or not _may_hold(place.buffer, own, once):
        return None
    read = {(load.index, load.width) for load in loads(last) if load.buffer.name == own.name}
    if len(read) != 1:
        return None
    ((index, width),) = read
    element = lanes * width
    if place.width != element or index * (lanes * last.step) != nat(last.variable) * element:
        return None
    if last.count * element != nat(own.length * lanes):  # all of the array is written in the end
        return None
    start = place.index - index * lanes
    inner = {s.variable.name for s in statements(tuple(others)) if isinstance(s, For | LetIndex | SetIndex)}
    return None if mentioned(start) & inner or data_in(start) else (place.buffer, start)


def _may_hold(result: Buffer, own: Buffer, once: set[str]) -> bool:
    element = scalar_of(own.element)
    is_same = result.element == element and isinstance(element, Scalar) and element not in (BOOL, F16)
    return is_same and result.space == "global" and result.name in once and not result.targets


def _moved(statement: Statement, own: Buffer, result: Buffer, start: Nat) -> Statement:
    lanes = width_of(own.element)

    def change(part: object) -> Load | None:
        if isinstance(part, Load) and part.buffer.name == own.name:
            return Load(result, start + part.index * lanes, part.width * lanes)
        return None

    return rewrite(statement, change)
