"""Sizes and index functions as NumPy integers and integer arrays, and index functions at one length in normal form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.nat import Nat, NatVar, Operation, nat

REVERSE = ir.IndexFunction("i", nat("n") - 1 - nat("i"))


def number(size: Nat, where: str) -> int:
    if size.constant is None:
        raise SizeProblem(f"{where}: the size {size} is open; specialise gives it a value")
    return size.constant


def boundary(kind: str, positions: np.ndarray, size: int) -> np.ndarray:
    """Where an element outside an array comes from.

    Raises
    ------
    SizeProblem
        If the array has no elements, but elements are asked for.
    """
    if size == 0 and positions.size:
        raise SizeProblem(f"pad({kind}) needs an array of at least one element")
    if kind == "clamp" or size == 0:
        return np.clip(positions, 0, max(size - 1, 0))
    if kind == "wrap":
        return positions % size
    folded = positions % (2 * size)
    return np.where(folded < size, folded, 2 * size - 1 - folded)


def index_values(function: ir.IndexFunction, size: int, where: str) -> np.ndarray:
    """An index function at all indices of an array.

    Raises
    ------
    SizeProblem
        If an index is outside of the array.
    """
    if size == 0:
        return np.zeros(0, np.int64)  # there is no index to compute, and `% n` would divide by zero
    result = np.broadcast_to(_nat_values(function.body, {"n": size, function.variable: np.arange(size)}), (size,))
    if size and not (result.min() >= 0 and result.max() < size):
        raise SizeProblem(f"{where}({function.variable} -> {function.body}) leaves an array of length {size}")
    return result


def order_at(function: ir.IndexFunction, size: Nat) -> ir.IndexFunction:
    """The index function for arrays of one length: equal ones are equal as far as the normal form of `nat` goes.

    Examples
    --------
    >>> half = ir.IndexFunction("j", nat("j") // (nat("n") // 2) + nat("n") % 2)
    >>> print(order_at(half, nat(8)).body, order_at(ir.IndexFunction("j", 7 - nat("j")), nat(8)).body, sep=", ")
    i / 4, -i + n - 1
    """
    length = size.constant
    if not length:
        return ir.IndexFunction("i", function.body.substitute({function.variable: nat("i")}))
    index = nat(NatVar("i", 0, length - 1))
    body = function.body.substitute({function.variable: index, "n": size})
    return REVERSE if body == size - 1 - index else ir.IndexFunction("i", body)


def _nat_values(index: Nat, values: Mapping[str, Any]) -> Any:
    total: Any = 0
    for monomial, coefficient in index.terms:
        product: Any = coefficient
        for atom in monomial:
            product = product * (
                _operation_values(atom, values) if isinstance(atom, Operation) else _known(atom.name, values)
            )
        total = total + product
    return total


def _known(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise SizeProblem(f"the size {name} is open; specialise gives it a value")
    return values[name]


def _operation_values(operation: Operation, values: Mapping[str, Any]) -> Any:
    left, right = _nat_values(operation.left, values), _nat_values(operation.right, values)
    if operation.symbol == "min":
        return np.minimum(left, right)
    if operation.symbol == "max":
        return np.maximum(left, right)
    if np.any(np.asarray(right) == 0):
        raise SizeProblem(f"division by zero in the index {operation}")
    return left // right if operation.symbol == "/" else left % right
