"""The check of rules catches wrong rules that were written without sight of how it makes programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lift_egraph.egraph.rule_files import load_rules
from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness.rule_check import RuleCheck
from tests.depth import depth, in_turn

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "wrong_rules").glob("*.py"))
WRONG = [rule for file in FILES for rule in load_rules(file)[0]]
EXAMPLES = depth(40, 200)
UNREADABLE = {"all_are_additions"}  # it makes no term, only a claim that is no law: the check refuses it


def test_there_are_many_of_every_family():
    assert len(FILES) == 8
    assert len({r.name for r in WRONG}) == len(WRONG) >= 100
    assert not {r.name for r in WRONG} & {r.name for r in all_rules}


@in_turn(2)
@pytest.mark.parametrize("rule", [r for r in WRONG if r.name not in UNREADABLE][:: depth(12, 1)], ids=lambda r: r.name)
def test_a_wrong_rule_is_caught(rule):
    assert RuleCheck(rule, simplification=simplification).run(EXAMPLES).counterexample is not None, rule.law
