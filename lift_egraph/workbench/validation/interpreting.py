"""Whether something is interpreted for a kernel in this process: what else it does would take the time of that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interpreting:
    """How many lanes interpret something at the moment.

    Examples
    --------
    >>> interpreting = Interpreting()
    >>> with interpreting.counted():
    ...     inside = bool(interpreting)
    >>> inside, bool(interpreting)
    (True, False)
    """

    def __init__(self) -> None:
        self._count, self._lock = 0, threading.Lock()

    def __bool__(self) -> bool:
        return self._count > 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """While one does."""
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
