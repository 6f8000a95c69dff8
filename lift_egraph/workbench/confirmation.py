"""The best kernels of a search once more, in turns, and whether the best is faster than another one at all.

What is measured first and what last of a long search meets another machine: caches, clocks, other people's work. That
only ever adds to a time, so the least time of a kernel says what it may be worth, and if a kernel that is timed beside
all others took longer than at other moments, still less. All that may be the best so meet in turns, where the same
disturbs all: many for some rounds, the better half of them for more. Whatever was measured as faster than the best of
them meets it too, until nothing is. That one is faster is decided by the sign test, which asks nothing of how times
scatter.

Source: the sign test, J. Arbuthnot 1710; W. J. Conover, Practical Nonparametric Statistics, 3.4. Successive halving,
K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb
from statistics import median

NEAR = 1.3  # times the least time of all, up to which the least time of a kernel lets it take part …
FIRST, FEW_ROUNDS = 8, 7  # … so many at most, and the best two in any case; first for so many rounds …
MOST, ROUNDS = 4, 31  # … and so many of them for so many more …
LEAST_SECONDS = 1.4  # that there must be for the first rounds: many kernels take long to build
FEWEST = 3  # rounds that count at all
LEAST_ROUNDS = 9  # … for which there is time, if others are to meet the best again
BESIDE = 4.0  # times the best time up to which the naive kernel is timed beside them
SLOW = 1.25  # times its least time that the kernel beside takes in a slow moment; in others it says nothing
SIGNIFICANT = 0.05  # the chance that kernels as fast as each other are told apart
_RUNS, _MORE_MS = 2, 2.0  # a turn is about so many runs of a kernel, and so many milliseconds of short ones

Turns = Callable[[Sequence[int], int, float], Sequence[Sequence[float]]]
"""The milliseconds of some kernels, by number, in so many rounds and seconds at most; none where that fails."""


@dataclass(frozen=True)
class Session:
    """Kernels that were timed in turns.

    Attributes
    ----------
    times
        Of each kernel, by its number, the milliseconds in each round.
    finalists
        Those among which the best is; none in the first, short rounds.
    """

    times: dict[int, tuple[float, ...]]
    finalists: tuple[int, ...] = ()

    @property
    def levelled(self) -> dict[int, list[float]]:
        """The times as if all rounds had been equally quiet: parts of the rounds, times what a quiet round takes.

        That is the lower quartile. So it does not matter in how many rounds the host was slow, which is so for all
        kernels, but not for as many runs of each.

        Examples
        --------
        >>> Session({0: (1.0, 1.0, 3.0), 1: (3.0, 3.0, 9.0)}).levelled
        {0: [1.0, 1.0, 1.0], 1: [3.0, 3.0, 3.0]}
        """
        rounds = [sum(times) for times in zip(*self.times.values(), strict=True)]
        quiet = sorted(rounds)[len(rounds) // 4] if rounds else 0.0
        factors = [quiet / ms if ms else 1.0 for ms in rounds]
        return {n: [f * ms for f, ms in zip(factors, own, strict=True)] for n, own in self.times.items()}


def slowdown(beside: float | None, least: float) -> float:
    """How many times as long as at best the kernel took that is timed beside others; 1 where that may be chance.

    Examples
    --------
    >>> slowdown(2.0, 1.0), slowdown(1.1, 1.0), slowdown(None, 1.0)
    (2.0, 1.0, 1.0)
    """
    return 1.0 if beside is None or beside <= SLOW * least else beside / least


def sessions(
    promised: Sequence[float],
    times: Sequence[float],
    turns: Turns,
    left: Callable[[], float],
    beside: int | None = None,
) -> Iterator[Session]:
    """Time kernels in turns until none was measured as faster than the best in turns, or the time is over.

    Parameters
    ----------
    promised
        What each may take, in milliseconds: its least time, as it would be in a quiet moment.
    times
        What each took.
    turns
        Measures.
    left
        The seconds that are left.
    beside
        Of the naive kernel, the number: it is timed with the last ones if it is not far behind, and is one of them if
        it is the fastest there.

    Yields
    ------
    Session
        The last one that has finalists counts.
    """
    took = list(times)
    by_promise = sorted(range(len(took)), key=promised.__getitem__)
    near = [n for n in by_promise if promised[n] <= NEAR * min(took)]
    field = near[:FIRST] if len(near) > 1 else by_promise[:2]

    def session(who: Sequence[int], rounds: int, seconds: float, finalists: Sequence[int] = ()) -> Session:
        times = turns(who, rounds, seconds)
        if not times or len(times[0]) < FEWEST:  # fewer say less than what is known
            return Session({})
        found = Session(dict(zip(who, map(tuple, times), strict=True)), tuple(finalists))
        for n, own in found.levelled.items():
            took[n] = median(own)
        return found

    field = _affordable(field if left() >= LEAST_SECONDS else field[:MOST], promised, FEWEST, left())
    while len(field) > 1:
        if len(field) > MOST:
            short = session(field, FEW_ROUNDS, left() / 4)
            yield short
            if not short.times:
                return
            field = sorted(field, key=took.__getitem__)[:MOST]
        is_beside = beside is not None and beside not in field and promised[beside] <= BESIDE * promised[by_promise[0]]
        long = session([*field, beside] if is_beside and beside is not None else field, ROUNDS, left() / 2, field)
        if long.times and is_beside and beside is not None and took[beside] < min(took[n] for n in field):
            field = [beside, *field]
            long = replace(long, finalists=tuple(field))
        yield long
        if not long.times:
            return
        field.sort(key=took.__getitem__)
        faster = [n for n in by_promise if n not in field and took[n] < took[field[0]]]
        if not faster:
            return
        field = _affordable([field[0], *faster][:MOST], took, LEAST_ROUNDS, left())


def _affordable(field: Sequence[int], times: Sequence[float], rounds: int, seconds: float) -> list[int]:
    """The first of a field for which there is time for so many rounds."""
    found: list[int] = []
    for n in field:
        seconds -= 1e-3 * (_RUNS * times[n] + _MORE_MS) * rounds
        if seconds < 0:
            break
        found.append(n)
    return found


def sign_test(first: Sequence[float], second: Sequence[float]) -> float:
    """The probability of signs as uneven as those of the differences, if either is as likely (two-sided).

    Pairs without a difference do not count.

    Examples
    --------
    >>> sign_test([1.0] * 10, [2.0] * 10), sign_test([1, 2, 3], [1, 2, 3]), sign_test([1, 2, 3], [2, 1, 2])
    (0.001953125, 1.0, 1.0)
    >>> sign_test([1.0] * 9 + [3.0], [2.0] * 10)
    0.021484375
    """
    signs = [a < b for a, b in zip(first, second, strict=True) if a != b]
    n, fewer = len(signs), min(sum(signs), len(signs) - sum(signs))
    return min(1.0, 2 * sum(comb(n, k) for k in range(fewer + 1)) / 2**n)
