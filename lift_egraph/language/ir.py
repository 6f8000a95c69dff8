"""Every node of the language on one screen, with its type.

Terms are immutable and carry the type of each binder, so the type of any term follows bottom-up
(`lift_egraph.language.check.type_of`). The line above a pattern is its signature (`lift_egraph.language.signature`),
from which all who know patterns get what it is; parameters are the fields. Low-level patterns mean the same as the
plain pattern on values; they say where and how it is computed.

Source: 000 §2.4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from math import copysign
from operator import is_not
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, Union, dataclass_transform

from lift_egraph.caching import field_names, hashed_once
from lift_egraph.errors import TypeProblem
from lift_egraph.language.nat import Nat
from lift_egraph.language.ranges import Values
from lift_egraph.language.signature import Signature
from lift_egraph.language.types import DataType, Scalar

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def node(cls: type[T]) -> type[T]:
    """A frozen dataclass whose hash is computed once; a term is compared with no number."""
    made = hashed_once(dataclass(frozen=True)(cls))
    if issubclass(made, Expr):
        made.__eq__ = _told_from_numbers(made.__eq__)
    return made


def _told_from_numbers(same: Callable[[Any, object], Any]) -> Callable[[Any, object], Any]:
    """The equality of terms that refuses numbers: ``1.0 if x == 0.0 else x`` would be x alone.

    Raises
    ------
    TypeProblem
        By what is returned, for a number.
    """

    def equal(term: Any, other: object) -> Any:
        if isinstance(other, int | float):
            hint = f"use equal(a, b) and not_equal(a, b), here with {other!r}, and select"
            raise TypeProblem(f"Python's == and != say whether terms are written alike; {hint}")
        return same(term, other)

    return equal


@dataclass_transform(frozen_default=True)
def pattern(name: str, line: str, where: str = "") -> Callable[[type[T]], type[T]]:
    """A node with a signature."""

    def make(cls: type[T]) -> type[T]:
        made = node(cls)
        made.signature = Signature(name, line, where)  # type: ignore[attr-defined]
        return made

    return make


class Expr:
    """A term that denotes a value; Python's operators on it are in `lift_egraph.language.operators`."""

    if TYPE_CHECKING:

        def _with(self, other: Any) -> Call: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _with
        __mod__ = __rmod__ = __pow__ = __rpow__ = __lt__ = __le__ = __gt__ = __ge__ = _with
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _with
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _with

        def __neg__(self) -> Call: ...
        def __abs__(self) -> Call: ...
        def __invert__(self) -> Call: ...
        def __bool__(self) -> NoReturn: ...  # where it may be None: `is None`
        def __getitem__(self, index: Any, /) -> Expr: ...

        def __iter__(self) -> Iterator[Expr]: ...
        def __len__(self) -> int: ...
        def __getattr__(self, name: str) -> Any: ...
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any: ...
        def __array_function__(self, function: Any, *rest: Any) -> Any: ...

    signature: ClassVar[Signature]  # of the nodes in `SIGNED`


@node  # x : t
class Var(Expr):
    """A bound variable; also the simplest binder."""

    name: str
    type: DataType


@node  # input : t
class Input(Expr):
    """An argument of the whole program."""

    name: str
    type: DataType


@node  # literal : scalar
class Literal(Expr):
    """A number or a truth value; 0.0 and -0.0 are two literals, and NaN is one."""

    value: float | int | bool
    type: Scalar

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or self.type != other.type:
            return False
        a, b = self.value, other.value
        return copysign(1, a) == copysign(1, b) if a == b == 0 else a == b or (a != a and b != b)

    def __hash__(self) -> int:
        return hash((self.value if self.value == self.value else "nan", self.type))


@node  # size : i32; a number as soon as its sizes are known
class SizeLiteral(Expr):
    """A size as a value."""

    size: Nat


@node  # op : (scalar, …) -> scalar, on vectors lane by lane; dot : (scalar·w, scalar·w) -> scalar
class Call(Expr):
    op: str
    arguments: tuple[Expr, ...]


@pattern("tuple", "first: a, second: b -> (a, b)")
class MakePair(Expr):
    first: Expr
    second: Expr


@node  # component 0|1 : (a, b) -> a|b
class Component(Expr):
    index: int
    pair: Expr


@pattern("let", "function: a -> b, argument: a -> b")  # `let p = argument in body` is an applied lambda
class Apply(Expr):
    function: Function
    argument: Expr


# --- high-level patterns ------------------------------------------------------------------------


@pattern("map", "function: a -> b, array: [a]n -> [b]n")
class Map(Expr):
    function: Function
    array: Expr


