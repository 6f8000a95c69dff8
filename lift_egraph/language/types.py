"""The types of LIFT: scalars, short vectors, pairs and arrays whose length is in the type.

Source: 000 §2.4.2. A tuple ``(a, b, c)`` is the right-nested pair ``(a, (b, c))``: one notion
serves every arity. `lanes` packs the scalars at the leaves of a type into vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Union

from lift_egraph.errors import TypeProblem
from lift_egraph.language.nat import Nat, NatLike, nat

SCALAR_BYTES = {"f32": 4, "f64": 8, "i32": 4, "bool": 1, "i64": 8, "u32": 4, "u8": 1, "f16": 2}
WIDTHS = (2, 4, 8, 16)


@dataclass(frozen=True)
class Scalar:
    """One of ``f16``, ``f32``, ``f64``, ``i32``, ``i64``, ``u32``, ``u8``, ``bool``."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.name in ("f16", "f32", "f64")

    @property
    def is_integer(self) -> bool:
        return self.name in ("i32", "i64", "u32", "u8")


@dataclass(frozen=True)
class Vector:
    """An OpenCL short vector of `width` scalars, written ``f32x4``."""

    scalar: Scalar
    width: int

    def __str__(self) -> str:
        return f"{self.scalar}x{self.width}"


@dataclass(frozen=True)
class Pair:
    """Two values together; longer tuples nest to the right."""

    first: DataType
    second: DataType

    def __str__(self) -> str:
        return "(" + ", ".join(str(t) for t in tuple_components(self)) + ")"


@dataclass(frozen=True)
class Array:
    """``size`` elements of one type, written ``[f32]N``."""

    size: Nat
    element: DataType

    def __str__(self) -> str:
        size = str(self.size)
        return f"[{self.element}]" + (size if self.size.is_atomic and "(" not in size else f"({size})")


DataType = Union[Scalar, Vector, Pair, Array]

F32, F64, I32, BOOL, I64, U32, U8, F16 = (Scalar(name) for name in SCALAR_BYTES)


def array(element: DataType, *sizes: NatLike) -> DataType:
    """``array(F32, "M", "K")`` is the type of an M by K matrix, ``[[f32]K]M``."""
    for size in reversed(sizes):
        element = Array(nat(size), element)
    return element


def tuple_of(*components: DataType) -> DataType:
    """The right-nested pair of two or more types."""
    if len(components) == 1:
        return components[0]
    return Pair(components[0], tuple_of(*components[1:]))


def tuple_components(t: DataType) -> tuple[DataType, ...]:
    """All components of a right-nested tuple type (one, for a type that is no pair)."""
    return (t.first, *tuple_components(t.second)) if isinstance(t, Pair) else (t,)


def is_data(t: DataType) -> bool:
    """Whether a value of this type fits one work-item's registers: a scalar, a vector or a tuple of them."""
    return is_data(t.first) and is_data(t.second) if isinstance(t, Pair) else not isinstance(t, Array)


def scalar_of(t: DataType) -> Scalar:
    """The scalar type of a scalar or vector type.

    Raises
    ------
    TypeProblem
        If it is neither.
    """
    if isinstance(t, Scalar):
        return t
    if isinstance(t, Vector):
        return t.scalar
    raise TypeProblem(f"expected a scalar or a vector, got {t}")


def width_of(t: DataType) -> int:
    """The number of lanes of a scalar (1) or vector type."""
    return t.width if isinstance(t, Vector) else 1


def leaves(t: DataType, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], tuple[Nat, ...], DataType]]:
    """The buffers that a value of this type needs when arrays of tuples are kept as tuples of arrays.

    Yields
    ------
    (components, sizes, leaf)
        The component choices (0 or 1) that lead to the leaf, the lengths of the arrays around it
        (outermost first), and its scalar or vector type.
    """
    if isinstance(t, Pair):
        yield from leaves(t.first, (*path, 0))
        yield from leaves(t.second, (*path, 1))
    elif isinstance(t, Array):
        for components, sizes, leaf in leaves(t.element, path):
            yield components, (t.size, *sizes), leaf
    else:
        yield path, (), t


def lanes(width: int, t: DataType) -> DataType:
    """The type with every scalar leaf widened to a vector: ``lanes(4, [(f32, i32)]N)`` is ``[(f32x4, i32x4)]N``.

    Raises
    ------
    TypeProblem
        If no vector has so many lanes, or a leaf is a vector already.
    """
    if isinstance(t, Scalar):
        if width not in WIDTHS:
            raise TypeProblem(f"a vector has 2, 4, 8 or 16 lanes, not {width}")
        return Vector(t, width)
    if isinstance(t, Vector):
        raise TypeProblem(f"{t} is a vector already: vectors do not nest")
    if isinstance(t, Pair):
        return Pair(lanes(width, t.first), lanes(width, t.second))
    return Array(t.size, lanes(width, t.element))


def without_lanes(t: DataType) -> tuple[int, DataType]:
    """The inverse of `lanes`: the common width of all leaves and the type of one lane.

    Raises
    ------
    TypeProblem
        If a leaf is no vector, or they have several widths.
    """
    if isinstance(t, Vector):
        return t.width, t.scalar
    if isinstance(t, Array):
        width, element = without_lanes(t.element)
        return width, Array(t.size, element)
    if isinstance(t, Pair):
        (w1, first), (w2, second) = without_lanes(t.first), without_lanes(t.second)
        if w1 != w2:
            raise TypeProblem(f"{t} mixes vectors of {w1} and of {w2} lanes")
        return w1, Pair(first, second)
    raise TypeProblem(f"expected vectors at the leaves, got {t}")


def substitute_sizes(t: DataType, values: dict[str, NatLike]) -> DataType:
    """The type with size variables replaced by name."""
    if isinstance(t, Array):
        return Array(t.size.substitute(values), substitute_sizes(t.element, values))
    if isinstance(t, Pair):
        return Pair(substitute_sizes(t.first, values), substitute_sizes(t.second, values))
    return t


def size_names(t: DataType) -> frozenset[str]:
    """The names of the size variables in a type."""
    if isinstance(t, Array):
        return frozenset(v.name for v in t.size.variables) | size_names(t.element)
    return size_names(t.first) | size_names(t.second) if isinstance(t, Pair) else frozenset()


def bytes_of(t: DataType) -> int:
    """The size of a value of a type of concrete sizes, in bytes."""
    return sum(
        prod(s.evaluate({}) for s in sizes) * width_of(leaf) * SCALAR_BYTES[scalar_of(leaf).name]
        for _, sizes, leaf in leaves(t)
    )
