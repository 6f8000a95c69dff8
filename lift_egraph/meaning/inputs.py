"""Random inputs for programs at concrete sizes."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from lift_egraph.algebra.trials import mentioned
from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.ranges import Offsets, Values
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Array, DataType, Pair, Scalar, Vector, scalar_of
from lift_egraph.meaning.values import Value, map_leaves

Kind = Literal["float", "integer", "any", "low", "high"]
PERIOD = 2**24 - 3  # elements after which a larger input repeats itself: a prime, so that no row is like another
BITS = {"f16": 10, "f32": 20, "f64": 20}  # by which floats of any size are as large as whole numbers, at most
LITERALS = 1 / 8  # the share of numbers of any size that a program mentions


def random_inputs(program: ir.Program, seed: int = 0, kind: Kind = "float") -> dict[str, Value]:
    """A value for each input: an array, or nested pairs of arrays where the type has tuples.

    Parameters
    ----------
    program
        A program at concrete sizes (`lift_egraph.language.check.specialise`).
    seed
        Equal seeds give equal values.
    kind
        ``float``: floats are uniform in their range, [-1, 1) by default. ``integer``: they are whole numbers
        from -3 to 3, so that sums and products are exact and the order of additions does not matter; where
        their range has too few of those, others of few binary digits. Either way, i32 inputs are uniform in
        their range, 0 to 3 by default, and bools are random. Offsets are of rows whose lengths differ. ``any``: as
        ``integer``, but whole numbers without a range are any of their type, small and large ones of both signs, and
        floats whole numbers of a few digits up to about a million; some are numbers that the program mentions.
        ``low`` and ``high``: as ``integer``, but of one half of their range alone; without a range of one sign, as far
        as the type has both.

    Returns
    -------
    dict
        Leaves have the lengths of the arrays around them as their shape, outermost first; vectors
        add a trailing axis. A scalar input is an array of no dimensions.

    Raises
    ------
    SizeProblem
        If a size is open.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> p = parse_program("program f(xs: [(f32, i32x4)]3, a: f32) = xs")
    >>> values = random_inputs(p)
    >>> [leaf.shape for leaf in values["xs"]], values["a"].shape
    ([(3,), (3, 4)], ())
    """
    generator = np.random.default_rng(seed)
    ranges = dict(program.ranges)
    drawn = {i.name: _random(i.name, i.type, (), generator, kind, ranges.get(i.name)) for i in program.inputs}
    if kind != "any":
        return drawn
    numbers = sorted({v + k for v in mentioned([program.body]) for k in (-1, 0, 1)})
    free = [name for name in drawn if name not in ranges]
    return drawn | {n: map_leaves(lambda leaf: _some_of(numbers, leaf, generator), drawn[n]) for n in free}


def _some_of(numbers: list[float], leaf: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """An array with some elements replaced by numbers that its type has, but for floats that hide others in sums."""
    if leaf.dtype.kind == "b":
        return leaf
    whole = leaf.dtype.kind in "iu"
    limits = np.iinfo(leaf.dtype) if whole else np.finfo(leaf.dtype)
    most = int(limits.max) if whole else min(float(limits.max), 1 << max(BITS.values()))
    least = int(limits.min) if whole else -most
    fitting = [v for v in numbers if least <= v <= most and (not whole or v == int(v))]
    if not fitting:
        return leaf
    chosen = generator.choice(np.array(fitting, leaf.dtype), leaf.shape)
    return np.asarray(np.where(generator.random(leaf.shape) < LITERALS, chosen, leaf), leaf.dtype)


def _random(
    name: str, t: DataType, shape: tuple[int, ...], generator: np.random.Generator, kind: Kind, within: Values | None
) -> Value:
    if isinstance(t, Pair):
        first = _random(name, t.first, shape, generator, kind, within)
        return first, _random(name, t.second, shape, generator, kind, within)
    if isinstance(t, Array):
        size = t.size.constant
        if size is None:
            raise SizeProblem(f"the input {name} has the open size {t.size}; specialise gives it a value")
        if size < 0:
            raise SizeProblem(f"the input {name} has the negative length {size}")
        return _random(name, t.element, (*shape, size), generator, kind, within)
    if isinstance(t, Vector):
        shape = (*shape, t.width)
    if isinstance(within, Offsets):
        return _offsets(name, shape[0], within, generator)
    if math.prod(shape) <= PERIOD:
        return _drawn(name, scalar_of(t), shape, generator, kind, within)
    return repeated(_drawn(name, scalar_of(t), (PERIOD,), generator, kind, within), shape)


def _offsets(name: str, count: int, within: Offsets, generator: np.random.Generator) -> np.ndarray:
    """Where rows begin in an array, and the last one ends.

    Most rows have about the mean length and some a few times that, as in stiffness matrices such as bcsstk18: 11948
    rows of 12.5 elements on the average, 49 at most. A few are empty.
    """
    end = within.end.constant
    if end is None:
        raise SizeProblem(f"{within} of the input {name} is open; specialise gives it a value")
    lengths = generator.gamma(3.0, size=count - 1)
    lengths[generator.random(count - 1) < 1 / 64] = 0
    total = np.cumsum(lengths)
    return np.asarray([0, *np.rint(total * (end / (total[-1] or 1.0)))[:-1], end], np.int32)


def repeated(block: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A large array of a block of elements again and again: drawing them all takes long.

    >>> repeated(np.arange(3), (2, 4)).tolist()
    [[0, 1, 2, 0], [1, 2, 0, 1]]
    """
    whole = np.empty(math.prod(shape), block.dtype)
    whole[: block.size] = block
    filled = block.size
    while filled < whole.size:
        more = min(filled, whole.size - filled)
        whole[filled : filled + more] = whole[:more]
        filled += more
    return whole.reshape(shape)


