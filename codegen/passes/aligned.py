"""Vectors that no vector access reaches, for they begin in the middle of one, put together of vectors that it does.

Windows along a row overlap: of a vector of neighbours the one beside it has all elements but one. On a GPU an access
of 16 bytes has to begin at a multiple of them, so each element of what begins elsewhere is read alone, and of what may
lie outside of a padded row twice: in a branch inside of it, and in one at its ends. Instead, an element is taken from
the aligned vector around it, which the compiler reads once for all windows that share it. What may lie outside is read
alone, and by no branch.

    (x >= 2) ? vload4(a + 4x - 1) : (a[max(4x - 1, 0)], a[4x], a[4x + 1], a[4x + 2])
    becomes    v = vload4(a + 4x);  (a[max(4x - 1, 0)], v.s0, v.s1, v.s2)

Source: Rawat et al., "Register optimizations for stencils on GPUs", PPoPP 2018; Eichenberger et
al., "Vectorization for SIMD architectures with alignment constraints", PLDI 2004, on shifts of loaded vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from typing import Any

from lift_egraph.codegen.c_ast import (
    AROUND,
    Barrier,
    Block,
    Body,
    CExpr,
    Choose,
    Const,
    For,
    Lane,
    Let,
    Load,
    Name,
    Pack,
    SetIndex,
    Statement,
)
from lift_egraph.codegen.c_walk import (
    buffers,
    copies,
    data_in,
    depends,
    mentioned,
    rewrite,
    statements,
    stores,
    walk,
    with_body,
)
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.passes.unrolling import declares
from lift_egraph.language.nat import Nat, NatVar, is_at_least, nat, operations

MOST_STEPS = 64  # of a loop over a window that is written out
MOST_STATEMENTS = 512  # that this may make


def aligned_reads(body: Body, taken: set[str]) -> Body:
    """A kernel's body that reads global memory in aligned vectors where it can; what it writes is left alone.

    Parameters
    ----------
    taken
        Names that are in use; those of the vectors join them.
    """
    memory = _Memory({place.buffer.name for place in stores(body)})
    return _Scope(memory, taken).of(_written_out(body, memory))


@dataclass(frozen=True)
class _Memory:
    """Global memory, but for what is `written`."""

    written: set[str]

    def wide(self, item: Any) -> Iterator[Load]:
        """The vectors that are read from it."""
        found = (part if isinstance(part, Load) else _together(part) for part in walk(item))
        return (load for load in found if load is not None and load.width > 1 and self.has(load))

    def has(self, load: Load) -> bool:
        """Whether a vector lies there, in a buffer that ends with a whole one."""
        buffer = load.buffer
        if buffer.space != "global" or buffer.name in self.written:
            return False
        return not (buffer.elements % load.width).terms


@dataclass(frozen=True)
class _Element:
    """An element of memory, or what stands `outside` where not all conditions hold."""

    load: Load
    conditions: tuple[Nat, ...] = ()
    outside: CExpr | None = None


def _element(value: CExpr) -> _Element | None:
    """What is read of memory alone, without conditions that always hold."""
    match value:
        case Load(width=1):
            return _Element(value)
        case Choose(conditions=conditions, inside=Load(width=1) as load, outside=Const() as outside):
            left = tuple(c for c in conditions if not is_at_least(c, 0))
            return _Element(load, left, outside if left else None)
    return None


def _together(part: Any) -> Load | None:
    """The vector that a pack of neighbours is, wherever they lie inside of an array."""
    if not isinstance(part, Pack) or len(part.items) < 2:
        return None
    elements = [e.load for item in part.items if (e := _element(item))]
    first = elements[0] if elements else None
    if first is None or len(elements) < len(part.items) or any(e.buffer != first.buffer for e in elements):
        return None
    if any(e.index.beyond(first.index) != n for n, e in enumerate(elements)):
        return None
    return Load(first.buffer, first.index, len(elements))


def _written_out(body: Body, memory: _Memory) -> Body:
    """A body without the loops whose vectors lie where only the step says: each step stands for itself."""
    made: list[Statement] = []
    for statement in body:
        if not isinstance(statement, AROUND) or buffers(statement) <= memory.written:
            made.append(statement)
            continue
        statement = with_body(statement, _written_out(statement.body, memory))
        steps = _steps(statement, memory) if isinstance(statement, For) else None
        if steps is None:
            made.append(statement)
        for step in steps or ():
            made += (Block(step, origin=statement.origin),) if declares(step) else step
    return tuple(made)


def _steps(loop: For, memory: _Memory) -> list[Body] | None:
    count = loop.count.constant
    if count is None or loop.is_parallel or loop.step != 1 or not 1 < count <= MOST_STEPS:
        return None
    inside = list(statements(loop.body))
    if count * len(inside) > MOST_STATEMENTS or any(isinstance(s, Barrier) for s in inside):
        return None  # a loop in which a group meets goes over tiles, not over a window
    vectors = list(memory.wide(loop.body))
    if not any(_begins_at(load, loop.variable) or _is_held(load, loop.variable) for load in vectors):
        return None
    steps = copies(loop.body, loop.variable.name, [nat(step) for step in range(count)])
    begin = (_rest(load.index, load.width) for step in steps for load in memory.wide(step))
    return steps if all(rest is not None for rest in begin) else None


def _begins_at(load: Load, variable: NatVar) -> bool:
    """Whether a loop's step says how far behind an aligned place a vector begins."""
    return variable.name in mentioned(load.index) and _rest(load.index, load.width) is None


