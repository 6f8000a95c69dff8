"""The harness catches every planted mistake."""

from __future__ import annotations

import random

import pytest

from lift_egraph.soundness import Counterexample
from rules import all_rules
from tests.rules.planting import Twin
from tests.rules.terms import program
from tests.rules.wrong_twins import TWINS

EXAMPLES = 150  # most are caught by the first few


def caught(twin: Twin) -> Counterexample | None:
    """The first counterexample; uniform choices spread better here than Hypothesis's."""
    checker = twin.generator.checker(twin.rule, twin.of)
    for i in range(EXAMPLES):
        choose = random.Random(i).choice
        example = program(choose, twin.generator.match, careful=i % 4 == 3, outer=twin.generator.outer)
        found = checker.check(example, i).counterexample
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("twin", TWINS, ids=lambda t: f"{t.of}-{t.rule.name}")
def test_a_wrong_rule_is_caught(twin):
    found = caught(twin)
    assert found is not None, f"{twin.rule.name} ({twin.rule.law}) passes as sound"
    assert "program example(" in str(found)
    assert "expected\n" in str(found)
    assert "found\n" in str(found)


def test_every_rule_has_a_wrong_twin():
    assert {r.name for r in all_rules} == {t.of for t in TWINS}


def test_twins_are_declared_once():
    names = [t.rule.name for t in TWINS]
    assert len(names) == len(set(names))
