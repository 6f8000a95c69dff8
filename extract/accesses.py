"""What a kernel does in each of its loops: operations, memory accesses with strides, dependent chains.

The tree of statements becomes a tree of regions, one for each loop. Nothing here knows a device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from lift_egraph.caching import cached_property, kept_with
from lift_egraph.codegen import c_ast
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.basic_blocks import (
    BasicBlock,
    Choice,
    Compound,
    Operated,
    Parts,
    Reached,
    block_of,
    blocks_of,
    element_bytes,
)
from lift_egraph.language.nat import Nat, NatVar, Operation
from lift_egraph.language.types import width_of

_ALIGNED = ~15  # a loop's sample index is a multiple of 16 where it can be, so that i % 16 looks like i
_OWN = {"glb": "get_global_id", "wrg": "get_group_id", "lcl": "get_local_id"}  # a work-item's own

Regions = tuple["Region", ...]  # the regions around a statement, from the kernel's own on


class Loop(NamedTuple):
    """A loop over all its indices, by their name, also where work-items share them; `kind` is that of `ir.Level`, and
    the variable counts in multiples of `step`. `is_unrolled`: whether the compiler is asked to do so.
    """

    variable: str
    trips: int
    kind: str = "seq"
    dimension: int = 0
    step: int = 1
    is_unrolled: bool = False

    @property
    def is_neighbour(self) -> bool:
        """Whether neighbouring work-items, of a warp or of a vector, run its steps."""
        return self.kind in ("glb", "lcl") and self.dimension == 0

    @property
    def sample(self) -> int:
        """A typical index, with a successor inside the loop where there is more than one index."""
        middle = max(self.trips - 1, 0) // 2
        return (middle & _ALIGNED if middle >= 16 else middle) * self.step


class Access(NamedTuple):
    """Loads or stores of `width` adjacent elements that differ only by where they begin.

    Attributes
    ----------
    strides
        Elements by which the address moves when a loop takes one step, for each loop around the
        access from the outermost on.
    irregular
        Whether the address depends on data.
    starts
        The element that each accesses first at the typical index of every loop.
    """

    kind: Literal["load", "store"]
    buffer: str
    space: str
    element_bytes: int
    width: int
    strides: tuple[float, ...]
    irregular: bool
    starts: list[float]

    @property
    def bytes(self) -> int:
        """Of one of them."""
        return self.width * self.element_bytes


@dataclass
class Region:
    """What one step of a loop does, without its inner loops.

    Attributes
    ----------
    path
        The loops around, this one last; empty for the kernel itself.
    order
        The places in `accesses` of those of the text, one after the other.
    shuffles
        Lanes that are put together one by one, and pairs of vectors that exchange some.
    passed
        Words that work-items of a sub-group pass on.
    index_work
        Minima, maxima, divisions and remainders in indices.
    bent
        Whether the loop's steps move an address by different distances: its index stands in one of these.
    look_backs
        How often a group waits for those before it.
    chains
        For each private place that is updated from its own old value in each step, the operations in between.
    begun
        The private places that get a new value first in each step.
    moved
        The private places that are another element of an array in each step.
    held
        Bytes of each private place that is read or written, by its name.
    packing
        The places among them that are put into, or taken out of, the vectors of `lane_of`: a shuffle each.
    lane_of
        The private places of the whole kernel that are the lanes of one vector whenever they are read together, with
        that vector's name.
    passing
        The private places of the whole kernel that are stored to once and read once, by the statements of one block: a
        compiler computes what they hold where it is read.
    """

    path: tuple[Loop, ...] = ()
    operations: Counter[Operated] = field(default_factory=Counter)
    accesses: list[Access] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    shuffles: int = 0
    passed: int = 0
    index_work: int = 0
    bent: bool = False
    barriers: int = 0
    look_backs: int = 0
    chains: dict[str, list[str]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    held: dict[str, int] = field(default_factory=dict)
    packing: list[str] = field(default_factory=list)
    lane_of: dict[str, str] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    children: list[Region] = field(default_factory=list)

    @property
    def loop(self) -> Loop | None:
        return self.path[-1] if self.path else None

    @property
    def trips(self) -> int:
        return self.path[-1].trips if self.path else 1

    @cached_property
    def operated(self) -> int:
        """The operations of one step."""
        return self.operations.total()

    @cached_property
    def operated_lanes(self) -> int:
        """The lanes of all of them."""
        return sum(operation.width * number for operation, number in self.operations.items())

    @cached_property
    def accessed(self) -> int:
        """The accesses of one step."""
        return sum([len(access.starts) for access in self.accesses])

    def walk(self, times: int = 1) -> Iterator[tuple[Region, int]]:
        """This region and those inside it, with how often each runs in the whole kernel."""
        times *= self.trips
        yield self, times
        for child in self.children:
            yield from child.walk(times)


@kept_with
def analyse(kernel: Kernel) -> Region:
    """The regions of a kernel: found once, for estimates and features.

    Perfectly nested parallel loops are put in the order in which a CPU runs work-items: dimension 0 innermost.
    """
    analysis = _Analysis(kernel)
    root = Region(lane_of=analysis.lane_of, passing=analysis.passing)
    analysis.parts(blocks_of(kernel).parts, (root,))
    return root


def _workers(kernel: Kernel) -> list[tuple[str, int, int]]:
    """The levels on which a kernel runs, from outside to inside, each with its dimension and how many there are."""
    whole, local = kernel.launch.global_size, kernel.launch.local_size or (1, 1, 1)
    found = [("glb", d, whole[d]) for d in (2, 1, 0)]
    if blocks_of(kernel).kinds & {"wrg", "lcl"}:
        found = [("wrg", d, whole[d] // local[d]) for d in (2, 1, 0)] + [("lcl", d, local[d]) for d in (2, 1, 0)]
    return [(kind, d, count) for kind, d, count in found if count > 1]


def evaluate(value: Nat, values: Mapping[str, int]) -> float:
    """An index at given values of its variables; others count as the middle of their range."""
    total = 0
    for monomial, coefficient in value.terms:
        for atom in monomial:
            coefficient *= _atom(atom, values)
        total += coefficient
    return total


def _atom(atom: NatVar | Operation, values: Mapping[str, int]) -> float:
    if isinstance(atom, NatVar):
        known = values.get(atom.name)
        return known if known is not None else ((atom.low or 0) + (atom.high or atom.low or 0)) // 2
    left, right = evaluate(atom.left, values), evaluate(atom.right, values)
    if atom.symbol == "/":
        return left // max(right, 1)
    if atom.symbol == "%":
        return left % max(right, 1)
    return min(left, right) if atom.symbol == "min" else max(left, right)


def neighbour_stride(access: Access, path: tuple[Loop, ...]) -> float:
    """Elements between the accesses of neighbouring work-items."""
    return sum(s for s, loop in zip(access.strides, path, strict=True) if loop.is_neighbour)


class _Analysis:
    """Fills the regions; private variables with constant indices are registers, everything else is memory."""

    def __init__(self, kernel: Kernel) -> None:
        self.workers = _workers(kernel)
        self.written = blocks_of(kernel).written
        self.lane_of: dict[str, str] = {}
        self.passing = set[str]()
        self.known = set[str]()  # private places of blocks before
        self.numbers: dict[tuple[object, ...], int] = {}  # of accesses: one for all of a region that are alike

    # --- statements -------------------------------------------------------------------------------

    def parts(self, parts: Parts, around: Regions) -> None:
        inside, alike, missing = around, list[tuple[str, int, int]](), self.missing(around)
        for part in parts:
            by_all = [] if not missing or (isinstance(part, Compound) and part.shares) else missing
            if by_all != alike or not by_all:
                inside, alike = self.entered(by_all, around), by_all
            if isinstance(part, Compound):
                self.compound(part, inside)
            else:
                self.block(part, inside)

    def compound(self, part: Compound, around: Regions) -> None:
        match part.statement:
            case c_ast.For():
                self.loops(part, around)
            case c_ast.If() | c_ast.Block():
                self.parts(part.parts, around)
            case c_ast.Barrier():
                around[-1].barriers += 1
            case c_ast.LookBack() as look_back:
                self.block(block_of([c_ast.Let("", total) for total in look_back.total]), around)
                around[-1].barriers += look_back.barriers
                around[-1].look_backs += 1
            case _:  # sets lengths, for which the longest stand
                pass

    def loops(self, part: Compound, around: Regions) -> None:
        loop = part.statement
        assert isinstance(loop, c_ast.For)
        nest = [loop]
        while loop.is_parallel and len(loop.body) == 1 and isinstance(inner := loop.body[0], c_ast.For):
            if inner.level.kind != loop.level.kind:
                break
            nest.append(inner)
            (only,), loop = part.parts, inner
            assert isinstance(only, Compound)
            part = only
        for each in sorted(nest, key=lambda f: -f.level.dimension):
            kind, dimension = each.level.kind, each.level.dimension
            own = Loop(each.variable.name, each.expected, kind, dimension, each.step, each.pragma)
            around = self.enter(around, own)
        self.parts(part.parts, around)

    def enter(self, around: Regions, loop: Loop) -> Regions:
        inside = Region((*around[-1].path, loop), lane_of=self.lane_of)
        around[-1].children.append(inside)
        return (*around, inside)

    def missing(self, around: Regions) -> list[tuple[str, int, int]]:
        """The levels whose workers all run a statement that does not share itself out: no map around it does."""
        path = {(loop.kind, loop.dimension) for loop in around[-1].path}
        return [w for w in self.workers if w[:2] not in path and ("glb", w[1]) not in path]

    def entered(self, by_all: list[tuple[str, int, int]], around: Regions) -> Regions:
        """The regions in which all workers of some levels run the same, each with indices of its own."""
        if not by_all:
            return around
        for kind, dimension, count in by_all:
            around = self.enter(around, Loop(f"{_OWN[kind]}({dimension})", count, kind, dimension))
        return around

    # --- what blocks do ---------------------------------------------------------------------------

    def block(self, block: BasicBlock, around: Regions) -> None:
        region = around[-1]
        region.shuffles += block.shuffles
        region.passed += block.passed
        region.index_work += block.indices
        once = {place for place, times in block.stored.items() if times == block.read[place] == 1}
        self.passing.difference_update(block.held)
        self.passing.update(once - self.known)
        self.known.update(block.held)
        region.begun |= block.begun.difference(region.held)
        region.held |= {place: width_of(buffer.element) * element_bytes(buffer) for place, buffer in block.held.items()}
        region.packing += block.parted
        for places in block.joined:
            region.packing += self.lanes(places)
        for place, chain in block.chains.items():
            moving = {v.name for v in block.rewritten[place].variables} if place in block.rewritten else ()
            for outer in around:
                outer.moved |= {place} if outer.loop and outer.loop.variable in moving else set()
            if place not in region.moved:
                region.chains.setdefault(place, []).extend(chain)
        for arithmetic, number in block.operations.items():
            for part in arithmetic.parts:
                region.operations[part] += number
        placed: dict[Reached, _Placed] = {}
        for access in block.accesses:
            if isinstance(access, Choice):
                self.choice(access, around)
                continue
            reached, offset = access
            if reached not in placed:
                placed[reached] = self.place(reached, around)
            placed[reached].at(offset)

    def choice(self, choice: Choice, around: Regions) -> None:
        """The side that is chosen at the typical index of every loop."""
        around[-1].index_work += 1
        values = {loop.variable: loop.sample for loop in around[-1].path}
        chosen = all(evaluate(c, values) >= 0 for c in choice.conditions)
        self.block(choice.inside if chosen else choice.outside, around)

    def lanes(self, places: list[str]) -> list[str]:
        """The private places that are the lanes of a vector, in their order; none if they are already another's."""
        vector = " ".join(places)
        is_new = not any(place in self.lane_of for place in places)
        if not is_new and any(self.lane_of.get(place) != vector for place in places):
            return []
        self.lane_of |= dict.fromkeys(places, vector)
        return places

    def place(self, reached: Reached, around: Regions) -> _Placed:
        """Where accesses are done; loads that a sequential loop does not change are done before that loop."""
        buffer, kept = reached.buffer, reached.buffer.name not in self.written and not reached.irregular
        may_wait = reached.kind == "load" and buffer.space == "global" and kept
        depth, strides, start, work, bends = _moves(reached.moving, around[-1].path, may_wait)
        home, own = around[depth], (buffer.name, buffer.space, reached.element_bytes, reached.width, strides)
        home.bent |= bends
        key = id(home), reached.kind, reached.irregular, *own
        if (number := self.numbers.get(key)) is None:
            number = self.numbers[key] = len(home.accesses)
            home.accesses.append(Access(reached.kind, *own, reached.irregular, []))
        return _Placed(home, number, start, work)


