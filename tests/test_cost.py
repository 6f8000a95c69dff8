"""The end of a run says what each room cost, its children too."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import conftest
from tests.command import start
from tests.cost import COLLECTING, Cost, processor_seconds

BUSY = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"


RUNS_ON = pytest.param(False, marks=pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell"))


@pytest.mark.parametrize("ends", [True, RUNS_ON])
def test_children_count_while_they_run_and_when_they_have_ended(ends: bool):
    before = processor_seconds()
    with start("-c", BUSY) as child:
        assert child.stdout is not None
        child.stdout.readline()
        if ends:
            child.kill()
            child.wait()
        assert processor_seconds() - before > 0.15
        child.kill()


def test_seconds_count_for_the_room_that_is_left(monkeypatch: pytest.MonkeyPatch):
    clock = iter([3.0, 7.0, 20.0])
    monkeypatch.setattr("tests.cost.processor_seconds", lambda: next(clock))
    cost = Cost()
    for room in ("rules", "rules", "codegen", "rules"):
        cost.enter(room)
    assert cost.seconds == {COLLECTING: 3.0, "rules": 4.0, "codegen": 13.0}


def test_what_workers_spent_is_added_up_and_shown(capsys: pytest.CaptureFixture[str]):
    config: Any = SimpleNamespace(stash=pytest.Stash(), addinivalue_line=print)
    conftest.pytest_configure(config)
    for seconds in (3.0, 4.0):
        told = {"seconds": {"rules": seconds, "collecting": 1.0}, "left out": 12}
        conftest.pytest_testnodedown(SimpleNamespace(config=config, workeroutput=told))
    conftest.pytest_testnodedown(SimpleNamespace(config=config))  # one that was killed tells nothing
    reporter: Any = SimpleNamespace(write_line=print)
    conftest.pytest_terminal_summary(reporter, config)
    *_, others, last = capsys.readouterr().out.splitlines()
    assert others.startswith("12 members of long lists have their turns on other days")
    assert last == "processor seconds: 9 (rules 7, collecting 2)"


def test_what_workers_spent_counts_once(monkeypatch: pytest.MonkeyPatch):
    """The process that began them ran no test itself."""
    config: Any = SimpleNamespace(stash=pytest.Stash(), addinivalue_line=print)
    conftest.pytest_configure(config)
    monkeypatch.setattr(conftest, "_COST", Cost())
    conftest.pytest_sessionfinish(cast(Any, SimpleNamespace(config=config)))
    assert not config.stash[conftest._SPENT]  # pyright: ignore[reportPrivateUsage]
