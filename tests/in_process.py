"""Searches in this process: a child of its own imports everything again, which takes longer than a small search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lift_egraph.process.child import End


class Here:
    """What `lift_egraph.process.child.Stream` does, without a child and its limits."""

    def __init__(self, function: Callable[..., Iterator[Any]], *arguments: Any, **_: Any) -> None:
        self._messages = function(*arguments)
        self.end = End("interrupted", "was interrupted")

    def __iter__(self) -> Iterator[Any]:
        yield from self._messages
        self.end = End("finished", "finished")


@contextmanager
def no_children() -> Iterator[None]:
    """Guided searches, saturation and explanations run in this process; limits of time and memory do not hold."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("guided.stages", "guided.schedules", "egraph.saturate", "workbench.explanation"):
            patch.setattr(f"lift_egraph.{module}.Stream", Here)
        yield
