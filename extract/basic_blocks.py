"""What a kernel's statements do wherever they run: its basic blocks, each read once for all who ask.

A body falls into basic blocks, of statements that run one after the other, and into statements that branch, repeat or
wait. The events of a kernel give a block a domain, the access analysis the loops around it; both ask a block the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from lift_egraph.caching import kept_with
from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.c_ast import CExpr, Load
from lift_egraph.codegen.plans.kernel import Kernel
from lift_egraph.extract.index_values import Known, conditions_of, index_of
from lift_egraph.extract.iteration_domain import Terms, apart
from lift_egraph.language.nat import Nat
from lift_egraph.language.types import SCALAR_BYTES, Vector, scalar_of, width_of

_ONE_SHUFFLE, _WIDE_SHUFFLE = 8, 3  # lanes that one instruction exchanges; instructions for 16 (PoCL, AVX-512)
_WORD = 4  # bytes that work-items pass on at once
_LAZY = ("select", "and", "or")  # whether arguments after the first are computed, data decides
_FUSING = ("add", "sub")  # with a product
_NO_CHAINS: Mapping[str, tuple[str, ...]] = {}
_APART = {c_ast.For, c_ast.If, c_ast.Block, c_ast.Barrier, c_ast.LookBack, c_ast.SetIndex}  # stand in no basic block


class Operated(NamedTuple):
    """One arithmetic operation on `width` lanes; `fused`: the multiplication of a multiply-add."""

    op: str
    width: int
    element_bytes: int
    fused: bool = False


@dataclass(frozen=True, eq=False)  # one for all operations of a kernel that are alike
class Arithmetic:
    """An operation of the text on some lanes, what it is made of, and the lanes that it puts together one by one."""

    op: str
    lanes: int
    parts: tuple[Operated, ...]
    shuffles: int = 0


@dataclass(frozen=True, eq=False)  # one for all accesses of a kernel that are alike
class Reached:
    """Loads or stores of `width` adjacent elements in memory, which all is but private places with numbers.

    Attributes
    ----------
    moving
        The index without the number in it, by which those alike differ.
    irregular
        Whether the index depends on data.
    """

    kind: Literal["load", "store"]
    buffer: c_ast.Buffer
    moving: Nat
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
    operations
        How often each is done.
    accesses
        In their order, with the numbers in their indices, and among them the choices.
    held
        The buffers of private places with a number, by the names of these places.
    stored, read
        How often the text stores to each of them, and reads it.
    shuffles
        Lanes that are put together one by one, and pairs of vectors that exchange some.
    passed
        Words that work-items of a sub-group pass on.
    indices
        Index expressions that are values.
    joined, parted
        The private places that are put together to a vector, each time; and those that a lane is stored to.
    chains
        For each private place that is updated from its own old value, the operations in between.
    rewritten
        The index of each of these that is an array's element.
    begun
        The private places with a number whose first value here does not come from before.
    repeated
        What the text says more often than it is done, or only indices need.
    lazy
        Whether data decides if some of it is done.
    """

    statements: list[c_ast.Statement] = field(default_factory=list)
    operations: Counter[Arithmetic] = field(default_factory=Counter)
    accesses: list[tuple[Reached, int] | Choice] = field(default_factory=list)
    held: dict[str, c_ast.Buffer] = field(default_factory=dict)
    stored: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    shuffles: int = 0
    passed: int = 0
    indices: int = 0
    joined: list[list[str]] = field(default_factory=list)
    parted: list[str] = field(default_factory=list)
    chains: dict[str, list[str]] = field(default_factory=dict)
    rewritten: dict[str, Nat] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    repeated: BasicBlock | None = None
    lazy: bool = False


class Compound(NamedTuple):
    """A statement that stands in no basic block, with the parts of its body.

    `shares`: whether it makes workers wait, or it, or one in it, shares its work out.
    """

    statement: c_ast.Statement
    parts: Parts
    shares: bool


Parts = tuple[BasicBlock | Compound, ...]

Chains = Mapping[str, tuple[str, ...]]
"""The operations from the old value of each private place that a value depends on to that value: the longest way."""


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


def block_of(statements: Iterable[c_ast.Statement], known: Known | None = None) -> BasicBlock:
    """The basic block of statements that neither branch, repeat nor wait.

    Parameters
    ----------
    known
        Constants that they may name.
    """
    reader = _Reader()
    reader.known |= known or {}
    for statement in statements:
        reader.straight(statement)
    return reader.block


