"""Rules that change results of floats apply to whole numbers alone where each bit of floats is to be kept."""

from __future__ import annotations

import pickle

import egglog
import pytest
from egglog import birewrite, eq, rewrite, union

from lift_egraph import rules as book
from lift_egraph.api import Phase, parse_program, run_phase
from lift_egraph.egraph.exact_rules import exact_phase, exact_rule
from lift_egraph.egraph.rule import Rule, rule
from lift_egraph.egraph.sorts import Ex, call1, call2

FLAGGED = tuple(r for r in book.all_rules if r.flags)


@rule("x + y = y - (-x)", commutes=True)
def rewriting(x: Ex, y: Ex):
    yield rewrite(call2("add", x, y)).to(call2("sub", y, call1("neg", x)))


@rule("x + y = y - (-x)", signed_zero=True)
def both_ways(x: Ex, y: Ex):
    yield birewrite(call2("add", x, y)).to(call2("sub", y, call1("neg", x)))


@rule("x + y = y - (-x)", nan_unsafe=True)
def uniting(e: Ex, x: Ex, y: Ex):
    yield egglog.rule(eq(e).to(call2("add", x, y))).then(union(e).with_(call2("sub", y, call1("neg", x))))


def grows(used: Rule, text: str) -> bool:
    """Whether a rule makes anything new of a program."""
    first, *_, last = run_phase(parse_program(text).body, Phase("phase", (used,), ()))
    return last.graph.node_count > first.graph.node_count


@pytest.mark.parametrize("given", [rewriting, both_ways, uniting], ids=lambda r: r.name)
@pytest.mark.parametrize("floats", ["f16", "f32", "f64"])
def test_a_flagged_rule_applies_to_whole_numbers_alone(given: Rule, floats: str):
    on_floats, on_integers = (f"program p(x: {t}, y: {t}) = x + y" for t in (floats, "i32"))
    assert grows(given, on_floats)
    assert not grows(exact_rule(given), on_floats)
    assert grows(exact_rule(given), on_integers)


def test_whole_numbers_may_come_from_floats():
    assert grows(exact_rule(rewriting), "program p(x: f32) = to_i32(x) + 1")


def test_a_part_of_floats_on_the_left_is_enough():
    @rule("toI32 (x + y) = toI32 (y + x)", commutes=True)
    def inside(x: Ex, y: Ex):
        yield rewrite(call1("to_i32", call2("add", x, y))).to(call1("to_i32", call2("add", y, x)))

    text = "program p(x: f32, y: f32) = to_i32(x + y)"
    assert grows(inside, text)
    assert not grows(exact_rule(inside), text)


def test_the_exact_forms_of_the_book():
    """Each has more conditions, and travels to other processes as the rule of which it is the form."""
    for given in FLAGGED:
        form = exact_rule(given)
        assert (form.name, form.flags, form.phase) == (given.name, (), given.phase)
        assert pickle.loads(pickle.dumps(form)) is form
    assert all(exact_rule(r) is r for r in book.all_rules if not r.flags)


@pytest.mark.parametrize(("scalar", "zero", "matches"), [("i32", "0", 1), ("f32", "0.0", 0)])
def test_sums_are_split_where_they_wrap(scalar: str, zero: str, matches: int):
    program = parse_program(f"program p(x: [{scalar}]64) = reduce(add, {zero}, map(abs, x))")
    phase = exact_phase(Phase("phase", (book.partial_reduce, book.partial_reduce_strided), (), {64: (8,)}))
    *_, last = run_phase(program.body, phase)
    assert last.iterations[0].matches == {"partial_reduce": matches, "partial_reduce_strided": matches}
