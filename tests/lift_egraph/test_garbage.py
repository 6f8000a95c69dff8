"""E-graphs that nobody uses are dropped by the thread that made them."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import egglog
import pytest

from lift_egraph.codegen.devices import POCL
from lift_egraph.errors import SearchProblem
from lift_egraph.garbage import drop_unused_e_graphs
from lift_egraph.language.syntax import parse_program
from lift_egraph.process.child import call
from lift_egraph.rules import map_fusion
from lift_egraph.soundness import many_rules
from lift_egraph.workbench.exploration import drawing


class Holder:
    """Holds an e-graph, and itself."""

    def __init__(self):
        self.graph, self.itself = egglog.EGraph(), self


@pytest.fixture
def is_dropped() -> Iterator[Callable[[], bool]]:
    """Whether an e-graph that nobody uses is."""
    gc.disable()
    known = weakref.ref(Holder())
    assert known() is not None
    yield lambda: known() is None
    gc.enable()


def test_unused_e_graphs_are_dropped_before_other_threads_look_for_garbage(is_dropped: Callable[[], bool]):
    drop_unused_e_graphs()
    assert is_dropped()


def test_they_are_dropped_before_searches_begin(is_dropped: Callable[[], bool], monkeypatch: pytest.MonkeyPatch):
    seen = list[bool]()

    def stream(*_: Any, **__: Any) -> Iterator[Any]:
        seen.append(is_dropped())
        return iter(())

    monkeypatch.setattr(drawing, "Stream", stream)
    program = parse_program("program scal(alpha: f32, x: [f32]1024) = map(fun e => alpha * e, x)")
    with pytest.raises(SearchProblem):
        list(drawing.drawn(program, program, cast(Any, None), POCL, 9, 60.0))
    assert set(seen) == {True}


def test_children_look_for_garbage_seldom():
    assert call(gc.get_threshold)[0] > 10_000


def test_they_are_dropped_before_rules_are_checked(is_dropped: Callable[[], bool], monkeypatch: pytest.MonkeyPatch):
    def begin(**_: Any) -> threading.Thread:
        raise InterruptedError(is_dropped())

    monkeypatch.setattr(many_rules, "Server", lambda *_, **__: nullcontext())
    monkeypatch.setattr(many_rules, "threading", SimpleNamespace(Event=threading.Event, Thread=begin))
    with pytest.raises(InterruptedError, match="True"):
        list(many_rules.check_rules(((map_fusion,),)))
