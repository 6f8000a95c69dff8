"""How long terms may be interpreted: what is over its time raises, wherever it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

from lift_egraph.errors import TimeProblem

_end: ContextVar[float] = ContextVar("end", default=inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What this thread interprets inside may take so many seconds in all, or what is left of a limit around it.

    Raises
    ------
    TimeProblem
        Where it takes longer.

    Examples
    --------
    >>> with within(60), within(0):
    ...     require_time()
    Traceback (most recent call last):
    lift_egraph.errors.TimeProblem: the time for interpreting the program is over
    """
    token = _end.set(min(end_of_time(), time.perf_counter() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def end_of_time() -> float:
    """Until when this thread may interpret: a time of `time.perf_counter`."""
    return _end.get()


def require_time(end: float | None = None) -> None:
    """Check that the end, a time of `time.perf_counter` and by default that of this thread, has not come.

    Raises
    ------
    TimeProblem
        If it has.
    """
    if time.perf_counter() > (end_of_time() if end is None else end):
        raise TimeProblem("the time for interpreting the program is over")
