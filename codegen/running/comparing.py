"""The comparison of elements with their references. Bundles take this module along: it needs NumPy alone."""

from __future__ import annotations

import numpy as np


def element_errors(output: np.ndarray, value: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The absolute error of each element (0 where it is not compared), and whether it is wrong."""
    with np.errstate(invalid="ignore", over="ignore"):
        given = np.asarray(output, np.float64)
        error = np.abs(given - value)
        same = (given == value) | (np.isnan(given) & np.isnan(value))
        error = np.where(same | np.isinf(bound), 0.0, np.where(np.isnan(error), np.inf, error))
    return error, ~(error <= bound)
