"""Bounds on the states of a long fold: errors that its operator keeps from each state to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import numpy as np

from lift_egraph.meaning.bounded import Bounded, full_error
from lift_egraph.meaning.bounds_affine import sources
from lift_egraph.meaning.recurrences import led_to
from lift_egraph.meaning.values import Tree, leaves_of, map_leaves

ROUNDS = 8  # in which factors are found …
SHARP, LITTLE = 2, 1.25  # … in the first of which errors are made no larger than so many times
BLOCKED = 1 << 10  # steps that are taken all at once …
FEW = 8  # … or in blocks, in each of so many folds one after the other
MOST = 4.0  # times that errors are made larger to hold in all steps
TRIED = 2.0**-30  # of a value: an error from which the factors are found
NEAR = 2.0**-16  # how much larger an error is made to find its factors
NOISE = 2.0**-50  # of an error: what is less is its rounding
SPARE = 2.0**-6  # of what a step adds to the errors, as the factors grow with them a little
MARGIN = 1 + 2.0**-30  # on each step, for the rounding of the factors themselves

Errors = list[np.ndarray]


def follow(start: Tree, states: Tree, apply: Callable[[Tree], Tree]) -> Tree:
    """Guessed states with bounds.

    Errors grow from step to step nearly in proportion, as sums and maxima do. The factors are found by trial, near the
    errors that were found last, and the operator is evaluated on the states with the errors that follow from them: no
    larger ones may come out. Where they do in the end, nothing is known of the states from there on. How far the
    operator leads away from the guess is part of the error.
    """
    scalars = [leaf.scalar for leaf in leaves_of(start)]
    before = list(leaves_of(led_to(map_leaves(lambda x: x.value, start), states)))
    values = list(leaves_of(states))
    first = [np.broadcast_to(full_error(leaf), v.shape[:-1]) for leaf, v in zip(leaves_of(start), values, strict=True)]

    def outcome(tried: Sequence[np.ndarray | None]) -> Errors:
        """What errors the states have whose predecessors have these."""
        given = iter([Bounded(*known) for known in zip(before, tried, scalars, strict=True)])
        after = leaves_of(apply(sources(map_leaves(lambda _: next(given), states))))
        return [_known(_missed(leaf, value)) for leaf, value in zip(after, values, strict=True)]

    if any(e.any() for e in first) or any(e.any() for e in outcome([None] * len(values))):
        found: list[Any] = _followed(before, first, outcome)
    else:
        found = [None] * len(values)
    made = iter([Bounded(*known) for known in zip(values, found, scalars, strict=True)])
    return map_leaves(lambda _: next(made), states)


def _followed(before: list[np.ndarray], first: Errors, outcome: Callable[[Sequence[np.ndarray]], Errors]) -> Errors:
    small = [_tried(b) for b in before]
    exact = [not f.any() for f in first]
    while True:  # what is exact stays so, if it depends on nothing else
        at = [np.zeros(s.shape) if e else s for e, s in zip(exact, small, strict=True)]
        made = outcome(at)
        still = [e and not m.any() for e, m in zip(exact, made, strict=True)]
        if still == exact:
            break
        exact = still

    def led_from(errors: Errors) -> tuple[Errors, Errors]:
        """The errors before each step, and what they lead to."""
        at = [np.concatenate([f[..., None], e[..., :-1]], -1) for f, e in zip(first, errors, strict=True)]
        return at, outcome(at)

    errors = made
    for turn in range(ROUNDS):
        errors = _grown(first, *_tangent(at, made, outcome))
        at, made = led_from(errors)
        if not _too_small(errors, made).any():
            return errors
        for enlarged in (_widened, _levelled):
            wider = enlarged(errors, made)
            is_little = all((w <= LITTLE * e).all() for w, e in zip(wider, errors, strict=True))
            if (is_little or turn >= SHARP) and not _too_small(wider, led_from(wider)[1]).any():
                return wider
    failed = np.logical_or.accumulate(_too_small(errors, made), -1)
    return [np.where(failed, np.inf, e) for e in errors]


def _too_small(errors: Errors, made: Errors) -> np.ndarray:
    """The steps that lead to larger errors than those of the next state."""
    return np.logical_or.reduce([m > e for m, e in zip(made, errors, strict=True)])


def _widened(errors: Errors, made: Errors) -> Errors:
    """Errors that are too small in places, with what is missing carried on to all that follow."""
    missing = np.ones(errors[0].shape)
    for e, m in zip(errors, made, strict=True):
        with np.errstate(invalid="ignore", divide="ignore"):
            missing = np.fmax(missing, np.where(m > e, m / e, 1.0))
    with np.errstate(over="ignore"):
        factor = np.minimum(np.cumprod(MARGIN * missing, -1), MOST)
    return [e * factor for e in errors]


def _levelled(errors: Errors, made: Errors) -> Errors:
    """Errors that are too small in places, which never sink again: those of a maximum do not."""
    pairs = zip(errors, made, strict=True)
    return [np.maximum.accumulate(np.maximum(e, m), -1) if (m > e).any() else e for e, m in pairs]


def _tried(states: np.ndarray) -> np.ndarray:
    """Small errors of states, none of those that are no finite numbers."""
    size = np.where(np.isfinite(states), np.abs(states), np.inf)
    return np.where(size < np.inf, TRIED * (size + TRIED), 0.0) if states.dtype.kind == "f" else np.zeros(states.shape)


def _tangent(
    at: Errors, made: Errors, outcome: Callable[[Sequence[np.ndarray]], Errors]
) -> tuple[Errors, list[Errors]]:
    """How many times each error of a state goes into each of the next, near some errors, and what is added."""
    factors: list[Errors] = [[] for _ in at]
    base, below = list(made), made
    for j, x in enumerate(at):  # one after the other, as the larger of two equal errors moves with one of them
        above = outcome([(1 + NEAR) * e if i <= j else e for i, e in enumerate(at)])
        for i, (m, o) in enumerate(zip(above, below, strict=True)):
            with np.errstate(invalid="ignore", divide="ignore"):
                factor = np.where((x > 0) & (m - o > NOISE * m), (m - o) / (NEAR * x), 0)
            factors[i].append(np.where(np.isnan(factor), 0, factor))
            base[i] = base[i] - factors[i][j] * np.where(np.isfinite(x), x, 0)
        below = above
    return [np.where(np.isfinite(b), np.maximum(b, 0) * (1 + SPARE), np.inf) for b in base], factors


def _grown(first: Errors, base: Errors, factors: list[Errors]) -> Errors:
    """The errors of all states: where some have no bound one after the other, those of many folds side by side."""
    if base[0].size >= BLOCKED:
        grown = _solved(first, base, factors)
        if all(np.isfinite(errors).all() for errors in grown):
            return grown
    if first[0].size > FEW:
        return _side_by_side(first, base, factors)
    grown = [np.empty(b.shape) for b in base]
    for index in np.ndindex(first[0].shape):
        start, added = np.array([f[index] for f in first]), np.array([b[index] for b in base])
        into = np.array([[x[index] for x in row] for row in factors])
        for leaf, errors in zip(grown, _in_blocks(start, added, into), strict=True):
            leaf[index] = errors
    return [_known(g) for g in grown]


def _solved(first: Errors, base: Errors, factors: list[Errors]) -> Errors:
    """The same as the solution of the equations of all folds at once, which are a band: each state's follow from those
    before it. Some may come out without a bound that have one.
    """
    from scipy.linalg import get_lapack_funcs  # takes a third of a second to import

    count, shape = len(base), base[0].shape
    known, into = np.stack(base, -1), np.moveaxis(np.array(factors), (0, 1), (-2, -1))
    with np.errstate(invalid="ignore", over="ignore"):
        known[..., 0, :] += _led(into[..., 0, :, :], np.stack(first, -1)[..., None, :]).sum(-1)
        known *= MARGIN
        band = np.zeros((*shape, count, 2 * count))  # below the diagonal: of each error in those that come after it
        for i, j in np.ndindex(count, count):
            band[..., :-1, j, count + i - j] = -MARGIN * into[..., 1:, i, j]
    (solve,) = get_lapack_funcs(("tbtrs",), dtype=np.float64)
    solution, _ = solve(band.reshape(-1, 2 * count).T, known.reshape(-1, 1), uplo="L", diag="U", overwrite_b=True)
    return list(np.moveaxis(solution.reshape(known.shape), -1, 0))


def _in_blocks(first: np.ndarray, base: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The errors of one fold's states: in blocks, each of which goes on from what the matrices of those before give.

    Source: Blelloch, "Prefix sums and their applications", 1990, §1.4.
    """
    (k, n), width = base.shape, isqrt(base.shape[1])
    if n < BLOCKED:
        return _one_by_one(first, base, factors)
    blocks, whole = n // width, n - n % width
    added = np.moveaxis(base[:, :whole].reshape(k, blocks, width), -1, 0)
    into = np.moveaxis(factors[..., :whole].reshape(k, k, blocks, width), -1, 0)
    total, power = np.zeros((k, blocks)), np.broadcast_to(np.eye(k)[..., None], (k, k, blocks))
    starts, errors, grown = np.empty((k, blocks)), first, np.empty((k, n))
    with np.errstate(invalid="ignore", over="ignore"):
        for b, f in zip(added, into, strict=True):
            total, power = MARGIN * (b + _led(f, total).sum(1)), MARGIN * _led(f[:, :, None], power).sum(1)
        for i in range(blocks):
            starts[:, i] = errors
            errors = MARGIN * (total[:, i] + _led(power[..., i], errors).sum(1))
        before = starts
        for j, (b, f) in enumerate(zip(added, into, strict=True)):
            before = grown[:, j:whole:width] = MARGIN * (b + _led(f, before).sum(1))
    grown[:, whole:] = _one_by_one(grown[:, whole - 1], base[:, whole:], factors[..., whole:])
    return grown


