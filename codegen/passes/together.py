"""Loops that count alike, and of which no step needs what other steps of another one compute, become one loop.

A sum in a register waits for each addition before the next: sums of parts of an array, which stand one after the
other, are added up in turns then. A row whose sum and whose squares' sum are wanted is read once. Each of the sums adds
what it did before, in the same order.

A loop that adds up what the one before has put in an array takes it from there in the same step, also several elements
at a time.

Source: Allen and Cocke, "A catalogue of optimizing transformations", 1972, on loop fusion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lift_egraph.codegen.c_ast import AROUND, Allocate, Block, Body, For, If, Let, Load, Name, Statement, Store
from lift_egraph.codegen.c_walk import (
    copies,
    functions,
    loads,
    mentioned,
    names,
    rewrite,
    statements,
    stores,
    substitute,
    with_body,
)
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Vector

KNOWN = (Let, Allocate, Store, For, If, Block)
BETWEEN = 64  # statements between two loops, at most
SHORT = 8  # steps of a loop around them
AT_A_TIME = 4  # steps of a loop for one of the next, at most


@dataclass(frozen=True)
class Room:
    """How many results registers hold at a time, and whether functions that are spelled out fill them."""

    most: int
    inlines: bool = False


def loops_together(body: Body, room: Room, taken: set[str]) -> Body:
    """A kernel's body in which loops of steps that write to registers run together as far as there is room for that.

    Those in the steps of a short loop do so too. `taken` are names that are in use beside those that the body declares;
    both these and new ones join them.
    """
    taken |= _declared(statements(body))
    return _together_in(body, room, taken)


def _together_in(body: Body, room: Room, taken: set[str]) -> Body:
    steps: list[Statement] = []
    for statement in body:
        if isinstance(statement, AROUND):
            statement = with_body(statement, _together_in(statement.body, room, taken))
        inside = _inside(statement, room, taken) if isinstance(statement, For) else None
        steps += inside or [statement]
    return tuple(_joined(steps, room))


def _inside(loop: For, room: Room, taken: set[str]) -> list[Statement] | None:
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
        made = _joined(steps, room)
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


def _joined(body: list[Statement], room: Room) -> list[Statement]:
    """Statements in which loops run together as far as they may."""
    made: list[Statement] = []
    first: int | None = None
    for statement in body:
        made.append(statement)
        if isinstance(statement, For) and _adds_up(statement):
            together = None if first is None else _together(made[first:], room)
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


def _together(part: list[Statement], room: Room) -> list[Statement] | None:
    """Statements from one loop to another with both in one; None where they may not change places."""
    one, *between, other = part
    assert isinstance(one, For)
    assert isinstance(other, For)
    times, own, after = _times(one, other), _Effects.of(one), _Effects.of(other)
    if times is None or len(own.writes | after.writes) > room.most:
        return None
    steps: list[Body] = []
    if own.meet(after):
        if room.inlines and any(map(functions, one.body)):
            return None
        first = nat(other.variable) * (one.step * times // other.step)
        steps = copies(one.body, one.variable.name, [first + one.step * number for number in range(times)])
        if own.meet(after.without(_handed_over(tuple(s for step in steps for s in step), other))):
            return None
    elif times > 1:
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
    bodies, loop = [*steps, other.body], other
    if times == 1:
        bodies, loop = [one.body, substitute(other.body, {other.variable.name: nat(one.variable)})], one
    declared = [_declared(body) for body in bodies]
    if sum(map(len, declared)) > len(set[str]().union(*declared)):
        origins = [*[one.origin] * (len(bodies) - 1), other.origin]
        bodies = [(Block(body, origin=origin),) for body, origin in zip(bodies, origins, strict=True)]
    return [*before, replace(loop, body=tuple(s for body in bodies for s in body), pragma=False), *stays]


def _times(one: For, other: For) -> int | None:
    """How many steps of a loop there are for one of another, if they run over the same."""
    if (one.count, one.step, one.likely) == (other.count, other.step, other.likely):
        return 1
    if one.likely is not None or other.likely is not None:
        return None
    fitting = (n for n in range(2, AT_A_TIME + 1) if other.count * n == one.count and one.step * n % other.step == 0)
    return next(fitting, None)


def _handed_over(body: Body, other: For) -> frozenset[str]:
    """The arrays of which each step of a loop reads only what belongs to the step of a body that goes before it."""
    written = {place.buffer.name for place in stores(body)} - {place.buffer.name for place in stores(other.body)}
    found = set[str]()
    for name in written:
        places = [p for p in (*stores(body), *loads(body), *loads(other.body)) if p.buffer.name == name]
        slope = places[0].index.coefficient_of(other.variable)
        apart = slope.constant if slope is not None else None
        if apart is None or apart <= 0 or places[0].buffer.targets:
            continue
        starts = [(p.index - nat(other.variable) * apart) for p in places]
        offsets = [(start - starts[0]).constant for start in starts]
        known = [n for n in offsets if n is not None]
        if len(known) < len(offsets) or other.variable.name in mentioned(starts[0]):
            continue
        if max(n + p.width for n, p in zip(known, places, strict=True)) - min(known) <= apart * other.step:
            found.add(name)
    return frozenset(found)


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

    def without(self, names: frozenset[str]) -> _Effects:
        """The same but for what is read of some arrays."""
        return replace(self, reads=frozenset(place for place in self.reads if place[0] not in names))

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
