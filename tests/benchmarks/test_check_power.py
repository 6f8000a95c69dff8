"""The check of rules catches wrong rules that were written without sight of how it makes programs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_files import load_rules
from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness.rule_check import RuleCheck
from tests.depth import depth, in_turn

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "wrong_rules").glob("*.py"))
COUNT, CAUGHT_SOON = 127, (0, 24, 48, 73, 97, 121)
EXAMPLES = depth(40, 200)
UNREADABLE = {"all_are_additions"}  # it makes no term, only a claim that is no law: the check refuses it


@cache
def wrong() -> list[Rule]:
    """The rules; not read while tests are collected, which each worker does."""
    return [rule for file in FILES for rule in load_rules(file)[0]]


def test_there_are_many_of_every_family():
    assert len(FILES) == 8
    assert len({r.name for r in wrong()}) == len(wrong()) == COUNT
    assert not {r.name for r in wrong()} & {r.name for r in all_rules}


@in_turn(6)
@pytest.mark.parametrize("number", CAUGHT_SOON if depth(0, 1) == 0 else range(COUNT))
def test_a_wrong_rule_is_caught(number: int):
    rule = wrong()[number]
    if rule.name not in UNREADABLE:
        found = RuleCheck(rule, simplification=simplification).run(EXAMPLES).counterexample
        assert found is not None, f"{rule.name}: {rule.law}"
