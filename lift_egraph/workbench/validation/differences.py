"""Where two results differ, and where most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lift_egraph.language.types import DataType, Vector, leaves
from lift_egraph.meaning.values import Value, leaves_of

SLICE = 1 << 22  # elements that are compared at a time


@dataclass(frozen=True)
class Difference:
    """The comparison of two results.

    Attributes
    ----------
    equal, elements
        How many elements are equal, and all.
    largest
        The largest difference.
    places
        Where they differ most: the path of the leaf, its indices, and the element of the first result.
    """

    equal: int
    elements: int
    largest: float
    places: tuple[tuple[tuple[int, ...], tuple[int, ...], np.ndarray], ...]


def differences(t: DataType, one: Value, other: Value, most: int) -> Difference:
    """Compare two results of a type, and find at most so many elements that differ most.

    Examples
    --------
    >>> from lift_egraph.language.types import F32, array
    >>> found = differences(array(F32, 3), np.float32([1, 2, 3]), np.float32([1, 4, 4]), 1)
    >>> found.equal, found.elements, found.largest, found.places[0][:2]
    (1, 3, 2.0, ((), (1,)))
    """
    equal = elements = 0
    worst: list[tuple[float, tuple[int, ...], tuple[int, ...], np.ndarray]] = []
    for (path, _, leaf), a, b in zip(leaves(t), leaves_of(one), leaves_of(other), strict=True):
        dimensions = a.ndim - isinstance(leaf, Vector)
        for start in range(0, a.size, SLICE):
            left, right = a.reshape(-1)[start : start + SLICE], b.reshape(-1)[start : start + SLICE]
            elements += left.size
            if np.array_equal(left, right):
                equal += left.size
                continue
            least = worst[-1][0] if len(worst) == most else 0.0
            places = _apart(left, right, least)
            error = _errors(left[places], right[places])
            nans = int(np.count_nonzero(error == 0))
            equal += int(np.count_nonzero(left == right)) + nans
            places, error = places[error > least], error[error > least]
            for i in np.argpartition(error, max(0, error.size - most))[-most:] if error.size else ():
                indices = tuple(int(n) for n in np.unravel_index(start + places[i], a.shape)[:dimensions])
                worst.append((float(error[i]), path, indices, a[indices]))
            worst = sorted(worst, key=lambda w: -w[0])[:most]
    return Difference(equal, elements, worst[0][0] if worst else 0.0, tuple(w[1:] for w in worst))


def _apart(a: np.ndarray, b: np.ndarray, least: float) -> np.ndarray:
    """The places of elements that are not equal and lie further apart than that, roughly, or are no numbers."""
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(np.subtract(a, b, dtype=np.result_type(a, np.float32))) < least * (1 - 1e-6)
    return np.flatnonzero((a != b) & ~near)


def _errors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far elements that are not equal lie apart: 0 for two NaNs, infinite for one."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(np.subtract(a, b, dtype=np.float64))
    return np.where((a != a) & (b != b), 0.0, np.where(np.isnan(error), np.inf, error))
