"""Whether two terms compute the same: both are interpreted on random inputs, in whole or at some elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, Pair
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.doubles import evaluate_doubles
from lift_egraph.meaning.folds import fold_form, keeps_last
from lift_egraph.meaning.inputs import Kind, random_inputs
from lift_egraph.meaning.samples import at_place, picks
from lift_egraph.meaning.values import Value, leaves_of, zip_leaves
from lift_egraph.meaning.workload import effort, repetitions

LITTLE_WORK = 1e7  # values that a term may compute for the whole result to be compared rather than some elements
MOST_WORK = 2e8  # values that one term may compute: some seconds
MOST_LOOPS = 2e5  # turns of loops that are interpreted one by one
ELEMENTS = 6  # of a result that is too much work in whole
TOLERANCE = 1e-9  # of the largest value: rounding in double precision


Meaning = Callable[[ir.Expr, Mapping[str, Value]], Any]  # of a term on inputs


@dataclass(frozen=True)
class Comparison:
    """Whether two terms have the same value.

    Attributes
    ----------
    equal
        None where they were not compared.
    how
        What was compared, or why nothing was.
    """

    equal: bool | None
    how: str

    def __str__(self) -> str:
        return self.how if self.equal is None else f"{'equal' if self.equal else 'DIFFERENT'} in {self.how}"


class Comparer:
    """Compares terms over the inputs of a program.

    The inputs are whole numbers, unless another kind is wanted, and all is computed in double precision: sums may come
    in any order.

    Parameters
    ----------
    program
        Whose inputs they have, of concrete sizes.
    seed
        Of the inputs, and of which elements are compared.
    kind
        Of the inputs (`lift_egraph.meaning.inputs.random_inputs`). Where ``any`` numbers are too large for one of the
        terms, which is no finite number where the other is, nothing is said of them.
    """

    def __init__(self, program: ir.Program, seed: int = 0, kind: Kind = "integer"):
        self.inputs = random_inputs(program, seed, kind)
        self.seed = seed
        self._may_overflow = kind == "any"
        self._known: dict[tuple[ir.Expr, bool, Meaning], list[Any] | str] = {}

    def compare(self, before: ir.Expr, after: ir.Expr) -> Comparison:
        """Whether two closed terms have the same type and value."""
        if type_of(before) != type_of(after):
            return Comparison(False, f"type: {type_of(before)} became {type_of(after)}")
        work = 0.0
        for whole, limit in ((True, LITTLE_WORK), (False, MOST_WORK), (True, MOST_WORK)):
            if not whole and not isinstance(type_of(before), Array | Pair):
                continue
            costs = [self._cost(term, whole) for term in (before, after)]
            work, turns = (max(numbers) for numbers in zip(*costs, strict=True))
            if work <= limit and turns <= MOST_LOOPS:
                how = "the whole result" if whole else f"{ELEMENTS} elements of the result"
                return self._compared(before, after, whole, how)
        return Comparison(None, f"too much to interpret: about {work:.1e} values")

    def _compared(self, before: ir.Expr, after: ir.Expr, whole: bool, how: str) -> Comparison:
        left, right = (self._values(term, whole, evaluate_doubles) for term in (before, after))
        if not isinstance(left, str) and not isinstance(right, str):
            doubts = [[zip_leaves(_overflow, a, b) for a, b in zip(left, right, strict=True)]] * self._may_overflow
            if all(map(_close, left, right, *doubts)):
                return Comparison(True, how)
        # bounds, which take several times as long, tell whether rounding decides what differs
        left, right = (self._values(term, whole, evaluate_bounded) for term in (before, after))
        if isinstance(left, str) or isinstance(right, str):
            problem = right if isinstance(right, str) else left
            return Comparison(left == right, f"{how}: {problem}")
        return Comparison(all(_close(a, b, x, y) for (a, x), (b, y) in zip(left, right, strict=True)), how)

    def _values(self, term: ir.Expr, whole: bool, meaning: Meaning) -> list[Any] | str:
        """What the whole term or its sampled elements mean; text where they have no value."""
        key = (term, whole, meaning)
        if key not in self._known:
            for old in [*self._known][:-1]:  # the last term is the next step's first
                del self._known[old]
            try:
                terms = [term] if whole else self._samples(term)
                self._known[key] = [meaning(t, self.inputs) for t in terms]
            except LiftError as problem:
                self._known[key] = f"{type(problem).__name__}: {problem}"
        return self._known[key]

    def _cost(self, term: ir.Expr, whole: bool) -> tuple[float, int]:
        terms = [term] if whole else self._samples(term)
        return sum(effort(t) for t in terms), sum(loops(t) for t in terms)

    def _samples(self, term: ir.Expr) -> list[ir.Expr]:
        """Terms for some elements of a term's value."""
        pick = picks(self.seed)
        return [at_place(term, pick(which))[0] for which in range(ELEMENTS)]


@lru_cache(maxsize=4096)
def loops(term: ir.Part) -> int:
    """How many turns of loops the interpreter takes one by one to evaluate a term, maps excepted."""
    inside = sum(loops(part) for part in ir.parts(term))
    if isinstance(term, ir.Iterate):
        return max(term.times, 1) * (inside + 1)
    if isinstance(term, ir.INDEX_FOLDS) and keeps_last(term.operator):
        return inside
    if isinstance(term, ir.FOLDS) and fold_form(term.operator) is None:
        return inside + repetitions(term) * (loops(term.operator) + 1)
    return inside


def _overflow(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """No bound where one of two values is no finite number, else 0."""
    return np.where(np.isfinite(a) == np.isfinite(b), 0.0, np.inf)


def _close(left: Value, right: Value, *doubts: Value) -> bool:
    """Whether two values, with their bounds if these are known, are equal up to rounding in double precision."""
    return all(map(_close_leaves, *map(leaves_of, (left, right, *doubts))))


def _close_leaves(a: np.ndarray, b: np.ndarray, *doubts: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = a == b
    if same.all():
        return True
    for doubt in doubts:
        same |= ~np.isfinite(doubt)  # rounding decides there
    if a.dtype.kind != "f":
        return bool(same.all())
    scale = max(1.0, *(float(np.abs(v[np.isfinite(v)]).max(initial=0.0)) for v in (a, b)))
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= TOLERANCE * scale
    return bool((near | same | (np.isnan(a) & np.isnan(b))).all())
