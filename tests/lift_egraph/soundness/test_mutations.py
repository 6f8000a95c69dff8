"""Mutants of rules: what is changed, what is not made, and which of them no program tells from the rule."""

from __future__ import annotations

from egglog import eq, i64, rewrite

from lift_egraph.egraph import sorts as s
from lift_egraph.egraph.rule import rule
from lift_egraph.egraph.rule_forms import forms, shown
from lift_egraph.soundness.instances import Instances
from lift_egraph.soundness.mutations import Mutant, mutants_of, spared
from lift_egraph.soundness.rule_check import RuleCheck


@rule("map (λp. map (λq. b) ys) xs = transpose (map (λq. map (λp. b) xs) ys)")
def interchange(p: s.P, q: s.P, b: s.Ex, xs: s.Ex, ys: s.Ex):
    yield rewrite(s.map_(s.Fn.lam(p, s.map_(s.Fn.lam(q, b), ys)), xs)).to(
        s.transpose(s.map_(s.Fn.lam(q, s.map_(s.Fn.lam(p, b), xs)), ys)),
        s.absent(p, ys), s.absent(q, xs), s.disjoint(p, q),
    )  # fmt: skip


@rule("split k (split n xs) = map (split n) (split (k·n) xs)")
def splits(n: i64, k: i64, m: i64, xs: s.Ex, t: s.Ty):
    yield rewrite(s.split(k, s.split(n, xs))).to(
        s.map_(s.Fn.split(n, s.Ty.arr(k * n, t)), s.split(k * n, xs)), eq(s.Ty.arr(m, t)).to(s.ty(xs)), k > 0
    )


def changes(found: tuple[Mutant, ...], kind: str) -> list[str]:
    return [m.change for m in found if m.kind == kind]


def test_every_part_is_changed_and_nothing_is_left_unbound():
    found = mutants_of(splits)
    assert changes(found, "removed") == ["k > 0"]  # without the type, nothing says what t is
    assert "k > 0 becomes k >= 0" in changes(found, "weakened")
    assert {"k * n becomes (k * n) + 1", "n becomes n + -1"} <= set(changes(found, "off by one"))
    assert "n becomes k" in changes(found, "another size")
    assert "fv(ys) - bvs(p) = fv(ys) becomes fv(ys) - bvs(q) = fv(ys)" in changes(
        mutants_of(interchange), "another binder"
    )


def test_a_mutant_differs_in_one_place_and_says_so():
    for mutant in mutants_of(splits):
        (form,), (changed,) = forms(splits), forms(mutant.rule)
        assert changed != form
        assert mutant.rule.law == f"{splits.law};  {mutant.kind}: {mutant.change}"
        assert (mutant.condition is None) == (changed.right != form.right)


def test_removed_conditions_are_caught():
    for mutant in mutants_of(interchange):
        if mutant.kind == "removed":
            assert RuleCheck(mutant.rule).run(60).counterexample is not None, mutant.change


def test_a_condition_that_no_program_breaks_is_redundant():
    (removed,) = (m for m in mutants_of(splits) if m.kind == "removed")
    assert spared(splits, removed) is not None
    assert all(spared(interchange, m) is None for m in mutants_of(interchange) if m.kind == "removed")


def test_near_misses_break_one_condition_after_the_other():
    instances = Instances(interchange)
    (form,) = instances.forms
    broken = [instances.draw(str(n), False, n)[0].broken for n in range(6)]
    assert [shown(form.conditions[i]) for i in broken if i is not None][:3] == [shown(c) for c in form.conditions]
    assert broken[:3] == broken[3:]
