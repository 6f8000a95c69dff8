"""Folds whose elements say by an index with which result they are combined: histograms, and all sums by group.

Source: Henriksen et al., "Compiling generalized histograms for GPU", SC 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, Union

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import array_type
from lift_egraph.meaning.range_folds import chosen
from lift_egraph.meaning.scopes import Scope
from lift_egraph.meaning.values import Tree, gathered

if TYPE_CHECKING:
    from lift_egraph.meaning.domains import Domain

IndexFold = Union[ir.ReduceByIndex, ir.IndexLoop]


class Interpreter(Protocol):
    """What evaluates terms."""

    @property
    def domain(self) -> Domain: ...

    def each(self, change: Callable[[np.ndarray], np.ndarray], tree: Tree) -> Tree: ...
    def length(self, tree: Tree, axis: int) -> int: ...
    def step_of(self, operator: ir.Function, before: Tree, element: Tree, scope: Scope) -> Tree: ...


def of_elements(operator: ir.Function) -> ir.Function | None:
    """What an operator on arrays does with their elements, if it does that alone: ``λ(a, b). map f (zip a b)``."""
    match operator:
        case ir.Lambda(
            binder=ir.PairBinder(first=a, second=b),
            body=ir.Map(function=f, array=ir.Zip(first=first, second=second)),
        ) if (first, second) == (a, b) and ir.free_variables(f).isdisjoint({a, b}):
            return f
    return None


def without_repeats(places: np.ndarray, depth: int) -> np.ndarray:
    """The places, but -1, which is none, for those that an element before has: along the axis `depth`."""
    ordered = np.moveaxis(places, depth, -1)
    order = np.argsort(ordered, axis=-1, kind="stable")
    along = np.take_along_axis(ordered, order, -1)
    again = np.concatenate([np.zeros_like(along[..., :1], bool), along[..., 1:] == along[..., :-1]], -1)
    repeats = np.zeros_like(again)
    np.put_along_axis(repeats, order, again, -1)
    return np.moveaxis(np.where(repeats, -1, ordered), -1, depth)


def by_rank(
    interpreter: Interpreter, term: IndexFold, start: Tree, array: Tree, places: np.ndarray, scope: Scope
) -> Tree:
    """The results of a fold by index: in each step one more element of all that have any left."""
    domain, depth = interpreter.domain, scope.depth
    bins = interpreter.length(start, depth)
    element_type = array_type(term.initial, term.signature.name).element
    for chosen_ones in _ranked(places, bins):
        known = np.maximum(chosen_ones, 0)
        elements = interpreter.each(lambda a, known=known: gathered(a, depth, known), array)
        made = interpreter.step_of(term.operator, start, elements, scope.deeper(bins))
        start = chosen(domain, element_type, chosen_ones >= 0, made, start)
    return start


def _ranked(places: np.ndarray, bins: int) -> Iterator[np.ndarray]:
    """For each result the first element along the last axis that it takes, then the second and so on; -1 for none."""
    *batch, length = places.shape
    inside = np.where((places >= 0) & (places < bins), places, bins).reshape(-1, length)
    order = np.argsort(inside, axis=-1, kind="stable").reshape(places.shape)
    apart = inside + (bins + 1) * np.arange(len(inside))[:, None]
    counts = np.bincount(apart.ravel(), minlength=(bins + 1) * len(inside)).reshape(*batch, bins + 1)[..., :bins]
    begins = np.cumsum(counts, -1) - counts
    for rank in range(int(counts.max(initial=0))):
        taken = np.take_along_axis(order, np.minimum(begins + rank, length - 1), -1)
        yield np.where(rank < counts, taken, -1)
