"""The C-like tree between lowering and printing; the analytical cost model reads it too.

Indices stay `Nat` expressions, so loops can be unrolled and conditions decided by substitution.
A scalar variable is a private buffer of one element; a private array becomes named variables
once all its indices are numbers. A `Load` doubles as the place that a `Store` writes to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt, prod
from typing import Any, Union

from lift_egraph.caching import cached_property, hashed_once
from lift_egraph.language.ir import SEQ, Expr, Level
from lift_egraph.language.nat import Nat, NatVar, maximum, minimum, nat
from lift_egraph.language.types import I32, SCALAR_BYTES, Scalar, Vector, scalar_of, width_of

LeafType = Union[Scalar, Vector]


LONG_ARRAY = 2048  # bytes from which a private array is in no device's registers
FEW_SEEN = 8  # states of groups that one work-item combines
MOST_VARIABLES = 64  # elements of a private array that a CPU keeps in registers at the most


# by `lift_egraph.codegen.c_walk`
_FOUND = ("_children", "_mentioned", "_walk", "_loads", "_stores", "_names", "_buffers", "_functions", "_waits")


class _Node:
    """What is found once per node is kept with it, and stays in this process."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _FOUND}


@hashed_once
@dataclass(frozen=True)
class Buffer:
    """Memory for one scalar leaf of a value.

    `element` is a scalar, except in private memory, where it may be a vector. `shape` gives the
    length of each dimension (empty: one element); in global memory it may be an expression of open
    sizes. `targets` names the buffers that a pointer may point to. `mutable` is False for the inputs
    of the program. `tiles` says how those of a loop follow each other in local memory, by its name in
    `lift_egraph.language.ir.TILE_SPACES`. `origin` is the LIFT subterm whose value it holds.
    """

    name: str
    space: str
    element: LeafType
    shape: tuple[int | Nat, ...] = ()
    mutable: bool = True
    targets: tuple[str, ...] = ()
    tiles: str | None = None
    origin: Expr | None = field(default=None, compare=False, repr=False)

    @cached_property
    def length(self) -> int:
        """The number of elements.

        Raises
        ------
        SizeProblem
            If that depends on an open size.
        """
        return self.elements.evaluate({})

    @cached_property
    def elements(self) -> Nat:
        """The number of elements as an expression of the open sizes."""
        return prod((nat(n) for n in self.shape), start=nat(1))

    @property
    def bytes(self) -> int:
        """The size in bytes, for one work-group (local) or one work-item (private)."""
        return self.length * SCALAR_BYTES[scalar_of(self.element).name] * width_of(self.element)

    @property
    def is_long(self) -> bool:
        """Whether it is a private array that no registers hold."""
        return self.space == "private" and bool(self.shape) and self.bytes > LONG_ARRAY

    @property
    def has_many(self) -> bool:
        """Whether it is a private array of more elements than a CPU has registers for."""
        return self.is_long or (self.space == "private" and bool(self.shape) and self.length > MOST_VARIABLES)


# --- expressions ----------------------------------------------------------------------------------


class CExpr(_Node):
    """A value; `type` is a scalar or vector type (bool vectors are int masks of 0 and -1)."""

    type: LeafType


@dataclass(frozen=True)  # a constant variable or a by-value argument
class Name(CExpr):
    name: str
    type: LeafType


@dataclass(frozen=True)
class Const(CExpr):
    value: float | int | bool
    type: LeafType


@dataclass(frozen=True)  # an index expression used as an i32 value
class IndexValue(CExpr):
    value: Nat
    type: LeafType = I32


@dataclass(frozen=True)  # `width` adjacent elements of a buffer from `index` on, as a scalar or a vector
class Load(CExpr):
    buffer: Buffer
    index: Nat
    width: int = 1

    @property
    def type(self) -> LeafType:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.width > 1:
            return Vector(scalar_of(self.buffer.element), self.width)
        return self.buffer.element


@dataclass(frozen=True)  # one component of a vector value (use `lane_of` to build one)
class Lane(CExpr):
    vector: CExpr
    lane: Nat

    @property
    def type(self) -> LeafType:  # pyright: ignore[reportIncompatibleVariableOverride]
        return scalar_of(self.vector.type)


