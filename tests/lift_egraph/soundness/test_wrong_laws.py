"""Laws that are wrong for few numbers, orders, sizes, operators or names are caught."""

from __future__ import annotations

import pytest

from lift_egraph.egraph.rule import Rule
from lift_egraph.rules import simplification
from lift_egraph.soundness.many_rules import EXAMPLES
from lift_egraph.soundness.rule_check import RuleCheck
from tests.depth import depth, in_turn
from tests.lift_egraph.soundness.wrong_laws import WRONG_LAWS, tile_exchanged

SEEDS = range(depth(1, 10))


@in_turn(8)
@pytest.mark.parametrize("law", [law for law in WRONG_LAWS if law is not tile_exchanged], ids=lambda r: r.name)
def test_a_wrong_law_has_a_counterexample(law: Rule):
    for seed in SEEDS:
        report = RuleCheck(law, simplification=simplification, seed=seed).run(EXAMPLES)
        assert report.counterexample is not None, f"{law.law} passes with the seed {seed}"


def test_a_rule_that_asks_for_tiles_the_wrong_way_round_never_fires():
    assert not RuleCheck(tile_exchanged).run(10).fired
