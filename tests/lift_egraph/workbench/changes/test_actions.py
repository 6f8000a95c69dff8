"""Folds that are no reductions become parallel kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.chunked import in_chunks
from lift_egraph import programs
from lift_egraph.codegen.devices import POCL
from lift_egraph.egraph.saturate import Limits, run_phase
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import best_terms, skeleton
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench import explain_way
from lift_egraph.workbench.changes.actions import refusals, with_actions
from lift_egraph.workbench.low_level import compile_low_level
from lift_egraph.workbench.phases import Leg, lowering_phase
from lift_egraph.workbench.planning.plan import planned_phase
from lift_egraph.workbench.planning.plans import plans
from tests.depth import in_turn
from tests.reaching import leads_to

pytestmark = pytest.mark.usefixtures("in_process")


@in_turn(3)
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


@in_turn(8)
@pytest.mark.parametrize(
    ("fold", "rule", "said"),
    [
        (
            "scanSeq(fun (s, c) => if s == 0 then (if c == 1 then 1 else 0) else (if c == 2 then 0 else 1), 0, xs)",
            "scan_by_action",
            "acts on the accumulator: s is of 2 states, == 0 and the others, and an element says what becomes of each",
        ),
        (
            "reduceSeq(fun (s, c) => let t = min(max(s, 0), 6) in (t * t + bit_and(c, 3)) % 7, 0, xs)",
            "fold_by_action",
            "s is of 7 states from 0 to 6, and an element says what becomes of each, in 3 bits of a word",
        ),
        (
            "reduceSeq(fun (inside, c) => if inside then c != 2 else c == 1, false, xs)",
            "fold_by_action",
            "acts on the accumulator: inside is true or false, and an element says what becomes of both",
        ),
    ],
)
def test_states_are_explained(fold: str, rule: str, said: str) -> None:
    program = parse_program(f"program p(xs: [i32]16) = {fold}")
    term = with_actions(program.body)
    assert term is not None
    found = explain_way(program, (Leg("algebra", term, 3, "cpu"),))
    assert found.complete, str(found)
    assert found.sound
    assert [checked.step.rule.name for checked in found.steps] == [rule]
    text = " ".join(str(found).split())
    assert said in text
    assert "what acts for two elements one after the other is associative: both sides are" in text


def test_scans_become_scans_of_matrices():
    program = parse_program("program p(xs: [f32]16) = scanSeq(fun (s, x) => 2.0 * s + x, 1.0, xs)")
    term = with_actions(program.body)
    assert term is not None
    assert any(isinstance(t, ir.Scan) for t in ir.subterms(term))
    found = explain_way(program, (Leg("algebra", term, 2, "cpu"),))
    assert found.complete, str(found)
    assert found.sound


@in_turn(6)
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


def test_operations_in_other_words_are_these():
    program = parse_program("program p(xs: [f32]16) = reduce(fun (a, b) => select(a > b, a, b), -inf, xs)")
    term = with_actions(program.body)
    assert term is not None
    found = explain_way(program, (Leg("algebra", term, 1, "cpu"),))
    assert [checked.step.rule.name for checked in found.steps] == ["built_in_operator"]
    assert found.sound


LAST = "fun ((v, i), (w, j)) => if w >= v then (w, j) else (v, i)"  # of which nothing is neutral
REDUCTIONS = {
    "scanExclusive(fun (a, b) => select(a > b, a, b), 0.0, xs)": "scanExclusive(max, 0.0, xs)",
    "scanSeq(fun (a, b) => b + a, 3.0, xs)": "scan(add, 3.0, xs)",
    "scanExclusiveSeq(max, -inf, xs)": "scanExclusive(max, -inf, xs)",
    "reduceSeq(add, 5.0, xs)": "5.0 + reduce(add, 0.0, xs)",
    "reduce(mul, 5.0, xs)": "5.0 * reduce(mul, 1.0, xs)",
    f"reduce({LAST}, (-inf, 0), zip(xs, generate(16, id)))": None,
    f"scan({LAST}, (-inf, 0), zip(xs, generate(16, id)))": None,
}


@pytest.mark.parametrize("fold", REDUCTIONS)
def test_loops_by_operations_and_what_has_nothing_neutral_are_reductions(fold: str):
    program, plain = parse_program(f"program p(xs: [f32]16) = {fold}"), REDUCTIONS[fold]
    term = with_actions(program.body)
    assert term is not None
    assert plain is None or alpha_equal(term, parse_program(f"program p(xs: [f32]16) = {plain}").body)
    phase = Leg("algebra", term, 8, "cpu").phase
    assert leads_to(program.body, phase, term)
    inputs = random_inputs(program, 1, "integer")
    made = term if plain else in_chunks(term)  # what is neutral in parts follows from the operation
    assert equal_values(evaluate(program.body, inputs), evaluate(made, inputs))


def test_folds_that_stay_loops_say_why():
    program = parse_program("program p(xs: [f32]16) = let y = reduceSeq(fun (s, x) => s * s + x, 0.0, xs) in y + 1.0")
    assert with_actions(program.body) is None
    (reason,) = refusals(program.body)
    assert reason.startswith("the fold by fun (s, x) => s * s + x stays a loop: s * s multiplies the accumulator")


@in_turn(6)
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


@in_turn(8)
@pytest.mark.parametrize(
    ("fold", "rules"),
    [("reduceSeq(add, 0, xs)", "fold_of_mapped"), ("scanSeq(max, 0, xs)", "scan_of_mapped"),
     ("scanExclusiveSeq(fun (s, x) => min(s, x), 5, xs)", "scan_of_mapped")],
)  # fmt: skip
def test_loops_by_built_in_operations_are_reductions(fold: str, rules: str):
    program = parse_program(f"program p(xs: [i32]16) = {fold}")
    term = with_actions(program.body)
    assert term is not None
    found = explain_way(program, (Leg("algebra", term, 2, "cpu"),))
    assert found.steps[0].step.rule.name == rules
    assert found.sound


@pytest.mark.parametrize(
    "body", ["reduce(max, xs[0], xs)", "map(fun row => reduce(add, row[1], map(abs, row)), split(8, xs))"]
)
def test_reductions_begin_with_what_is_neutral(body: str):
    program = parse_program(f"program p(xs: [f32]64) = {body}")
    made = with_actions(program.body)
    assert made is not None
    (found,) = [t for t in ir.subterms(made) if isinstance(t, ir.Reduce)]
    assert isinstance(found.initial, ir.Literal)
    assert leads_to(program.body, Leg("algebra", made, 8, "cpu").phase, made)
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(made, inputs))
    assert with_actions(parse_program("program p(xs: [f32]64) = reduce(max, 0.5, xs)").body) is None
