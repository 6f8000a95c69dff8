"""Views: how a value is found in memory, without moving it.

A view answers one question: which expression is the scalar at the end of a path? The path is kept
on two stacks, array indices (outermost first) and tuple components; each view takes from them what
its pattern adds to the type, and asks the view below. Where the answer is a place in memory the same
view serves for writing: ``join`` is written through a split view, ``split`` through a join view, and
``asScalar`` through an asVector view.

The text of `lift_egraph.codegen.walkthrough` follows two array accesses from their LIFT term to the kernel, view by
view.

Source: 000 §4.3.3, Table 4.1.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace

from lift_egraph.codegen.c_ast import (
    Buffer,
    CExpr,
    Choose,
    Const,
    IndexValue,
    Load,
    Nowhere,
    Pack,
    computed_index,
    lane_of,
)
from lift_egraph.codegen.lowering.lanes import widen
from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.check import apply_index
from lift_egraph.language.nat import Nat, NatVar, is_at_least, maximum, minimum, nat
from lift_egraph.language.types import Vector, scalar_of, width_of

_LANES: ContextVar[int] = ContextVar("lanes", default=0)  # asVector views around the one that is resolved

Indices = tuple[Nat, ...]
Choices = tuple[int, ...]


@dataclass(frozen=True)
class ThreadVar(NatVar):
    """The index variable of a mapLcl: in private memory each work-item keeps only its own elements.

    `threads` is the number of work-items in its dimension of a group; None where only the launch says it.
    """

    dimension: int = 0
    threads: int | None = 1

    def __str__(self) -> str:
        return self.name


class OwnershipProblem(NestingProblem):
    """A private array is used by other work-items than those that own its elements."""

    buffer: str = ""

    @staticmethod
    def of(buffer: str, message: str) -> OwnershipProblem:
        """The problem with the buffer that it is about."""
        problem = OwnershipProblem(message)
        problem.buffer = buffer
        return problem


class View:
    """How a value is found; see the module's text."""

    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        """The scalar or vector at the end of a path."""
        raise NotImplementedError

    @property
    def space(self) -> str | None:
        """The address space of the memory below; None for values that are computed."""
        return self.base.space


@dataclass(frozen=True)
class Cell:
    """The memory of one leaf: `choices` lead to it, `sizes` are the array lengths around it.

    `owners` names, for each dimension that is shared out among the work-items of a group, the
    dimension of the mapLcl that owns it. `width` is the number of lanes of the leaf.
    """

    choices: Choices
    buffer: Buffer
    sizes: tuple[Nat, ...]
    owners: tuple[int | None, ...]
    offset: Nat
    width: int


@dataclass(frozen=True)
class Memory(View):
    cells: tuple[Cell, ...]

    @property
    def space(self) -> str | None:
        return self.cells[0].buffer.space

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        cell = next(c for c in self.cells if c.choices == choices)
        address = nat(0)
        for index, size, owner in zip(indices, cell.sizes, cell.owners, strict=True):
            if owner is not None:
                index, size = _own_index(index, size, owner, cell.buffer)
            address = address * size + index
        address = address + cell.offset
        if isinstance(cell.buffer.element, Vector):
            return Load(cell.buffer, address)
        return Load(cell.buffer, address * cell.width, cell.width)

    def resized(self, length: Nat) -> Memory:
        """The beginning of this memory, or the whole of it, as the place of an array of another length."""
        return Memory(tuple(replace(c, sizes=(length, *c.sizes[1:])) for c in self.cells))


def _own_index(index: Nat, size: Nat, owner: int, buffer: Buffer) -> tuple[Nat, Nat]:
    """The index among a work-item's own elements, in private memory shared out over mapLcl(owner)."""
    threads = [v for v in index.variables if isinstance(v, ThreadVar) and v.dimension == owner]
    count = threads[0].threads if len(threads) == 1 else None
    if count is None or (index - nat(threads[0])) % count != nat(0):
        raise OwnershipProblem.of(
            buffer.name,
            f"{buffer.name} lies in private memory, shared out over {ir.Level('lcl', owner).name}, "
            f"but is read at the index {index} of another work-item; keep it in local memory",
        )
    return index // count, (size + count - 1) // count


@dataclass(frozen=True)
class Value(View):
    """A scalar or vector that is computed, not stored."""

    expr: CExpr

    @property
    def space(self) -> str | None:
        return None

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        return self.expr


@dataclass(frozen=True)
class Pairs(View):
    """A pair, or zipped arrays: the component decides which view is asked."""

    first: View
    second: View

    @property
    def space(self) -> str | None:
        spaces = {self.first.space, self.second.space}
        return spaces.pop() if len(spaces) == 1 else None

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        return (self.second if choices[0] else self.first).resolve(indices, choices[1:])


@dataclass(frozen=True)
class Component(View):
    index: int
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        return self.base.resolve(indices, (self.index, *choices))


