"""Rules checked one after the other in one process, as their authors do."""

from __future__ import annotations

import contextlib
import io

import pytest

from lift_egraph.dsl import Ex, Op, reduce_, rewrite, rule, transpose
from lift_egraph.egraph.rule import Rule
from lift_egraph.rules import simplification
from lift_egraph.soundness.counterexamples import shown
from lift_egraph.soundness.rule_check import check_rule
from tests.lift_egraph.soundness.wrong_laws import chunk_captured, short_arrays, times_zero


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


@pytest.mark.parametrize("law", [times_zero, chunk_captured, short_arrays], ids=lambda r: r.name)
def test_a_counterexample_can_be_made_again_in_three_lines(law: Rule):
    found = check_rule(law, 40, simplification=simplification, shrink_steps=3).counterexample
    assert found is not None
    assert len(found.reproducer.splitlines()) == 3
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(found.reproducer, {})
    assert f"expected\n  {shown(found.expected)}\nfound\n  {shown(found.found)}" in printed.getvalue()


def test_a_rule_that_makes_what_is_no_term_is_wrong():
    @rule("reduce ⊕ z xs = reduce ⊕ xs z")
    def exchanged(op: Op, z: Ex, xs: Ex):
        yield rewrite(reduce_(op, z, xs)).to(reduce_(op, xs, z))

    found = check_rule(exchanged, 4, shrink_steps=0).counterexample
    assert found is not None
    assert isinstance(found.found, str)
    assert found.found.startswith("no term: ")
