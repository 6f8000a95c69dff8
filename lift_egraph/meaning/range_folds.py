"""Folds of a part of an array whose ends are computed, so that each has a length of its own.

Folds beside each other go step by step, as long as the longest of them. By a built-in operation they are folds of one
length, filled up with what is neutral.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Protocol, Union

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.index_arrays import number
from lift_egraph.language.scalar import LAWS, NUMPY_TYPES
from lift_egraph.language.types import BOOL, DataType, Scalar, leaves, scalar_of
from lift_egraph.meaning.folds import fold_form
from lift_egraph.meaning.scopes import Scope
from lift_egraph.meaning.values import Tree, at, gathered, widen, zip_leaves

if TYPE_CHECKING:
    from lift_egraph.meaning.domains import Domain

RangeFold = Union[ir.ReduceRange, ir.ReduceRangeSeq]


class Interpreter(Protocol):
    """What evaluates terms."""

    domain: Domain
    budget: int

    def value(self, term: ir.Expr, scope: Scope) -> Tree: ...
    def each(self, change: Callable[[np.ndarray], np.ndarray], tree: Tree) -> Tree: ...
    def step_of(self, operator: ir.Function, before: Tree, element: Tree, scope: Scope) -> Tree: ...
    def map(self, function: ir.Function, array: Tree, scope: Scope) -> Tree: ...
    def looked_up(self, indices: Tree, array: Tree, axis: int) -> Tree: ...


def fold_of_range(interpreter: Interpreter, term: RangeFold, scope: Scope) -> Tree:
    """The value of a fold of the elements from `low` on and before `high`, as far as the array has them."""
    domain = interpreter.domain
    start, low, high = (interpreter.value(part, scope) for part in (term.initial, term.low, term.high))
    size = number(size_of(term.array), term.signature.name)
    first = np.clip(domain.array(low), 0, size)
    last = np.clip(domain.array(high), first, size)
    longest = int((last - first).max(initial=0))
    for axis, length in enumerate(np.broadcast_shapes(first.shape, last.shape)):
        if length > 1:
            start = interpreter.each(lambda a, axis=axis, length=length: widen(a, axis, length), start)
    if longest:
        operation = _operation(term)
        room = prod(np.broadcast_shapes(first.shape, last.shape)) * longest * domain.bytes_per_element
        if operation and (first.size == last.size == 1 or room <= interpreter.budget):
            start = _filled_up(interpreter, term, operation, start, (first, last), scope)
        else:
            start = _step_by_step(interpreter, term, start, (first, last), scope)
    return zip_leaves(lambda leaf: domain.picked(domain.picked(leaf, low), high), start)


def _operation(term: RangeFold) -> tuple[str, ir.Function | None] | None:
    """The built-in operation of a fold of scalars that has a neutral element, and the function before it."""
    t, form = type_of(term.initial), fold_form(term.operator)
    if form is None or not isinstance(t, Scalar) or not isinstance(form[0], str):
        return None
    return (form[0], form[1]) if t.name in LAWS[form[0]].neutral else None


def _filled_up(
    interpreter: Interpreter,
    term: RangeFold,
    operation: tuple[str, ir.Function | None],
    start: Tree,
    ends: tuple[np.ndarray, np.ndarray],
    scope: Scope,
) -> Tree:
    domain, (first, last), (op, function) = interpreter.domain, ends, operation
    scalar = scalar_of(type_of(term.initial))
    places = first[..., None] + np.arange((last - first).max())
    inside = places < last[..., None]
    elements = _elements(interpreter, term.array, np.where(inside, places, 0), scope)
    if function is not None:
        elements = interpreter.map(function, elements, scope)
    if not inside.all():
        neutral = np.full((1,) * inside.ndim, LAWS[op].neutral[scalar.name], NUMPY_TYPES[scalar.name])
        chosen = domain.exact(inside, BOOL), elements, domain.exact(neutral, scalar)
        elements = domain.call("select", scalar, chosen)
    return domain.fold(op, start, elements, scope.depth, True)


def _step_by_step(
    interpreter: Interpreter, term: RangeFold, start: Tree, ends: tuple[np.ndarray, np.ndarray], scope: Scope
) -> Tree:
    domain, (first, last), depth = interpreter.domain, ends, scope.depth
    for step in range(int((last - first).max())):
        inside = first + step < last
        elements = _elements(interpreter, term.array, np.where(inside, first + step, 0)[..., None], scope)
        element = interpreter.each(lambda a: a[at(depth, 0)], elements)
        made = interpreter.step_of(term.operator, start, element, scope)
        start = chosen(domain, type_of(term.initial), inside, made, start)
    return start


def chosen(domain: Domain, t: DataType, condition: np.ndarray, new: Tree, old: Tree) -> Tree:
    """The new value of a type where a condition on the first axes holds, else the old one."""
    scalars = iter([scalar_of(leaf) for _, _, leaf in leaves(t)])

    def choose(a: Tree, b: Tree) -> Tree:
        holds = condition.reshape(condition.shape + (1,) * (domain.array(a).ndim - condition.ndim))
        return domain.call("select", next(scalars), (domain.exact(holds, BOOL), a, b))

    return zip_leaves(choose, new, old)


def _elements(interpreter: Interpreter, array: ir.Expr, places: np.ndarray, scope: Scope) -> Tree:
    """The elements of an array at some places, along an own axis; of a map or a lookup no others are computed."""
    match array:
        case ir.Map(function=function, array=inner):
            return interpreter.map(function, _elements(interpreter, inner, places, scope), scope)
        case ir.Zip(first=first, second=second):
            return tuple(_elements(interpreter, part, places, scope) for part in (first, second))
        case ir.Lookup(indices=indices, array=inner):
            picked = _elements(interpreter, indices, places, scope)
            return interpreter.looked_up(picked, interpreter.value(inner, scope), scope.depth)
    return interpreter.each(lambda a: gathered(a, scope.depth, places), interpreter.value(array, scope))