def _is_held(load: Load, variable: NatVar) -> bool:
    """Whether a loop's step is held in a range before it says what is read: in most steps it lies there anyway."""
    return any(o.symbol in ("min", "max") and depends(nat(o), variable) for o in operations(load.index))


def _rest(index: Nat, width: int) -> int | None:
    """How far behind a multiple of a width an index is, if that is a number."""
    return None if data_in(index) else (index % width).constant


def _number(outside: CExpr) -> Const | None:
    """The number that stands for all elements of a vector outside of an array."""
    match outside:
        case (Const() as number) | Pack(items=(Const() as number,)):
            return number
    return None


def _read(value: Any) -> tuple[Load, tuple[CExpr, ...]] | None:
    """The vector that is read, where it lies inside of its array, and its elements, which ask themselves for that."""
    match value:
        case Load(width=width) if width > 1:
            return value, tuple(Load(value.buffer, value.index + lane) for lane in range(width))
        case Pack(items=items):
            return (start, items) if (start := _together(value)) else None
        case Choose(inside=Load(width=width) as start, outside=Pack(items=items)) if 1 < width == len(items):
            return start, items
        case Choose(conditions=asked, inside=inside, outside=beside) if outside := _number(beside):
            if found := _read(inside):
                start, items = found
                elements = [e for item in items if (e := _element(item)) and e.outside in (None, outside)]
                made = tuple(Choose((*asked, *e.conditions), e.load, outside) for e in elements)
                return (start, made) if len(made) == len(items) else None
    return None


@dataclass(frozen=True)
class _Held:
    """A vector inside of an array, all of whose lanes are its `edge` where not all of `ends` hold; or `outside`."""

    load: Load
    ends: tuple[Nat, ...]
    edge: Nat
    conditions: tuple[Nat, ...] = ()
    outside: CExpr | None = None


def _held(value: Choose) -> _Held | None:
    """What is read there, if it is held so: one read of both serves, and no branch is needed to choose between them."""
    match value:
        case Choose(conditions=ends, inside=Load() as load, outside=Lane(vector=vector, lane=edge)) if load == vector:
            return _Held(load, ends, edge)
        case Choose(conditions=asked, inside=Choose() as inside, outside=beside) if outside := _number(beside):
            found = _held(inside)
            return replace(found, conditions=(*asked, *found.conditions), outside=outside) if found else None
    return None


@dataclass
class _Scope:
    """Statements that see the same indices, and the aligned vectors that are bound before one of them."""

    memory: _Memory
    taken: set[str]
    bound: dict[tuple[Load, tuple[Nat, ...], CExpr | None], Name] = field(default_factory=dict)
    made: list[Statement] = field(default_factory=list)

    def of(self, body: Body) -> Body:
        """A body whose vectors are put together of aligned ones."""
        for statement in body:
            if not isinstance(statement, SetIndex) and buffers(statement) <= self.memory.written:
                self.made.append(statement)
            elif isinstance(statement, AROUND):
                self.made.append(with_body(statement, _Scope(self.memory, self.taken).of(statement.body)))
            else:
                statement = rewrite(statement, self.vector)
                self.made.append(statement)
                if isinstance(statement, SetIndex):
                    self.bound.clear()
        return tuple(self.made)

    def vector(self, part: Any) -> CExpr | None:
        """What stands for a vector that is not aligned, or not at each place."""
        if buffers(part) <= self.memory.written:
            return part
        if not isinstance(part, (Load, Pack, Choose)):
            return None
        if isinstance(part, Choose) and (held := _held(part)) and self.memory.has(held.load):
            vector = self.kept(held.load, held.conditions, held.outside)
            return Choose(held.ends, vector, Lane(vector, held.edge))
        found = _read(part)
        if found is None or not self.memory.has(found[0]) or _rest(found[0].index, found[0].width) is None:
            return part if isinstance(part, Choose) else None  # what is read in it may lie outside of memory elsewhere
        inside, lanes = found
        if isinstance(part, Load) and not _rest(part.index, part.width):
            return None
        elements = [_element(lane) for lane in lanes]
        shared = set.intersection(*(set(e.conditions) for e in elements if e)) if any(elements) else set[Nat]()
        made = [lane if e is None else self.lane(e, shared, inside) for lane, e in zip(lanes, elements, strict=True)]
        match made[0]:
            case Lane(vector=vector) if made == [Lane(vector, nat(n)) for n in range(inside.width)]:
                return vector
        return Pack(tuple(made), inside.type)

    def lane(self, element: _Element, shared: Set[Nat], inside: Load) -> CExpr:
        """An element, from the aligned vector around it if it is known where in that it stands, and that it is there.

        Parameters
        ----------
        shared
            Conditions of all elements beside it: of their row.
        """
        load, rest = element.load, _rest(element.load.index, inside.width)
        if rest is None or load.buffer != inside.buffer or not shared >= set(element.conditions):
            return Choose(element.conditions, load, element.outside) if element.outside else load
        vector = Load(load.buffer, load.index - rest, inside.width)
        return Lane(self.kept(vector, element.conditions, element.outside), nat(rest))

    def kept(self, vector: Load, conditions: tuple[Nat, ...], outside: CExpr | None) -> Name:
        """The name of a vector, or of what is `outside` where not all conditions hold, bound before its first use."""
        key = vector, conditions, outside
        if key not in self.bound:
            self.bound[key] = Name(c_name(f"{vector.buffer.name}_aligned", self.taken), vector.type)
            value = Choose(conditions, vector, Pack((outside,), vector.type)) if outside else vector
            self.made.append(Let(self.bound[key].name, value))
        return self.bound[key]
