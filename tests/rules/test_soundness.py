"""Every rule says what it does, does something, and does no harm."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings

from lift_egraph import ir
from lift_egraph.rule import PHASES
from lift_egraph.soundness import check_rule
from lift_egraph.syntax import parse_program
from rules import all_rules
from tests.rules.generators import GENERATORS
from tests.rules.terms import program

EXAMPLES = int(os.environ.get("RULE_EXAMPLES", "25"))
FIRE_RATE = 0.95

every_rule = pytest.mark.parametrize("rule", all_rules, ids=lambda r: r.name)


@every_rule
def test_sound_where_it_applies(rule):
    generator = GENERATORS[rule.name]
    checker = generator.checker(rule, rule.name)
    fired: list[bool] = []

    @settings(max_examples=EXAMPLES)
    @given(generator.examples())
    def holds(example: ir.Program) -> None:
        report = checker.check(example, seed=len(fired))
        fired.append(report.fired > 0)
        assert report.counterexample is None, str(report.counterexample)

    holds()
    assert sum(fired) >= FIRE_RATE * len(fired), f"{rule.name} fires in {sum(fired)} of {len(fired)} examples"


@every_rule
def test_harmless_where_its_conditions_fail(rule):
    generator = GENERATORS[rule.name]
    checker = generator.checker(rule, rule.name)
    for seed in range(EXAMPLES):
        near_miss = program(random.Random(seed).choice, generator.match, careful=False, outer=generator.outer)
        report = checker.check(near_miss, seed)
        assert report.counterexample is None, str(report.counterexample)


def test_every_rule_has_a_generator():
    assert {r.name for r in all_rules} == set(GENERATORS)


def test_names_are_unique():
    names = [r.name for r in all_rules]
    assert len(names) == len(set(names))


@every_rule
def test_every_rule_has_a_law_a_source_and_a_phase(rule):
    assert "=" in rule.law
    assert rule.source
    assert rule.phase in PHASES


def test_a_rule_without_a_match_does_not_fire():
    nothing_to_do = parse_program("program nothing(xs: [f32]4) = xs")
    report = check_rule(all_rules[0], [nothing_to_do] * 3)
    assert (report.examples, report.fired, report.fire_rate) == (3, 0, 0.0)
