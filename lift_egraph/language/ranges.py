"""Ranges of inputs: the values that a program is meant for, which validation and timing draw from.

``x: [f32]N in 0.1..10`` has numbers from 0.1 to 10, ``cols: [i32]M in 0..N`` whole numbers from 0 to N - 1.
``starts: [i32](M + 1) in offsets(K)`` says where each of M rows begins in an array of K elements, and the last ends.
A range is no part of a type. Floats may also be its upper bound, and both bounds are rounded to their type. Inputs are
checked when a kernel is run, as what is known of a fold may rest on their range; so are offsets, for those that
decrease or point outside are a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from lift_egraph.errors import SizeProblem, TypeProblem
from lift_egraph.language.nat import Nat, NatLike
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import I32, Array, DataType, leaves, scalar_of

Bound = Union[Nat, float]
_BLOCK = 1 << 16  # values that are looked at twice while they are near


@dataclass(frozen=True)
class Range:
    """``low..high``: from `low` on, below `high`; floats may be `high` itself. Sizes may stand in both."""

    low: Bound
    high: Bound

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"

    def substitute(self, values: Mapping[str, NatLike]) -> Range:
        """The range with size variables replaced by name."""
        low, high = (b.substitute(values) if isinstance(b, Nat) else b for b in (self.low, self.high))
        return Range(low, high)

    @property
    def numbers(self) -> tuple[float, float] | None:
        """Both bounds as numbers (``int`` where they are whole by form), if no size in them is open."""
        low, high = (b.constant if isinstance(b, Nat) else b for b in (self.low, self.high))
        return None if low is None or high is None else (low, high)

    @property
    def sizes(self) -> frozenset[str]:
        """The names of the sizes in it."""
        return frozenset(v.name for b in (self.low, self.high) if isinstance(b, Nat) for v in b.variables)

    def problem(self, values: np.ndarray) -> str | None:
        """What is wrong with numbers for it, at known bounds, in all blocks of an array that fit into a cache."""
        if self.numbers is None:
            return None
        flat = values.reshape(-1)
        low, high = ends(*self.numbers, values.dtype)
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            if not (low <= block.min() and block.max() <= high):  # so it is of a NaN
                place = start + int(np.argmin((block >= low) & (block <= high)))
                return f"{_shown(place, values.shape)} is {flat[place]}, outside of the range {self}"
        return None


def ends(low: float, high: float, dtype: np.dtype | type) -> tuple[Any, Any]:
    """The least and the largest number of a type in a range of these bounds.

    Examples
    --------
    >>> ends(0, 9, np.int32), [round(float(end), 9) for end in ends(0.1, 0.7, np.float32)]
    ((0, 8), [0.100000001, 0.699999988])
    """
    if np.dtype(dtype).kind == "f":
        of = np.dtype(dtype).type
        return of(low), of(high)
    return int(low), int(high) - 1


def _shown(place: int, shape: tuple[int, ...]) -> str:
    return f"element {', '.join(map(str, np.unravel_index(place, shape)))}" if shape else "it"


@dataclass(frozen=True)
class Offsets:
    """``offsets(end)``: the first is 0, none is less than the one before, the last is `end`."""

    end: Nat

    numbers = None

    def __str__(self) -> str:
        return f"offsets({self.end})"

    def substitute(self, values: Mapping[str, NatLike]) -> Offsets:
        """The offsets with size variables replaced by name."""
        return Offsets(self.end.substitute(values))

    @property
    def sizes(self) -> frozenset[str]:
        """The names of the sizes in it."""
        return frozenset(v.name for v in self.end.variables)

    def problem(self, values: np.ndarray) -> str | None:
        """What is wrong with values for them, at a known end."""
        end = self.end.constant
        for place, wanted in ((0, 0), (len(values) - 1, end)):
            if values[place] != wanted:
                return f"element {place} is {values[place]}, but offsets begin with 0 and end with {end}"
        steps = np.diff(values.astype(np.int64))
        if not (steps < 0).any():
            return None
        place = int(np.argmax(steps < 0))
        return (
            f"element {place + 1} is {values[place + 1]}, less than {values[place]} before it: offsets never decrease"
        )


Values = Union[Range, Offsets]


def check_range(name: str, t: DataType, values: Values) -> None:
    """Check that an input of a type can have values in a range.

    Raises
    ------
    TypeProblem
        If the input is of bools or of tuples of several types, or a bound is no number of its type, or offsets are no
        array of i32.
    SizeProblem
        If the range is empty, or there are fewer than two offsets.
    """
    if isinstance(values, Offsets):
        _check_offsets(name, t, values)
        return
    scalar, *others = {scalar_of(leaf) for _, _, leaf in leaves(t)}
    if others or scalar.name == "bool":
        raise TypeProblem(f"the input {name}: {t} can have no range: a range is for numbers of one type")
    for bound in (values.low, values.high):
        if not isinstance(bound, Nat) and not (scalar.is_float and math.isfinite(bound)):
            wanted = "finite numbers" if scalar.is_float else "whole numbers"
            raise TypeProblem(f"the bounds of a range of {scalar} are {wanted} or sizes, got {bound}")
    numbers = values.numbers
    if numbers is None:
        difference = values.high - values.low if isinstance(values.low, Nat) and isinstance(values.high, Nat) else None
        empty = difference is not None and difference.constant is not None and difference.constant <= 0
    else:
        low, high = numbers
        dtype = NUMPY_TYPES[scalar.name]
        if scalar.is_float:
            with np.errstate(over="ignore"):
                empty, fits = dtype(low) >= dtype(high), bool(np.isfinite(dtype(high) - dtype(low)))
        else:
            empty, fits = low >= high, np.iinfo(dtype).min <= low and high - 1 <= np.iinfo(dtype).max
        if not fits:
            raise TypeProblem(f"the input {name}: {t} has the range {values}, which is beyond that of {scalar}")
    if empty:
        why = "has no two numbers" if scalar.is_float else "is empty: the upper bound is outside"
        raise SizeProblem(f"the input {name}: {t} has the range {values}, which {why}")


def _check_offsets(name: str, t: DataType, values: Offsets) -> None:
    if not isinstance(t, Array) or t.element != I32:
        raise TypeProblem(f"the input {name}: {t} cannot be {values}: offsets are an array of i32")
    length, end = t.size.constant, values.end.constant
    if length is not None and length < 2:
        raise SizeProblem(f"the input {name}: {t} cannot be {values}: of n rows there are n + 1 offsets, at least 2")
    if end is not None and not 0 <= end < 1 << 31:
        raise SizeProblem(f"the input {name}: {t} cannot be {values}: {end} elements are beyond the range of i32")
