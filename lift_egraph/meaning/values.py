"""Values as trees of arrays: pairs are Python tuples, and an array of pairs is a pair of arrays.

Here are the changes of shape that leave the leading axes of a leaf alone, and the check that a value
fits a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np

from lift_egraph.errors import InputProblem
from lift_egraph.language.index_arrays import number
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Array, DataType, Pair, Vector, leaves, scalar_of

Value = Union[np.ndarray, tuple["Value", "Value"]]
Tree = Any  # a leaf of some domain, or a pair of trees


def at(axis: int, index: int | slice) -> tuple[int | slice, ...]:
    """The NumPy index that chooses along one axis.

    >>> np.arange(6).reshape(2, 3)[at(1, 0)].tolist()
    [0, 3]
    """
    return (slice(None),) * axis + (index,)


def along(array: np.ndarray, axis: int) -> Iterator[np.ndarray]:
    """The elements of an array along an axis, as views."""
    for index in range(array.shape[axis]):
        yield array[at(axis, index)]


def widen(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """The array with an axis of length 1 or `size` broadcast to `size`."""
    if array.shape[axis] == size:
        return array
    return np.broadcast_to(array, (*array.shape[:axis], size, *array.shape[axis + 1 :]))


def with_axes(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    """The array with so many new axes of length 1 before an axis.

    >>> with_axes(np.zeros((2, 3)), 1, 2).shape
    (2, 1, 1, 3)
    """
    return array[(slice(None),) * axis + (None,) * count] if count else array


def concatenate(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Arrays along an axis, with their other axes broadcast to one shape.

    >>> concatenate([np.zeros((1, 1)), np.ones((2, 2))], 1).tolist()
    [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    common = list(np.broadcast_shapes(*((*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in arrays)))
    shapes = [(*common[:axis], a.shape[axis], *common[axis + 1 :]) for a in arrays]
    return np.concatenate([np.broadcast_to(a, shape) for a, shape in zip(arrays, shapes, strict=True)], axis)


def merge(array: np.ndarray, axis: int) -> np.ndarray:
    """The array with an axis and the next one joined."""
    outer, inner = array.shape[axis : axis + 2]
    return array.reshape(*array.shape[:axis], outer * inner, *array.shape[axis + 2 :])


def split(array: np.ndarray, axis: int, chunk: int) -> np.ndarray:
    """The array with an axis in chunks of a length."""
    return array.reshape(*array.shape[:axis], array.shape[axis] // chunk, chunk, *array.shape[axis + 1 :])


def gathered(array: np.ndarray, axis: int, places: np.ndarray) -> np.ndarray:
    """The elements of an axis at some places, which may depend on the axes before it: of length 1 where they do not.

    >>> gathered(np.array([[1, 2, 3]]), 1, np.array([[0, 2], [1, 1]])).tolist()
    [[1, 3], [2, 2]]
    """
    grid = [
        np.arange(n).reshape((n,) + (1,) * (axis - k)) if n != 1 else np.zeros((1,) * (axis + 1), int)
        for k, n in enumerate(array.shape[:axis])
    ]
    return array[(*grid, places)]


def map_leaves(change: Callable[[Any], Any], tree: Tree) -> Tree:
    """The tree with a function applied to each leaf."""
    if isinstance(tree, tuple):
        return map_leaves(change, tree[0]), map_leaves(change, tree[1])
    return change(tree)


def zip_leaves(change: Callable[..., Any], *trees: Tree) -> Tree:
    """One tree from several of one shape; where the first is None or a leaf, the others' shape counts."""
    if isinstance(trees[-1], tuple):
        return tuple(zip_leaves(change, *(t[i] if isinstance(t, tuple) else t for t in trees)) for i in range(2))
    return change(*trees)


def leaves_of(tree: Tree) -> Iterator[Any]:
    """The leaves of a tree, from left to right."""
    if isinstance(tree, tuple):
        for part in tree:
            yield from leaves_of(part)
    else:
        yield tree


def first_leaf(tree: Tree) -> Any:
    """The leftmost leaf of a tree."""
    while isinstance(tree, tuple):
        tree = tree[0]
    return tree


def checked(what: str, name: str, t: DataType, values: Mapping[str, Value]) -> Value:
    """The value of that name as arrays, after a check of its shape and element types.

    Raises
    ------
    InputProblem
        If it is missing, or has another shape or other elements.
    """
    if name not in values:
        raise InputProblem(f"the {what} {name}: {t} is missing")
    expected = [(sizes, leaf) for _, sizes, leaf in leaves(t)]
    return _take(f"the {what} {name}: {t}", t, values[name], iter(expected))


def _take(where: str, t: DataType, value: Any, expected: Any) -> Value:
    element: Any = t
    while isinstance(element, Array):
        element = element.element
    if isinstance(element, Pair):
        if not isinstance(value, tuple) or len(value) != 2:
            raise InputProblem(f"{where} is a pair of arrays, got {_shown(value)}")
        return _take(where, element.first, value[0], expected), _take(where, element.second, value[1], expected)
    sizes, leaf = next(expected)
    shape = tuple(number(size, where) for size in sizes) + ((leaf.width,) if isinstance(leaf, Vector) else ())
    dtype = np.dtype(NUMPY_TYPES[scalar_of(leaf).name])
    if isinstance(value, tuple | list) or not isinstance(value, np.ndarray | np.generic):
        raise InputProblem(f"{where} is an array of shape {shape} and type {dtype}, got {_shown(value)}")
    if value.shape != shape or value.dtype != dtype:
        raise InputProblem(
            f"{where} is of shape {shape} and type {dtype}, got shape {value.shape} and type {value.dtype}"
        )
    return np.asarray(value)


def _shown(value: Any) -> str:
    return f"a {type(value).__name__}"