@pattern("reduce", "operator: (t, t) -> t, initial: t, array: [t]n -> t")
class Reduce(Expr):
    operator: Function
    initial: Expr
    array: Expr


@pattern("scan", "operator: (t, t) -> t, initial: t, array: [t]n -> [t]n")  # out[i] = initial ⊕ in[0] ⊕ … ⊕ in[i]
class Scan(Expr):
    operator: Function
    initial: Expr
    array: Expr


@pattern("scanExclusive", "operator: (t, t) -> t, initial: t, array: [t]n -> [t]n")  # … ⊕ in[i - 1]
class ScanExclusive(Expr):
    operator: Function
    initial: Expr
    array: Expr


@pattern("reduceRange", "operator: (t, t) -> t, initial: t, low: i32, high: i32, array: [t]m -> t")
class ReduceRange(Expr):  # initial ⊕ in[low] ⊕ … ⊕ in[high - 1], of what lies in the array
    operator: Function
    initial: Expr
    low: Expr
    high: Expr
    array: Expr


@pattern("reduceByIndex", "operator: (t, t) -> t, initial: [t]m, indices: [i32]n, array: [t]n -> [t]m")
class ReduceByIndex(Expr):  # out[j] = initial[j] ⊕ those in[i] with indices[i] = j, in their order
    operator: Function
    initial: Expr
    indices: Expr
    array: Expr


@pattern("zip", "first: [a]n, second: [b]n -> [(a, b)]n")
class Zip(Expr):
    first: Expr
    second: Expr


@pattern("split", "chunk: nat, array: [t]m -> [[t]chunk](m / chunk)", where="chunk > 0, chunk | m")
class Split(Expr):
    chunk: Nat
    array: Expr


@pattern("join", "array: [[t]n]m -> [t](m * n)")
class Join(Expr):
    array: Expr


@pattern(
    "slice", "start: offset, length: nat, array: [t]m -> [t]length", where="0 <= start, 0 < length, start + length <= m"
)
class Slice(Expr):
    start: Nat
    length: Nat
    array: Expr


@pattern("concat", "first: [t]m, second: [t]n -> [t](m + n)")
class Concat(Expr):
    first: Expr
    second: Expr


@pattern("transpose", "array: [[t]n]m -> [[t]m]n")
class Transpose(Expr):
    array: Expr


@pattern("gather", "indices: indices, array: [t]n -> [t]n")  # out[i] = in[f(i)]
class Gather(Expr):
    indices: IndexFunction
    array: Expr


@pattern("scatter", "indices: indices, array: [t]n -> [t]n")  # out[f(i)] = in[i], f a permutation
class Scatter(Expr):
    indices: IndexFunction
    array: Expr


@pattern(
    "slide",
    "size: nat, step: nat, array: [t]m -> [[t]size]((m - size) / step + 1)",
    where="size > 0, step > 0, size <= m, step | m - size",
)
class Slide(Expr):
    size: Nat
    step: Nat
    array: Expr


@pattern(
    "pad",
    "left: offset, right: offset, boundary: boundary, array: [t]m -> [t](left + m + right)",
    where="0 <= left, 0 <= right",
)
class Pad(Expr):
    left: Nat
    right: Nat
    boundary: Boundary
    array: Expr


@pattern(  # the function may also turn [t]n into [t]g(n), with n bound as `size`: it is typed step by step
    "iterate", "times: count, size: name, function: [t]n -> [t]n, array: [t]n -> [t]n"
)
class Iterate(Expr):
    """`count` says how often, in place of `times`, where that is a size without a value yet: steps change the length by
    as much.
    """

    times: int
    size: str
    function: Lambda
    array: Expr
    count: Nat | None = None


@pattern("at", "index: offset, array: [t]m -> t", where="0 <= index, index < m")
class At(Expr):
    index: Nat
    array: Expr


@pattern("generate", "size: nat, function: i32 -> t -> [t]size")
class Generate(Expr):
    size: Nat
    function: Function


@pattern("fill", "size: nat, value: t -> [t]size")
class Fill(Expr):
    size: Nat
    value: Expr


@pattern("lookup", "indices: [i32]n, array: [t]m -> [t]n")  # out[i] = in[clamp(indices[i])]
class Lookup(Expr):
    indices: Expr
    array: Expr


# --- low-level patterns -------------------------------------------------------------------------


@pattern("mapLevel", "level: level, function: a -> b, array: [a]n -> [b]n")  # mapGlb|mapWrg|mapLcl(d)|mapSeq
class MapLevel(Expr):
    level: Level
    function: Function
    array: Expr


