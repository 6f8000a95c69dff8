"""Ctrl-C ends what waits also where Python swallows what it raises."""

from __future__ import annotations

import os
import signal
import sys
import weakref
from typing import Any

import pytest

from lift_egraph.process.child import Stream
from lift_egraph.process.interrupts import heard, look
from tests.lift_egraph.process.tasks import count_slowly

pytestmark = pytest.mark.usefixtures("interruptible")


@pytest.fixture
def swallowed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What Python prints, because nobody can catch it."""
    found: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda problem: found.append(problem.exc_type))
    return found


def ctrl_c_in_a_callback() -> None:
    some = {0}
    _ = weakref.ref(some, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del some


@heard()
def interrupted_once() -> None:
    ctrl_c_in_a_callback()
    look()


def test_what_a_callback_swallows_is_raised_at_the_next_look(swallowed: list[Any]):
    with pytest.raises(KeyboardInterrupt):
        interrupted_once()
    assert swallowed == [KeyboardInterrupt]
    look()  # what was heard before counts no more


def interrupted_stream(stream: Stream[int]) -> None:
    for number in stream:
        if number == 0:
            ctrl_c_in_a_callback()


def test_a_stream_ends_though_a_callback_swallows_ctrl_c(swallowed: list[Any]):
    stream = Stream[int](count_slowly, 0.01)
    with pytest.raises(KeyboardInterrupt):
        interrupted_stream(stream)
    assert swallowed == [KeyboardInterrupt]
    assert stream.end.kind == "interrupted"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_users_own_stays():
    def own(*_: object) -> None:
        pass

    signal.signal(signal.SIGINT, own)  # `interruptible` puts back what was there
    with heard():
        assert signal.getsignal(signal.SIGINT) is own
