"""Ways of the interpreter that are faster than the plain one, and say the same: sums of products, and long folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Protocol

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Scalar, scalar_of
from lift_egraph.meaning.contractions import factors
from lift_egraph.meaning.domains import Domain
from lift_egraph.meaning.recurrences import LONG, Steps, steps_of
from lift_egraph.meaning.scopes import Scope
from lift_egraph.meaning.values import Tree, at, leaves_of, map_leaves, widen, zip_leaves

RUN, FEW = 1 << 15, 256  # steps of a fold whose states are guessed in a run that a cache holds; most folds


class Interpreter(Protocol):
    """What evaluates terms."""

    domain: Domain
    budget: int

    def value(self, term: ir.Expr, scope: Scope) -> Tree: ...
    def each(self, change: Callable[[np.ndarray], np.ndarray], tree: Tree) -> Tree: ...
    def length(self, tree: Tree, axis: int) -> int: ...
    def apply(self, function: ir.Function, argument: Tree, scope: Scope) -> Tree: ...


def sum_of_products(interpreter: Interpreter, start: Tree, function: ir.Lambda, array: ir.Expr, scope: Scope) -> Tree:
    """The value of a reduction that sums products (`contractions.product_of`)."""
    elements = interpreter.value(array, scope)
    size = interpreter.length(elements, scope.depth)
    inner = scope.deeper(size).bind(function.binder, elements)
    lets, product = factors(function)
    inner = _inside(interpreter, lets, inner)
    assert isinstance(product, ir.Call)
    a, b = (
        interpreter.domain.each(lambda leaf: widen(leaf, scope.depth, size), interpreter.value(x, inner))
        for x in product.arguments
    )
    whole = interpreter.domain.contract(start, a, b) if size else start
    return _products(interpreter, start, a, b, scalar_of(type_of(product))) if whole is None else whole


def _inside(interpreter: Interpreter, lets: Iterable[ir.Apply], scope: Scope) -> Scope:
    """The scope inside some lets, outermost first."""
    for let in lets:
        scope = scope.bind(ir.function_body(let.function).binder, interpreter.value(let.argument, scope))
    return scope


def _products(interpreter: Interpreter, start: Tree, a: Tree, b: Tree, scalar: Scalar) -> Tree:
    """A sum of products one by one, in slices along the longest batch axis."""
    domain = interpreter.domain
    shape = np.broadcast_shapes(*(domain.array(x).shape for x in (a, b)))
    axis = max(range(len(shape) - 1), key=lambda i: shape[i], default=0)
    if prod(shape) * domain.bytes_per_element <= interpreter.budget or prod(shape[:-1]) == 1:
        return domain.fold("add", start, domain.call("mul", scalar, (a, b)), len(shape) - 1, False)

    def part(leaf: Tree, cut: slice) -> Tree:
        return domain.each(lambda x: x[at(axis, cut)] if x.shape[axis] > 1 else x, leaf)

    halves = slice(shape[axis] // 2), slice(shape[axis] // 2, None)
    parts = [_products(interpreter, part(start, cut), part(a, cut), part(b, cut), scalar) for cut in halves]
    return domain.concatenate(parts, axis)


def states_of(
    interpreter: Interpreter, operator: ir.Function, start: Tree, array: Tree, scope: Scope
) -> list[tuple[Tree, Tree]] | None:
    """Runs of states of a long fold, and the last one of each; None where the walk over the term is as good."""
    depth, size = scope.depth, interpreter.length(array, scope.depth)
    steps = steps_of(operator, interpreter.domain.doubles) if size >= LONG else None
    if steps is None:
        return None
    found: list[tuple[Tree, Tree]] = []
    for first in range(0, size, RUN):
        part = interpreter.each(lambda a, first=first: a[at(depth, slice(first, first + RUN))], array)
        run = _run_of_states(interpreter, steps, start, part, scope)
        if run is None:
            return None
        start = interpreter.each(lambda a: a[..., -1], run)
        found.append((run, start))
    return found


def _run_of_states(interpreter: Interpreter, steps: Steps, start: Tree, array: Tree, scope: Scope) -> Tree | None:
    inner = scope.deeper(interpreter.length(array, scope.depth))
    columns = []
    for lets, term in steps.columns:
        local = _inside(interpreter, lets, inner.bind(steps.element, array))
        columns.append(_guessed(interpreter, interpreter.value(term, local)))
    starts = map_leaves(lambda leaf: _guessed(interpreter, leaf), start)
    batch = np.broadcast_shapes(*(c.shape[:-1] for c in columns), *(s.shape for s in leaves_of(starts)))
    if prod(batch) > FEW:
        return None
    columns = [np.broadcast_to(c, (*batch, inner.batch[-1])) for c in columns]
    rows = [
        steps.states(map_leaves(lambda s, i=i: np.broadcast_to(s, batch)[i], starts), [c[i] for c in columns])
        for i in np.ndindex(batch)
    ]
    states = zip_leaves(lambda *leaves: np.stack(leaves).reshape(*batch, -1), *rows)
    return interpreter.domain.follow(
        start, states, lambda before: interpreter.apply(steps.operator, (before, array), inner)
    )


def _guessed(interpreter: Interpreter, leaf: Tree) -> np.ndarray:
    """The values of a leaf, in the precision that the domain computes in."""
    values = interpreter.domain.array(leaf)
    return np.asarray(values, np.float64) if interpreter.domain.doubles and values.dtype.kind == "f" else values
