"""What a kernel does in each of its loops: operations, memory accesses with strides, dependent chains.

The tree of statements becomes a tree of regions, one for each loop. Nothing here knows a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lift_egraph.caching import kept_with
from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.iteration_domain import Terms, apart
from lift_egraph.language.nat import Nat, NatVar, Operation
from lift_egraph.language.types import SCALAR_BYTES, scalar_of, width_of

_ALIGNED = ~15  # a loop's sample index is a multiple of 16 where it can be, so that i % 16 looks like i
_ONE_SHUFFLE, _WIDE_SHUFFLE = 8, 3  # lanes that one instruction exchanges; instructions for 16 (PoCL, AVX-512)
_OWN = {"glb": "get_global_id", "wrg": "get_group_id", "lcl": "get_local_id"}  # a work-item's own

Regions = tuple["Region", ...]  # the regions around a statement, from the kernel's own on


class Loop(NamedTuple):
    """A loop over all its indices, by their name, also where work-items share them; `kind` is that of `ir.Level`."""

    variable: str
    trips: int
    kind: str = "seq"
    dimension: int = 0

    @property
    def is_neighbour(self) -> bool:
        """Whether neighbouring work-items, of a warp or of a vector, run its steps."""
        return self.kind in ("glb", "lcl") and self.dimension == 0

    @property
    def sample(self) -> int:
        """A typical index, with a successor inside the loop where there is more than one index."""
        middle = max(self.trips - 1, 0) // 2
        return middle & _ALIGNED if middle >= 16 else middle


class Access(NamedTuple):
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


class Operated(NamedTuple):
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
        Lanes that are put together one by one, and pairs of vectors that exchange some.
    index_work
        Minima, maxima, divisions and remainders in indices.
    look_backs
        How often a group waits for those before it.
    chains
        For each private place that is updated from its own old value, the operations in between.
    held
        Bytes of each private place that is read or written, by its name.
    packing
        The places among them that are put into, or taken out of, the vectors of `lane_of`: a shuffle each.
    lane_of
        The private places of the whole kernel that are the lanes of one vector whenever they are read together, with
        that vector's name.
    """

    path: tuple[Loop, ...] = ()
    operations: list[Operated] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    shuffles: int = 0
    index_work: int = 0
    barriers: int = 0
    look_backs: int = 0
    chains: dict[str, list[str]] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    packing: list[str] = field(default_factory=list)
    lane_of: dict[str, str] = field(default_factory=dict)
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


@kept_with
def analyse(kernel: Kernel) -> Region:
    """The regions of a kernel: found once, for estimates and features.

    Perfectly nested parallel loops are put in the order in which a CPU runs work-items: dimension 0 innermost.
    """
    analysis = _Analysis(kernel)
    root = Region(lane_of=analysis.lane_of)
    analysis.body(kernel.body, (root,), {})
    return root