class _Placed(NamedTuple):
    """Accesses alike in their region, by their number there: all of them but where they begin."""

    home: Region
    number: int
    start: float
    work: int

    def at(self, offset: int) -> None:
        """Record one."""
        self.home.accesses[self.number].starts.append(self.start + offset)
        self.home.order.append(self.number)
        self.home.index_work += self.work


@lru_cache(1 << 12)
def _moves(index: Nat, path: tuple[Loop, ...], may_wait: bool) -> tuple[int, tuple[float, ...], float, int, bool]:
    """In how many of the loops around an access it is, its strides and start there, the operations of its index, and
    whether one of them is of the innermost of these loops.
    """
    names = {v.name for v in index.variables}
    while may_wait and path and path[-1].kind == "seq" and path[-1].variable not in names:
        path = path[:-1]
    operations = [atom for monomial, _ in index.terms for atom in monomial if isinstance(atom, Operation)]
    inner = path[-1].variable if path else ""
    bends = any(v.name == inner for each in operations for side in (each.left, each.right) for v in side.variables)
    return len(path), *_strides(index, path), len(operations), bends


def _strides(index: Nat, path: tuple[Loop, ...]) -> tuple[tuple[float, ...], float]:
    values = {loop.variable: loop.sample for loop in path}
    start = evaluate(index, values)
    names = {v.name for v in index.variables}
    strides = []
    for loop in path:
        stride = 0.0
        if loop.trips > 1 and loop.variable in names:
            stride = evaluate(index, {**values, loop.variable: loop.sample + loop.step}) - start
            if stride == 0:  # a division: what it moves on the average
                ends = [evaluate(index, {**values, loop.variable: i * loop.step}) for i in (0, loop.trips - 1)]
                stride = (ends[1] - ends[0]) / (loop.trips - 1)
        strides.append(stride)
    return tuple(strides), start
