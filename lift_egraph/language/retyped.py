"""The numbers of a text that have no type, in other types than they have by themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import chain, combinations, islice
from typing import Union

from lift_egraph.language.grammar import Place, Tree
from lift_egraph.language.nat import ARITHMETIC
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import BOOL, F16, F32, F64, I32, DataType, Pair, Scalar

MOST = 24  # ways to give types to the numbers that a pattern starts from
SIGNS = ("+", "-", "*", "/")
FUNCTIONS = frozenset(
    op.name for op in OPERATIONS.values() if op.kind == "float" or op.name in ("add", "sub", "mul", "min", "max", "abs")
)
Sizes = Callable[[str], bool]  # whether a name is that of a size
Known = Union[DataType, tuple["Known", "Known"], None]  # a type of which parts are not known


def number_of(tree: Tree) -> int | float | None:
    """The number that is written without a type."""
    match tree:
        case Tree("number", (int() | float() as number, None)) if not isinstance(number, bool):
            return number
    return None


def with_points_in(tree: Tree, t: Scalar) -> Tree:
    """The tree with those numbers with a point that have no type in that of floats."""
    if isinstance(number := number_of(tree), float):
        return replace(tree, items=(number, t.name))
    return replace(tree, items=tuple(with_points_in(i, t) if isinstance(i, Tree) else i for i in tree.items))


def of_sizes(tree: Tree, sizes: Sizes) -> bool:
    """Whether a tree is a size: made of names of such, and of whole numbers."""
    match tree:
        case Tree("name", (name,)):
            return sizes(name)
        case Tree("negate", (part,)):
            return of_sizes(part, sizes)
        case Tree("infix", (sign, *parts)) if sign in ARITHMETIC:
            which = [of_sizes(part, sizes) for part in parts]
            return any(which) and all(w or isinstance(number_of(p), int) for w, p in zip(which, parts, strict=True))
    return False


def of_numbers(tree: Tree, sizes: Sizes) -> bool:
    """Whether a tree is made of sizes and numbers without a type alone: sums and roots of such, tuples, or a choice.

    A quotient is a size or has a number with a point: one of whole numbers is cut off.
    """
    if number_of(tree) is not None or of_sizes(tree, sizes):
        return True
    match tree:
        case Tree("choice", (_, *parts)) | Tree("tuple" | "negate", parts):
            pass
        case Tree("infix", (sign, *parts)) if sign in SIGNS:
            if sign == "/" and not any(isinstance(number_of(p), float) for p in parts):
                return False
        case Tree("call", (Tree("name", (name,)), *parts)) if name in FUNCTIONS:
            pass
        case _:
            return False
    return all(of_numbers(part, sizes) for part in parts)


def known_in(tree: Tree, t: DataType, sizes: Sizes) -> Known:
    """What the type of a tree says of numbers beside it."""
    if of_numbers(tree, sizes):
        return None
    if tree.kind == "choice":
        return _both(*(known_in(part, t, sizes) for part in tree.items[1:]))
    if tree.kind == "tuple" and isinstance(t, Pair):
        first, rest = _pair(tree)
        return known_in(first, t.first, sizes), known_in(rest, t.second, sizes)
    return known(t)


def known(t: DataType) -> Known:
    """A type of which all is known, component by component."""
    return (known(t.first), known(t.second)) if isinstance(t, Pair) else t


def known_of_all(parts: Iterable[tuple[Tree, DataType]], sizes: Sizes) -> Known:
    """What several say that are of one type."""
    return reduce(_both, (known_in(tree, t, sizes) for tree, t in parts), None)


def chosen_in(tree: Tree, t: Known, sizes: Sizes) -> Tree:
    """The tree with its numbers and sizes in a type; numbers with a point only in that of floats."""
    number = number_of(tree)
    if number is not None or of_sizes(tree, sizes):
        if not isinstance(t, Scalar) or t == BOOL or (isinstance(number, float) and not t.is_float):
            return tree
        if number is not None:
            return replace(tree, items=(number, t.name))
        return tree if t == I32 else Tree("call", (Tree("name", (f"to_{t}",), tree.place), tree), tree.place)
    if tree.kind == "tuple" and isinstance(t, tuple):
        first, rest = _pair(tree)
        chosen = chosen_in(rest, t[1], sizes)
        after = chosen.items if len(tree.items) > 2 else (chosen,)
        return replace(tree, items=(chosen_in(first, t[0], sizes), *after))
    if tree.kind == "choice":
        return replace(tree, items=(tree.items[0], *(chosen_in(part, t, sizes) for part in tree.items[1:])))
    if not of_numbers(tree, sizes):
        return tree
    head, parts = tree.items[: tree.kind != "negate"], tree.items[tree.kind != "negate" :]
    return replace(tree, items=(*head, *(chosen_in(part, t, sizes) for part in parts)))


def _pair(tree: Tree) -> tuple[Tree, Tree]:
    first, *rest = tree.items
    return first, rest[0] if len(rest) == 1 else replace(tree, items=tuple(rest))


def _both(first: Known, second: Known) -> Known:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return _both(first[0], second[0]), _both(first[1], second[1])
    return second if first is None else first


def otherwise(tree: Tree, around: Collection[Scalar]) -> Iterator[Tree]:
    """The tree with some of the numbers in another type; the fewer the sooner, and at last all of them.

    Those with a point are doubles, or halves where something `around` is; whole ones are of single precision, or of a
    type that something around has.
    """
    halves = with_points_in(tree, F16) if F16 in around else tree
    doubles = with_points_in(tree, F64)
    types = [F32, *sorted(set(around) - {F32, I32, BOOL}, key=str)]
    whole = [number.place for number in _numbers(tree) if isinstance(number_of(number), int)]

    bases = (tree, *(other for other in (doubles, halves) if other != tree))

    def typed(places: Collection[Place]) -> Iterator[Tree]:
        for t in types:
            points = (with_points_in(tree, t),) if t in (F16, F64) else bases
            yield from (_typed(base, places, t) for base in points)

    some = chain.from_iterable(map(typed, chain.from_iterable(combinations(whole, n) for n in range(1, len(whole)))))
    return chain(bases[1:], islice(some, MOST), typed(whole) if whole else [])


def _numbers(tree: Tree) -> Iterator[Tree]:
    if number_of(tree) is not None:
        yield tree
    for part in tree.items:
        if isinstance(part, Tree):
            yield from _numbers(part)


def _typed(tree: Tree, places: Collection[Place], t: Scalar) -> Tree:
    if tree.place in places and (number := number_of(tree)) is not None:
        return replace(tree, items=(number, t.name))
    return replace(tree, items=tuple(_typed(i, places, t) if isinstance(i, Tree) else i for i in tree.items))
