"""The children that tests share their imports with are as fresh ones for whom they work."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from egglog import EGraph, Expr, i64, i64Like, rewrite, ruleset, var

from lift_egraph.process import child_process
from lift_egraph.process.child import Server, Stream, call
from tests.warm import FRESH, Fork, _Later, _Promised

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="children are fresh elsewhere")


def surroundings() -> tuple[str, str, str | None, str | None, int, list[str]]:
    values = os.environ.get("LIFT_TEST"), os.environ.get("LIFT_REMOVED")
    return os.getcwd(), tempfile.gettempdir(), *values, os.getsid(0) - os.getpid(), sys.path


def leave(code: int):
    print("the last words")
    yield os.getppid()
    os._exit(code)


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_child_has_what_its_parent_gives(is_fresh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if is_fresh:
        monkeypatch.setattr(child_process, "begin", FRESH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIFT_REMOVED", "set")
    monkeypatch.delenv("LIFT_REMOVED")
    folder, temporary, given, removed, session, path = call(surroundings, environment={"LIFT_TEST": "yes"})
    assert (Path(folder), given, removed, session) == (tmp_path, "yes", None, 0)
    assert path == [os.path.abspath(os.fspath(p)) for p in sys.path]
    assert temporary != tempfile.gettempdir()
    assert not Path(temporary).exists()


def test_a_fork_is_a_child_whose_end_is_seen():
    stream = Stream(leave, 3)
    assert list(stream) == [os.getpid()]
    assert (stream.end.text, stream.end.output) == ("ended with exit code 3", "the last words")
    with Server(_identity) as server:
        assert server.request(1) == 1
        child = server._child
        assert child is not None
        assert isinstance(child._process, Fork)
        os.kill(child.pid, signal.SIGKILL)
        assert child._process.wait(10) == -signal.SIGKILL
        assert not child.alive


def loaded() -> list[str]:
    return [name for name in ("networkx", "sklearn", "scipy", "matplotlib", "z3") if name in sys.modules]


def test_what_only_some_commands_need_is_not_imported_for_a_search():
    assert call(loaded) == []


def test_this_process_does_not_wait_to_load_egglog():
    assert not isinstance(sys.modules["egglog.bindings"], _Later)


class Count(Expr):
    def __init__(self, number: i64Like) -> None: ...

    def doubled(self) -> Count: ...


def saturated() -> tuple[str, list[str]]:
    import lift_egraph.workbench.exploration.search  # noqa: F401

    graph, n = EGraph(), var("n", i64)
    made = graph.let("made", Count(21).doubled())
    graph.run(ruleset(rewrite(Count(n).doubled()).to(Count(n + n))))
    left = [name for name, module in sys.modules.items() for v in vars(module).values() if type(v) is _Promised]
    return str(graph.extract(made)), left


def test_egglog_is_loaded_in_the_child_that_uses_it():
    assert call(saturated) == ("Count(42)", [])


def _identity():
    return lambda message: message
