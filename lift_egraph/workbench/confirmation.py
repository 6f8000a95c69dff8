"""The best kernels of a search once more, in turns, and whether the best is faster than another one at all.

What is measured first and what last of a long search meets another machine: caches, clocks, other people's work. In
turns all meet the same. That one is faster is then decided by the sign test, which asks nothing of how times scatter.

Source: the sign test, J. Arbuthnot 1710; W. J. Conover, Practical Nonparametric Statistics, 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

NEAR = 1.1  # times the best time up to which kernels take part in the turns …
MOST = 4  # … so many at most, and the best two in any case
BESIDE = 4.0  # times the best time up to which the naive kernel is timed beside them
ROUNDS = 31
SIGNIFICANT = 0.05  # the chance that kernels as fast as each other are told apart


def contenders(times: Sequence[float]) -> int:
    """How many of the fastest kernels take part, of the times of all in their order.

    Examples
    --------
    >>> contenders([1.0, 1.05, 1.09, 1.1, 1.1]), contenders([1.0, 2.0, 2.0]), contenders([1.0])
    (4, 2, 1)
    """
    near = sum(ms <= NEAR * times[0] for ms in times)
    return min(max(near, 2), MOST, len(times))


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
