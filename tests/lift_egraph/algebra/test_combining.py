"""Folds that combine their accumulator with a function of each element, by an associative operator."""

from __future__ import annotations

import pytest

from benchmarks.chunked import in_chunks
from lift_egraph.algebra import laws
from lift_egraph.algebra.combining import combining_of
from lift_egraph.algebra.laws import associative
from lift_egraph.language import ir
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.actions import refusals, with_actions

#  operator, initial value, what is made of each element
COMBINING = {
    "place of the largest": (
        "fun ((m, i), (x, j)) => if abs(x) > m then (abs(x), j) else (m, i)", "(0.0, 0)", "fun (x, j) => (abs(x), j)",
    ),
    "place of the least square": (
        "fun ((m, i), (x, j)) => if x * x < m then (x * x, j) else (m, i)", "(inf, 0)", "fun (x, j) => (x * x, j)",
    ),
    "parity": ("fun (p, (x, j)) => p != (x > 0.0)", "false", "fun (x, j) => x > 0.0"),
    "parity in other words": (
        "fun (p, (x, j)) => p && !(x > 0.0) || !p && x > 0.0", "false", "fun (x, j) => x > 0.0",
    ),
    "two that do not depend on each other": (
        "fun ((p, m, i), (x, j)) => (p != (j > 2), if -x > m then (-x, j) else (m, i))", "(false, -inf, 0)",
        "fun (x, j) => (j > 2, -x, j)",
    ),
}  # fmt: skip
OTHERS = {
    "not associative": "fun ((m, i), (x, j)) => if abs(x) > abs(m) then (-m, j) else (m, i)",
    "more than the elements have": "fun ((m, i), (x, j)) => if x > m then (x, j + i) else (m, i)",
    "the accumulator is computed with": "fun ((m, i), (x, j)) => if x > m * m then (x, j) else (m, i)",
}


def fold(operator: str, initial: str) -> ir.Program:
    return parse_program(f"program p(xs: [f32]16, is: [i32]16) = reduceSeq({operator}, {initial}, zip(xs, is))")


@pytest.mark.parametrize("name", COMBINING)
def test_they_are_reductions_of_what_is_made_of_the_elements(name: str) -> None:
    operator, initial, element = COMBINING[name]
    program = fold(operator, initial)
    assert isinstance(program.body, ir.ReduceSeq)
    found = combining_of(program.body.operator)
    assert found is not None
    assert print_term(found.element) == element
    assert associative(found.operator)
    assert found.why.startswith("both sides of associativity are the same")
    changed = with_actions(program.body)
    assert isinstance(changed, ir.Reduce)
    assert list(refusals(program.body)) == []
    for seed in range(3):
        inputs = random_inputs(program, seed, "integer")
        for term in (changed, in_chunks(changed)):
            assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay_loops(name: str) -> None:
    program = fold(OTHERS[name], "(0.0, 0)")
    assert isinstance(program.body, ir.ReduceSeq)
    assert combining_of(program.body.operator) is None
    assert with_actions(program.body) is None


def test_a_value_that_may_not_begin_again_is_acted_on() -> None:
    program = fold("fun ((m, i), (x, j)) => if x >= m then (x, j) else (m, i)", "(-1.0, 7)")
    changed = with_actions(program.body)
    assert isinstance(changed, ir.Apply)
    for seed in range(3):
        inputs = random_inputs(program, seed, "integer")
        assert equal_values(evaluate(program.body, inputs), evaluate(in_chunks(changed), inputs))


def test_what_lets_share_is_not_written_out_again():
    """Each let uses the one before it three times: written out, the last would have 121 roots."""
    lets = " in ".join(f"let d{n + 1} = sqrt(d{n} * d{n} + d{n} + {n}.5)" for n in range(5))
    program = parse_program(
        f"program p(xs: [f32]64) = reduce(fun ((s, m), d0) => {lets} in (s + d5, max(m, d5)), (0.0, 0.0), xs)"
    )
    fold = program.body
    assert isinstance(fold, ir.ReduceSeq)
    found = combining_of(fold.operator)
    assert found is not None
    assert sum(1 for part in ir.subterms(found.element) if isinstance(part, ir.Call) and part.op == "sqrt") == 5
    inputs = random_inputs(program, 0, "integer")
    plain = ir.ReduceSeq(found.operator, fold.initial, ir.Map(found.element, fold.array))
    assert equal_values(evaluate(plain, inputs), evaluate(fold, inputs))


def test_what_a_few_values_show_not_to_be_associative_is_not_tried_in_all_orders(monkeypatch: pytest.MonkeyPatch):
    """Of the best ways to four states that took a minute: what elements give has 24 orders, each of many values."""
    monkeypatch.setattr(laws, "equal_in_all_orders", lambda *_: pytest.fail("it is tried"))
    step = "(max(p + 0.12, q + 0.34) + a, max(p + 0.56, q + 0.78) + b)"
    text = f"program p(x: [(f32, f32)]9) = reduceSeq(fun ((p, q), (a, b)) => {step}, (0.0, 0.0), x)"
    assert combining_of(parse_program(text).body.operator) is None
