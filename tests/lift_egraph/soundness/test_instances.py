"""Reading rules as data, typing their left-hand sides, and making programs around matches."""

from __future__ import annotations

import egglog
import pytest
from egglog import eq, i64, rewrite, union

from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.egraph.rule import Rule, rule
from lift_egraph.egraph.rule_forms import Form, forms
from lift_egraph.errors import RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.check import check_program, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import BOOL, F32, F64, I32, Array, DataType, Pair
from lift_egraph.rules import all_rules
from lift_egraph.soundness.instances import Instances
from lift_egraph.soundness.pattern_types import typing_of
from lift_egraph.soundness.random_terms import Context, Replayer
from tests.depth import depth, in_turn


def only(chosen: Rule) -> Form:
    (found,) = forms(chosen)
    return found


def test_a_rewrite_is_read():
    @rule("split n xs = slide n n xs")
    def split_as_slide(n: i64, m: i64, xs: sorts.Ex, t: sorts.Ty):
        yield rewrite(sorts.split(n, xs)).to(
            sorts.slide(n, n, xs), eq(sorts.Ty.arr(m, t)).to(sorts.ty(xs)), sorts.tile(m, n)
        )

    form = only(split_as_slide)
    assert (str(form.left), str(form.right)) == ("split(n, xs)", "slide(n, n, xs)")
    assert len(form.conditions) == 2


def test_a_rule_with_a_union_is_read_as_a_rewrite():
    @rule("transpose (transpose xs) = xs")
    def by_union(e: sorts.Ex, f: sorts.Ex, xs: sorts.Ex):
        yield egglog.rule(eq(e).to(sorts.transpose(f)), eq(f).to(sorts.transpose(xs))).then(union(e).with_(xs))

    form = only(by_union)
    assert (str(form.left), str(form.right)) == ("transpose(transpose(xs))", "xs")


def test_a_rule_in_both_directions_has_two_forms():
    @rule("join (split n xs) = xs")
    def both(n: i64, xs: sorts.Ex):
        yield egglog.birewrite(sorts.join(sorts.split(n, xs))).to(sorts.transpose(sorts.transpose(sorts.split(n, xs))))

    assert [str(f.left) for f in forms(both)] == ["join(split(n, xs))", "transpose(transpose(split(n, xs)))"]


def test_sizes_are_found_under_conditions():
    @rule("a chunk of a chunk")
    def twice(n: i64, k: i64, m: i64, xs: sorts.Ex, t: sorts.Ty):
        yield rewrite(sorts.map_(sorts.Fn.split(k, sorts.Ty.arr(n, t)), sorts.split(n, xs))).to(
            xs, eq(sorts.Ty.arr(m, t)).to(sorts.ty(xs)), eq(m % (n * k)).to(i64(0)), k > 1, n > k
        )

    solutions = typing_of(only(twice)).solutions()
    assert solutions
    assert all(s["m"] % (s["n"] * s["k"]) == 0 and s["n"] > s["k"] > 1 for s in solutions)


def test_a_type_that_contains_itself_is_refused():
    @rule("xs is a row of itself")
    def endless(m: i64, xs: sorts.Ex, t: sorts.Ty):
        yield rewrite(sorts.join(xs)).to(xs, eq(sorts.Ty.arr(m, t)).to(sorts.ty(xs)), eq(t).to(sorts.ty(xs)))

    with pytest.raises(RuleProblem, match="would contain itself"):
        Instances(endless)


@in_turn(8)
@pytest.mark.parametrize("chosen", all_rules[:: depth(5, 1)], ids=lambda r: r.name)
def test_examples_are_programs(chosen: Rule):
    instances = Instances(chosen)
    for seed in range(5):
        example, choices = instances.draw(str(seed))
        check_program(example.program)
        again = instances.example(Replayer(choices))
        assert again.program == example.program


def test_conditions_on_names_are_kept():
    @rule("map (λp. b) xs = b")
    def guarded(p: sorts.P, b: sorts.Ex, xs: sorts.Ex):
        yield rewrite(sorts.map_(sorts.Fn.lam(p, b), xs)).to(b, sorts.absent(p, b))

    for seed in range(20):
        program = Instances(guarded).draw(str(seed))[0].program
        matches = [t for t in ir.subterms(program.body) if isinstance(t, ir.Map) and isinstance(t.function, ir.Lambda)]
        assert any(not ir.free_variables(m.function.body) & set(ir.bound_variables(m.function.binder)) for m in matches)


def test_an_operator_with_laws_has_them():
    @rule("associative")
    def lawful(op: sorts.Op, z: sorts.Ex, xs: sorts.Ex):
        yield rewrite(sorts.reduce_(op, z, xs)).to(z, sorts.associative(op))

    for seed in range(20):
        example = Instances(lawful).draw(str(seed))[0]
        known = [known_operator(t.operator) for t in ir.subterms(example.program.body) if isinstance(t, ir.Reduce)]
        own = any(str(fact).startswith("associative(") for fact in example.facts)  # of an operator that a user makes
        assert own or any(name is not None and LAWS[name[0]].associative for name in known)


@pytest.mark.parametrize("of", [F64, I32, BOOL, Pair(I32, BOOL), Array(nat(3), I32)], ids=str)
@pytest.mark.parametrize("t", [F32, BOOL, Array(nat(2), F32)], ids=str)
def test_a_term_depends_on_a_variable_of_any_type(t: DataType, of: DataType):
    v = ir.Var("x", of)
    context = Context(Replayer(()), F32).bind(v)
    made = context.using(ir.Input("a", t), {v})
    assert v in ir.free_variables(made)
    assert type_of(made) == t


def test_a_left_hand_side_without_a_type_is_refused():
    @rule("join of a pair")
    def ill_typed(xs: sorts.Ex, t: sorts.Ty):
        yield rewrite(sorts.join(xs)).to(xs, eq(sorts.Ty.pair(t, t)).to(sorts.ty(xs)))

    with pytest.raises(RuleProblem, match=r"test_instances.py:\d+: ill_typed: no program has its left-hand side join"):
        Instances(ill_typed)


def test_sizes_that_do_not_exist_are_refused():
    @rule("n < n")
    def nowhere(n: i64, xs: sorts.Ex):
        yield rewrite(sorts.split(n, xs)).to(xs, n < n)

    with pytest.raises(RuleProblem, match="no sizes that were tried fit"):
        Instances(nowhere)


def test_a_loose_variable_is_refused():
    @rule("ys from nowhere")
    def loose(xs: sorts.Ex, ys: sorts.Ex):
        yield rewrite(sorts.transpose(xs)).to(ys)

    with pytest.raises(RuleProblem, match="ys on the right is bound neither"):
        forms(loose)