@dataclass(frozen=True)  # a vector of given components; a single component is broadcast to all lanes
class Pack(CExpr):
    items: tuple[CExpr, ...]
    type: LeafType


@dataclass(frozen=True)
class Operate(CExpr):
    """A scalar operation of `lift_egraph.language.scalar` by its LIFT name; scalar arguments beside vectors are
    broadcast.
    """

    op: str
    arguments: tuple[CExpr, ...]
    type: LeafType


@dataclass(frozen=True)
class Choose(CExpr):
    """`inside` where all conditions (each an index expression, true when >= 0) hold, else `outside`; only
    the chosen one is evaluated.
    """

    conditions: tuple[Nat, ...]
    inside: CExpr
    outside: CExpr

    @property
    def type(self) -> LeafType:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inside.type if width_of(self.inside.type) > 1 else self.outside.type


@dataclass(frozen=True)  # what the work-item so many places on in its sub-group has, or its first: all take part
class Passed(CExpr):
    value: CExpr
    by: int | None

    @property
    def type(self) -> LeafType:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.value.type


@dataclass(frozen=True)  # the place of elements that are computed and not kept
class Nowhere(CExpr):
    type: Scalar  # pyright: ignore[reportIncompatibleVariableOverride]


@dataclass(frozen=True)
class Computed(NatVar):
    """An index that the kernel reads from data; its name is the text of its value, so equals are equal.

    It is kept in its range, unless it `is_known` to lie there.
    """

    value: CExpr = field(default=IndexValue(nat(0)))
    is_known: bool = False

    def of(self, value: CExpr) -> Nat:
        """The index with another value."""
        return nat(replace(self, name=f"<{value!r}>", value=value))


@dataclass(frozen=True)  # the variable of a loop that counts in multiples of `step`
class SteppedVar(NatVar):
    step: int = 1


@dataclass(frozen=True)  # a constant of a kernel that stands for a part of its indices
class SharedVar(NatVar):
    value: Nat = field(default=nat(0))


def computed_index(value: CExpr, size: Nat) -> Nat:
    """The index ``clamp(value, 0, size - 1)``, an atom of index expressions where the size is a number."""
    if size.constant is None:
        return minimum(maximum(nat(Computed(f"<{value!r}>", None, None, value)), 0), size - 1)
    return nat(Computed(f"<{value!r}>", 0, (size - 1).range[1], value))


def any_index(name: Name) -> Nat:
    """A constant variable of the kernel as a number of which nothing is known."""
    return nat(Computed(f"<{name!r}>?", None, None, name))


def known_index(name: Name, most: Nat) -> Nat:
    """A constant variable of the kernel, from 0 to `most`, in index expressions."""
    high = most.range[1]
    return nat(Computed(f"<{name!r}>", 0, high, name, True, below=most + 1 if high is None else None))


def lane_of(vector: CExpr, lane: Nat) -> CExpr:
    """One lane of a value: itself for a scalar, a narrower load for a load from addressable memory."""
    if isinstance(vector.type, Scalar):
        return vector
    if isinstance(vector, Load) and vector.width > 1:
        return Load(vector.buffer, vector.index + lane)
    number = lane.constant
    if isinstance(vector, Pack) and (number is not None or len(vector.items) == 1):
        return vector.items[0] if len(vector.items) == 1 else vector.items[number or 0]
    return Lane(vector, lane)


# --- statements -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement(_Node):
    """One step of a kernel; `origin` is the LIFT subterm that it computes a part of."""

    origin: Expr | None = field(default=None, compare=False, repr=False, kw_only=True)


Body = tuple[Statement, ...]


@dataclass(frozen=True)  # `const type name = value`
class Let(Statement):
    name: str
    value: CExpr


@dataclass(frozen=True)  # two constants at once: the sine and the cosine of a value
class SinCos(Statement):
    sine: str
    cosine: str
    value: CExpr


@dataclass(frozen=True)  # declares a private buffer, alive to the end of the block
class Allocate(Statement):
    buffer: Buffer


# writes a value to `place`: a scalar or vector `Load`, or a `Lane` of a private vector; `streamed`: around the caches;
# `by`: combined with what is there by this operation, in one step that no other work-item interrupts
@dataclass(frozen=True)
class Store(Statement):
    place: CExpr
    value: CExpr
    streamed: bool = False
    by: str = ""


