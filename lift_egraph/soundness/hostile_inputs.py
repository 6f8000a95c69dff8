"""Inputs that tell laws of real numbers from laws of machine numbers."""

from __future__ import annotations

import numpy as np

from lift_egraph.language import ir
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.values import Value, map_leaves

KINDS = ("whole", "fractions", "extremes")
QUARTERS = 12  # fractions are multiples of a quarter up to 3: their sums and short products are exact
ORDINARY = 0.4  # the share of fractions among extreme numbers: where all is NaN, all is equal
SIGNED_ZEROS = 1 / 3  # the share of extreme inputs that are zeros and ones alone: among others, the sign is soon lost


def hostile_inputs(
    program: ir.Program, seed: int, kind: str, exact: bool = False, finite: bool = False
) -> dict[str, Value]:
    """A value for each input of a program of concrete sizes.

    Parameters
    ----------
    seed
        Equal seeds give equal values.
    kind
        ``whole``: small whole numbers. ``fractions``: multiples of a quarter, and negative integers. ``extremes``:
        zeros of both signs, infinities, NaN, the largest and the smallest numbers, and integers of any size; for
        every third seed or so, floats are zeros and ones of both signs.
    exact
        Whether floats stay fractions among ``extremes``: of a rule that changes the order of operations, no more than
        rounding may be seen.
    finite
        Whether there are no infinities and NaN, nor numbers so large that they become such.
    """
    values = random_inputs(program, seed, "integer")
    if kind == "whole":
        return values
    generator = np.random.default_rng(seed)
    drawn = "signs" if kind == "extremes" and generator.random() < SIGNED_ZEROS else kind
    made: dict[str, Value] = {}
    for given in program.inputs:
        made[given.name] = map_leaves(lambda leaf: _drawn(leaf, generator, drawn, exact, finite), values[given.name])
    return made


def _drawn(leaf: np.ndarray, generator: np.random.Generator, kind: str, exact: bool, finite: bool) -> np.ndarray:
    if leaf.dtype.kind == "b":
        return leaf
    if leaf.dtype.kind != "f":
        info = np.iinfo(leaf.dtype)
        if kind == "fractions":
            return np.asarray(generator.integers(max(-3, info.min), 4, leaf.shape), leaf.dtype)
        pool = np.array([info.min, info.max, info.max - 1, info.max // 2 + 1, 0, 1, 2, max(-1, info.min)], leaf.dtype)
        anywhere = generator.integers(info.min, info.max, leaf.shape, leaf.dtype, endpoint=True)
        return np.where(generator.random(leaf.shape) < ORDINARY, anywhere, generator.choice(pool, leaf.shape))
    fractions = np.asarray(generator.integers(-QUARTERS, QUARTERS + 1, leaf.shape) / 4, leaf.dtype)
    if kind == "fractions" or exact:
        return fractions
    if kind == "signs":
        return generator.choice(np.array([0.0, -0.0, 1.0, -1.0], leaf.dtype), leaf.shape)
    uneven = np.asarray(fractions / 3, leaf.dtype)  # sums and products of these are rounded
    info = np.finfo(leaf.dtype)
    pool = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.smallest_subnormal, info.eps, 1, -1],
        leaf.dtype,
    )
    pool = pool[np.abs(pool) <= 1] if finite else pool
    taken = generator.random(leaf.shape) < ORDINARY
    return np.asarray(np.where(taken, uneven, generator.choice(pool, leaf.shape)), leaf.dtype)
