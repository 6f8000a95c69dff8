"""The end of a run says what each room cost, its children too."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from _pytest.doctest import DoctestModule

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


def configured() -> Any:
    made: Any = SimpleNamespace(stash=pytest.Stash(), addinivalue_line=print)
    made.pluginmanager = pytest.PytestPluginManager()
    conftest.pytest_configure(made)
    return made


def test_what_workers_spent_is_added_up_and_shown(capsys: pytest.CaptureFixture[str]):
    config = configured()
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
    config = configured()
    monkeypatch.setattr(conftest, "_COST", Cost())
    conftest.pytest_sessionfinish(cast(Any, SimpleNamespace(config=config)))
    assert not config.stash[conftest._SPENT]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("text", "count"), [("x = 1\n", 0), ('"""\n>>> 1\n1\n"""\n', 1)])
def test_only_files_with_examples_are_looked_through_for_them(
    request: pytest.FixtureRequest, tmp_path: Path, text: str, count: int
):
    (path := tmp_path / "some.py").write_text(text)
    hook = conftest._Examples().pytest_collect_file(path)  # pyright: ignore[reportPrivateUsage]
    next(hook)
    with pytest.raises(StopIteration) as end:
        hook.send([DoctestModule.from_parent(request.session, path=path)])
    assert len(end.value.value) == count