def _workers(kernel: Kernel) -> list[tuple[str, int, int]]:
    """The levels on which a kernel runs, from outside to inside, each with its dimension and how many there are."""
    whole, local = kernel.launch.global_size, kernel.launch.local_size or (1, 1, 1)
    kinds = {part.level.kind for part in c_walk.statements(kernel.body) if isinstance(part, c_ast.For)}
    found = [("glb", d, whole[d]) for d in (2, 1, 0)]
    if kinds & {"wrg", "lcl"}:
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
        self.written = frozenset(place.buffer.name for place in c_walk.stores(kernel.body))
        # of the indices in each region, which lives as long as the root
        self.known_moves: dict[int, dict[tuple[Terms, bool], tuple[int, tuple[float, ...], float, int]]] = {}
        self.lane_of: dict[str, str] = {}

    # --- statements -------------------------------------------------------------------------------

    def body(self, body: c_ast.Body, around: Regions, names: dict[str, c_ast.CExpr]) -> None:
        inside, alike, missing = around, list[tuple[str, int, int]](), self.missing(around)
        for statement in body:
            by_all = [] if not missing or _shares(statement) else missing
            if by_all != alike or not by_all:
                inside, alike = self.entered(by_all, around), by_all
            self.statement(statement, inside, names)

    def statement(self, statement: c_ast.Statement, around: Regions, names: dict[str, c_ast.CExpr]) -> None:
        match statement:
            case c_ast.For():
                self.loops(statement, around, names)
            case c_ast.If(_, body) | c_ast.Block(body):
                self.body(body, around, names)
            case c_ast.Let(name, value):
                names[name] = value
                self.value(value, around)
            case c_ast.Store(place, value):
                self.value(value, around)
                self.store(place, value, around, names)
            case c_ast.Barrier():
                around[-1].barriers += 1
            case c_ast.LookBack():
                self.value(statement.total, around)
                around[-1].barriers += statement.barriers
                around[-1].look_backs += 1

    def loops(self, loop: c_ast.For, around: Regions, names: dict[str, c_ast.CExpr]) -> None:
        nest = [loop]
        while loop.is_parallel and len(loop.body) == 1 and isinstance(inner := loop.body[0], c_ast.For):
            if inner.level.kind != loop.level.kind:
                break
            nest.append(inner)
            loop = inner
        for each in sorted(nest, key=lambda f: -f.level.dimension):
            around = self.enter(around, Loop(each.variable.name, each.expected, each.level.kind, each.level.dimension))
        self.body(loop.body, around, names)

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

    def store(self, place: c_ast.CExpr, value: c_ast.CExpr, around: Regions, names: dict[str, c_ast.CExpr]) -> None:
        whole = place.vector if isinstance(place, c_ast.Lane) else place
        assert isinstance(whole, c_ast.Load)
        if not _is_register(whole):
            self.access("store", whole, around)
            return
        register = _hold(whole, around[-1])
        if isinstance(value, c_ast.Lane):
            around[-1].packing.append(register)
        chain = _chain(value, whole, names, {})
        if chain is not None:
            around[-1].chains.setdefault(register, []).extend(chain)

    # --- expressions ------------------------------------------------------------------------------

    def value(self, value: c_ast.CExpr, around: Regions, fused: bool = False) -> None:
        region = around[-1]
        match value:
            case c_ast.Load():
                if _is_register(value):
                    _hold(value, region)
                else:
                    self.access("load", value, around)
            case c_ast.Operate(op, arguments, t):
                first = arguments[0].type
                width, element = max(width_of(t), width_of(first)), SCALAR_BYTES[scalar_of(first).name]
                if op == "dot":  # a product a lane, and their sum
                    region.operations += [Operated("mul", width, element), Operated("add", width - 1, element)]
                    region.shuffles += width
                else:
                    region.operations.append(Operated(op, width, element, fused))
                product = _product(value)
                for argument in arguments:
                    self.value(argument, around, argument is product)
            case c_ast.Pack(items, _) if (vectors := _exchanged(items)) is not None:
                region.shuffles += 1 if len(items) <= _ONE_SHUFFLE else _WIDE_SHUFFLE
                for vector in vectors:
                    self.value(vector, around)
            case c_ast.Pack(items, _):
                region.shuffles += len(items) if len(items) > 1 else 0
                region.packing += self.lanes(items)
                for item in items:
                    self.value(item, around)
            case c_ast.Choose(conditions, inside, outside):
                region.index_work += 1
                values = {loop.variable: loop.sample for loop in region.path}
                self.value(inside if all(evaluate(c, values) >= 0 for c in conditions) else outside, around)
            case c_ast.Lane(vector, _):
                region.shuffles += 1
                self.value(vector, around)
            case c_ast.IndexValue():
                region.index_work += 1

    def lanes(self, items: tuple[c_ast.CExpr, ...]) -> list[str]:
        """The private places that are the lanes of a vector, in their order; none if they are already another's."""
        places = [_register(i) for i in items if isinstance(i, c_ast.Load) and _is_register(i) and i.width == 1]
        if len(places) < len(items) or len({*places}) < 2:
            return []
        vector = " ".join(places)
        is_new = not any(place in self.lane_of for place in places)
        if not is_new and any(self.lane_of.get(place) != vector for place in places):
            return []
        self.lane_of |= dict.fromkeys(places, vector)
        return places

    def access(self, kind: Literal["load", "store"], load: c_ast.Load, around: Regions) -> None:
        """Record an access; a load that a sequential loop does not change is done before that loop."""
        buffer, data = load.buffer, c_walk.data_in(load.index)
        for v in data:
            self.value(v.value, around)
        moving, offset = apart(load.index.terms)
        may_wait = kind == "load" and buffer.space == "global" and buffer.name not in self.written and not data
        known = self.known_moves.setdefault(id(around[-1]), {})
        if (moving, may_wait) not in known:
            known[moving, may_wait] = _moves(Nat(moving), around[-1].path, may_wait)
        depth, strides, start, work = known[moving, may_wait]
        home, width = around[depth], load.width * width_of(buffer.element)
        home.accesses.append(
            Access(kind, buffer.name, buffer.space, _element_bytes(buffer), width, strides, start + offset, bool(data))
        )
        home.index_work += work