def _led(factors: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """What errors lead to: no error leads to none, whatever the factor."""
    return np.where(errors == 0, 0.0, factors * errors)


def _one_by_one(first: np.ndarray, base: np.ndarray, factors: np.ndarray) -> np.ndarray:
    errors, found = first.tolist(), list[list[float]]()
    for added, into in zip(base.T.tolist(), np.moveaxis(factors, -1, 0).tolist(), strict=True):
        errors = [
            MARGIN * (b + sum([f * e for f, e in zip(fs, errors, strict=True) if e]))
            for b, fs in zip(added, into, strict=True)
        ]
        found.append(errors)
    return np.array(found).T.reshape(base.shape)


def _side_by_side(first: Errors, base: Errors, factors: list[Errors]) -> Errors:
    added, into = np.moveaxis(np.stack(base), -1, 0), np.moveaxis(np.array(factors), -1, 0)
    errors, grown = np.stack(first), np.empty_like(added)
    with np.errstate(invalid="ignore", over="ignore"):
        for step, (b, f) in enumerate(zip(added, into, strict=True)):
            errors = grown[step] = MARGIN * (b + np.where(errors > 0, f * errors, 0.0).sum(1))
    return [_known(np.moveaxis(g, 0, -1)) for g in np.moveaxis(grown, 1, 0)]


def _missed(after: Bounded, guess: np.ndarray) -> np.ndarray:
    """The error of what the operator leads to, with its distance from the guess."""
    value = np.broadcast_to(after.value, guess.shape)
    same = value == guess
    if same.all():
        return full_error(after)
    same |= (value != value) & (guess != guess)
    is_float = guess.dtype.kind == "f"
    off = np.abs(np.subtract(value, guess, dtype=np.float64)) if is_float else np.full(guess.shape, np.inf)
    return np.where(same, 0.0, off) + full_error(after)


def _known(errors: np.ndarray) -> np.ndarray:
    unknown = np.isnan(errors)
    return np.where(unknown, np.inf, errors) if unknown.any() else errors
