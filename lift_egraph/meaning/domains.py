"""What the interpreter computes with: plain NumPy arrays, or any other kind of leaf.

The interpreter moves data by changing the shape of leaves, and leaves arithmetic to a `Domain`.
`Plain` is the meaning of the language; `lift_egraph.meaning.bounds` adds error bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from lift_egraph.language.scalar import LAWS, NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import Scalar
from lift_egraph.meaning.contractions import contract, is_worthwhile
from lift_egraph.meaning.grouped import ByIndex
from lift_egraph.meaning.recurrences import checked
from lift_egraph.meaning.values import Tree, along, at, concatenate, gathered

Change = Callable[[np.ndarray], np.ndarray]

SHORT = 32  # a fold over at most this many elements is a loop over whole slices
EXTREMES = ("min", "max")  # these keep what they have where an element is equal, or one of both is NaN


class Domain(Protocol):
    """Leaves and what can be done with them."""

    bytes_per_element: int
    doubles: bool  # whether floats are computed in double precision, whatever their type

    def exact(self, array: np.ndarray, scalar: Scalar) -> Any:
        """The leaf for an input or a literal."""
        ...

    def array(self, leaf: Any) -> np.ndarray:
        """The values of a leaf, for its shape and for use as indices."""
        ...

    def each(self, change: Change, leaf: Any) -> Any:
        """The leaf after a change of shape or order of its elements."""
        ...

    def call(self, op: str, scalar: Scalar, arguments: Sequence[Any]) -> Any:
        """A scalar operation, element by element with broadcasting (dot: over the last axis); `scalar` is the
        type of its result.
        """
        ...

    def fold(self, op: str, start: Any, leaf: Any, axis: int, ordered: bool) -> Any:
        """The operation between `start` and all elements along a non-empty axis, from left to right if `ordered`."""
        ...

    def scan(self, op: str, start: Any, leaf: Any, axis: int) -> Any:
        """The operation between `start` and all elements up to each one, along a non-empty axis."""
        ...

    def fold_by_index(self, op: str, start: Any, leaf: Any, places: np.ndarray) -> Any:
        """For each place along the last axis of `start` the operation between that and all elements of the leaf, along
        its last axis, for which `places` names it; those outside are left out.
        """
        ...

    def contract(self, start: Any, a: Any, b: Any) -> Any:
        """The sum of `start` and all products of floats along the last axis, in any order; None where products one by
        one are better.
        """
        ...

    def concatenate(self, leaves: Sequence[Any], axis: int) -> Any:
        """Leaves one after the other along an axis; their other axes are broadcast to one shape."""
        ...

    def place(self, whole: Any, part: Any, axis: int, start: int, total: int) -> Any:
        """`whole` (made with `total` elements along the axis, if None) with `part` written from `start` on."""
        ...

    def follow(self, start: Any, states: Any, apply: Callable[[Any], Any]) -> Any:
        """Leaves for the states of a fold, from guessed values along the last axis, `start` and the operator on states
        before each step; None if the guess is wrong.
        """
        ...

    def sources(self, state: Any) -> Any:
        """Scalars, from which an operator makes the next ones: a domain may follow them through it."""
        ...

    def settled(self, leaf: Any) -> Any:
        """A leaf of what the operator made, of which nothing is followed any more."""
        ...

    def picked(self, leaf: Any, indices: Any) -> Any:
        """The leaf, whose elements were chosen by the values of another leaf: a domain may note doubts here."""
        ...


class Plain:
    """NumPy arrays of the element types themselves: ``f32`` stays ``float32`` throughout."""

    bytes_per_element = 4
    doubles = False

    def exact(self, array: np.ndarray, scalar: Scalar) -> np.ndarray:
        return array

    def array(self, leaf: np.ndarray) -> np.ndarray:
        return leaf

    def each(self, change: Change, leaf: np.ndarray) -> np.ndarray:
        return change(leaf)

    def call(self, op: str, scalar: Scalar, arguments: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(OPERATIONS[op].meaning(*arguments), NUMPY_TYPES[scalar.name])

    def fold(self, op: str, start: np.ndarray, leaf: np.ndarray, axis: int, ordered: bool) -> np.ndarray:
        meaning, laws = OPERATIONS[op].meaning, LAWS[op]
        if leaf.shape[axis] <= SHORT:
            for element in along(leaf, axis):
                start = np.asarray(meaning(start, element))
            return start
        if ordered and not laws.idempotent:
            return self.scan(op, start, leaf, axis)[at(axis, -1)]
        reduced = laws.ufunc.reduce(leaf, axis=axis, dtype=leaf.dtype)
        if op in EXTREMES:
            reduced = _first_zero(np.expand_dims(reduced, axis), leaf, axis).squeeze(axis)
        return np.asarray(meaning(start, reduced))

    def scan(self, op: str, start: np.ndarray, leaf: np.ndarray, axis: int) -> np.ndarray:
        first = np.asarray(OPERATIONS[op].meaning(start, leaf[at(axis, 0)]))
        shape = (*first.shape[:axis], leaf.shape[axis], *first.shape[axis:])
        terms = np.array(np.broadcast_to(leaf, shape))
        terms[at(axis, 0)] = first
        found = LAWS[op].ufunc.accumulate(terms, axis=axis, dtype=leaf.dtype)
        if op not in EXTREMES:
            return found
        return _from_nan(np.expand_dims(first, axis), _first_zero(found, terms, axis))

    def fold_by_index(self, op: str, start: np.ndarray, leaf: np.ndarray, places: np.ndarray) -> np.ndarray:
        by_index = ByIndex(places, start.shape[-1])
        found = by_index(LAWS[op].ufunc, leaf, start=start)
        if op not in EXTREMES or leaf.dtype.kind != "f":
            return found
        if (found == 0).any():  # of equals the first
            length = leaf.shape[-1]
            numbers = np.where(leaf == 0, np.arange(length), length)
            first = by_index(np.minimum, numbers, start=np.where(start == 0, -1, length))
            after = np.concatenate([np.broadcast_to(leaf, numbers.shape), np.zeros((*numbers.shape[:-1], 1))], -1)
            zeros = np.where(first < 0, start, gathered(np.asarray(after, leaf.dtype), numbers.ndim - 1, first))
            found = np.where(found == 0, zeros, found)
        return _from_nan(start, found)

    def contract(self, start: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if a.shape[-1] <= SHORT or not is_worthwhile(a, b):
            return None
        return np.asarray(start + contract(a, b, np.asarray), a.dtype)

    def concatenate(self, leaves: Sequence[np.ndarray], axis: int) -> np.ndarray:
        return concatenate(leaves, axis)

    def place(self, whole: np.ndarray | None, part: np.ndarray, axis: int, start: int, total: int) -> np.ndarray:
        if whole is None:
            whole = np.empty((*part.shape[:axis], total, *part.shape[axis + 1 :]), part.dtype)
        whole[at(axis, slice(start, start + part.shape[axis]))] = part
        return whole

    def follow(self, start: Tree, states: Tree, apply: Callable[[Tree], Tree]) -> Tree | None:
        return checked(start, states, apply)

    def sources(self, state: Tree) -> Tree:
        return state

    def settled(self, leaf: np.ndarray) -> np.ndarray:
        return leaf

    def picked(self, leaf: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return leaf


def _from_nan(start: np.ndarray, found: np.ndarray) -> np.ndarray:
    """What NumPy's functions find of extremes, but that a NaN stays which they begin with."""
    return np.where(np.isnan(start), start, found) if start.dtype.kind == "f" else found


def _first_zero(found: np.ndarray, leaf: np.ndarray, axis: int) -> np.ndarray:
    """What NumPy's functions find of extremes along an axis, but of all zeros the first: their signs may differ."""
    if leaf.dtype.kind != "f" or not (found == 0).any():
        return found
    first = np.take_along_axis(leaf, np.expand_dims((leaf == 0).argmax(axis), axis), axis)
    return np.where(found == 0, first, found)