@dataclass(frozen=True)
class For(Statement):
    """Runs `body` for each index below `count`.

    For a parallel `level` the indices are shared out among `threads` work-items or work-groups (None:
    as many as the launch says); a sequential loop has ``threads == 1``. `variable` knows its range.
    `pragma` asks the device's compiler to unroll. The variable counts in multiples of `step`, up to
    ``count * step``. Where data says how many steps there are, `likely` is a guess. With a `ticket`, a counter in
    global memory and a place in local memory, groups take their indices from the counter as they start.
    """

    variable: NatVar
    count: Nat
    level: Level
    threads: int | None
    body: Body
    pragma: bool = False
    step: int = 1
    likely: int | None = None
    ticket: tuple[CExpr, ...] = ()

    @property
    def expected(self) -> int:
        """The number of indices, as far as that is known."""
        return self.most if self.likely is None else self.likely

    @property
    def is_parallel(self) -> bool:
        return self.level != SEQ

    @cached_property
    def most(self) -> int:
        """An upper bound of the number of indices."""
        high = self.count.range[1]
        return high if high is not None else (1 << 31) - 1

    @property
    def trips(self) -> int:
        """How often one work-item (or group) runs the body, at most."""
        return -(-self.most // (self.threads or 1))


@dataclass(frozen=True)  # runs `body` where all conditions are >= 0
class If(Statement):
    conditions: tuple[Nat, ...]
    body: Body


@dataclass(frozen=True)  # statements with a scope of their own: one step of an unrolled loop
class Block(Statement):
    body: Body


AROUND = (For, If, Block)  # those with statements in them


@dataclass(frozen=True)  # all work-items of a group wait; `spaces` of `local`, `global` become visible
class Barrier(Statement):
    spaces: tuple[str, ...]


@dataclass(frozen=True)
class LookBack(Statement):
    """A group publishes its total, and adds up those of all groups before it, or reads what one of them has added up.

    All work-items of the group take part, and afterwards all of them see the result.

    Attributes
    ----------
    states
        Where those of the groups begin, each a flag and a value for each of its words.
    group, width
        The number of the group, and at how many groups before it looks at once.
    total, initial
        What it adds, and what stands before all groups: the scalars of each.
    operands, combine
        Private variables: the scalars of the two operands, and of the result of the statements that combine them.
    seen, left, offset
        Local memory: for the states seen, for how many groups are not seen, and for what stands before the group.
    names
        Free names: of the states, those seen, and of variables.
    own, near, far
        Free names: of each scalar of the total, and of each word of two states.
    """

    states: CExpr
    group: Nat
    width: int
    total: tuple[CExpr, ...]
    initial: tuple[CExpr, ...]
    operands: tuple[CExpr, ...]
    combine: Body
    seen: CExpr
    left: CExpr
    offset: tuple[CExpr, ...]
    names: tuple[str, ...]
    own: tuple[str, ...]
    near: tuple[str, ...]
    far: tuple[str, ...]

    @property
    def barriers(self) -> int:
        """How many a group passes, if what it looks for is among the first that it sees."""
        return 3 + (self.parts > 1)

    @property
    def parts(self) -> int:
        """How many work-items combine what is seen, before one combines what they have; 1 for one alone."""
        return 1 if self.width <= FEW_SEEN else next(n for n in range(isqrt(self.width), 0, -1) if self.width % n == 0)


@dataclass(frozen=True)  # an integer variable that changes: declared or assigned
class SetIndex(Statement):
    variable: NatVar
    value: Nat
    declare: bool


@dataclass(frozen=True)  # an integer constant: a part that several indices share
class LetIndex(Statement):
    variable: SharedVar
    value: Nat


@dataclass(frozen=True)
class _DoubleBuffered(Statement):
    read: Buffer
    write: Buffer
    first: Buffer
    second: Buffer


class Point(_DoubleBuffered):
    """Declares the pointers of a double-buffered iteration: one to read from, one to write to."""


class Swap(_DoubleBuffered):
    """Exchanges the roles of the two buffers of a double-buffered iteration."""
