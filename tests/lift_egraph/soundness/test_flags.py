"""What a rule may change in the results of floats is what its flags say, and no more."""

from __future__ import annotations

import pickle

import pytest

from lift_egraph.dsl import Ex, Ty, call1, call2, eq, rewrite, rule, ty
from lift_egraph.egraph.rule import FLAGS, Rule, told
from lift_egraph.soundness.rule_check import RuleCheck
from tests.depth import depth, in_turn

F32 = Ty.scalar("f32")
ZERO = Ex.literal("0.0", F32)


def plus_zero(x: Ex):
    yield rewrite(call2("add", x, ZERO)).to(x)


def times_zero(x: Ex):
    yield rewrite(call2("mul", x, ZERO)).to(ZERO)


def minus_itself(x: Ex):
    yield rewrite(call2("sub", x, x)).to(ZERO, eq(F32).to(ty(x)))


def loses_the_sign(x: Ex):
    yield rewrite(call1("abs", x)).to(x, eq(F32).to(ty(x)))


def law(body, **flags: bool) -> Rule:
    return rule(body.__name__.replace("_", " "), **flags)(body)


def as_a_sum(x: Ex, y: Ex):
    yield rewrite(call2("mul", call1("exp", x), call1("exp", y))).to(call1("exp", call2("add", x, y)))


@pytest.mark.parametrize(
    ("body", "flag"), [(plus_zero, "signed_zero"), (minus_itself, "nan_unsafe"), (as_a_sum, "reassociates")]
)
def test_a_counterexample_names_the_flag_with_which_it_is_none(body, flag):
    assert f"@rule(…, {flag}=True)" in str(RuleCheck(law(body)).run(40).counterexample)
    assert "@rule" not in str(RuleCheck(law(loses_the_sign)).run(40).counterexample)


def is_caught(rule: Rule, examples: int) -> bool:
    return RuleCheck(rule).run(examples).counterexample is not None


@in_turn(6)
@pytest.mark.parametrize(
    ("body", "needed"),
    [
        (plus_zero, ("signed_zero",)),
        (times_zero, ("nan_unsafe", "signed_zero")),
        (minus_itself, ("nan_unsafe",)),
        (loses_the_sign, ()),
    ],
)
def test_a_law_holds_with_the_flags_that_it_needs_and_with_no_fewer(body, needed):
    for missing in needed:
        assert is_caught(law(body, **{flag: flag != missing for flag in needed}), 200), missing
    assert is_caught(law(body, **dict.fromkeys(needed, True)), depth(15, 200)) == (body is loses_the_sign)


def test_flags_travel_with_a_rule():
    flagged = law(plus_zero, signed_zero=True, commutes=True)
    assert flagged.flags == ("commutes", "signed_zero") == tuple(flagged.describe()["flags"])
    for copy in (pickle.loads(pickle.dumps(flagged)), told(flagged), pickle.loads(pickle.dumps(told(flagged)))):
        assert copy.flags == flagged.flags
    assert set(flagged.flags) < set(FLAGS)
