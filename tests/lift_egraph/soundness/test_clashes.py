"""The clashes of names that a rule must exclude are read from it, and programs have them on purpose."""

from __future__ import annotations

import pytest
from egglog import eq, i64, rewrite

from lift_egraph.egraph import sorts
from lift_egraph.egraph.rule import Rule, rule
from lift_egraph.egraph.rule_forms import Constant, Node, forms, subpatterns
from lift_egraph.language import ir
from lift_egraph.rules import all_rules
from lift_egraph.soundness.clashes import clashes_of, excluding
from lift_egraph.soundness.instances import Instances


@rule("map (λp. map (λq. b) ys) xs = transpose (map (λq. map (λp. b) xs) ys)")
def interchange(p: sorts.P, q: sorts.P, b: sorts.Ex, xs: sorts.Ex, ys: sorts.Ex):
    yield rewrite(sorts.map_(sorts.Fn.lam(p, sorts.map_(sorts.Fn.lam(q, b), ys)), xs)).to(
        sorts.transpose(sorts.map_(sorts.Fn.lam(q, sorts.map_(sorts.Fn.lam(p, b), xs)), ys))
    )


@rule("xs = map (λ$x. b) (map (λp. b) xs)")
def with_a_new_name(p: sorts.P, b: sorts.Ex, xs: sorts.Ex, t: sorts.Ty, n: i64):
    x = sorts.V(sorts.ELEMENT, t)
    left = sorts.map_(sorts.Fn.lam(p, b), xs)
    yield rewrite(left).to(
        sorts.map_(sorts.Fn.lam(sorts.P.pair(p, sorts.P.var(x)), b), sorts.zip_(xs, xs)),
        eq(sorts.Ty.arr(n, t)).to(sorts.ty(xs)),
    )


def clashes(chosen: Rule) -> list[str]:
    return [f"{c.binder} {c.other}" for form in forms(chosen) for c in clashes_of(form)]


def test_parts_that_change_their_binders_and_binders_that_change_places_clash():
    assert clashes(interchange) == ["q xs", "p ys", "p q"]
    assert clashes(with_a_new_name) == ["V___init__($x, t) b", "V___init__($x, t) p"]


def test_the_conditions_of_each_rule_exclude_all_its_clashes():
    for chosen in all_rules:
        allowed = [(str(c.binder), str(c.other)) for f in forms(chosen) for c in clashes_of(f) if not excluding(f, c)]
        assert not allowed, chosen.name


def test_names_that_rules_make_are_none_that_a_program_can_have():
    made = {
        str(node.parts[0])
        for chosen in all_rules
        for form in forms(chosen)
        for node in subpatterns(form.right)
        if isinstance(node, Node) and node.op == "V___init__" and isinstance(node.parts[0], Constant)
    }
    assert made
    assert all(name.startswith("$") for name in made)


def test_one_condition_excludes_one_clash():
    @rule("map (λp. b) xs = b")
    def guarded(p: sorts.P, b: sorts.Ex, xs: sorts.Ex):
        yield rewrite(sorts.map_(sorts.Fn.lam(p, b), xs)).to(b, sorts.absent(p, b))
        yield rewrite(sorts.map_(sorts.Fn.lam(p, b), xs)).to(b, sorts.absent(p, xs))

    first, second = forms(guarded)
    (clash,) = clashes_of(first)
    assert excluding(first, clash) == (0,)
    assert not excluding(second, clash)


@pytest.mark.parametrize("seed", range(5))
def test_programs_have_the_clashes_one_after_the_other(seed: int):
    found = set()
    for number, name in ((0, "q xs"), (1, "p ys"), (3, "p q")):
        program = Instances(interchange).draw(f"{seed}/{number}", number=number)[0].program
        for outer in ir.subterms(program.body):
            match outer:
                case ir.Map(ir.Lambda(p, ir.Map(ir.Lambda(q), ys)), xs):
                    free = {"q xs": (q, xs), "p ys": (p, ys)}
                    if name in free and ir.free_variables(free[name][1]) & {*ir.bound_variables(free[name][0])}:
                        found.add(name)
                    if name == "p q" and p == q:
                        found.add(name)
    assert found == {"q xs", "p ys", "p q"}


def test_programs_that_break_a_condition_break_one_of_names():
    @rule("toLocal (map (λp. b) xs) = b,  p not free in b")
    def guarded(p: sorts.P, b: sorts.Ex, xs: sorts.Ex):
        yield rewrite(sorts.to_memory("local", sorts.map_(sorts.Fn.lam(p, b), xs))).to(b, sorts.absent(p, b))

    for number in (0, 1, 3, 4, 6):
        program = Instances(guarded).draw(str(number), careful=False, number=number)[0].program
        (copied,) = [t for t in ir.subterms(program.body) if isinstance(t, ir.ToMemory)]
        assert isinstance(copied.value, ir.Map)
        f = ir.function_body(copied.value.function)
        assert ir.free_variables(f.body) & {*ir.bound_variables(f.binder)}
