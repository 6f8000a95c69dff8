"""Members of long lists take turns, and none is left out for ever."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from tests.depth import depth, in_turn, waiting


class Member:
    """What pytest makes of a test for one choice of its parameters."""

    def __init__(self, marks: Iterable[pytest.MarkDecorator], **params: Any) -> None:
        self.nodeid = f"tests/test_it.py::test_it[{params}]"
        self.marks = [made.mark for made in marks]
        self.callspec = self
        self.params = params

    def iter_markers(self, name: str) -> Iterable[pytest.Mark]:
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)


def test_every_member_has_one_turn():
    marks = pytest.mark.in_turn(3), pytest.mark.parametrize(("text", "n"), [])
    members = [Member(marks, text="same", n=n) for n in range(8)]
    turns = [{*members} - {*waiting(members, turn)} for turn in range(3)]
    assert [len(chosen) for chosen in turns] == [3, 2, 3]
    assert set().union(*turns) == {*members}
    assert {*members} - {*waiting(members, 3)} == turns[0]


def test_in_each_turn_every_member_of_a_list_meets_some_of_another():
    marks = pytest.mark.in_turn(2), pytest.mark.parametrize("device", []), pytest.mark.parametrize("program", [])
    members = [Member(marks, device=d, program=p) for d, p in itertools.product(("pocl", "intel"), "abc")]
    for turn in range(2):
        chosen = [(m.params["device"], m.params["program"]) for m in {*members} - {*waiting(members, turn)}]
        assert len(chosen) == 3
        assert {program for _, program in chosen} == {*"abc"}
        assert {device for device, _ in chosen} == {"pocl", "intel"}


def test_one_without_parameters_has_one_turn_as_well():
    member = Member([pytest.mark.in_turn(4)])
    assert sum(not waiting([member], turn) for turn in range(4)) == 1


def test_all_run_where_no_turn_is_told():
    marks = pytest.mark.in_turn(3), pytest.mark.parametrize("n", [])
    assert waiting([Member(marks, n=n) for n in range(8)], None) == []


def test_other_tests_always_run():
    assert waiting([Member([])], 1) == []


def test_every_night_all_members_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.depth.PROFILE", "nightly")
    member = Member([in_turn(5), pytest.mark.parametrize("n", [])], n=3)
    assert all(not waiting([member], turn) for turn in range(5))
    assert depth(1, 8) == 8
