"""Workers of devices that several tests have one after the other: the first kernel of a new one takes half a second.

Who is done with a worker leaves it to the next with the same device, limits and environment, for whom it begins anew:
with a context of its own, without programs, inputs or memory. One that failed in anything, was killed, or has variables
of its own is not kept.
The tests of `lift_egraph.codegen.running` itself, and all processes that run the command, have workers as users do.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from lift_egraph.codegen.running import run
from lift_egraph.errors import RunProblem
from lift_egraph.process.child import Ended, Server
from lift_egraph.process.child_process import Child

_MOST = 4
_IDLE: list[tuple[Any, Child]] = []  # and what each was made for, the one that was left last at the end
_LOCK = threading.Lock()


class Kept(Server):
    """What `Server` does, with a child that another left, if there is one, and that is left to others."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._index = given[1]
        self._failed = self._is_kept = False
        self._begun: Any = None

    @property
    def _kind(self) -> Any:
        surroundings = frozenset(os.environ.items()), os.getcwd(), tuple(sys.path)
        return self._task, self._memory_limit, frozenset((self._environment or {}).items()), surroundings

    def begin(self) -> None:
        if self._child is not None and self._child.alive:
            return
        self.close()
        self._failed, self._begun, self._is_started = False, self._kind, False
        child = self._child = _taken(self._begun)
        self._is_kept = child is not None
        if child is None:
            super().begin()
        else:
            with suppress(Ended):  # whoever waits is told
                child.send(("__init__", self._index), child.limits(10))

    def start(self) -> bool:
        try:
            return super().start()
        except RunProblem:
            if not self._is_kept:
                raise
        return self.start()  # it has ended meanwhile

    def request(self, message: Any, time_limit: float | None = None) -> Any:
        self._failed, failed = True, self._failed
        value = super().request(message, time_limit)
        self._failed = failed
        return value

    def signal(self, number: int) -> None:
        self._failed |= number not in (signal.SIGSTOP, signal.SIGCONT)
        super().signal(number)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        is_usual = self._environment == run._ENVIRONMENT  # a simulator's worker ends as its reports are read
        if self._failed or not (self._is_started and is_usual and child.alive):
            child.kill()
            return
        child.signal(signal.SIGCONT)
        with _LOCK:
            _IDLE.append((self._begun, child))
            old = _IDLE[:-_MOST]
            del _IDLE[:-_MOST]
        for _, unused in old:
            unused.kill()


def _taken(kind: Any) -> Child | None:
    """The last child of a kind that was left."""
    with _LOCK:
        at = next((n for n in reversed(range(len(_IDLE))) if _IDLE[n][0] == kind and _IDLE[n][1].alive), None)
        return None if at is None else _IDLE.pop(at)[1]


@contextmanager
def kept_workers() -> Iterator[None]:
    """Runners leave their workers to the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "Server", Kept)
        yield
    for _, child in _IDLE:
        child.kill()
    _IDLE.clear()
