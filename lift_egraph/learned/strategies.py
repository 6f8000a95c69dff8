"""In which order kernels are measured: by chance, by prediction, or by prediction corrected by what was measured.

A strategy says what to expect of each kernel that waits; the least goes next. `optimize` asks it while it measures, and
`lift_egraph.learned.replay` replays it on kernels whose times are known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Protocol

import numpy as np

from lift_egraph.errors import ModelProblem

Family = tuple[str, ...]
"""What the kernels of one way have in common."""

_AT_ONCE = 1e-9  # of what is expected of kernels that go before all others, in their order
FAILED = 3.0  # times its prediction that a kernel counts which was wrong or did not end; the next like it, 9 times


def family_of(phases: Iterable[tuple[str, int]]) -> Family:
    """The phases that restructured a term, of their names and iterations: what is found so is predicted alike.

    >>> family_of([("tiling", 3), ("algorithmic", 0), ("lowering", 4)])
    ('tiling',)
    """
    return tuple(
        name for name, iterations in phases if name != "lowering" and (name != "algorithmic" or iterations > 0)
    )


@dataclass(frozen=True, eq=False)
class Point:
    """A kernel that may be measured.

    Attributes
    ----------
    family
        The phases that restructured its term.
    predicted
        Its time, in the unit of what is measured.
    place
        Where it stands among others: features of about unit variance. Only strategies that compare kernels ask.
    """

    family: Family
    predicted: float
    place: tuple[float, ...] = ()


class Strategy(Protocol):
    """What to expect of kernels, in the unit of their predictions."""

    def expected(self, points: Sequence[Point], /) -> Sequence[float]:
        """What each of them is worth waiting for: the least goes next."""
        ...

    def learn(self, point: Point, measured: float, /) -> None:
        """Take a measured time in."""
        ...

    def fail(self, point: Point, /) -> None:
        """Take in that a kernel was wrong, or did not end."""
        ...


class AtRandom:
    """Any of them, each as likely as any other."""

    def __init__(self, seed: int = 0) -> None:
        self._draw = np.random.default_rng(seed)

    def expected(self, points: Sequence[Point]) -> Sequence[float]:
        return self._draw.random(len(points)).tolist()

    def learn(self, point: Point, measured: float) -> None:
        pass

    def fail(self, point: Point) -> None:
        pass


class Greedy:
    """The prediction, whatever is measured.

    Source: 002 §8.1.
    """

    def expected(self, points: Sequence[Point]) -> Sequence[float]:
        return [p.predicted for p in points]

    def learn(self, point: Point, measured: float) -> None:
        pass

    def fail(self, point: Point) -> None:
        pass


class ByFamily:
    """The prediction, times the ratio that was measured in its family: a bandit, whose arms are the families.

    The first are the kernels with the least prediction of each promising family: so it shows what it is worth, also
    where predictions tie. Then the lower confidence bound is expected: the less was measured of a family beside others,
    the more its kernels may be better than what was. Families that were not promising have the least ratio of the
    others, or are believed where that is more, so none waits until another is done.

    Parameters
    ----------
    boldness
        How far that bound lies below what was measured, in logarithms of times; with 0 it is no lower.
    promising
        Up to how many times the least prediction of all one of a family may be that goes first; with 0 none does.

    Source: P. Auer, N. Cesa-Bianchi and P. Fischer, Finite-time analysis of the multiarmed bandit problem, 2002 (UCB1).

    Examples
    --------
    >>> strategy, tiled, planned = ByFamily(), Point(("tiled",), 2.0), Point(("planned",), 3.0)
    >>> strategy.learn(tiled, 6.0)
    >>> strategy.learn(planned, 4.5)
    >>> waiting = [Point((name,), 2.0) for name in ("tiled", "planned", "another")]
    >>> [round(ms, 3) for ms in strategy.expected(waiting)]  # the last one first
    [4.674, 2.337, 0.0]
    >>> ByFamily(boldness=0.0, promising=0.0).expected(waiting)
    [2.0, 2.0, 2.0]
    """

    def __init__(self, boldness: float = 0.3, promising: float = 1.5) -> None:
        self._boldness, self._promising = boldness, promising
        self._ratios: dict[Family, list[float]] = {}
        self._failures: Counter[Family] = Counter()
        self._least = math.inf

    def expected(self, points: Sequence[Point]) -> Sequence[float]:
        ratios = {family: median(known) for family, known in self._ratios.items()}
        unknown = min([1.0, *ratios.values()])
        found = [p.predicted * ratios.get(p.family, unknown) for p in points]
        self._least = min([self._least, *(p.predicted for p in points)])
        limit = self._promising * self._least
        bounds = self._bounds()
        unseen = (_AT_ONCE if p.predicted <= limit else 1.0 for p in points)
        return [ms * bounds.get(p.family, part) for p, ms, part in zip(points, found, unseen, strict=True)]

    def _bounds(self) -> dict[Family, float]:
        """The part of what is expected of the kernels of each family of which some were measured that they may take."""
        known = {family: len(ratios) for family, ratios in self._ratios.items()}
        measured = sum(known.values())
        return {f: math.exp(-self._boldness * math.sqrt(math.log(measured) / n)) for f, n in known.items()}

    def learn(self, point: Point, measured: float) -> None:
        if point.predicted > 0:
            self._ratios.setdefault(point.family, []).append(measured / point.predicted)

    def fail(self, point: Point) -> None:
        """One may be an exception, several are not."""
        self._failures[point.family] += 1
        self.learn(point, FAILED ** self._failures[point.family] * point.predicted)


CORRECTED = partial(ByFamily, boldness=0.0, promising=0.0)
"""What was measured in a family corrects its predictions, and no family goes first."""


class Confident:
    """The prediction, corrected by a Gaussian process, less what is uncertain: the lower confidence bound of a time.

    The logarithm of how wrong a prediction is, is the sum of a part that all kernels of a program share, one of the
    family, one of the place, and noise. Each measured kernel is taken in at once: nearby ones and its family are
    corrected most, and what nothing is known of stays uncertain. So a family that is predicted to be slow has its turn
    when those before it are known, and are no better than predicted.

    Parameters
    ----------
    boldness
        How many standard deviations are believed to be in a kernel's favour.
    of_family, of_place, noise
        The standard deviations of three of the parts, as logarithms of times. The defaults, boldness too, find good
        kernels soonest on three devices alike; `benchmarks/learned.py` chooses for each program by the others, too.

    Source: Srinivas et al., Gaussian process optimization in the bandit setting (upper confidence bounds), 2010.

    Examples
    --------
    >>> strategy, near, far = Confident(), Point(("a",), 1.0, (0.0,)), Point(("b",), 1.5, (9.0,))
    >>> strategy.learn(near, 2.0)
    >>> strategy.expected([near]) < strategy.expected([far])
    False
    """

    shared = 2.0

    def __init__(
        self, boldness: float = 1.0, of_family: float = 0.6, of_place: float = 0.3, noise: float = 0.3
    ) -> None:
        self._boldness, self._of_family, self._of_place, self._noise = boldness, of_family, of_place, noise
        self._rows: dict[Point, int] = {}  # of all that were asked for or measured, in the arrays
        self._numbers: dict[Family, int] = {}
        self._families, self._mean, self._variance = np.zeros(0, int), np.zeros(0), np.zeros(0)
        self._places = np.zeros((0, 0))
        self._measured: list[int] = []  # rows
        self._deviations: list[float] = []  # that each of these had, and by how many of them it was wrong
        self._errors: list[float] = []
        self._shares = np.zeros((0, 0))  # what each row has of each of these: the Cholesky factor, with all other rows

    def expected(self, points: Sequence[Point]) -> Sequence[float]:
        rows, predicted = self._rows_of(points), np.array([p.predicted for p in points])
        if not self._measured:
            return predicted.tolist()
        deviation = np.sqrt(np.maximum(self._variance[rows], 0.0))
        return (predicted * np.exp(self._mean[rows] - self._boldness * deviation)).tolist()

    def learn(self, point: Point, measured: float) -> None:
        if point.predicted <= 0:
            return
        (row,), number = self._rows_of([point]), len(self._measured)
        deviation = math.sqrt(max(self._variance[row], 0.0) + self._noise**2)
        error = (math.log(measured / point.predicted) - self._mean[row]) / deviation
        self._shares = _with_room(self._shares, len(self._rows), number + 1)
        known = self._shares[: len(self._rows), :number]
        share = (self._covariance(slice(len(self._rows)), [row])[:, 0] - known @ known[row]) / deviation
        self._shares[: len(share), number] = share
        self._mean += share * error
        self._variance -= share**2
        self._measured.append(row)
        self._deviations.append(deviation)
        self._errors.append(error)

    def fail(self, point: Point) -> None:
        self.learn(point, FAILED * point.predicted)

    def _rows_of(self, points: Sequence[Point]) -> list[int]:
        """Where points stand in the arrays; what was measured is taken in by those that are new."""
        if new := list(dict.fromkeys(p for p in points if p not in self._rows)):
            first, number = len(self._rows), len(self._measured)
            self._rows |= {point: first + at for at, point in enumerate(new)}
            places, families = np.array([p.place for p in new]).reshape(len(new), -1), [p.family for p in new]
            self._places = np.concatenate([self._places.reshape(first, places.shape[1]), places])
            numbers = [self._numbers.setdefault(family, len(self._numbers)) for family in families]
            self._families = np.append(self._families, numbers)
            rows = slice(first, len(self._rows))
            shares = self._shares_of(rows)
            self._shares = _with_room(self._shares, len(self._rows), number)
            self._shares[rows, :number] = shares
            variance = self.shared**2 + self._of_family**2 + self._of_place**2
            self._mean = np.append(self._mean, shares @ np.array(self._errors))
            self._variance = np.append(self._variance, variance - (shares**2).sum(axis=1))
        return [self._rows[p] for p in points]

    def _shares_of(self, rows: slice) -> np.ndarray:
        """What rows have of all that were measured."""
        if not self._measured:
            return np.zeros((rows.stop - rows.start, 0))
        from scipy.linalg import solve_triangular

        factor = np.tril(self._shares[self._measured, : len(self._measured)], -1) + np.diag(self._deviations)
        return solve_triangular(factor, self._covariance(rows, self._measured).T, lower=True).T

    def _covariance(self, first: slice, second: list[int]) -> np.ndarray:
        here, there = self._places[first], self._places[second]
        squares = (here**2).sum(1)[:, None] + (there**2).sum(1) - 2 * here @ there.T
        apart = np.maximum(squares, 0.0) / max(here.shape[1], 1)
        same = self._families[first, None] == self._families[second]
        return self.shared**2 + self._of_family**2 * same + self._of_place**2 * np.exp(-apart / 2)


def _with_room(array: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """An array with at least so many rows and columns; with twice as many, where it has to grow."""
    height, width = array.shape
    if rows <= height and columns <= width:
        return array
    grown = np.zeros((max(2 * rows, height), max(2 * columns, width)))
    grown[:height, :width] = array
    return grown


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "random": AtRandom,
    "greedy": Greedy,
    "corrected": CORRECTED,
    "families": ByFamily,
    "confident": Confident,
}
"""All, by the names that users give them."""

COMPARING = ("confident",)
"""Those that compare kernels by where they stand, which only a learned model says."""


def strategy_of(name: str) -> Strategy:
    """A new strategy of a name.

    Raises
    ------
    ModelProblem
        If there is none.
    """
    if name not in STRATEGIES:
        raise ModelProblem(f"there is no strategy {name!r}; there are {', '.join(STRATEGIES)}")
    return STRATEGIES[name]()