def _drawn(
    name: str, scalar: Scalar, shape: tuple[int, ...], generator: np.random.Generator, kind: Kind, within: Values | None
) -> np.ndarray:
    dtype = NUMPY_TYPES[scalar.name]
    if scalar.name == "bool":
        return np.asarray(generator.integers(0, 2, shape), dtype)
    numbers = None if within is None else within.numbers
    if within is not None and numbers is None:
        raise SizeProblem(f"the range {within} of the input {name} is open; specialise gives it a value")
    if not scalar.is_float and kind == "any" and numbers is None:
        bits = np.iinfo(dtype).bits
        drawn = np.frombuffer(generator.bytes(math.prod(shape) * bits // 8), dtype).reshape(shape)
        return np.right_shift(drawn, np.asarray(generator.integers(0, bits, shape), dtype))
    if not scalar.is_float:
        both_signs = kind in ("low", "high") and np.iinfo(dtype).min < 0
        least, bound = _part(kind, *map(int, numbers or (-4 * both_signs, 4)))
        return np.asarray(generator.integers(least, bound, shape), dtype)
    low, high = (dtype(bound) for bound in numbers or (-1, 1))
    if kind == "float":
        return _uniform(generator, shape, dtype, low, high)
    if kind == "any" and numbers is None:
        sizes = generator.integers(0, BITS[scalar.name] + 1, shape)
        return np.asarray(np.ldexp(generator.integers(-3, 4, shape).astype(float), sizes), dtype)
    first, step, count = _few_digits(low, high) if numbers else (-3, 1, 7)
    return np.asarray(first + step * generator.integers(*_part(kind, 0, count), shape), dtype)


def _part(kind: Kind, low: int, high: int) -> tuple[int, int]:
    """The numbers from one on, below the other, that are drawn from.

    >>> _part("low", 0, 7), _part("high", 0, 7), _part("high", 0, 1), _part("integer", 0, 7)
    ((0, 3), (4, 7), (0, 1), (0, 7))
    """
    half = (high - low) // 2
    if kind == "low":
        return low, max(low + 1, low + half)
    return (min(high - 1, high - half), high) if kind == "high" else (low, high)


def _uniform(generator: np.random.Generator, shape: tuple[int, ...], dtype: type, low: Any, high: Any) -> np.ndarray:
    """Uniform from `low` on, below `high`: drawn in the wanted precision, and kept from rounding up to `high`."""
    drawn = generator.random(shape, np.float32 if dtype == np.float16 else dtype) * (high - low) + low
    return np.asarray(np.clip(drawn, low, np.nextafter(high, low)), dtype)


def _few_digits(low: np.floating, high: np.floating) -> tuple[float, float, int]:
    """The first of some numbers in a range, the step between them, and how many they are.

    They are multiples of a power of two, of 1 if at least 4 whole numbers are in the range, and as near to 0 as it has.

    >>> _few_digits(np.float32(0.1), np.float32(10)), _few_digits(np.float32(1), np.float32(2))
    ((1.0, 1.0, 7), (1.0, 0.25, 4))
    """
    finest = float(max(np.spacing(abs(low)), np.spacing(abs(high))))
    step = max(1.0, finest)
    while True:
        first, last = math.ceil(float(low) / step), math.ceil(float(high) / step) - 1
        if last - first >= 3 or step <= finest:
            break
        step /= 2
    if last < first:
        return float(low), 0.0, 1
    start = max(first, min(-3, last - 6))
    return start * step, step, min(last, start + 6) - start + 1
