"""What a kernel does in each of its loops: operations, memory accesses with strides, dependent chains.

The tree of statements becomes a tree of regions, one for each loop. Nothing here knows a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from codegen.c_ast import (
    Barrier,
    Block,
    Body,
    Buffer,
    CExpr,
    Choose,
    Computed,
    For,
    If,
    IndexValue,
    Lane,
    Let,
    Load,
    Name,
    Operate,
    Pack,
    Statement,
    Store,
    stores,
)
from codegen.kernel import Kernel
from lift_egraph.nat import Nat, NatVar, Operation, nat
from lift_egraph.types import SCALAR_BYTES, LeafType, scalar_of, width_of

_ALIGNED = ~15  # a loop's sample index is a multiple of 16 where it can be, so that i % 16 looks like i
_LOCAL_ID = "get_local_id("


@dataclass(frozen=True)
class Loop:
    """A loop over all its indices, also where work-items share them; `kind` is that of `ir.Level`."""

    variable: NatVar
    trips: int
    kind: str = "seq"
    dimension: int = 0

    @property
    def sample(self) -> int:
        """A typical index, with a successor inside the loop where there is more than one index."""
        middle = max(self.trips - 1, 0) // 2
        return middle & _ALIGNED if middle >= 16 else middle


@dataclass(frozen=True)
class Access:
    """A load or store of `width` adjacent elements.

    Attributes
    ----------
    strides
        Elements by which the address moves when a loop takes one step, for each loop around the
        access from the outermost on.
    start
        The element accessed at the typical index of every loop.
    irregular
        Whether the address depends on data.
    """

    kind: Literal["load", "store"]
    buffer: str
    space: str
    element_bytes: int
    width: int
    strides: tuple[float, ...]
    start: float
    irregular: bool = False

    @property
    def bytes(self) -> int:
        return self.width * self.element_bytes


@dataclass(frozen=True)
class Operated:
    """One arithmetic operation on `width` lanes; `fused`: the multiplication of a multiply-add."""

    op: str
    width: int
    element_bytes: int
    fused: bool = False


@dataclass
class Region:
    """What one step of a loop does, without its inner loops.

    Attributes
    ----------
    path
        The loops around, this one last; empty for the kernel itself.
    shuffles
        Lanes that are put together one by one.
    index_work
        Minima, maxima, divisions and remainders in indices.
    chains
        For each private place that is updated from its own old value, the operations in between.
    held
        Bytes of each private place that is read or written, by its name.
    """

    path: tuple[Loop, ...] = ()
    operations: list[Operated] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    shuffles: int = 0
    index_work: int = 0
    barriers: int = 0
    chains: dict[str, list[str]] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    children: list[Region] = field(default_factory=list)

    @property
    def loop(self) -> Loop | None:
        return self.path[-1] if self.path else None

    @property
    def trips(self) -> int:
        return self.path[-1].trips if self.path else 1

    def walk(self, times: int = 1) -> Iterator[tuple[Region, int]]:
        """This region and those inside it, with how often each runs in the whole kernel."""
        times *= self.trips
        yield self, times
        for child in self.children:
            yield from child.walk(times)


def analyse(kernel: Kernel) -> Region:
    """The regions of a kernel.

    Perfectly nested parallel loops are put in the order in which a CPU runs work-items: dimension 0 innermost.
    """
    local = kernel.launch.local_size or (1, 1, 1)
    written = frozenset(place.buffer.name for place in stores(kernel.body))
    analysis = _Analysis(written, local)
    analysis.body(kernel.body, root := Region(), {})
    return root


def evaluate(value: Nat, values: dict[NatVar, int]) -> float:
    """An index at given values of its variables; others count as the middle of their range."""
    total = 0
    for monomial, coefficient in value.terms:
        for atom in monomial:
            coefficient *= _atom(atom, values)
        total += coefficient
    return total


def _atom(atom: NatVar | Operation, values: dict[NatVar, int]) -> float:
    if isinstance(atom, NatVar):
        known = values.get(atom)
        return known if known is not None else ((atom.low or 0) + (atom.high or atom.low or 0)) // 2
    left, right = evaluate(atom.left, values), evaluate(atom.right, values)
    if atom.symbol == "/":
        return left // max(right, 1)
    if atom.symbol == "%":
        return left % max(right, 1)
    return min(left, right) if atom.symbol == "min" else max(left, right)


class _Analysis:
    def __init__(self, written: frozenset[str], local: tuple[int, int, int]) -> None:
        self.written = written
        self.local = local
        self.affine: dict[tuple[Nat, tuple[Loop, ...]], tuple[tuple[float, ...], float]] = {}

    # --- statements -------------------------------------------------------------------------------

    def body(self, body: Body, region: Region, names: dict[str, CExpr]) -> None:
        for statement in body:
            self.statement(statement, region, names)

    def statement(self, statement: Statement, region: Region, names: dict[str, CExpr]) -> None:
        match statement:
            case For():
                self.loops(statement, region, names)
            case If(_, body) | Block(body):
                self.body(body, region, names)
            case Let(name, value):
                names[name] = value
                self.value(value, region)
            case Store(place, value):
                self.value(value, region)
                self.store(place, value, region, names)
            case Barrier():
                region.barriers += 1

    def loops(self, loop: For, region: Region, names: dict[str, CExpr]) -> None:
        nest = [loop]
        while loop.is_parallel and len(loop.body) == 1 and isinstance(inner := loop.body[0], For):
            if inner.level.kind != loop.level.kind:
                break
            nest.append(inner)
            loop = inner
        for each in sorted(nest, key=lambda f: -f.level.dimension):
            inside = Region((*region.path, Loop(each.variable, each.most, each.level.kind, each.level.dimension)))
            region.children.append(inside)
            region = inside
        self.body(loop.body, region, names)

    def store(self, place: CExpr, value: CExpr, region: Region, names: dict[str, CExpr]) -> None:
        whole = place.vector if isinstance(place, Lane) else place
        assert isinstance(whole, Load)
        if _is_register(whole):
            self.hold(whole, region)
            chain = _chain(value, whole, names, {})
            if chain is not None:
                region.chains.setdefault(_key(whole), []).extend(chain)
        else:
            self.access("store", whole, region)

    # --- expressions ------------------------------------------------------------------------------

    def value(self, value: CExpr, region: Region, fused: bool = False) -> None:
        match value:
            case Load():
                if _is_register(value):
                    self.hold(value, region)
                else:
                    self.access("load", value, region)
            case Operate(op, arguments, t):
                element = SCALAR_BYTES[scalar_of(arguments[0].type).name]
                region.operations.append(Operated(op, max(width_of(t), width_of(arguments[0].type)), element, fused))
                free = op in ("add", "sub")
                for argument in arguments:
                    is_product = free and isinstance(argument, Operate) and argument.op == "mul"
                    self.value(argument, region, is_product)
                    free = free and not is_product
            case Pack(items, _):
                region.shuffles += len(items) if len(items) > 1 else 0
                for item in items:
                    self.value(item, region)
            case Choose(conditions, inside, outside):
                region.index_work += 1
                values = {loop.variable: loop.sample for loop in region.path}
                self.value(inside if all(evaluate(c, values) >= 0 for c in conditions) else outside, region)
            case Lane(vector, _):
                region.shuffles += 1
                self.value(vector, region)
            case IndexValue():
                region.index_work += 1

    def access(self, kind: Literal["load", "store"], load: Load, region: Region) -> None:
        path, index, buffer = region.path, load.index, load.buffer
        data = [v for v in index.variables if isinstance(v, Computed)]
        for v in data:
            self.value(v.value, region)
        if kind == "load" and buffer.space == "global" and buffer.name not in self.written and not data:
            home = region
            while path and path[-1].kind == "seq" and path[-1].variable not in index.variables:
                path = path[:-1]
            if path != region.path:
                home = self.outer(region, path)
        else:
            home = region
        strides, start = self.strides(index, path)
        access = Access(kind, buffer.name, buffer.space, _element_bytes(buffer), _width(load), strides, start, bool(data))
        home.accesses.append(access)
        home.index_work += _index_work(index)

    def outer(self, region: Region, path: tuple[Loop, ...]) -> Region:
        """A region for what is done once for all steps of `region`'s loop: its parent's own work."""
        return self.parents.get(path, region) if False else _once(region, path)

    def hold(self, place: Load, region: Region) -> None:
        region.held[_key(place)] = width_of(place.buffer.element) * _element_bytes(place.buffer)

    def strides(self, index: Nat, path: tuple[Loop, ...]) -> tuple[tuple[float, ...], float]:
        known = self.affine.get((index, path))
        if known is None:
            known = self.affine[index, path] = _strides(index, path)
        return known
