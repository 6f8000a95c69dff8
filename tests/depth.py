"""How deep the tests look: every kind of mistake by default, many more examples with ``HYPOTHESIS_PROFILE=nightly``."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
_TURN = "LIFT_EGRAPH_TURN"
_ALL = "all"
_told = os.environ.setdefault(_TURN, str(date.today().toordinal()))  # workers have that of who began them
TURN = None if _told == _ALL else int(_told)


def depth(default: int, nightly: int) -> int:
    """How many examples to take."""
    return nightly if PROFILE == "nightly" else default


def in_turn(one_in: int) -> pytest.MarkDecorator:
    """One in so many members of a parametrised test runs, others each day: they are many examples of few mechanisms.

    A test without parameters runs on one day in so many: one of the whole way, whose parts have tests of their own.
    Every night all run, with ``LIFT_EGRAPH_TURN=all`` too, and those of files and tests that are called by name:
    ``pytest tests/test_language.py``. The end of a run says how many were left out, and its turn, with which
    ``LIFT_EGRAPH_TURN`` repeats it.
    """
    return pytest.mark.in_turn(depth(one_in, 1))


def names_tests(arguments: Iterable[str]) -> bool:
    """Whether the arguments of a run name files or tests.

    >>> names_tests(["tests/rules", "tests/test_cost.py"]), names_tests(["tests", "lift_egraph"])
    (True, False)
    """
    return any(argument.partition("::")[0].endswith(".py") for argument in arguments)


def waiting(items: Iterable[Any], turn: int | None = TURN) -> list[Any]:
    """The tests that have no turn; of two lists, each member of one meets other members of the other on other days."""
    if turn is None:
        return []
    places: dict[tuple[str, str], dict[tuple[int, ...], int]] = {}
    found = list[Any]()
    for item in items:
        marker = item.get_closest_marker("in_turn")
        if marker is None:
            continue
        lists = [*item.iter_markers("parametrize")]
        place = turn if lists else turn + zlib.crc32(item.nodeid.encode())
        for mark in lists:
            names = re.findall(r"\w+", str(mark.args[0]))
            known = places.setdefault((item.nodeid.partition("[")[0], names[0]), {})
            place += known.setdefault(tuple(id(item.callspec.params[name]) for name in names), len(known))
        if place % marker.args[0]:
            found.append(item)
    return found


def left_out(number: int) -> str:
    """What the end of a run says of members that had no turn."""
    return f"{number} members of long lists have their turns on other days, and each night: this is {_TURN}={TURN}"