def _exchanged(items: tuple[c_ast.CExpr, ...]) -> tuple[c_ast.CExpr, ...] | None:
    """The two vectors whose lanes a vector is made of, by one shuffle; None if it is made of anything else."""
    lanes = [item for item in items if isinstance(item, c_ast.Lane) and item.lane.constant is not None]
    vectors = tuple(dict.fromkeys(lane.vector for lane in lanes))
    widths = {width_of(vector.type) for vector in vectors}
    return vectors if len(lanes) == len(items) and len(vectors) <= 2 and widths == {len(items)} else None


def _shares(statement: c_ast.Statement) -> bool:
    """Whether a statement, or one in it, shares its work out or makes workers wait."""
    if isinstance(statement, c_ast.Barrier | c_ast.LookBack):
        return True
    return any(isinstance(s, c_ast.For) and s.is_parallel for s in c_walk.statements(statement))


def _moves(index: Nat, path: tuple[Loop, ...], may_wait: bool) -> tuple[int, tuple[float, ...], float, int]:
    """In how many of the loops around an access it is, its strides and start there, and the operations of its index."""
    names = {v.name for v in index.variables}
    while may_wait and path and path[-1].kind == "seq" and path[-1].variable not in names:
        path = path[:-1]
    work = sum(isinstance(atom, Operation) for monomial, _ in index.terms for atom in monomial)
    return len(path), *_strides(index, path), work


def _strides(index: Nat, path: tuple[Loop, ...]) -> tuple[tuple[float, ...], float]:
    values = {loop.variable: loop.sample for loop in path}
    start = evaluate(index, values)
    names = {v.name for v in index.variables}
    strides = []
    for loop in path:
        stride = 0.0
        if loop.trips > 1 and loop.variable in names:
            stride = evaluate(index, {**values, loop.variable: loop.sample + 1}) - start
            if stride == 0:  # a division: what it moves on the average
                ends = [evaluate(index, {**values, loop.variable: i}) for i in (0, loop.trips - 1)]
                stride = (ends[1] - ends[0]) / (loop.trips - 1)
        strides.append(stride)
    return tuple(strides), start


def _element_bytes(buffer: c_ast.Buffer) -> int:
    return SCALAR_BYTES[scalar_of(buffer.element).name]


def _is_register(load: c_ast.Load) -> bool:
    return load.buffer.space == "private" and load.index.constant is not None


def _register(load: c_ast.Load) -> str:
    return f"{load.buffer.name}[{load.index.constant}]"


def _hold(load: c_ast.Load, region: Region) -> str:
    register = _register(load)
    region.held[register] = width_of(load.buffer.element) * _element_bytes(load.buffer)
    return register


def _product(value: c_ast.Operate) -> c_ast.CExpr | None:
    """The factor pair that a sum fuses with, for a multiply-add."""
    if value.op not in ("add", "sub"):
        return None
    return next((a for a in value.arguments if isinstance(a, c_ast.Operate) and a.op == "mul"), None)


def _chain(
    value: c_ast.CExpr, place: c_ast.Load, names: dict[str, c_ast.CExpr], seen: dict[str, list[str] | None]
) -> list[str] | None:
    """The operations from the old value of a place to its new value; None if it does not depend on it."""
    if isinstance(value, c_ast.Load):
        return [] if value.index == place.index and value.buffer == place.buffer else None
    if isinstance(value, c_ast.Name):
        if value.name not in seen:
            seen[value.name] = None
            if value.name in names:
                seen[value.name] = _chain(names[value.name], place, names, seen)
        return seen[value.name]
    if isinstance(value, c_ast.Operate):
        found = [c for a in value.arguments if (c := _chain(a, place, names, seen)) is not None]
        if not found:
            return None
        product, longest = _product(value), max(found, key=len)
        fuses = product is not None and _chain(product, place, names, seen) == longest
        return longest if fuses else [*longest, value.op]
    inner: tuple[c_ast.CExpr, ...] = ()
    if isinstance(value, c_ast.Pack):
        inner = value.items
    elif isinstance(value, c_ast.Lane):
        inner = (value.vector,)
    elif isinstance(value, c_ast.Choose):
        inner = (value.inside, value.outside)
    found = [c for a in inner if (c := _chain(a, place, names, seen)) is not None]
    return max(found, key=len) if found else None
