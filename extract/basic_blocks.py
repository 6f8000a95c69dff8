"""What a kernel's statements do wherever they run: its basic blocks, each read once for all who ask.

A body falls into basic blocks, of statements that run one after the other, and into statements that branch, repeat or
wait. The events of a kernel give a block a domain, the access analysis the loops around it; both ask a block the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lift_egraph.caching import kept_with
from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.c_ast import CExpr, Load
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.iteration_domain import Terms, apart
from lift_egraph.language.nat import Nat
from lift_egraph.language.types import SCALAR_BYTES, scalar_of, width_of

_ONE_SHUFFLE, _WIDE_SHUFFLE = 8, 3  # lanes that one instruction exchanges; instructions for 16 (PoCL, AVX-512)
_LAZY = ("select", "and", "or")  # whether arguments after the first are computed, data decides
_APART = (c_ast.For, c_ast.If, c_ast.Block, c_ast.Barrier, c_ast.LookBack, c_ast.SetIndex)  # stand in no basic block


class Operated(NamedTuple):
    """One arithmetic operation on `width` lanes; `fused`: the multiplication of a multiply-add."""

    op: str
    width: int
    element_bytes: int
    fused: bool = False


class Reached(NamedTuple):
    """A load or store of `width` adjacent elements in memory, which all is but private places with numbers.

    Attributes
    ----------
    moving, offset
        The index, and the number in it apart.
    irregular
        Whether the index depends on data.
    """

    kind: Literal["load", "store"]
    buffer: c_ast.Buffer
    moving: Nat
    offset: int
    width: int
    element_bytes: int
    irregular: bool


class Choice(NamedTuple):
    """One of two blocks, by index expressions that are 0 or more."""

    conditions: tuple[Nat, ...]
    inside: BasicBlock
    outside: BasicBlock


@dataclass
class BasicBlock:
    """Statements that run one after the other, and what they do.

    Attributes
    ----------
    operations, accesses
        In their order, with the choices among them.
    arithmetic
        How often an operation on so many lanes stands in the text.
    held
        Bytes of each private place with a number, by its name.
    shuffles
        Lanes that are put together one by one, and pairs of vectors that exchange some.
    indices
        Index expressions that are values.
    joined, parted
        The private places that are put together to a vector, each time; and those that a lane is stored to.
    chains
        For each private place that is updated from its own old value, the operations in between.
    repeated
        What the text says more often than it is done, or only indices need.
    lazy
        Whether data decides if some of it is done.
    """

    statements: list[c_ast.Statement] = field(default_factory=list)
    operations: list[Operated | Choice] = field(default_factory=list)
    accesses: list[Reached | Choice] = field(default_factory=list)
    arithmetic: Counter[tuple[str, int]] = field(default_factory=Counter)
    held: dict[str, int] = field(default_factory=dict)
    shuffles: int = 0
    indices: int = 0
    joined: list[list[str]] = field(default_factory=list)
    parted: list[str] = field(default_factory=list)
    chains: dict[str, list[str]] = field(default_factory=dict)
    repeated: BasicBlock | None = None
    lazy: bool = False


class Compound(NamedTuple):
    """A statement that stands in no basic block, with the parts of its body.

    `shares`: whether it, or one in it, shares its work out or makes workers wait.
    """

    statement: c_ast.Statement
    parts: Parts
    shares: bool


Parts = tuple[BasicBlock | Compound, ...]


class Blocks(NamedTuple):
    """The parts of a kernel's body, and what is known of all of them.

    Attributes
    ----------
    kinds
        Of the levels of its loops.
    written
        The buffers that it stores to.
    sets_lengths
        Whether it sets a variable on which lengths depend.
    """

    parts: Parts
    kinds: frozenset[str]
    written: frozenset[str]
    sets_lengths: bool


@kept_with
def blocks_of(kernel: Kernel) -> Blocks:
    """The basic blocks of a kernel: found once, for estimates and features."""
    return blocks_in(kernel.body)


def blocks_in(body: c_ast.Body) -> Blocks:
    """The basic blocks of statements."""
    reader = _Reader()
    return Blocks(reader.parts(body), frozenset(reader.kinds), frozenset(reader.written), reader.sets_lengths)


def block_of(statements: Iterable[c_ast.Statement]) -> BasicBlock:
    """The basic block of statements that neither branch, repeat nor wait."""
    reader = _Reader()
    for statement in statements:
        reader.straight(statement)
    return reader.block


class _Reader:
    """Reads statements in their order; `block` is what it adds to."""

    def __init__(self) -> None:
        self.block = BasicBlock()
        self.kinds, self.written, self.sets_lengths = set[str](), set[str](), False
        self.names: dict[str, CExpr] = {}
        # private places from which a name is computed, and those and the names that the present statement reads
        self.sources: dict[str, frozenset[str]] = {}
        self.read: list[str] = []
        self.named: list[str] = []
        self.moving: dict[Terms, Nat] = {}  # one for all that are equal

    # --- statements -------------------------------------------------------------------------------

    def parts(self, body: c_ast.Body) -> Parts:
        found: list[BasicBlock | Compound] = []
        for statement in body:
            if _is_straight(statement):
                if not found or not isinstance(found[-1], BasicBlock):
                    found.append(BasicBlock())
                self.block = found[-1]
                self.straight(statement)
            else:
                found.append(self.compound(statement))
        return tuple(found)

    def compound(self, statement: c_ast.Statement) -> Compound:
        self.sets_lengths |= isinstance(statement, c_ast.SetIndex)
        if not isinstance(statement, c_ast.For | c_ast.If | c_ast.Block):
            return Compound(statement, (), isinstance(statement, c_ast.Barrier | c_ast.LookBack))
        inside = self.parts(statement.body)
        compounds = (part for part in inside if isinstance(part, Compound))
        shares = any(c.shares and not isinstance(c.statement, c_ast.Barrier | c_ast.LookBack) for c in compounds)
        if isinstance(statement, c_ast.For):
            self.kinds.add(statement.level.kind)
            shares |= statement.is_parallel
        return Compound(statement, inside, shares)

    def straight(self, statement: c_ast.Statement) -> None:
        if isinstance(statement, c_ast.Block):
            for each in statement.body:
                self.straight(each)
            return
        self.block.statements.append(statement)
        if isinstance(statement, c_ast.Let | c_ast.Store):
            self.read, self.named = [], []
            self.value(statement.value)
            if isinstance(statement, c_ast.Let):
                self.names[statement.name] = statement.value
                self.sources[statement.name] = self.sources_of_read()
            else:
                self.store(statement.place, statement.value)

    def sources_of_read(self) -> frozenset[str]:
        own = frozenset(self.read)
        return own.union(*(self.sources.get(name, own) for name in self.named)) if self.named else own

    def store(self, place: CExpr, value: CExpr) -> None:
        whole = place.vector if isinstance(place, c_ast.Lane) else place
        assert isinstance(whole, Load)
        self.written.add(whole.buffer.name)
        if not _is_register(whole):
            self.access("store", whole)
            return
        sources = self.sources_of_read()
        register = self.hold(whole)
        if type(value) is c_ast.Lane:
            self.block.parted.append(register)
        if register in sources and (chain := self.chain(value, whole, register, {})) is not None:
            self.block.chains.setdefault(register, []).extend(chain)

    def chain(self, value: CExpr, place: Load, register: str, seen: dict[str, list[str] | None]) -> list[str] | None:
        """The operations from the old value of a place to its new value; None if it does not depend on it."""
        kind = type(value)
        if kind is Load:
            is_own = value.index.constant == place.index.constant and value.buffer == place.buffer
            return [] if is_own else None
        if kind is c_ast.Name:
            name = value.name
            if name not in seen:
                seen[name] = None
                if register in self.sources.get(name, ()):
                    seen[name] = self.chain(self.names[name], place, register, seen)
            return seen[name]
        if kind is c_ast.Operate:
            product, longest, of_product = _product(value), None, None
            for argument in value.arguments:
                found = self.chain(argument, place, register, seen)
                if argument is product:
                    of_product = found
                if found is not None and (longest is None or len(found) > len(longest)):
                    longest = found
            return longest if longest is None or of_product == longest else [*longest, value.op]
        inner: tuple[CExpr, ...] = ()
        if kind is c_ast.Pack:
            inner = value.items
        elif kind is c_ast.Lane:
            inner = (value.vector,)
        elif kind is c_ast.Choose:
            inner = (value.inside, value.outside)
        found = [c for a in inner if (c := self.chain(a, place, register, seen)) is not None]
        return max(found, key=len) if found else None

    # --- expressions ------------------------------------------------------------------------------

    def value(self, value: CExpr, fused: bool = False) -> None:
        kind = type(value)
        if kind is Load:
            if _is_register(value):
                self.read.append(self.hold(value))
            else:
                self.access("load", value)
        elif kind is c_ast.Name:
            self.named.append(value.name)
        elif kind is c_ast.Lane:
            self.block.shuffles += 1
            self.value(value.vector)
        elif kind is c_ast.Operate:
            self.operate(value, fused)
        elif kind is c_ast.Pack:
            self.pack(value.items)
        elif kind is c_ast.Choose:
            self.choose(value)
        elif kind is c_ast.IndexValue:
            self.block.indices += 1
            self.again(data.value for data in c_walk.data_in(value.value))

    def operate(self, value: c_ast.Operate, fused: bool) -> None:
        op, arguments, block = value.op, value.arguments, self.block
        own, first, widths = width_of(value.type), arguments[0], [*map(_width, arguments)]
        width, element = max(own, widths[0]), _element_bytes(first.buffer if type(first) is Load else first)
        block.arithmetic[op, max(own, *widths)] += 1
        if op == "dot":  # a product a lane, and their sum
            block.operations += [Operated("mul", width, element), Operated("add", width - 1, element)]
            block.shuffles += width
        else:
            block.operations.append(Operated(op, width, element, fused))
        product = _product(value)
        for argument in arguments:
            self.value(argument, argument is product)
        if op in _LAZY:
            block.lazy |= any(load.buffer.space != "private" for a in arguments[1:] for load in c_walk.loads(a))

    def pack(self, items: tuple[CExpr, ...]) -> None:
        block = self.block
        if vectors := _exchanged(items):
            block.shuffles += 1 if len(items) <= _ONE_SHUFFLE else _WIDE_SHUFFLE
            for vector in vectors:
                self.value(vector)
            if any(type(vector) is not c_ast.Name for vector in vectors):
                rest = [item.vector for item in items if isinstance(item, c_ast.Lane)]
                for vector in vectors:
                    rest.remove(vector)
                self.again(rest)
            return
        block.shuffles += len(items) if len(items) > 1 else 0
        places = [_register(i) for i in items if type(i) is Load and i.width == 1 and _is_register(i)]
        if len(places) == len(items) and len({*places}) > 1:
            block.joined.append(places)
        for item in items:
            self.value(item)

    def choose(self, value: c_ast.Choose) -> None:
        block = self.block
        inside = self.block = BasicBlock()
        self.value(value.inside)
        outside = self.block = BasicBlock()
        self.value(value.outside)
        self.block = block
        choice = Choice(value.conditions, inside, outside)
        block.accesses.append(choice)
        block.operations.append(choice)

    def again(self, values: Iterable[CExpr]) -> None:
        """Values that count in the text alone."""
        block = self.block
        for value in values:
            block.repeated = self.block = block.repeated or BasicBlock()
            self.value(value)
        self.block = block

    def access(self, kind: Literal["load", "store"], load: Load) -> None:
        data = c_walk.data_in(load.index)
        for each in data:
            self.value(each.value)
        terms, offset = apart(load.index.terms)
        if (moving := self.moving.get(terms)) is None:
            moving = self.moving[terms] = Nat(terms)
        buffer = load.buffer
        width, size = load.width * width_of(buffer.element), _element_bytes(buffer)
        self.block.accesses.append(Reached(kind, buffer, moving, offset, width, size, bool(data)))

    def hold(self, load: Load) -> str:
        register, held = _register(load), self.block.held
        if register not in held:
            held[register] = width_of(load.buffer.element) * _element_bytes(load.buffer)
        return register


def _is_straight(statement: c_ast.Statement) -> bool:
    if type(statement) is c_ast.Block:
        return all(map(_is_straight, statement.body))
    return not isinstance(statement, _APART)


def _exchanged(items: tuple[CExpr, ...]) -> list[CExpr]:
    """The two vectors whose lanes a vector is made of, by one shuffle; none if it is made of anything else."""
    vectors: list[CExpr] = []
    for item in items:
        if type(item) is not c_ast.Lane or item.lane.constant is None:
            return []
        if item.vector not in vectors:
            if len(vectors) == 2 or _width(item.vector) != len(items):
                return []
            vectors.append(item.vector)
    return vectors


def _width(value: CExpr) -> int:
    if type(value) is not Load:
        return width_of(value.type)
    return value.width if value.width > 1 else width_of(value.buffer.element)


def _element_bytes(value: CExpr | c_ast.Buffer) -> int:
    return SCALAR_BYTES[scalar_of(value.element if isinstance(value, c_ast.Buffer) else value.type).name]


def _is_register(load: Load) -> bool:
    return load.buffer.space == "private" and load.index.constant is not None


def _register(load: Load) -> str:
    return f"{load.buffer.name}[{load.index.constant}]"


def _product(value: c_ast.Operate) -> CExpr | None:
    """The factor pair that a sum fuses with, for a multiply-add."""
    if value.op not in ("add", "sub"):
        return None
    return next((a for a in value.arguments if isinstance(a, c_ast.Operate) and a.op == "mul"), None)
