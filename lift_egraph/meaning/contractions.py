"""Sums of products, as matrix products: what a reduction by `+` of a map of `*` computes.

A factor that does not depend on a map around the reduction has length 1 along its axis, so a product of matrices, of a
matrix and a vector, or a stack of such shows in the shapes of the two factors alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Scalar
from lift_egraph.meaning.folds import fold_form
from lift_egraph.meaning.values import at

BLOCK = 1 << 23  # elements of both factors that are copied at a time
LEAST = 256  # products that one matrix product is worth its call for


@lru_cache(maxsize=1024)
def product_of(term: ir.Expr) -> tuple[ir.Lambda, ir.Expr] | None:
    """The function of floats, a product inside lets, that a reduction sums over an array; None for others.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program, print_term
    >>> program = parse_program("program f(x: [f32]9) = reduce(add, 0.0, map(fun a => let b = a + 1.0 in a * b, x))")
    >>> function, array = product_of(program.body)
    >>> [print_term(factor) for factor in factors(function)[1].arguments], print_term(array)
    (['a', 'b'], 'x')
    """
    if not isinstance(term, ir.Reduce):
        return None
    form = fold_form(term.operator)
    if form is None or form[0] != "add":
        return None
    function, array = form[1], term.array
    if function is None and isinstance(array, ir.Map | ir.MapLevel):
        function, array = array.function, array.array
    if not isinstance(function, ir.Lambda):
        return None
    product = factors(function)[1]
    t = type_of(product)
    is_product = isinstance(product, ir.Call) and product.op == "mul" and isinstance(t, Scalar) and t.is_float
    return (function, array) if is_product else None


def factors(function: ir.Lambda) -> tuple[list[ir.Apply], ir.Expr]:
    """The lets around the result of a function, outermost first, and the result."""
    lets: list[ir.Apply] = []
    body = function.body
    while True:
        if isinstance(body, ir.ToMemory):
            body = body.value
        elif isinstance(body, ir.Apply) and isinstance(body.function, ir.Lambda):
            lets.append(body)
            body = body.function.body
        else:
            return lets, body


def is_worthwhile(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether matrix products are faster than products one by one, and say the same: not tiny, of finite factors."""
    rows, columns = _longest(a, b), _longest(b, a)
    work = a.shape[-1] * (1 if rows is None else a.shape[rows]) * (1 if columns is None else b.shape[columns])
    return work >= LEAST and _is_finite(_narrow(a)) and _is_finite(_narrow(b))


def _is_finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())  # a sum is quicker, but may overflow


def contract(a: np.ndarray, b: np.ndarray, prepare: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The sums along the last axis of the products of two arrays that broadcast, in any order.

    Parameters
    ----------
    prepare
        Called with blocks of either array, before they are multiplied.

    Examples
    --------
    >>> a, b = np.arange(6.0).reshape(2, 1, 3), np.arange(12.0).reshape(1, 4, 3)
    >>> contract(a, b, np.abs).tolist() == (a[:, 0] @ b[0].T).tolist()
    True
    """
    a, b = _narrow(a), _narrow(b)
    if a.size + b.size <= BLOCK:
        return _multiply(prepare(a), prepare(b))
    larger = a if a.size >= b.size else b
    axis = max(range(a.ndim), key=lambda i: larger.shape[i])
    middle, length = larger.shape[axis] // 2, larger.shape[axis]

    def half(array: np.ndarray, part: slice) -> np.ndarray:
        return array[at(axis, part)] if array.shape[axis] == length else array

    low, high = (contract(half(a, p), half(b, p), prepare) for p in (slice(middle), slice(middle, length)))
    return low + high if axis == a.ndim - 1 else np.concatenate([low, high], axis)


def _narrow(array: np.ndarray) -> np.ndarray:
    """The array with length 1 along the axes, but the last, along which it only repeats itself."""
    return array[tuple(slice(1) if s == 0 else slice(None) for s in array.strides[:-1])]


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The contraction as a stack of matrix products: the longest axis of each alone makes its rows."""
    rows, columns = _longest(a, b), _longest(b, a)
    stack = [i for i in range(a.ndim - 1) if i not in (rows, columns)]
    left, right = _matrix(a, stack, rows), np.swapaxes(_matrix(b, stack, columns), -1, -2)
    product = np.matmul(left, right)
    shape = [1] * (a.ndim - 1)
    for i, length in zip(stack, product.shape[:-2], strict=True):
        shape[i] = length
    order = [*stack, *(i for i in (rows, columns) if i is not None)]
    if rows is not None:
        shape[rows] = product.shape[-2]
    if columns is not None:
        shape[columns] = product.shape[-1]
    product = product.reshape([shape[i] for i in order])
    return product.transpose(np.argsort(order)) if order else product


def _longest(a: np.ndarray, b: np.ndarray) -> int | None:
    """The longest axis, but the last, that only the first of two arrays has."""
    own = [i for i in range(a.ndim - 1) if a.shape[i] > 1 and b.shape[i] == 1]
    return max(own, key=lambda i: a.shape[i], default=None)


def _matrix(array: np.ndarray, stack: list[int], rows: int | None) -> np.ndarray:
    """The array as a stack of matrices; its axes that are in neither have length 1."""
    last = array.ndim - 1
    gone = [i for i in range(last) if i not in stack and i != rows]
    order = [*gone, *stack, *(() if rows is None else (rows,)), last]
    moved = array.transpose(order)[(0,) * len(gone)]
    return moved[..., None, :] if rows is None else moved
