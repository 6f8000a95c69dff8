"""Arrays whose elements are folded in groups, which an index for each element tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ByIndex:
    """Folds of the last axis of arrays to `count` results; `places`, of that axis, says to which each element belongs.

    >>> ByIndex(np.array([1, 0, 1, 5]), 3)(np.add, np.array([10, 20, 30, 40]), start=np.array([0, 1, 2]))
    array([20, 41,  2])
    """

    places: np.ndarray
    count: int

    def __call__(self, ufunc: np.ufunc, array: np.ndarray, start: np.ndarray) -> np.ndarray:
        """The results, each from its own start, in the order of the elements."""
        batch = np.broadcast_shapes(start.shape[:-1], array.shape[:-1], self.places.shape[:-1])
        length = np.broadcast_shapes(array.shape[-1:], self.places.shape[-1:])
        array, places = (np.broadcast_to(a, (*batch, *length)) for a in (array, self.places))
        made = np.array(np.broadcast_to(start, (*batch, self.count)))
        inside = (places >= 0) & (places < self.count)
        *outer, _ = np.nonzero(inside)
        ufunc.at(made, (*outer, places[inside]), array[inside])
        return made

    def sources(self) -> np.ndarray:
        """Of an array of the `count` starts and then all elements, where the last of each group lies.

        >>> ByIndex(np.array([1, 0, 1, 5]), 3).sources()
        array([4, 5, 2])
        """
        batch = self.places.shape[:-1]
        made = np.array(np.broadcast_to(np.arange(self.count), (*batch, self.count)))
        inside = (self.places >= 0) & (self.places < self.count)
        *outer, step = np.nonzero(inside)
        made[(*outer, self.places[inside])] = self.count + step  # of several assignments the last one counts
        return made

    def along(self, ufunc: np.ufunc, array: np.ndarray, axis: int, dtype: Any = None) -> np.ndarray:
        """The results of elements alone, as `ufunc.reduce` gives them for a whole axis; errors are not negative."""
        neutral = 0 if ufunc.identity is None else ufunc.identity
        start = np.full(self.count, neutral, dtype or array.dtype)
        return self(ufunc, array, start[(None,) * axis])
