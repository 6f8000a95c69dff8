"""Reference values with the error that an evaluation in the program's own types may have: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lift_egraph.language.types import F16, F32, F64, Scalar

Error = np.ndarray | None  # None: exact everywhere


@dataclass(frozen=True)
class Format:
    """The numbers of a floating-point type."""

    roundoff: float  # of one correctly rounded operation, with the error of the reference itself
    integers: float  # all integers up to this one are exact
    largest: float
    smallest: float  # normal


FORMATS = {
    F16: Format(2.0**-11 * (1 + 2.0**-20), 2.0**11, float(np.finfo(np.float16).max), 2.0**-14),
    F32: Format(2.0**-24 * (1 + 2.0**-20), 2.0**24, float(np.finfo(np.float32).max), 2.0**-126),
    F64: Format(2.0**-52 * (1 + 2.0**-20), 2.0**53, float(np.finfo(np.float64).max), 2.0**-1022),
}


@dataclass(frozen=True)
class Affine:
    """An error as the sum of what each of some sources contributes, with its sign, and a rest that is bounded."""

    moves: Mapping[object, np.ndarray]
    rest: np.ndarray


@dataclass(frozen=True)
class Bounded:
    """Reference values and the absolute error bound of each (of the same shape), for elements of one type.

    Attributes
    ----------
    affine
        What the error consists of, where that is followed (`bounds_affine`); `error` bounds all of it.
    """

    value: np.ndarray
    error: Error
    scalar: Scalar
    affine: Affine | None = None


def plus(*errors: Error) -> Error:
    known = [e for e in errors if e is not None]
    return sum(known[1:], start=known[0]) if known else None


def full_error(leaf: Bounded) -> np.ndarray:
    return np.broadcast_to(np.zeros(()), leaf.value.shape) if leaf.error is None else leaf.error
