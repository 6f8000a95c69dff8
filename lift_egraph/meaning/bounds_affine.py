"""Errors that come from one source and cancel: how a value moves with the errors of some others.

``s + a * (x - s)`` reads s twice, and its error is that of s by ``1 - a``, not by ``1 + a``. A fold by such an operator
has a bound only if that is known: errors that grow in each step have none after thousands of steps.

Source: L. de Figueiredo and J. Stolfi, "Affine arithmetic: concepts and applications", 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lift_egraph.meaning.bounded import Affine, Bounded, full_error
from lift_egraph.meaning.values import Tree, map_leaves


def sources(state: Tree) -> Tree:
    """Scalars whose errors are followed, each a source of its own, until they are `settled`.

    A source is the error of one number in each batch: data must not move from one batch to another meanwhile.
    """
    zero = np.zeros(())

    def source(v: Bounded) -> Bounded:
        return v if v.error is None or not v.error.any() else replace(v, affine=Affine({object(): v.error}, zero))

    return map_leaves(source, state)


def settled(leaf: Bounded) -> Bounded:
    """The values with a bound on all of their error alone."""
    return leaf if leaf.affine is None else replace(leaf, affine=None)


def changed(change: Callable[[np.ndarray], np.ndarray], leaf: Bounded) -> Bounded:
    """A view of values, with their errors."""
    if leaf.error is None:
        return Bounded(change(leaf.value), None, leaf.scalar)
    made = Bounded(change(leaf.value), change(leaf.error), leaf.scalar)
    if leaf.affine is None:
        return made
    shape = leaf.value.shape
    moves = {source: change(np.broadcast_to(m, shape)) for source, m in leaf.affine.moves.items()}
    return replace(made, affine=Affine(moves, change(np.broadcast_to(leaf.affine.rest, shape))))


def affinely(op: str, made: Bounded, propagated: np.ndarray | None, arguments: Sequence[Bounded]) -> Bounded:
    """The result of an operation, with how it moves with the sources of its arguments, where it does so affinely.

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
        affine = Affine(moved.moves, moved.rest + (made.error if propagated is None else made.error - propagated))
        error = np.fmin(made.error, sum((np.abs(m) for m in affine.moves.values()), affine.rest))
    return replace(made, error=np.where(np.isfinite(made.error), error, made.error), affine=affine)


def _taken_apart(a: Bounded) -> Affine:
    return a.affine or Affine({}, full_error(a))


def _each(moves: Affine, change: Callable[[np.ndarray], np.ndarray]) -> dict[object, np.ndarray]:
    return {source: change(m) for source, m in moves.moves.items()}


def _sum(sign: int) -> Callable[[Bounded, Bounded], Affine]:
    def moved(a: Bounded, b: Bounded) -> Affine:
        first, second = _taken_apart(a), _taken_apart(b)
        moves = dict(first.moves)
        for source, m in second.moves.items():
            moves[source] = sign * m + moves[source] if source in moves else sign * m
        return Affine(moves, first.rest + second.rest)

    return moved


def _product(a: Bounded, b: Bounded) -> Affine | None:
    if a.affine is None:
        a, b = b, a
    if a.affine is None or b.affine is not None:
        return None
    rest = np.abs(b.value) * a.affine.rest
    if b.error is not None:
        rest = rest + (np.abs(a.value) + full_error(a)) * b.error
    return Affine(_each(a.affine, lambda m: m * b.value), rest)


def _quotient(a: Bounded, b: Bounded) -> Affine | None:
    if a.affine is None or b.affine is not None:
        return None
    size = np.abs(b.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest, room = a.affine.rest, size
        if b.error is not None:
            rest = rest + (np.abs(a.value) + full_error(a)) * b.error / size
            room = np.maximum(size - b.error, 0.0)
        return Affine(_each(a.affine, lambda m: m / b.value), rest / room)


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
    "add": _sum(1),
    "sub": _sum(-1),
    "mul": _product,
    "div": _quotient,
    "neg": _negative,
    "select": _choice,
}
