"""Rules checked one after the other in one process, as their authors do."""

from __future__ import annotations

import contextlib
import io

import pytest

from lift_egraph.dsl import Ex, Op, Ty, i64, reduce_, rewrite, rule, split, transpose
from lift_egraph.egraph.rule import Rule
from lift_egraph.language.syntax import parse_program
from lift_egraph.rules import map_fusion, simplification
from lift_egraph.soundness.counterexamples import shown
from lift_egraph.soundness.rule_check import RuleCheck, check_rule
from lift_egraph.soundness.whole_numbers import witness
from tests.depth import in_turn
from tests.lift_egraph.soundness.wrong_laws import chunk_captured, short_arrays, times_zero


def version(right: bool) -> Rule:
    @rule("transpose (transpose xs) = xs")
    def twice(xs: Ex):
        yield rewrite(transpose(transpose(xs))).to(xs if right else transpose(xs))

    return twice


@in_turn(3)
def test_the_next_version_of_a_rule_is_checked_not_the_last():
    for right in (False, True, False, True):
        report = check_rule(version(right), examples=20)
        assert report.fired
        assert (report.counterexample is None) == right


@in_turn(8)
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

    for rules in ((), simplification):  # with these, operators are lifted to rows, of which there may be none
        found = check_rule(exchanged, 20, simplification=rules, shrink_steps=0).counterexample
        assert found is not None
        assert isinstance(found.found, str)
        assert "type" in found.found


def test_a_rule_that_makes_arrays_of_negative_lengths_is_wrong():
    @rule("split n xs = split n any,  any of 1 - n elements")
    def shorter(xs: Ex, n: i64):
        yield rewrite(split(n, xs)).to(split(n, Ex.input("any", Ty.arr(1 - n * 2, Ty.scalar("f32")))))

    found = check_rule(shorter, 4, shrink_steps=0).counterexample
    assert found is not None
    assert isinstance(found.found, str)
    assert "negative length" in found.found


def test_programs_side_by_side_are_checked_as_one_by_one():
    check = RuleCheck(map_fusion, simplification=simplification)
    drawn = [(check.instances.draw(f"0/{n}", True, n)[0], n) for n in range(6)]
    together, alone = check.look_at(drawn), [check.look(*each) for each in drawn]
    assert [(r.fired, r.changed, r.counterexample) for r in together] == [(1, 1, None)] * 6
    assert [(r.fired, r.changed, r.counterexample) for r in alone] == [(1, 1, None)] * 6


def test_polynomials_are_computed_over_whole_numbers():
    program = parse_program("program p(x: f32, y: f32) = x * y + y")
    other = parse_program("program p(x: f32, y: f32) = x * y + y * y")
    same, wrong = witness(program, program, 0), witness(program, other, 0)
    assert same is not None
    assert wrong is not None
    assert (same.agrees, wrong.agrees) == (True, False)
    assert 0 < same.chance < 1e-3
    assert witness(parse_program("program q(x: f32) = x / x"), other, 0) is None
    assert check_rule(map_fusion, 10).whole > 0
