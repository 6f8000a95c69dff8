"""Folds that are no reductions become parallel kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lift_egraph import programs
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.workbench import explain_way
from lift_egraph.workbench.actions import refusals, with_actions
from lift_egraph.workbench.low_level import compile_low_level
from lift_egraph.workbench.phases import Leg, lowering_phase
from lift_egraph.workbench.plan import planned_phase
from lift_egraph.workbench.plans import plans


def test_the_maximum_segment_sum_runs_in_the_lanes_of_vectors():
    program = specialise(programs.load("mss"), {"N": 512})
    term = with_actions(program.body)
    assert term is not None
    plan = next(plans(term, POCL))
    for step in plan.steps:
        phase = planned_phase(step.name, step.tiling, step.widths, Limits(iterations=12))
        *_, (reached, _) = search_stage(term, Stage(phase, step.sketch, step.weigh))
        assert reached.term is not None, reached.why_not
        term = reached.term
    *_, lowered = run_phase(term, lowering_phase(POCL, plan.widths, Limits()))
    model = StructuralCost().on(POCL)
    found = best_terms(lowered.graph, lowered.root, model, 1, key=skeleton)
    validated = compile_low_level(replace(program, body=found[0].term, sizes=()))  # raises if a result is wrong
    assert f"float{plan.widths[0]}" in validated.plan.source


def test_the_algebra_is_explained():
    program = specialise(programs.load("mss"), {"N": 16})
    term = with_actions(program.body)
    assert term is not None
    found = explain_way(program, (Leg("algebra", term, 1, "cpu"),))
    assert found.complete
    assert found.sound
    assert [checked.step.rule.name for checked in found.steps] == ["fold_by_action"]
    text = str(found)
    assert "multiplies the accumulator by a matrix: best and here are linear in the accumulator over (max, +)" in text


def test_scans_become_scans_of_matrices():
    program = parse_program("program p(xs: [f32]16) = scanSeq(fun (s, x) => 2.0 * s + x, 1.0, xs)")
    term = with_actions(program.body)
    assert term is not None
    assert any(isinstance(t, ir.Scan) for t in ir.subterms(term))
    found = explain_way(program, (Leg("algebra", term, 2, "cpu"),))
    assert found.complete, str(found)
    assert found.sound


@pytest.mark.parametrize("fold", ["scanExclusive", "scanExclusiveSeq"])
def test_exclusive_scans_stay_exclusive(fold: str):
    program = parse_program(f"program p(xs: [f32]16) = {fold}(fun (s, x) => 2.0 * s + x, 1.0, xs)")
    term = with_actions(program.body)
    assert term is not None
    assert any(isinstance(t, ir.ScanExclusive) for t in ir.subterms(term))
    found = explain_way(program, (Leg("algebra", term, 2, "cpu"),))
    assert found.complete, str(found)
    assert found.sound


def test_an_exclusive_scan_by_an_associative_operator_is_none_that_acts():
    assert with_actions(parse_program("program p(xs: [i32]16) = scanExclusive(add, 0, xs)").body) is None


@pytest.mark.parametrize(
    ("fold", "rules"),
    [
        ("reduce(fun (a, b) => select(a > b, a, b), -inf, xs)", ["built_in_operator"]),
        ("scanExclusive(fun (a, b) => select(a > b, a, b), 0.0, xs)", ["built_in_operator"]),
        ("scanSeq(fun (a, b) => b + a, 3.0, xs)", ["scan_of_mapped", "built_in_operator"]),
        ("scanExclusiveSeq(max, -inf, xs)", ["scan_of_mapped"]),
        ("reduceSeq(add, 5.0, xs)", ["fold_of_mapped"]),
    ],
)
def test_operations_in_other_words_and_loops_by_them_are_reductions(fold: str, rules: list[str]):
    program = parse_program(f"program p(xs: [f32]16) = {fold}")
    term = with_actions(program.body)
    assert isinstance(term, ir.Reduce | ir.Scan | ir.ScanExclusive)
    assert known_operator(term.operator)
    found = explain_way(program, (Leg("algebra", term, len(rules), "cpu"),))
    assert [name for checked in found.steps if (name := checked.step.rule.name) in set(rules)] == rules
    assert found.complete, str(found)
    assert found.sound


@pytest.mark.parametrize(("fold", "rule"), [("reduce", "fold_by_action"), ("scan", "scan_by_action")])
def test_what_nothing_is_neutral_of_is_computed_in_parts_all_the_same(fold: str, rule: str):
    operator = "fun ((v, i), (w, j)) => if w >= v then (w, j) else (v, i)"
    program = parse_program(f"program p(xs: [f32]16) = {fold}({operator}, (-inf, 0), zip(xs, generate(16, id)))")
    term = with_actions(program.body)
    assert term is not None
    found = explain_way(program, (Leg("algebra", term, 2, "cpu"),))
    assert [checked.step.rule.name for checked in found.steps] == [rule]
    assert found.sound


def test_folds_that_stay_loops_say_why():
    program = parse_program("program p(xs: [f32]16) = let y = reduceSeq(fun (s, x) => s * s + x, 0.0, xs) in y + 1.0")
    assert with_actions(program.body) is None
    (reason,) = refusals(program.body)
    assert reason.startswith("the fold by fun (s, x) => s * s + x stays a loop: s * s multiplies the accumulator")


@pytest.mark.parametrize(("fold", "rule"), [("reduceSeq", "fold_of_mapped"), ("scanSeq", "scan_of_mapped")])
def test_folds_of_a_function_of_the_elements_are_explained(fold: str, rule: str):
    operator = "fun ((most, i), (x, j)) => if abs(x) > most then (abs(x), j) else (most, i)"
    program = parse_program(f"program p(xs: [f32]16, is: [i32]16) = {fold}({operator}, (-inf, 0), zip(xs, is))")
    term = with_actions(program.body)
    assert term is not None
    found = explain_way(program, (Leg("algebra", term, 1, "cpu"),))
    assert [checked.step.rule.name for checked in found.steps] == [rule]
    assert found.sound
    assert "combines the accumulator with fun (x, j) => (abs(x), j): both sides of associativity" in str(found)
