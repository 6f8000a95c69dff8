"""The numbers of a text that have no type, in other types than they have by themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain, combinations, islice

from lift_egraph.language.grammar import Place, Tree
from lift_egraph.language.types import BOOL, F32, F64, I32, Scalar

MOST = 24  # ways to give types to the numbers that a pattern starts from


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


def chooses_numbers(tree: Tree) -> bool:
    """Whether a tree is a choice whose results are all numbers without a type."""
    return tree.kind == "choice" and all(
        number_of(part) is not None or chooses_numbers(part) for part in map(_unsigned, tree.items[1:])
    )


def chosen_in(tree: Tree, t: Scalar) -> Tree:
    """Such a choice with its results in a type; those with a point only in that of floats."""
    number = number_of(tree)
    if number is not None:
        return tree if isinstance(number, float) and not t.is_float else replace(tree, items=(number, t.name))
    if tree.kind == "choice":
        return replace(tree, items=(tree.items[0], *(chosen_in(part, t) for part in tree.items[1:])))
    return replace(tree, items=tuple(chosen_in(part, t) for part in tree.items))


def _unsigned(tree: Tree) -> Tree:
    return tree.items[0] if tree.kind == "negate" else tree


def otherwise(tree: Tree, around: Collection[Scalar]) -> Iterator[Tree]:
    """The tree with some of the numbers in another type; the fewer the sooner.

    Those with a point are doubles; whole ones are of single precision, or of a type that something `around` has.
    """
    return islice(_otherwise(tree, around), MOST)


def _otherwise(tree: Tree, around: Collection[Scalar]) -> Iterator[Tree]:
    if (doubles := in_doubles(tree)) != tree:
        yield doubles
    types = [F32, *sorted(set(around) - {F32, I32, BOOL}, key=str)]
    whole = [number.place for number in _numbers(tree) if isinstance(number_of(number), int)]
    for places in chain.from_iterable(combinations(whole, n) for n in range(1, len(whole) + 1)):
        for t in types:
            yield from (_typed(base, places, t) for base in ((tree, doubles) if t != F64 else (doubles,)))


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
