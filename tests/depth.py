"""How deep the tests look: every kind of mistake by default, many more examples with ``HYPOTHESIS_PROFILE=nightly``."""

from __future__ import annotations

import os
from datetime import date
from typing import Any

import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
_TURN = "LIFT_EGRAPH_TURN"
TURN = int(os.environ.setdefault(_TURN, str(date.today().toordinal())))  # workers have that of who began them


def depth(default: int, nightly: int) -> int:
    """How many examples to take."""
    return nightly if PROFILE == "nightly" else default


def in_turn(one_in: int) -> pytest.MarkDecorator:
    """One in so many members of a parametrised test runs, others each day: they are many examples of few mechanisms.

    Every night all run, and those of tests that are called by name: ``pytest tests/test_language.py::test_kernels``.
    The end of a run says how many were left out, and its turn, with which ``LIFT_EGRAPH_TURN`` repeats it.
    """
    return pytest.mark.in_turn(depth(one_in, 1))


def is_on_turn(item: Any, turn: int = TURN) -> bool:
    """Whether a test runs in a turn; of two lists, each member of one meets other members of the other."""
    marker = item.get_closest_marker("in_turn")
    if marker is None:
        return True
    lists = (mark.args[0] for mark in item.iter_markers("parametrize"))
    first = (names.split(",")[0].strip() if isinstance(names, str) else names[0] for names in lists)
    return (sum(item.callspec.indices[name] for name in first) + turn) % marker.args[0] == 0


def left_out(number: int) -> str:
    """What the end of a run says of members that had no turn."""
    return f"{number} members of long lists have their turns on other days, and each night: this is {_TURN}={TURN}"
