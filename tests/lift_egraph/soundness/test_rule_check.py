"""Rules checked one after the other in one process, as their authors do."""

from __future__ import annotations

from lift_egraph.dsl import Ex, rewrite, rule, transpose
from lift_egraph.egraph.rule import Rule
from lift_egraph.soundness.rule_check import check_rule


def version(right: bool) -> Rule:
    @rule("transpose (transpose xs) = xs")
    def twice(xs: Ex):
        yield rewrite(transpose(transpose(xs))).to(xs if right else transpose(xs))

    return twice


def test_the_next_version_of_a_rule_is_checked_not_the_last():
    for right in (False, True, False, True):
        report = check_rule(version(right), examples=20)
        assert report.fired
        assert (report.counterexample is None) == right
