"""The check catches every planted mistake, and shows it on a small program."""

from __future__ import annotations

import pytest

from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness.counterexamples import Counterexample
from lift_egraph.soundness.rule_check import RuleCheck
from tests.depth import depth
from tests.rules.looked_at import LOOKED_AT
from tests.rules.wrong_twins import TWINS

EXAMPLES = 1, 1, 1, 2, 95  # all but a few are caught by the first three
STEPS = depth(2, 8)  # enough to see that programs shrink; `lift-egraph rules check` takes 400
PLANTED = 40


def first_caught(check: RuleCheck) -> Counterexample | None:
    """The first program that a rule gets wrong: the others of its batch are not looked at."""
    return next((found for n in EXAMPLES if (found := check.run(n).counterexample) is not None), None)


@pytest.mark.parametrize("twin", [t for t in TWINS if t.of in LOOKED_AT], ids=lambda t: f"{t.of}: {t.mistake}")
def test_a_wrong_rule_is_caught(twin):
    others = [r for r in simplification if r.name != twin.of]
    check = RuleCheck(twin.rule, simplification=others)
    found = first_caught(check)
    assert found is not None, f"{twin.rule.name} ({twin.rule.law}) passes as sound"
    small = check.shrunk(STEPS)
    assert small.size <= found.size
    shown = str(small)
    assert f"{twin.rule.name} is not sound: {twin.rule.law}" in shown
    for part in ("program example(", "becomes\n", "for\n", "expected\n", "found\n"):
        assert part in shown


def test_shrinking_makes_programs_small():
    captures = next(t for t in TWINS if t.of == "map_fusion")
    check = RuleCheck(captures.rule, simplification=simplification)
    found = first_caught(check)
    assert found is not None
    small = check.shrunk(100)
    assert small.size < found.size
    assert small.size <= 20


def test_every_rule_has_a_wrong_twin():
    assert {r.name for r in all_rules} == {t.of for t in TWINS}


def test_enough_are_planted():
    assert len(set(TWINS)) == len(TWINS) >= PLANTED
