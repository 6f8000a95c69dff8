"""What is told on the way of a search, a collection or an explanation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """Something that happened on the way: its stage, a text, and how far the stage is (0 to 1)."""

    stage: str
    text: str
    done: float = 0.0


Listener = Callable[[Event], None]