@pattern("reduceSeq", "operator: (b, a) -> b, initial: b, array: [a]n -> b")  # from left to right
class ReduceSeq(Expr):
    operator: Function
    initial: Expr
    array: Expr


@pattern("scanSeq", "operator: (b, a) -> b, initial: b, array: [a]n -> [b]n")  # from left to right
class ScanSeq(Expr):
    operator: Function
    initial: Expr
    array: Expr


@pattern("scanExclusiveSeq", "operator: (b, a) -> b, initial: b, array: [a]n -> [b]n")  # the accumulator before each
class ScanExclusiveSeq(Expr):
    operator: Function
    initial: Expr
    array: Expr


@pattern(
    "lookBack",
    "width: nat, first: a -> (t, k), operator: (t, t) -> t, initial: t, second: (t, k) -> b, array: [a]n -> [b]n",
    where="width > 0",
)
class LookBack(Expr):
    """What a group of work-items makes of each element by the first function, a total and more, and by the second of
    that and all totals before it: out[i] = second(initial ⊕ t[0] ⊕ … ⊕ t[i - 1], k[i]), (t[i], k[i]) = first(in[i]).
    A group looks at so many totals at once.
    """

    width: Nat
    first: Function
    operator: Function
    initial: Expr
    second: Function
    array: Expr


@pattern(
    "reduceSub",
    "items: nat, operator: (t, t) -> t, initial: t, array: [t]m -> [t](m / items)",
    where="items > 0, items | m",
)
class ReduceSub(Expr):
    """out[j] = initial ⊕ in[j * items] ⊕ … ⊕ in[(j + 1) * items - 1]: each item of a group has an element, and so many
    neighbours, of one sub-group, combine theirs without memory, in pairs: ⊕ is associative.
    """

    items: Nat
    operator: Function
    initial: Expr
    array: Expr


@pattern("reduceRangeSeq", "operator: (b, a) -> b, initial: b, low: i32, high: i32, array: [a]m -> b")
class ReduceRangeSeq(Expr):
    operator: Function
    initial: Expr
    low: Expr
    high: Expr
    array: Expr


@pattern("reduceByIndexSeq", "place: a -> i32, operator: (b, a) -> b, initial: [b]m, array: [a]n -> [b]m")
class ReduceByIndexSeq(Expr):  # out[place(x)] becomes operator(out[place(x)], x), for each x from left to right
    place: Function
    operator: Function
    initial: Expr
    array: Expr


@pattern("reduceByIndexGlb", "place: a -> i32, operator: (b, a) -> b, initial: [b]m, array: [a]n -> [b]m")
class ReduceByIndexGlb(Expr):  # each x in a work-item of its own; of those with one place, the first counts alone
    place: Function
    operator: Function
    initial: Expr
    array: Expr


@pattern("reduceByIndexAtomic", "place: a -> i32, operator: (b, a) -> b, initial: [b]m, array: [a]n -> [b]m")
class ReduceByIndexAtomic(Expr):  # each x in a work-item of its own; those with one place by turns, in no known order
    place: Function
    operator: Function
    initial: Expr
    array: Expr


@pattern("toMemory", "space: space, value: t -> t")  # toGlobal|toStream|toLocal|toLocalOnce|…|toPrivate
class ToMemory(Expr):
    """A stream is global memory, written around the caches. Local memory may say how the tiles of a loop follow each
    other in it: each waits for the one before it (once), is read into registers meanwhile (ahead), or, after that, has
    a place of its own, which is the other one in the next step (twice).
    """

    space: str
    value: Expr

    @property
    def address_space(self) -> str:
        """That of OpenCL."""
        return address_space(self.space)


@pattern("asVector", "width: width, array: [t]m -> [t·width](m / width)", where="width > 0, width | m")
class AsVector(Expr):
    width: int
    array: Expr


@pattern("asScalar", "array: [t·w]m -> [t](m * w)")
class AsScalar(Expr):
    array: Expr


# --- functions, patterns and the rest -----------------------------------------------------------


@node  # λp. body
class Lambda:
    binder: Binder
    body: Expr


@node  # vectorize : (w: nat) -> (a -> b) -> (a·w -> b·w), lane by lane
class Vectorize:
    width: int
    function: Lambda


@node  # (p, q): binds the components of a pair
class PairBinder:
    first: Binder
    second: Binder


@node  # i -> body, an index expression over the variable `variable`
class IndexFunction:
    variable: str
    body: Nat


