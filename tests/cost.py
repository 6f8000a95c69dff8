"""What tests cost: seconds of processors for each room, those of child processes too, shown at the end of a run.

The time between two tests of different rooms counts for the room of the former; what is imported before the first
test stands apart.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from pathlib import Path

COLLECTING, DOCTESTS, OTHERS = "collecting", "doctests", "others"
_TICKS = os.sysconf("SC_CLK_TCK")
_OWN, _OF_ENDED_CHILDREN = slice(11, 13), slice(13, 15)  # in /proc/PID/stat behind the name, user's and system's


class Cost:
    """Processor seconds of this process and its children, by room."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._room, self._before = COLLECTING, 0.0

    def enter(self, room: str) -> None:
        """What follows counts for a room."""
        if room == self._room:
            return
        now = processor_seconds()
        self.seconds[self._room] = self.seconds.get(self._room, 0.0) + now - self._before
        self._room, self._before = room, now


def room_of(test: str) -> str:
    """The room of a test, by its node's name.

    >>> room_of("tests/lift_egraph/workbench/changes/test_tabled.py::t"), room_of("tests/codegen/test_tidy.py::t")
    ('workbench', 'codegen')
    >>> room_of("tests/test_language.py::t"), room_of("lift_egraph/language/nat.py::lift_egraph.language.nat.Nat")
    ('others', 'doctests')
    """
    first, *folders = test.partition("::")[0].split("/")[:-1]
    if first != "tests":
        return DOCTESTS
    return next((folder for folder in folders if folder != "lift_egraph"), OTHERS)


def shown(seconds: Mapping[str, float]) -> str:
    """The line at the end of a run.

    >>> shown({"rules": 20.4, "workbench": 300.1, "collecting": 9.0})
    'processor seconds: 330 (workbench 300, rules 20, collecting 9)'
    """
    parts = ", ".join(f"{room} {n:.0f}" for room, n in sorted(seconds.items(), key=lambda of: -of[1]))
    return f"processor seconds: {sum(seconds.values()):.0f} ({parts})"


def processor_seconds() -> float:
    """Of this process and all that it began; of processes that still run only where the system tells it."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(s.ru_utime + s.ru_stime for s in spent) + sum(_of_process(child) for child in _children(os.getpid()))


def _of_process(number: str | int) -> float:
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0.0
    ticks = sum(int(n) for part in (_OWN, _OF_ENDED_CHILDREN) for n in fields[part])
    return ticks / _TICKS + sum(_of_process(child) for child in _children(number))


def _children(number: str | int) -> list[str]:
    return [child for file in Path(f"/proc/{number}/task").glob("*/children") for child in file.read_text().split()]
