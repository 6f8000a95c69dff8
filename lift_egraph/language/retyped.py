"""The numbers of a text that have no type, in other types than they have by themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import chain, combinations, islice
from typing import Union

from lift_egraph.language.grammar import Place, Tree
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import BOOL, F32, F64, I32, DataType, Pair, Scalar

MOST = 24  # ways to give types to the numbers that a pattern starts from
SIGNS = ("+", "-", "*", "/")
FUNCTIONS = frozenset(op.name for op in OPERATIONS.values() if op.kind == "float")
Known = Union[DataType, tuple["Known", "Known"], None]  # a type of which parts are not known


def number_of(tree: Tree) -> int | float | None:
    """The number that is written without a type."""
    match tree:
        case Tree("number", (int() | float() as number, None)) if not isinstance(number, bool):
            return number
    return None


def in_doubles(tree: Tree) -> Tree:
    """The tree with those numbers with a point that have no type as doubles."""
    if isinstance(number := number_of(tree), float):
        return replace(tree, items=(number, "f64"))
    return replace(tree, items=tuple(in_doubles(i) if isinstance(i, Tree) else i for i in tree.items))


def of_numbers(tree: Tree) -> bool:
    """Whether a tree is made of numbers without a type alone: sums and roots of such, tuples of them, or a choice.

    A quotient has a number with a point: one of whole numbers is cut off.
    """
    match tree:
        case Tree("choice", (_, *parts)) | Tree("tuple" | "negate", parts):
            return all(map(of_numbers, parts))
        case Tree("infix", (sign, *parts)) if sign in SIGNS:
            return all(map(of_numbers, parts)) and (sign != "/" or any(isinstance(number_of(p), float) for p in parts))
        case Tree("call", (Tree("name", (name,)), *parts)) if name in FUNCTIONS:
            return all(map(of_numbers, parts))
    return number_of(tree) is not None


def known_in(tree: Tree, t: DataType) -> Known:
    """What the type of a tree says of numbers beside it."""
    if of_numbers(tree):
        return None
    if tree.kind == "choice":
        return _both(*(known_in(part, t) for part in tree.items[1:]))
    if tree.kind == "tuple" and isinstance(t, Pair):
        first, rest = _pair(tree)
        return known_in(first, t.first), known_in(rest, t.second)
    return known(t)


def known(t: DataType) -> Known:
    """A type of which all is known, component by component."""
    return (known(t.first), known(t.second)) if isinstance(t, Pair) else t


def known_of_all(parts: Iterable[tuple[Tree, DataType]]) -> Known:
    """What several say that are of one type."""
    return reduce(_both, (known_in(tree, t) for tree, t in parts), None)


def chosen_in(tree: Tree, t: Known) -> Tree:
    """The tree with its numbers in a type; those with a point only in that of floats."""
    number = number_of(tree)
    if number is not None:
        if isinstance(t, Scalar) and t != BOOL and (t.is_float or not isinstance(number, float)):
            return replace(tree, items=(number, t.name))
        return tree
    if tree.kind == "tuple" and isinstance(t, tuple):
        first, rest = _pair(tree)
        chosen = chosen_in(rest, t[1])
        return replace(tree, items=(chosen_in(first, t[0]), *(chosen.items if len(tree.items) > 2 else (chosen,))))
    if tree.kind == "choice":
        return replace(tree, items=(tree.items[0], *(chosen_in(part, t) for part in tree.items[1:])))
    if not of_numbers(tree):
        return tree
    return replace(tree, items=tuple(chosen_in(part, t) if isinstance(part, Tree) else part for part in tree.items))


def _pair(tree: Tree) -> tuple[Tree, Tree]:
    first, *rest = tree.items
    return first, rest[0] if len(rest) == 1 else replace(tree, items=tuple(rest))


def _both(first: Known, second: Known) -> Known:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return _both(first[0], second[0]), _both(first[1], second[1])
    return second if first is None else first


def otherwise(tree: Tree, around: Collection[Scalar]) -> Iterator[Tree]:
    """The tree with some of the numbers in another type; the fewer the sooner, and at last all of them.

    Those with a point are doubles; whole ones are of single precision, or of a type that something `around` has.
    """
    doubles = in_doubles(tree)
    types = [F32, *sorted(set(around) - {F32, I32, BOOL}, key=str)]
    whole = [number.place for number in _numbers(tree) if isinstance(number_of(number), int)]

    bases = (tree,) if doubles == tree else (tree, doubles)

    def typed(places: Collection[Place]) -> Iterator[Tree]:
        for t in types:
            yield from (_typed(base, places, t) for base in (bases if t != F64 else (doubles,)))

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
