"""Folds whose elements say by an index with which result they are combined: histograms, and all sums by group.

Source: Henriksen et al., "Compiling generalized histograms for GPU", SC 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Union

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import array_type
from lift_egraph.meaning.range_folds import chosen
from lift_egraph.meaning.scopes import Scope
from lift_egraph.meaning.values import Tree, at, gathered, with_axes

if TYPE_CHECKING:
    from lift_egraph.meaning.domains import Domain

IndexFold = Union[ir.ReduceByIndex, ir.ReduceByIndexSeq, ir.ReduceByIndexGlb, ir.ReduceByIndexAtomic]


class Interpreter(Protocol):
    """What evaluates terms."""

    @property
    def domain(self) -> Domain: ...

    def each(self, change: Callable[[np.ndarray], np.ndarray], tree: Tree) -> Tree: ...
    def length(self, tree: Tree, axis: int) -> int: ...
    def step_of(self, operator: ir.Function, before: Tree, element: Tree, scope: Scope) -> Tree: ...


def without_repeats(places: np.ndarray, depth: int) -> np.ndarray:
    """The places, but -1, which is none, for those that an element before has: along the axis `depth`."""
    ordered = np.moveaxis(places, depth, -1)
    order = np.argsort(ordered, axis=-1, kind="stable")
    along = np.take_along_axis(ordered, order, -1)
    again = np.concatenate([np.zeros_like(along[..., :1], bool), along[..., 1:] == along[..., :-1]], -1)
    repeats = np.zeros_like(again)
    np.put_along_axis(repeats, order, again, -1)
    return np.moveaxis(np.where(repeats, -1, ordered), -1, depth)


def step_by_step(
    interpreter: Interpreter, term: IndexFold, start: Tree, array: Tree, places: np.ndarray, scope: Scope
) -> Tree:
    """The results of a fold by index, element by element."""
    domain, depth = interpreter.domain, scope.depth
    bins = np.arange(interpreter.length(start, depth))
    element_type = array_type(term.initial, term.signature.name).element
    for step in range(places.shape[depth] if bins.size else 0):
        place = places[at(depth, slice(step, step + 1))]
        known = np.clip(place, 0, bins.size - 1)
        element = interpreter.each(lambda a, step=step: a[at(depth, step)], array)
        old = interpreter.each(lambda a, known=known: gathered(a, depth, known)[at(depth, 0)], start)
        made = interpreter.step_of(term.operator, old, element, scope)
        new = interpreter.each(lambda a: with_axes(a, depth, 1), made)
        start = chosen(domain, element_type, place == bins, new, start)
    return start
