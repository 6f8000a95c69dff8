"""The comparison of elements with their references. Bundles take this module along: it needs NumPy alone."""

from __future__ import annotations

import numpy as np


def element_errors(output: np.ndarray, value: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The absolute error of each element (0 where it is not compared), and whether it is wrong."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(np.subtract(output, value, dtype=np.float64))
        if not np.isfinite(error.sum()) or np.isinf(bound).any():  # infinities and NaN may be right
            same = (output == value) | (np.isnan(output) & np.isnan(value))
            error = np.where(same | np.isinf(bound), 0.0, np.where(np.isnan(error), np.inf, error))
    return error, ~(error <= bound)
