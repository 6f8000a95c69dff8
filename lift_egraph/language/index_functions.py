"""Index functions and boundaries as one writes them in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name
from lift_egraph.language.functions import as_expr, parameter_names
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.types import DataType

IndexLike = ir.IndexFunction | Callable[..., Any]


def index_function(function: IndexLike) -> ir.IndexFunction:
    """An index function from ``lambda i: …`` or ``lambda i, n: …``, where ``n`` is the array's length.

    >>> print(index_function(lambda i, n: n - 1 - i).body)
    -i + n - 1

    Raises
    ------
    TypeProblem
        If it is no function of an index and a length, or gives no index.
    """
    if isinstance(function, ir.IndexFunction):
        return function
    if not callable(function):
        raise TypeProblem(f"expected an index function, got {function!r}; it is reverse, stride(4), or lambda i, n: …")
    names = parameter_names(function)
    if len(names) not in (1, 2):
        raise TypeProblem("an index function takes the index, or the index and the length of the array")
    place = NatVar("an index")  # no size has this name
    result = function(nat(place), nat("n")) if len(names) == 2 else function(nat(place))
    if isinstance(result, bool) or not isinstance(result, Nat | int):
        raise TypeProblem(f"an index function returns an index, got {result!r}")
    body = nat(result)
    name = fresh_name(names[0], {"n"} | {v.name for v in body.variables})
    return ir.IndexFunction(name, body.substitute({place.name: name}))


reverse = index_function(lambda i, n: n - 1 - i)


def stride(step: Nat | int | str) -> ir.IndexFunction:
    """The index function that reads every `step`-th element, then those one further, and so on.

    >>> print(stride(4).body)
    4 * (i % (n / 4)) + (i / (n / 4))
    """
    return index_function(lambda i, n: i // (n // step) + nat(step) * (i % (n // step)))


@dataclass(frozen=True)
class constant:
    """The boundary ``constant(value)``; a number takes the type of the padded elements, or of all their components."""

    value: Any


BoundaryLike = ir.Boundary | constant | str
clamp, mirror, wrap = "clamp", "mirror", "wrap"


def boundary(value: BoundaryLike, element: DataType) -> ir.Boundary:
    """A boundary from its name or from `constant`.

    Raises
    ------
    TypeProblem
        If there is no such boundary, or its constant is no number.
    """
    if isinstance(value, ir.Boundary):
        return value
    if isinstance(value, constant):
        number = as_expr(value.value, element)
        if not isinstance(number, ir.Literal):
            raise TypeProblem("pad: the boundary constant(value) takes a number, or a tuple of numbers beside tuples")
        return ir.Boundary("constant", number)
    if not isinstance(value, str):
        raise TypeProblem(f"pad takes a boundary ({', '.join(ir.BOUNDARIES)}), got {value!r}")
    return ir.Boundary(value)