@node  # clamp | mirror | wrap | constant(value)
class Boundary:
    """What lies outside a padded array: the nearest element, the mirror image (edge element repeated),
    the opposite end, or a constant."""

    kind: str
    value: Literal | None = None


@node  # one level of OpenCL's thread hierarchy
class Level:
    """``Level("glb", 0)`` … ``Level("wrg", 1)``, ``Level("lcl", 2)``; ``Level("seq")`` is a loop."""

    kind: str
    dimension: int = 0

    @property
    def name(self) -> str:
        """The pattern's name: ``mapGlb(0)``, …, ``mapSeq``."""
        return "mapSeq" if self.kind == "seq" else f"map{self.kind.capitalize()}({self.dimension})"


@node  # name(inputs) = body
class Program:
    """A closed term with its inputs, the default of each size variable, and the ranges that inputs have.

    What a user declares of it is no part of its meaning: laws of operators, and alternatives of functions. Nor is
    `read_at`, which reads its text once more at sizes, so that what does not fit there is said with its place.
    """

    name: str
    inputs: tuple[Input, ...]
    body: Expr
    sizes: tuple[tuple[str, int], ...] = ()
    ranges: tuple[tuple[str, Values], ...] = ()
    laws: tuple[Law, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    read_at: Callable[[dict[str, int]], Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Law:
    """A law of a binary operator that a user declares; it is believed after it was tried.

    Attributes
    ----------
    name
        One of `LAWS`.
    operator
        A closed function of a pair.
    about
        The neutral or annihilating value, or the operator that it distributes over; None for other laws.
    called
        What the user calls the operator.
    place
        Where it is declared: file, line and column.
    """

    name: str
    operator: Lambda
    about: Expr | Lambda | None = None
    called: str = field(default="f", compare=False)
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class Alternative:
    """Another algorithm for a function, a program with open sizes.

    Attributes
    ----------
    name
        That of the function, and which of its alternatives it is.
    body
        A term over the inputs and sizes of the function, and the sizes in `tunables`.
    tunables
        Sizes that the search chooses: the name, the least, and the first number that is too large.
    guards
        Comparisons of sizes under which it may be taken: a sign and both sides.
    device
        The kind of device that it is for, ``cpu`` or ``gpu``; None for all.
    place
        Where it is declared: file, line and column.
    """

    name: str
    of: Program
    body: Expr
    tunables: tuple[tuple[str, int, int], ...] = ()
    guards: tuple[tuple[str, Nat, Nat], ...] = ()
    device: str | None = None
    place: str = field(default="", compare=False)


LAWS = ("associative", "commutative", "idempotent", "neutral", "annihilating", "distributes")
DEVICE_KINDS = ("cpu", "gpu")
Function = Union[Lambda, Vectorize]
Binder = Union[Var, PairBinder]
SEQ = Level("seq")
LEVEL_KINDS = ("glb", "wrg", "lcl", "seq")
TILE_SPACES = ("localOnce", "localAhead", "localTwice")  # local memory, and how tiles follow each other in it
SPACES = ("global", "stream", "local", *TILE_SPACES, "private")
BOUNDARIES = ("clamp", "mirror", "wrap", "constant")
PATTERNS = (
    Map, Reduce, Scan, ScanExclusive, ReduceRange, ReduceByIndex, Zip, Split, Join, Slice, Concat, Transpose, Gather,
    Scatter, Slide, Pad, Iterate, At, Generate, Fill, Lookup, MapLevel, ReduceSeq, ScanSeq, ScanExclusiveSeq,
    LookBack, ReduceSub, ReduceRangeSeq, ReduceByIndexSeq, ReduceByIndexGlb, ReduceByIndexAtomic, ToMemory, AsVector,
    AsScalar,
)  # fmt: skip
SIGNED = (MakePair, Apply, *PATTERNS)
SCANS = (Scan, ScanExclusive)
SCAN_LOOPS = (ScanSeq, ScanExclusiveSeq)
REDUCTION_LOOPS = (ReduceSeq, ReduceRangeSeq)
RANGE_FOLDS = (ReduceRange, ReduceRangeSeq)
AT_ONCE = (ReduceByIndexGlb, ReduceByIndexAtomic)  # with a work-item for each element
INDEX_LOOPS = (ReduceByIndexSeq, *AT_ONCE)
INDEX_FOLDS = (ReduceByIndex, *INDEX_LOOPS)
FOLD_LOOPS = (ReduceSeq, *SCAN_LOOPS, ReduceRangeSeq, ReduceByIndexSeq)
FOLDS = (
    Reduce,
    *SCANS,
    ReduceRange,
    ReduceByIndex,
    *AT_ONCE,
    *FOLD_LOOPS,
)  # they carry an accumulator from element to element
WHOLE_FOLDS = (Reduce, *SCANS, ReduceSeq, *SCAN_LOOPS)  # of all elements of an array
WholeFold = Union[Reduce, Scan, ScanExclusive, ReduceSeq, ScanSeq, ScanExclusiveSeq]
AtOnce = Union[ReduceByIndexGlb, ReduceByIndexAtomic]
IndexLoop = Union[ReduceByIndexSeq, AtOnce]
LOOPS = (*FOLD_LOOPS, Iterate)  # one step after the other: nothing parallel stands in their function
LOOP_OF: dict[type[Expr], Callable[..., Expr]] = dict(zip(FOLDS[:4], FOLD_LOOPS[:4], strict=True))  # the same as a loop


def address_space(space: str) -> str:
    """The address space of OpenCL in which a space of `SPACES` is."""
    return "global" if space == "stream" else "local" if space in TILE_SPACES else space


def memory_name(space: str) -> str:
    """What the language calls the pattern for a space: ``toLocal``, …"""
    return f"to{space[:1].upper()}{space[1:]}"


def name_of(term: Expr) -> str:
    """What the language calls a pattern: ``map``, ``mapGlb(0)``, ``toLocal``, …"""
    if isinstance(term, MapLevel):
        return term.level.name
    return memory_name(term.space) if isinstance(term, ToMemory) else term.signature.name


def array_of_loop(term: Part) -> Expr | None:
    """The array whose elements a pattern's function takes one by one, if it has one."""
    signature = term.signature if isinstance(term, PATTERNS) else None
    return None if signature is None or signature.loop is None else getattr(term, signature.parts[signature.loop].name)


# --- generic traversals -------------------------------------------------------------------------

Part = Union[Expr, Lambda, Vectorize]
_PARTS = Expr, Lambda, Vectorize


@cache
def _part_names(node_type: type) -> tuple[str, ...]:
    """The fields of a node that may hold terms or functions: all but binders."""
    return tuple(name for name in field_names(node_type) if name != "binder")


def parts(term: Part) -> tuple[Part, ...]:
    """The direct sub-terms and functions of a term, from left to right (found once per node)."""
    known = term.__dict__.get("_parts")
    if known is None:
        known = term.__dict__["_parts"] = tuple(_find_parts(term))
    return known


def _find_parts(term: Part) -> Iterator[Part]:
    for name in _part_names(type(term)):
        value = getattr(term, name)
        if isinstance(value, _PARTS):
            yield value
        elif isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, Expr))


