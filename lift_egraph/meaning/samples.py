"""Some elements of a result, where the whole is too much to interpret."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from lift_egraph.errors import TimeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.index_arrays import number
from lift_egraph.language.tuples import component
from lift_egraph.language.types import Array, DataType, Pair
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.elements import element
from lift_egraph.meaning.time_limit import within
from lift_egraph.meaning.values import Tree, Value, zip_leaves

Place = Tree  # of an element of a result: for each leaf of its type the indices of the arrays around it, as an array
Pick = Callable[[int], int]  # an index into an array of a length
Meaning = Callable[[ir.Expr, Mapping[str, Value], dict[ir.Expr, Tree] | None], tuple[Value, Value]]  # value and bound


@dataclass(frozen=True)
class Samples:
    """Elements of a term's value, one after the other along the first axis of each leaf.

    Attributes
    ----------
    type
        Of one element.
    places
        Where they lie: for each leaf an array of shape (elements, dimensions of the result).
    value, bound
        As of `lift_egraph.meaning.bounds.evaluate_bounded`.
    """

    type: DataType
    places: Tree
    value: Value
    bound: Value

    def taken(self, result: Value) -> Value:
        """The elements of a result at these places."""

        def take(places: np.ndarray, leaf: np.ndarray) -> np.ndarray:
            return leaf[tuple(places.T)] if places.shape[1] else np.repeat(leaf[None], len(places), 0)

        return zip_leaves(take, self.places, result)


def at_place(
    term: ir.Expr, pick: Pick, t: DataType | None = None, indices: tuple[int, ...] = ()
) -> tuple[ir.Expr, Place]:
    """A term for one element of a term's value, with an index picked for each array around it, and its place."""
    t = type_of(term) if t is None else t
    if isinstance(t, Pair):
        a, left = at_place(component(0, term), pick, t.first, indices)
        b, right = at_place(component(1, term), pick, t.second, indices)
        return ir.MakePair(a, b), (left, right)
    if not isinstance(t, Array):
        return term, np.array(indices, np.intp)
    index = pick(number(t.size, "array"))
    return at_place(element(term, index), pick, t.element, (*indices, index))


def leaf_at(term: ir.Expr, path: Sequence[int], indices: Sequence[int]) -> ir.Expr:
    """A term for one element of a leaf of a term's value: its path through tuples, and the indices of its arrays."""
    t = type_of(term)
    if isinstance(t, Pair):
        return leaf_at(component(path[0], term), path[1:], indices)
    return leaf_at(element(term, indices[0]), path, indices[1:]) if isinstance(t, Array) else term


def picks(seed: int) -> Callable[[int], Pick]:
    """Which element to take as the sample of a number: the first, the last, then any."""
    chooser = random.Random(seed)
    return lambda which: lambda length: {0: 0, 1: length - 1}.get(which, chooser.randrange(length))


def evaluated(
    terms: Sequence[tuple[ir.Expr, Place]],
    inputs: Mapping[str, Value],
    seconds: float = float("inf"),
    *,
    meaning: Meaning = evaluate_bounded,
) -> Samples:
    """The samples for terms of `at_place`, the first at least, and as many as the time allows.

    Raises
    ------
    TimeProblem
        If the first is over the time of what is around it (`lift_egraph.meaning.time_limit.within`).
    """
    began, found = time.perf_counter(), []
    shared: dict[ir.Expr, Tree] = {}
    for term, _ in terms:
        left = seconds - (time.perf_counter() - began)
        try:
            with within(left if found else inf):
                found.append(meaning(term, inputs, shared))
        except TimeProblem:
            if not found:
                raise
            break
        if time.perf_counter() - began > seconds:
            break
    values, bounds = (_stacked(trees) for trees in zip(*found, strict=True))
    return Samples(type_of(terms[0][0]), _stacked([place for _, place in terms[: len(found)]]), values, bounds)


def taken_from(terms: Sequence[tuple[ir.Expr, Place]], value: Value, bound: Value) -> Samples:
    """The samples for terms of `at_place` where the whole value is known, and its bound."""
    samples = Samples(type_of(terms[0][0]), _stacked([place for _, place in terms]), value, bound)
    return replace(samples, value=samples.taken(value), bound=samples.taken(bound))


def _stacked(trees: Sequence[Any]) -> Any:
    return zip_leaves(lambda *leaves: np.stack(leaves), *trees)
