"""Ctrl-C that is not lost.

Python raises `KeyboardInterrupt` wherever the main thread is. In the callback of a weak reference, or where an object
is deleted, nobody can catch it: Python prints it, and what should have ended goes on. So it is recorded as well.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_asked = False


@contextmanager
def heard() -> Iterator[None]:
    """Ctrl-C is recorded meanwhile, for `look`; nothing changes in other threads, or where a handler is the user's."""
    global _asked  # noqa: PLW0603
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is signal.default_int_handler]
    for number in taken:
        signal.signal(number, _record)
    try:
        yield
    finally:
        with suppress(ValueError):  # a loop that was left is cleaned up by another thread
            for number in taken:
                signal.signal(number, signal.default_int_handler)
        if taken:
            _asked = False


def look() -> None:
    """Raise what was asked for since `heard` began, where it went nowhere.

    Raises
    ------
    KeyboardInterrupt
        In the main thread, if Ctrl-C came.
    """
    if _asked and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def _record(_number: int, _frame: FrameType | None) -> None:
    global _asked  # noqa: PLW0603
    _asked = True
    raise KeyboardInterrupt
