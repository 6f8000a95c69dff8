"""Loops that count alike, and of which none needs what another one computes, become one loop.

A sum in a register waits for each addition before the next: sums of parts of an array, which stand one after the
other, are added up in turns then. A row whose sum and whose squares' sum are wanted is read once. Each of the sums adds
what it did before, in the same order.

Source: Allen and Cocke, "A catalogue of optimizing transformations", 1972, on loop fusion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lift_egraph.codegen.c_ast import AROUND, Allocate, Block, Body, For, If, Let, Load, Name, Statement, Store
from lift_egraph.codegen.c_walk import copies, loads, names, rewrite, statements, stores, substitute, with_body
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Vector

KNOWN = (Let, Allocate, Store, For, If, Block)
BETWEEN = 64  # statements between two loops, at most
SHORT = 8  # steps of a loop around them


def loops_together(body: Body, most: int, taken: set[str]) -> Body:
    """A kernel's body in which loops of steps that write to registers, `most` of these at a time, run together.

    Those in the steps of a short loop do so too. `taken` are names that are in use beside those that the body declares;
    both these and new ones join them.
    """
    taken |= _declared(statements(body))
    return _together_in(body, most, taken)


def _together_in(body: Body, most: int, taken: set[str]) -> Body:
    steps: list[Statement] = []
    for statement in body:
        if isinstance(statement, AROUND):
            statement = with_body(statement, _together_in(statement.body, most, taken))
        inside = _inside(statement, most, taken) if isinstance(statement, For) else None
        steps += inside or [statement]
    return tuple(_joined(steps, most))


def _inside(loop: For, most: int, taken: set[str]) -> list[Statement] | None:
    """The steps of a short loop after each other, with the one loop that each has as one loop; None if that fails."""
    count, loops = loop.count.constant, [s for s in loop.body if isinstance(s, For)]
    if loop.is_parallel or count is None or not 1 < count <= SHORT or len(loops) != 1 or not _adds_up(loops[0]):
        return None
    if not all(isinstance(s, Let | Allocate | Store) for s in loop.body if not isinstance(s, For)):
        return None
    indices = [nat(loop.step * number) for number in range(count)]
    steps, made = list[Statement](), list[Statement]()
    for part in (indices[:2], indices[2:]):  # what keeps any two of them apart is found with the first two
        for step in copies(loop.body, loop.variable.name, part) if part else ():
            steps += _renamed(step, taken)
        made = _joined(steps, most)
        if sum(isinstance(s, For) for s in made) > 1:
            return None
    return made


def _renamed(body: Body, taken: set[str]) -> Body:
    """Statements whose declarations have names of their own."""
    own = {name: c_name(name, taken) for name in sorted(_declared(body))}

    def change(part: object) -> object:
        match part:
            case Name(name=name) if name in own:
                return replace(part, name=own[name])
            case Let(name=name) if name in own:
                return replace(part, name=own[name], value=rewrite(part.value, change))
            case Allocate(buffer=buffer) if buffer.name in own:
                return replace(part, buffer=replace(buffer, name=own[buffer.name]))
            case Load(buffer=buffer) if buffer.name in own:
                index = rewrite(part.index, change)
                return replace(part, buffer=replace(buffer, name=own[buffer.name]), index=index)
        return None

    return rewrite(body, change) if own else body


def _joined(body: list[Statement], most: int) -> list[Statement]:
    """Statements in which loops run together as far as they may."""
    made: list[Statement] = []
    first: int | None = None
    for statement in body:
        made.append(statement)
        if isinstance(statement, For) and _adds_up(statement):
            together = None if first is None else _together(made[first:], most)
            if first is None or together is None:
                first = len(made) - 1
            else:
                made[first:] = together
                first += next(n for n, s in enumerate(together) if isinstance(s, For))
        elif first is not None and (len(made) - first > BETWEEN or not _is_known(statement)):
            first = None
    return made


def _is_known(statement: Statement) -> bool:
    """Whether a statement has no barriers or pointers that change, also inside of it."""
    return all(isinstance(s, KNOWN) for s in statements(statement))


def _adds_up(loop: For) -> bool:
    """Whether a loop's steps compute what stays in registers, without loops of their own.

    One of scalars that the device's compiler is asked to unroll needs no others: it has all steps before it. Those that
    read whole vectors fill its registers, and read what lies side by side together.
    """
    inside = list(statements(loop.body))
    return (
        not (loop.is_parallel or loop.ticket or (loop.pragma and not _reads_vectors(loop)))
        and all(isinstance(s, KNOWN) and not isinstance(s, For) for s in inside)
        and all(place.buffer.space == "private" for place in stores(loop.body))
    )


def _together(part: list[Statement], most: int) -> list[Statement] | None:
    """Statements from one loop to another with both in one; None where they may not change places."""
    one, *between, other = part
    assert isinstance(one, For)
    assert isinstance(other, For)
    if (one.count, one.step, one.likely) != (other.count, other.step, other.likely):
        return None
    own, after = _Effects.of(one), _Effects.of(other)
    if own.meet(after) or len(own.writes | after.writes) > most:
        return None
    before: list[Statement] = []  # what the other loop needs goes before both
    stays: list[Statement] = []
    needed, left = after, _Effects(frozenset(), frozenset())
    for statement in reversed(between):
        effects = _Effects.of(statement)
        if effects.meet(needed):
            if effects.meet(own) or effects.meet(left):
                return None
            before.insert(0, statement)
            needed = needed.with_(effects)
        else:
            stays.insert(0, statement)
            left = left.with_(effects)
    moved = substitute(other.body, {other.variable.name: nat(one.variable)})
    bodies = one.body, moved
    if not _declared(one.body).isdisjoint(_declared(moved)):
        bodies = (Block(one.body, origin=one.origin),), (Block(moved, origin=other.origin),)
    return [*before, replace(one, body=(*bodies[0], *bodies[1]), pragma=False), *stays]


def _reads_vectors(loop: For) -> bool:
    return any(isinstance(load.type, Vector) for load in loads(loop.body))


def _declared(some: Iterable[Statement]) -> set[str]:
    """The names that statements declare in their own scope."""
    return {s.name if isinstance(s, Let) else s.buffer.name for s in some if isinstance(s, (Let, Allocate))}


Place = tuple[str, int | None]  # a variable, or an element of a private array; None: any element


@dataclass(frozen=True)
class _Effects:
    """What statements read and write that is not theirs alone."""

    reads: frozenset[Place]
    writes: frozenset[Place]

    @staticmethod
    def of(statement: Statement) -> _Effects:
        reads, writes = _places(loads(statement)), _places(stores(statement))
        reads |= {(name, None) for name in names(statement)}
        if not isinstance(statement, AROUND):
            return _Effects(reads, writes | {(name, None) for name in _declared((statement,))})
        own = _declared(statements(statement.body))
        outside = (frozenset(place for place in places if place[0] not in own) for places in (reads, writes))
        return _Effects(*outside)

    def with_(self, other: _Effects) -> _Effects:
        return _Effects(self.reads | other.reads, self.writes | other.writes)

    def meet(self, other: _Effects) -> bool:
        """Whether the order of both counts."""
        return _overlap(self.writes, other.reads | other.writes) or _overlap(self.reads, other.writes)


def _places(accesses: Iterable[Load]) -> frozenset[Place]:
    found: set[Place] = set()
    for load in accesses:
        number = load.index.constant if load.buffer.space == "private" and load.width == 1 else None
        found |= {(name, None) for name in load.buffer.targets} | {(load.buffer.name, number)}
    return frozenset(found)


def _overlap(some: frozenset[Place], others: frozenset[Place]) -> bool:
    known = {name: {n for other, n in others if other == name} for name, _ in others}
    return any(name in known and (n is None or None in known[name] or n in known[name]) for name, n in some)
