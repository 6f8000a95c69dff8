"""Errors that come from one source and cancel: how a value moves with the errors of some others.

``s + a * (x - s)`` reads s twice, and its error is that of s by ``1 - a``, not by ``1 + a``. A fold by such an operator
has a bound only if that is known: errors that grow in each step have none after thousands of steps.

Source: L. de Figueiredo and J. Stolfi, "Affine arithmetic: concepts and applications", 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.meaning.bounded import Affine, Bounded, full_error
from lift_egraph.meaning.values import Tree, map_leaves

NONE = np.zeros(())  # no error, of all values


def sources(state: Tree) -> Tree:
    """Scalars whose errors are followed, each a source of its own, until they are `settled`.

    A source is the error of one number in each batch: data must not move from one batch to another meanwhile.
    """

    def source(v: Bounded) -> Bounded:
        return v if v.error is None or not v.error.any() else replace(v, affine=Affine({object(): v.error}, NONE))

    return map_leaves(source, state)


def settled(leaf: Bounded) -> Bounded:
    """The values with a bound on all of their error alone."""
    return leaf if leaf.affine is None else replace(leaf, affine=None)


def changed(change: Callable[[np.ndarray], np.ndarray], leaf: Bounded) -> Bounded:
    """A view of values, with their errors."""
    error, affine = leaf.error, leaf.affine
    if affine is not None:
        moves = _each(affine, lambda m: change(np.broadcast_to(m, leaf.value.shape)))
        affine = Affine(moves, change(np.broadcast_to(affine.rest, leaf.value.shape)))
    return Bounded(change(leaf.value), None if error is None else change(error), leaf.scalar, affine)


def affinely(op: str, made: Bounded, propagated: np.ndarray | None, arguments: Sequence[Bounded]) -> Bounded:
    """The result of an operation, with how it moves with the sources of its arguments: the rest holds all else.

    Parameters
    ----------
    made
        The result, whatever its sources.
    propagated
        The error of the exact operation on the arguments; what `made` has beyond it is rounding.
    """
    if op not in _MOVES or made.error is None or all(a.affine is None for a in arguments):
        return made
    moved = _MOVES[op](*arguments)
    if moved is None:
        return made
    with np.errstate(invalid="ignore"):  # what is not finite has the plain bound
        rest = moved.rest + (made.error if propagated is None else made.error - propagated)
        total = sum((np.abs(m) for m in moved.moves.values()), rest)
        if np.isfinite(total.sum()) and np.isfinite(made.error.sum()):
            return replace(made, error=np.minimum(made.error, total), affine=Affine(moved.moves, rest))
        affine = Affine(moved.moves, np.where(np.isnan(rest), np.inf, rest))
        error = np.fmin(made.error, sum((np.abs(m) for m in affine.moves.values()), affine.rest))
    return replace(made, error=np.where(np.isfinite(made.error), error, made.error), affine=affine)


def _taken_apart(a: Bounded) -> Affine:
    return a.affine or Affine({}, NONE if a.error is None else a.error)


def _each(moves: Affine, change: Callable[[np.ndarray], np.ndarray]) -> dict[object, np.ndarray]:
    return {source: change(m) for source, m in moves.moves.items()}


def _combined(
    a: Bounded, b: Bounded, by_a: Callable[[np.ndarray], np.ndarray], by_b: Callable[[np.ndarray], np.ndarray]
) -> Affine:
    """What two values contribute, each as far as it goes into the result."""
    first, second = _taken_apart(a), _taken_apart(b)
    moves = _each(first, by_a)
    for source, m in second.moves.items():
        moves[source] = by_b(m) + moves[source] if source in moves else by_b(m)
    return Affine(moves, _size(first.rest, by_a) + _size(second.rest, by_b))


def _size(rest: np.ndarray, by: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """How far a rest goes into a result; nothing of none, which is one number for all."""
    return rest if rest is NONE else np.abs(by(rest))


def _product(a: Bounded, b: Bounded) -> Affine:
    linear = _combined(a, b, lambda m: m * b.value, lambda m: m * a.value)
    both = NONE if a.error is None or b.error is None else a.error * b.error
    return Affine(linear.moves, linear.rest + both)


def _quotient(a: Bounded, b: Bounded) -> Affine:
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient, size = a.value / b.value, np.abs(b.value)
        linear = _combined(a, b, lambda m: m / b.value, lambda m: -m * quotient / b.value)
        room = size * np.maximum(size - full_error(b), 0.0)
        curved = (full_error(a) + np.abs(quotient) * full_error(b)) * full_error(b) / room
        return Affine(linear.moves, linear.rest + np.where(full_error(b) > 0, curved, 0.0))


def _curved(op: str, slope: Callable[[np.ndarray], np.ndarray]) -> Callable[[Bounded], Affine]:
    """A function that is convex or concave is furthest from its tangent at the ends of an interval."""
    function = OPERATIONS[op].meaning

    def moved(a: Bounded) -> Affine:
        error, value = full_error(a), np.asarray(a.value, np.float64)
        with np.errstate(all="ignore"):
            middle, by = function(value), slope(value)
            ends = (np.abs(function(value + side * error) - middle - side * by * error) for side in (-1, 1))
            bent = np.maximum(*ends)
            affine = _taken_apart(a)
            return Affine(_each(affine, lambda m: m * by), np.abs(by) * affine.rest + np.where(error > 0, bent, 0.0))

    return moved


def _negative(a: Bounded) -> Affine | None:
    return a.affine and Affine(_each(a.affine, np.negative), a.affine.rest)


def _choice(condition: Bounded, a: Bounded, b: Bounded) -> Affine | None:
    if condition.error is not None:
        return None
    first, second = _taken_apart(a), _taken_apart(b)
    moves = {
        source: np.where(condition.value, first.moves.get(source, 0.0), second.moves.get(source, 0.0))
        for source in {**first.moves, **second.moves}
    }
    return Affine(moves, np.where(condition.value, first.rest, second.rest))


_MOVES: dict[str, Callable[..., Affine | None]] = {
    "add": lambda a, b: _combined(a, b, np.positive, np.positive),
    "sub": lambda a, b: _combined(a, b, np.positive, np.negative),
    "mul": _product,
    "div": _quotient,
    "neg": _negative,
    "select": _choice,
    "sqrt": _curved("sqrt", lambda x: 0.5 / np.sqrt(x)),
    "rsqrt": _curved("rsqrt", lambda x: -0.5 / (x * np.sqrt(x))),
    "exp": _curved("exp", np.exp),
    "log": _curved("log", lambda x: 1 / x),
}
