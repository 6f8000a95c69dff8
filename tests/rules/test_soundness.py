"""Every rule says what it does, does something, and does no harm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lift_egraph.egraph.rule import PHASES
from lift_egraph.language.syntax import parse_program
from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness.many_rules import FIRE_RATE
from lift_egraph.soundness.rule_check import check_rule
from lift_egraph.soundness.rule_checker import RuleChecker
from tests.depth import depth
from tests.rules.looked_at import LOOKED_AT

EXAMPLES = depth(2, 200)

@pytest.mark.parametrize("rule", [r for r in all_rules if r.name in LOOKED_AT], ids=lambda r: r.name)
def test_sound_and_not_vacuous(rule):
    report = check_rule(rule, EXAMPLES, simplification=simplification)
    assert report.counterexample is None, str(report.counterexample)
    assert report.fire_rate >= FIRE_RATE, f"{rule.name} fires in {report.fired} of {report.examples} examples"


def test_names_are_unique():
    names = [r.name for r in all_rules]
    assert len(names) == len(set(names))


def test_every_rule_has_a_law_a_source_and_a_phase():
    for rule in all_rules:
        assert "=" in rule.law, rule.name
        assert rule.source, rule.name
        assert rule.phase in PHASES, rule.name
        assert rule.place.rpartition(":")[0].endswith(f"rules/{rule.family}.py"), rule.name


def test_the_table_of_sources_has_every_rule_and_every_listing():
    text = (Path(__file__).parents[2] / "rules" / "README.md").read_text()
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`(\w+)`", table))
    assert {r.name for r in all_rules} - named == {"map_to_glb1", "map_to_wrg1", "map_to_lcl1"}  # "0 to 2"
    assert named <= {r.name for r in all_rules}
    assert {int(n) for n in re.findall(r"Listing 5\.(\d+)", table)} == set(range(4, 23))


def test_a_rule_without_a_match_does_not_fire():
    nothing_to_do = parse_program("program nothing(xs: [f32]4) = xs")
    report = RuleChecker(all_rules[0], simplification=simplification).check(nothing_to_do)
    assert (report.examples, report.fired, report.fire_rate) == (1, 0, 0.0)
