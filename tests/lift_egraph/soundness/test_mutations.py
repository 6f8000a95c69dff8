"""Mutants of rules: what is changed, what is not made, and which of them no program tells from the rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from egglog import eq, i64, rewrite

from lift_egraph.egraph import sorts as s
from lift_egraph.egraph.rule import rule
from lift_egraph.egraph.rule_forms import forms, shown
from lift_egraph.errors import RuleProblem
from lift_egraph.rules import simplification
from lift_egraph.rules.by_index import reduce_by_index_in_chunks, reduce_by_index_to_seq
from lift_egraph.rules.stencil_steps import pad_of_pad
from lift_egraph.soundness.implied_names import implied
from lift_egraph.soundness.instances import Instances
from lift_egraph.soundness.many_rules import check_rules
from lift_egraph.soundness.mutations import Mutant, mutants_of
from lift_egraph.soundness.redundancy import Redundancy
from lift_egraph.soundness.rule_check import RuleCheck
from tests.depth import in_turn


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
    assert {"k * n becomes (k * n) + 1 at place 1", "n becomes n + -1"} <= set(changes(found, "off by one"))
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


def test_a_condition_that_no_program_breaks_is_redundant_and_so_is_any_in_its_place():
    of = Redundancy(splits)
    conditions = [m for m in mutants_of(splits) if m.condition == "k > 0"]
    assert [m.kind for m in conditions] == ["removed", "weakened", "swapped", "shifted"]
    assert of.known(conditions[0]) == "no program breaks the condition alone"
    assert all("right without" in str(of.known(m)) for m in conditions[1:])
    of = Redundancy(interchange)
    assert all(of.known(m) is None for m in mutants_of(interchange) if m.kind == "removed")


@in_turn(2)
def test_what_is_noted_is_verified():
    @rule("iterate n f xs = iterate (n - 1) f (iterate 1 f xs)", notes={"n > 1": "less waste", "1 becomes n": "too"})
    def noted(n: i64, f: s.Fn, xs: s.Ex):
        yield rewrite(s.iterate(n, f, xs)).to(s.iterate(n - 1, f, s.iterate(1, f, xs)), n > 1)

    kinds = ("removed", "another size")
    outcomes = {v.change: v.outcome for v in check_rules(((noted,),), examples=20, jobs=1, mutate=True, kinds=kinds)}
    assert outcomes["n > 1"].startswith("open: the rule notes it as right (less waste), but")
    assert outcomes["1 becomes n"].startswith("open: ")
    with pytest.raises(RuleProblem, match=r"it notes 'n > 2', which is no condition, size or change of it"):
        mutants_of(replace(noted, notes=(("n > 2", ""),)))


@in_turn(3)
def test_a_note_on_a_size_holds_for_any_number_in_its_place():
    @rule("map f xs = slice 0 n (map f (pad 0 2 clamp xs))", notes={"2": "any padding is right"})
    def padded(f: s.Fn, n: i64, xs: s.Ex, t: s.Ty):
        yield rewrite(s.map_(f, xs)).to(
            s.slice_(0, n, s.map_(f, s.pad(0, 2, "clamp", xs))), eq(s.Ty.arr(n, t)).to(s.ty(xs))
        )

    found = check_rules(((padded,),), examples=20, jobs=1, mutate=True, kinds=("off by one",))
    outcomes = {v.change: v.outcome for v in found}
    assert outcomes["2 becomes 3"] == outcomes["2 becomes 1"] == "redundant: noted: any padding is right"
    assert outcomes["n becomes n + 1"].startswith("caught")


def test_changes_that_read_alike_are_told_apart():
    @rule("xs = …", notes={"n becomes n + 1 at place 2": "of the inner one", "n becomes n + -1": "of both"})
    def twice(n: i64, k: i64, xs: s.Ex):
        yield rewrite(s.split(n, s.split(k, xs))).to(s.split(n, s.split(n, xs)))

    of = Redundancy(twice)
    noted = {m.change: of.noted(m) for m in mutants_of(twice) if m.kind == "off by one"}
    assert noted == {
        "n becomes n + 1 at place 1": None,
        "n becomes n + 1 at place 2": "of the inner one",
        "n becomes n + -1 at place 1": "of both",
        "n becomes n + -1 at place 2": "of both",
    }


def test_every_other_program_is_one_where_a_mutant_applies_and_the_rule_does_not():
    @rule("map f (pad 1 r clamp xs) = map f (pad 1 4 clamp xs),  r > 4")
    def longer(f: s.Fn, r: i64, m: i64, xs: s.Ex, t: s.Ty):
        yield rewrite(s.map_(f, s.pad(1, r, "clamp", xs))).to(
            s.map_(f, s.pad(1, 4, "clamp", xs)), eq(s.Ty.arr(m, t)).to(s.ty(xs)), r + m > 9
        )

    (mutant,) = (m for m in mutants_of(longer) if m.kind == "removed" and m.condition == "(r + m) > 9")
    (apart,) = Redundancy(longer).apart(mutant)
    check = RuleCheck(mutant.rule, apart=(apart,))
    (prepared,) = (check.instances.prepared[i] for i in check.instances._apart)
    assert all(sizes["r"] + sizes["m"] <= 9 for sizes in prepared.solutions)
    numbers = {sizes["r"] + sizes["m"] > 9 for sizes in check.instances.prepared[0].solutions}
    assert numbers == {False, True}


def test_what_is_around_an_array_is_a_literal():
    instances = Instances(pad_of_pad, attempts=2)
    assert len([instances.draw(str(n), True, 2 + 3 * n) for n in range(4)]) == 4


def test_names_of_equal_types_are_one():
    of = Redundancy(reduce_by_index_to_seq)
    why = [
        of.known(m) for m in mutants_of(reduce_by_index_to_seq) if m.change.startswith("V($x, v) becomes V($acc, t)")
    ]
    assert why == ["the same up to names and to what commutes", None, None]  # the first place does not use the name


def test_a_condition_is_needed_although_the_rule_makes_its_names_only_where_it_holds():
    wanted = {"removed: m % n = 0", "weakened: Ty.arr(k, t) = ty(zs) becomes Ty.arr(k, any other) = ty(zs)"}
    found = {f"{m.kind}: {m.change}": m for m in mutants_of(reduce_by_index_in_chunks)}
    for change in wanted:  # another match may have made the names
        assert RuleCheck(found[change].rule, simplification=simplification).run(30).counterexample is not None, change


def test_conditions_that_imply_another_are_found():
    @rule("…")
    def twice(p: s.P, q: s.P, b: s.Ex, xs: s.Ex):
        yield rewrite(s.map_(s.Fn.lam(s.P.pair(p, q), b), xs)).to(
            s.map_(s.Fn.lam(s.P.pair(p, q), b), xs), s.absent(p, xs), s.absent(q, xs), s.absent(s.P.pair(p, q), xs)
        )

    (form,) = forms(twice)
    one, other, both = form.conditions
    assert implied(both, (one, other))
    assert implied(one, (both,))
    assert not implied(both, (one,))


def test_sizes_that_the_conditions_make_equal_are_no_other_sizes():
    @rule("split n (split k xs) = …")
    def equal(n: i64, k: i64, m: i64, xs: s.Ex, t: s.Ty):
        yield rewrite(s.split(n, xs)).to(
            s.split(k, xs), eq(s.Ty.arr(m, t)).to(s.ty(xs)), eq(k).to(n), n > 3, eq(n % 2).to(i64(0))
        )

    of = Redundancy(equal)
    why = {m.change: of.known(m) for m in mutants_of(equal) if m.condition is None}
    assert why["k becomes n"] == "both sizes are equal, as the conditions and types say"
    assert why["k becomes k + 1"] is None
    weaker = {m.change: of.known(m) for m in mutants_of(equal) if m.condition == "n > 3"}
    assert weaker["n > 3 becomes n >= 3"] == "with the other conditions it allows no more than the condition"


def test_near_misses_break_one_condition_after_the_other():
    instances = Instances(interchange)
    (form,) = instances.forms
    broken = [instances.draw(str(n), False, n)[0].broken for n in range(6)]
    assert [shown(form.conditions[i]) for i in broken if i is not None][:3] == [shown(c) for c in form.conditions]
    assert broken[:3] == broken[3:]


def test_a_rule_that_does_not_pass_has_no_mutants_worth_a_word():
    @rule("map f xs = xs  where xs has 0 - 1 elements")
    def never(f: s.Fn, n: i64, xs: s.Ex, t: s.Ty):
        yield rewrite(s.map_(f, xs)).to(xs, eq(s.Ty.arr(n, t)).to(s.ty(xs)), n < 0)

    (found,) = check_rules(((never,),), examples=20, jobs=1, mutate=True)
    assert (found.kind, found.passed) == ("", False)
    assert found.problem is not None
    assert "never" in found.name