class _Reader:
    """Reads statements in their order; `block` is what it adds to."""

    def __init__(self) -> None:
        self.block = BasicBlock()
        self.kinds, self.written, self.sets_lengths = set[str](), set[str](), False
        self.chains: dict[str, Chains] = {}  # of named values
        self.known: dict[str, Nat] = {}  # those of them that only indices decide
        self.arithmetic: dict[tuple[object, ...], Arithmetic] = {}  # one for all that are alike
        self.reached: dict[tuple[object, ...], Reached] = {}

    # --- statements -------------------------------------------------------------------------------

    def parts(self, body: c_ast.Body) -> Parts:
        found: list[BasicBlock | Compound] = []
        for statement in body:
            if type(statement) in _APART and not _is_straight(statement):
                found.append(self.compound(statement))
                continue
            if not found or self.block is not found[-1]:
                self.block = BasicBlock()
                found.append(self.block)
            self.straight(statement)
        return tuple(found)

    def compound(self, statement: c_ast.Statement) -> Compound:
        self.sets_lengths |= isinstance(statement, c_ast.SetIndex)
        if not isinstance(statement, c_ast.AROUND):
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
        if isinstance(statement, c_ast.Store):
            self.store(statement.place, statement.value)
        elif isinstance(statement, c_ast.Let):
            self.chains[statement.name] = self.value(statement.value)
            if (index := index_of(statement.value, self.known)) is not None:
                self.known[statement.name] = index

    def store(self, place: CExpr, value: CExpr) -> None:
        chains = self.value(value)
        whole = place.vector if isinstance(place, c_ast.Lane) else place
        assert isinstance(whole, Load)
        self.written.add(whole.buffer.name)
        block, register = self.block, self.register(whole)
        if register is None:
            self.access("store", whole)
            if (element := _element(whole)) in chains:
                block.chains.setdefault(element, []).extend(chains[element])
                block.rewritten[element] = whole.index
            return
        if not (block.stored[register] or block.read[register] or isinstance(place, c_ast.Lane)):
            block.begun.add(register)
        block.stored[register] += 1
        if isinstance(value, c_ast.Lane):
            block.parted.append(register)
        if register in chains:
            block.chains.setdefault(register, []).extend(chains[register])

    # --- expressions ------------------------------------------------------------------------------

    def value(self, value: CExpr, fused: bool = False) -> Chains:
        """Read a value; its chains."""
        if isinstance(value, Load):
            if (register := self.register(value)) is not None:
                self.block.read[register] += 1
                return {register: ()}
            self.access("load", value)
            if value.buffer.space == "private":
                return {_element(value): ()}
        elif isinstance(value, c_ast.Name):
            return self.chains.get(value.name, _NO_CHAINS)
        elif isinstance(value, c_ast.Lane):
            self.block.shuffles += 1
            return self.value(value.vector)
        elif isinstance(value, c_ast.Operate):
            return self.operate(value, fused)
        elif isinstance(value, c_ast.Pack):
            return self.pack(value.items)
        elif isinstance(value, c_ast.Passed):
            self.block.passed += max(SCALAR_BYTES[scalar_of(value.type).name] // _WORD, 1)
            return self.value(value.value)
        elif isinstance(value, c_ast.Choose):
            return self.choose(value.conditions, value.inside, value.outside)
        elif isinstance(value, c_ast.IndexValue):
            self.block.indices += 1
            self.again(data.value for data in c_walk.data_in(value.value))
        return _NO_CHAINS

    def register(self, place: Load) -> str | None:
        """The name of a private place with a number, which is held; None if it is in memory."""
        buffer = place.buffer
        if buffer.space != "private" or (number := place.index.constant) is None:
            return None
        register = f"{buffer.name}[{number}]"
        self.block.held[register] = buffer
        return register

    def operate(self, value: c_ast.Operate, fused: bool) -> Chains:
        op, block = value.op, self.block
        key = op, fused, width_of(value.type), *map(_lanes, value.arguments)
        if (arithmetic := self.arithmetic.get(key)) is None:
            arithmetic = self.arithmetic[key] = _arithmetic(*key)
        block.operations[arithmetic] += 1
        if arithmetic.shuffles:
            block.shuffles += arithmetic.shuffles
        if op == "select" and width_of(value.type) == 1 and (branches := self.branches(value)) is not None:
            chains = _longest(self.value(value.arguments[0]), self.choose(*branches))
            return {p: (*chain, op) for p, chain in chains.items()}
        found = of_product = _NO_CHAINS
        product, fuses = None, op in _FUSING
        for argument in value.arguments:
            if fuses and product is None and type(argument) is c_ast.Operate and argument.op == "mul":
                product = argument
            chains = self.value(argument, argument is product)
            if chains:
                found = _longest(found, chains) if found else chains
                if argument is product:
                    of_product = chains
        if op in _LAZY:
            lazy = (load for argument in value.arguments[1:] for load in c_walk.loads(argument))
            block.lazy |= any(load.buffer.space != "private" for load in lazy)
        if not found:
            return found
        return {p: chain if of_product.get(p) == chain else (*chain, op) for p, chain in found.items()}

    def pack(self, items: tuple[CExpr, ...]) -> Chains:
        block, found = self.block, _NO_CHAINS
        if vectors := _exchanged(items):
            block.shuffles += 1 if len(items) <= _ONE_SHUFFLE else _WIDE_SHUFFLE
            for vector in vectors:
                found = _longest(found, self.value(vector))
            if any(type(vector) is not c_ast.Name for vector in vectors):
                rest = [item.vector for item in items if isinstance(item, c_ast.Lane)]
                for vector in vectors:
                    rest.remove(vector)
                self.again(rest)
            return found
        block.shuffles += len(items) if len(items) > 1 else 0
        places = [r for i in items if type(i) is Load and i.width == 1 and (r := self.register(i)) is not None]
        if len(places) == len(items) and len({*places}) > 1:
            block.joined.append(places)
        for item in items:
            found = _longest(found, self.value(item))
        return found

    def branches(self, select: c_ast.Operate) -> tuple[tuple[Nat, ...], CExpr, CExpr] | None:
        """Conditions on indices, and what a value is that reads memory where they hold, and elsewhere."""
        condition, first, second = select.arguments
        if not any(load.buffer.space != "private" for value in (first, second) for load in c_walk.loads(value)):
            return None
        if (conditions := conditions_of(condition, self.known)) is not None:
            return conditions, first, second
        conditions = conditions_of(condition, self.known, holds=False)
        return None if conditions is None else (conditions, second, first)

    def choose(self, conditions: tuple[Nat, ...], inside: CExpr, outside: CExpr) -> Chains:
        block = self.block
        where = self.block = BasicBlock()
        found = self.value(inside)
        elsewhere = self.block = BasicBlock()
        found = _longest(found, self.value(outside))
        self.block = block
        block.accesses.append(Choice(conditions, where, elsewhere))
        return found

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
        buffer, width = load.buffer, load.width * width_of(load.buffer.element)
        key = kind, id(buffer), width, terms, bool(data)
        if (reached := self.reached.get(key)) is None:
            reached = Reached(kind, buffer, _moving(terms), width, element_bytes(buffer), bool(data))
            self.reached[key] = reached
        self.block.accesses.append((reached, offset))


def _element(place: Load) -> str:
    """The name of an array's element."""
    return f"{place.buffer.name}[{place.index}]"


def _arithmetic(op: str, fused: bool, own: int, *arguments: tuple[int, str]) -> Arithmetic:
    """An operation by the width of its result, and the widths and scalar types of its arguments."""
    first, element = arguments[0]
    width = max(own, first)
    size, lanes = SCALAR_BYTES[element], max(own, *(lanes for lanes, _ in arguments))
    if op == "dot":  # a product a lane, and their sum
        return Arithmetic(op, lanes, (Operated("mul", width, size), Operated("add", width - 1, size)), width)
    return Arithmetic(op, lanes, (Operated(op, width, size, fused),))


def _longest(one: Chains, other: Chains) -> Chains:
    if not other or one is other:
        return one
    if not one:
        return other
    longest = dict(one)
    for place, chain in other.items():
        if place not in longest or len(chain) > len(longest[place]):
            longest[place] = chain
    return longest


@lru_cache(1 << 12)
def _moving(terms: Terms) -> Nat:
    """One index for all that are equal, whose hash is known."""
    return Nat(terms)


def _is_straight(statement: c_ast.Statement) -> bool:
    if type(statement) is c_ast.Block:
        return all(map(_is_straight, statement.body))
    return type(statement) not in _APART


def _exchanged(items: tuple[CExpr, ...]) -> list[CExpr]:
    """The two vectors whose lanes a vector is made of, by one shuffle; none if it is made of anything else."""
    vectors: dict[CExpr | str, CExpr] = {}
    for item in items:
        if type(item) is not c_ast.Lane or item.lane.constant is None:
            return []
        vector = item.vector
        vectors.setdefault(vector.name if type(vector) is c_ast.Name else vector, vector)
    are_whole = all(_lanes(vector)[0] == len(items) for vector in vectors.values())
    return [*vectors.values()] if are_whole and len(vectors) <= 2 else []


def _lanes(value: CExpr) -> tuple[int, str]:
    """How many lanes a value has, and of which scalar type."""
    if isinstance(value, Load):
        t, width = value.buffer.element, value.width
    else:
        t, width = value.type, 1
    if isinstance(t, Vector):
        return (width if width > 1 else t.width), t.scalar.name
    return width, t.name


def element_bytes(buffer: c_ast.Buffer) -> int:
    """Of a lane, where elements are vectors."""
    return SCALAR_BYTES[scalar_of(buffer.element).name]