@dataclass(frozen=True)
class Access(View):
    """One element of an array."""

    index: Nat
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        return self.base.resolve((self.index, *indices), choices)


@dataclass(frozen=True)
class Split(View):
    chunk: Nat
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        outer, inner, *rest = indices
        return self.base.resolve((outer * self.chunk + inner, *rest), choices)


@dataclass(frozen=True)
class Join(View):
    inner: Nat
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, *rest = indices
        return self.base.resolve((index // self.inner, index % self.inner, *rest), choices)


@dataclass(frozen=True)
class Shifted(View):
    """A part of an array, from an element on: ``slice`` when read, a part of ``concat`` when written."""

    start: Nat
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, *rest = indices
        return self.base.resolve((index + self.start, *rest), choices)


@dataclass(frozen=True)
class Concat(View):
    """Two arrays one after the other, the first with `length` elements."""

    length: Nat
    first: View
    second: View

    @property
    def space(self) -> str | None:
        spaces = {self.first.space, self.second.space}
        return spaces.pop() if len(spaces) == 1 else None

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, *rest = indices
        before = self.length - 1 - index
        if is_at_least(before, 0):
            return self.first.resolve(indices, choices)
        second = self.second.resolve((index - self.length, *rest), choices)
        if is_at_least(index - self.length, 0):
            return second
        return Choose((before,), self.first.resolve(indices, choices), second)


@dataclass(frozen=True)
class Trimmed(View):
    """``slice`` when written: of an array that is computed, `length` elements from `start` on are kept."""

    start: Nat
    length: Nat
    base: View

    @property
    def space(self) -> str | None:
        return None  # an accumulator would be read where nothing is kept

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, rest = indices[0] - self.start, indices[1:]
        place = self.base.resolve((index, *rest), choices)
        conditions = tuple(c for c in (index, self.length - 1 - index) if not is_at_least(c, 0))
        return Choose(conditions, place, Nowhere(scalar_of(place.type))) if conditions else place


@dataclass(frozen=True)
class Transpose(View):
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        outer, inner, *rest = indices
        return self.base.resolve((inner, outer, *rest), choices)


@dataclass(frozen=True)
class Reorder(View):
    """``gather`` when read, ``scatter`` when written."""

    function: ir.IndexFunction
    size: Nat
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, *rest = indices
        return self.base.resolve((nat(apply_index(self.function, index, self.size)), *rest), choices)


class Slide(Split):
    """A window begins a step after the one before, as a chunk does."""


@dataclass(frozen=True)
class Pad(View):
    left: Nat
    size: Nat
    boundary: ir.Boundary
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, rest = indices[0] - self.left, indices[1:]
        last = self.size - 1
        if self.boundary.kind == "constant":
            assert self.boundary.value is not None
            conditions = tuple(c for c in (index, last - index) if not is_at_least(c, 0))
            inside = self.base.resolve((index, *rest), choices)
            return (
                Choose(conditions, inside, Const(self.boundary.value.value, self.boundary.value.type))
                if conditions
                else inside
            )
        if self.boundary.kind == "clamp":
            index = minimum(maximum(index, 0), last)
        elif self.boundary.kind == "mirror":
            index = maximum(index, -1 - index)
            index = minimum(index, 2 * self.size - 1 - index)
        else:
            index = index % self.size
        return self.base.resolve((index, *rest), choices)


@dataclass(frozen=True)
class AsVector(View):
    width: int
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, *rest = indices
        depth = _LANES.get()
        lane = NatVar(f"lane{depth or ''}", 0, self.width - 1)
        token = _LANES.set(depth + 1)
        try:
            scalar = self.base.resolve((index * self.width + nat(lane), *rest), choices)
        finally:
            _LANES.reset(token)
        return widen(scalar, lane, self.width)


@dataclass(frozen=True)
class AsScalar(View):
    width: int
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, *rest = indices
        return lane_of(self.base.resolve((index // self.width, *rest), choices), index % self.width)


@dataclass(frozen=True)
class Repeat(View):
    """``fill``: every element is the same value."""

    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        return self.base.resolve(indices[1:], choices)


@dataclass(frozen=True)
class Lookup(View):
    positions: View
    size: Nat
    base: View

    def resolve(self, indices: Indices, choices: Choices) -> CExpr:
        index, *rest = indices
        position = self.positions.resolve((index,), ())
        if isinstance(position, IndexValue):
            return self.base.resolve((minimum(maximum(position.value, 0), self.size - 1), *rest), choices)
        width = width_of(position.type)
        positions = [lane_of(position, nat(k)) for k in range(width)] if width > 1 else [position]
        found = [self.base.resolve((computed_index(p, self.size), *rest), choices) for p in positions]
        if width == 1:
            return found[0]
        # where each lane has an array of its own, the elements at one lane's position are a vector, too
        own = [lane_of(f, nat(k)) if width_of(f.type) > 1 else f for k, f in enumerate(found)]
        return Pack(tuple(own), Vector(scalar_of(own[0].type), width))
