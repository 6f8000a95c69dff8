"""Random inputs for programs at concrete sizes."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Array, DataType, Pair, Vector, scalar_of
from lift_egraph.meaning.values import Value

Kind = Literal["float", "integer"]


def random_inputs(program: ir.Program, seed: int = 0, kind: Kind = "float") -> dict[str, Value]:
    """A value for each input: an array, or nested pairs of arrays where the type has tuples.

    Parameters
    ----------
    program
        A program at concrete sizes (`lift_egraph.language.check.specialise`).
    seed
        Equal seeds give equal values.
    kind
        ``float``: floats are uniform in [-1, 1). ``integer``: they are whole numbers from -3 to 3, so
        that sums and products are exact and the order of additions does not matter. Either way, i32
        inputs are from 0 to 3 and bools are random.

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
    return {item.name: _random(item.name, item.type, (), generator, kind) for item in program.inputs}


def _random(name: str, t: DataType, shape: tuple[int, ...], generator: np.random.Generator, kind: Kind) -> Value:
    if isinstance(t, Pair):
        first = _random(name, t.first, shape, generator, kind)
        return first, _random(name, t.second, shape, generator, kind)
    if isinstance(t, Array):
        size = t.size.constant
        if size is None:
            raise SizeProblem(f"the input {name} has the open size {t.size}; give sizes with check.specialise")
        return _random(name, t.element, (*shape, size), generator, kind)
    if isinstance(t, Vector):
        shape = (*shape, t.width)
    scalar = scalar_of(t)
    dtype = NUMPY_TYPES[scalar.name]
    if scalar.name == "bool":
        return np.asarray(generator.integers(0, 2, shape), dtype)
    if not scalar.is_float or kind == "integer":
        return np.asarray(generator.integers(-3 if scalar.is_float else 0, 4, shape), dtype)
    return _uniform(generator, shape, dtype)


def _uniform(generator: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Uniform in [-1, 1): drawn in the wanted precision, so that rounding never reaches 1."""
    return np.asarray(generator.random(shape, dtype) * dtype(2) - dtype(1), dtype)