def subterms(term: Part) -> Iterator[Part]:
    """The term and everything below it, outermost first."""
    ahead = [term]
    while ahead:
        part = ahead.pop()
        yield part
        ahead.extend(reversed(parts(part)))


def has_folds(term: Part) -> bool:
    """Whether something in a term carries an accumulator from element to element."""
    return any(isinstance(part, FOLDS) for part in subterms(term))


def map_parts(term: T, change: Callable[[Any], Any]) -> T:
    """The term with `change` applied to each direct sub-term and function (binders stay)."""
    values: dict[str, Any] = {name: getattr(term, name) for name in field_names(type(term))}
    changed = False
    for name in _part_names(type(term)):
        value = values[name]
        if isinstance(value, _PARTS):
            made = values[name] = change(value)
            changed = changed or made is not value
        elif isinstance(value, tuple) and value and isinstance(value[0], Expr):
            values[name] = tuple(change(v) for v in value)
            changed = changed or any(map(is_not, values[name], value))
    return type(term)(**values) if changed else term


def bound_variables(binder: Binder) -> tuple[Var, ...]:
    """The variables that a binder binds, from left to right."""
    if isinstance(binder, Var):
        return (binder,)
    return bound_variables(binder.first) + bound_variables(binder.second)


def free_variables(term: Part) -> frozenset[Var]:
    """The variables that occur in a term without a binder in it (computed once per node)."""
    known = term.__dict__.get("_free")
    if known is None:
        if isinstance(term, Var):
            known = frozenset((term,))
        elif isinstance(term, Lambda):
            known = free_variables(term.body) - frozenset(bound_variables(term.binder))
        else:
            known = frozenset().union(*(free_variables(p) for p in parts(term)))
        term.__dict__["_free"] = known
    return known


def function_body(function: Function) -> Lambda:
    """The lambda of a function, with or without `vectorize` around it."""
    return function.function if isinstance(function, Vectorize) else function
