"""Making a failing example smaller by making simpler choices.

An example is a function of a sequence of choices, each the index of an option, the simplest first. A sequence is
tried when it is shorter or smaller: blocks are left out, then set to zero, then single choices lowered. One is
taken when its example still fails and is no larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
Taken = tuple[int, ...]


def shrink(
    taken: Taken,
    wrong: Callable[[Sequence[int]], tuple[Taken, T] | None],
    found: T,
    steps: int,
    size: Callable[[T], int] = lambda failure: 0,
) -> T:
    """The simplest failure that a number of steps find.

    Parameters
    ----------
    taken
        Choices that fail.
    wrong
        The choices that were really taken and the failure, or None where there is none.
    found
        The failure of `taken`.
    steps
        How many sequences to try.
    size
        How large a failure is.

    Examples
    --------
    >>> def has_five(taken):
    ...     return (tuple(taken), taken) if 5 in taken else None
    >>> shrink((3, 1, 5, 2), has_five, None, 100)
    (5,)
    """
    best = taken
    tried: set[Taken] = {taken}
    while True:
        for candidate in _simpler(best):
            if candidate in tried:
                continue
            tried.add(candidate)
            if len(tried) > steps:
                return found
            outcome = wrong(candidate)
            if outcome is not None and (size(outcome[1]), _rank(outcome[0])) < (size(found), _rank(best)):
                best, found = outcome
                break
        else:
            return found


def _rank(taken: Taken) -> tuple[int, int, Taken]:
    return len(taken), sum(taken), taken


def _simpler(taken: Taken) -> Iterator[Taken]:
    size = len(taken)
    block = size
    while block:
        for start in range(0, size, block):
            yield taken[:start] + taken[start + block :]
        for start in range(0, size, block):
            if any(taken[start : start + block]):
                yield taken[:start] + (0,) * len(taken[start : start + block]) + taken[start + block :]
        block //= 2
    for at, value in enumerate(taken):
        for lower in (value // 2, value - 1):
            if 0 < lower < value:
                yield (*taken[:at], lower, *taken[at + 1 :])
