"""Sizes, types and ranges of the text form."""

from __future__ import annotations

from collections.abc import Callable

from lift_egraph.language.grammar import Misplaced, Place, Source, Tree, parsed, suggestion
from lift_egraph.language.nat import ARITHMETIC, Nat, maximum, minimum, nat
from lift_egraph.language.other_words import TYPES
from lift_egraph.language.ranges import Offsets, Range, Values
from lift_egraph.language.types import SCALAR_BYTES, WIDTHS, Array, DataType, Scalar, Vector, tuple_of


def size_infix(sign: str, left: Nat, right: Nat, place: Place) -> Nat:
    """Two sizes with a sign of `ARITHMETIC` between them."""
    if sign in "/%" and right.constant == 0:
        raise Misplaced("a size cannot be divided by zero", place)
    return ARITHMETIC[sign](left, right)


def any_size(name: str, _: Place) -> Nat:
    """What a name in a size means, where any name is one."""
    return nat(name)


def read_size(tree: Tree, known: Callable[[str, Place], Nat]) -> Nat:
    """The size expression of a tree; `known` gives the meaning of a name, or raises."""
    match tree:
        case Tree("name", (name,)):
            return known(name, tree.place)
        case Tree("number", (value, None)) if isinstance(value, int) and not isinstance(value, bool):
            return nat(value)
        case Tree("negate", (value,)):
            return -read_size(value, known)
        case Tree("infix", (sign, left, right)) if sign in ARITHMETIC:
            return size_infix(sign, read_size(left, known), read_size(right, known), tree.place)
        case Tree("call", (Tree("name", ("min" | "max" as name,)), left, right)):
            extreme = minimum if name == "min" else maximum
            return extreme(read_size(left, known), read_size(right, known))
    raise Misplaced("expected a size: whole numbers, size names, + - * / %, min(a, b) or max(a, b)", tree.place)


def read_type(tree: Tree, known: Callable[[str, Place], Nat]) -> DataType:
    """The type of a tree."""
    match tree:
        case Tree("array_type", (element, extent)):
            inner = read_type(element, known)
            size = read_size(extent, known)
            if (size.constant or 0) < 0:
                raise Misplaced(f"the length of an array must not be negative, got {size}", extent.place)
            return Array(size, inner)
        case Tree("tuple_type", components):
            return tuple_of(*(read_type(c, known) for c in components))
        case Tree("named_type", (name,)) if name in SCALAR_BYTES:
            return Scalar(name)
    name = tree.items[0]
    scalar, _, width = name.partition("x")
    if scalar in SCALAR_BYTES and width in map(str, WIDTHS):
        return Vector(Scalar(scalar), int(width))
    close = suggestion(name, [*SCALAR_BYTES, *(f"{s}x{w}" for s in SCALAR_BYTES for w in WIDTHS)])
    hint = f"; did you mean {TYPES[name]!r}?" if name in TYPES else close
    raise Misplaced(f"there is no type {name!r}; the scalars are {', '.join(SCALAR_BYTES)}{hint}", tree.place)


def read_range(tree: Tree, known: Callable[[str, Place], Nat]) -> Values:
    """The range of a tree."""
    match tree.items:
        case (Tree("call", (Tree("name", ("offsets",)), end)),):
            return Offsets(read_size(end, known))
        case (only,):
            raise Misplaced("a range is low..high, or offsets(end)", only.place)
    low, high = (
        side.items[0] if side.kind == "number" and isinstance(side.items[0], float) else read_size(side, known)
        for side in tree.items
    )
    return Range(low, high)


def parse_annotation(text: str) -> tuple[DataType, Values | None]:
    """The type, and the range behind it, that a text denotes; any name in it may be a size.

    Raises
    ------
    SyntaxProblem
        With line, column and caret.

    Examples
    --------
    >>> print(*parse_annotation("[f32]N in 0.1..N + 1"))
    [f32]N 0.1..N + 1
    """

    def read(tree: Tree) -> tuple[DataType, Values | None]:
        of_type, of_range = tree.items
        return read_type(of_type, any_size), None if of_range is None else read_range(of_range, any_size)

    return parsed(Source(text, "<type>"), "annotation", read)


def parse_type(text: str) -> DataType:
    """The type that a text denotes; any name in it may be a size.

    Raises
    ------
    SyntaxProblem
        With line, column and caret.

    Examples
    --------
    >>> print(parse_type("[[(f32, i32)]4](N / 2)"))
    [[(f32, i32)]4](N / 2)
    """
    return parsed(Source(text, "<type>"), "type", lambda tree: read_type(tree, any_size))
