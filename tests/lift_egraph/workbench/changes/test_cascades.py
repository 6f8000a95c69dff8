"""Folds whose components need each other in one direction alone are taken one part after the other."""

from __future__ import annotations

import pytest

from benchmarks.chunked import in_chunks
from lift_egraph.algebra.cascades import cascade_of, parts_of
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.language import ir
from lift_egraph.language.pretty import print_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.actions import refusals, with_actions
from lift_egraph.workbench.changes.cascades import cascade_steps
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.phases import Leg
from tests.depth import in_turn
from tests.reaching import leads_to

ROWS = Rows(POCL)
CHUNKS = ROWS.chunks(1, 1 << 20, in_lanes=True) or 0
N = 32 * CHUNKS + 3  # with a rest
SHORT = 64  # for what is not in chunks
#  pattern, operator, initial value, the phases
IN_PARTS = {
    "deepest": ("reduceSeq", "fun ((deep, d), x) => (max(deep, d + x), d + x)", "(0, 0)", ["long_rows"]),
    "brackets": (
        "reduceSeq", "fun ((d, most, ok), x) => let e = d + x in (e, max(most, e), ok && e >= 0)", "(0, 0, true)",
        ["long_rows"],
    ),
    "two largest": (
        "reduceSeq", "fun ((a, b), x) => if x > a then (x, a) else (if x > b then (a, x) else (a, b))", "(-9, -9)",
        ["long_rows"],
    ),
    "two largest that differ": (
        "reduceSeq", "fun ((a, b), x) => if x > a then (x, a) else (if x < a && x > b then (a, x) else (a, b))",
        "(-9, -9)", ["long_rows"],
    ),
    "three one after the other": (
        "reduceSeq", "fun ((a, b, c), x) => (a + x, max(b, a), c + select(b > x, a, b))", "(0, 1, 2)",
        ["algebra", "long_rows"],
    ),
    "three scans of one type": (
        "scanSeq", "fun ((a, b, c), x) => (a + x, max(b, a), c + select(b > x, a, b))", "(0, 1, 2)",
        ["algebra", "algebra"],
    ),
    "a scan": ("scanSeq", "fun ((last, run), x) => if x == last then (x, run + 1) else (x, 1)", "(-1, 0)", ["algebra"]),
    "an exclusive scan": ("scanExclusiveSeq", "fun ((most, d), x) => (max(most, d), d + x)", "(0, 0)", ["algebra"]),
}  # fmt: skip
OTHERS = {
    "each needs the other": "fun ((a, b), x) => (max(a, b + x), a - b)",
    "none needs another": "fun ((a, b), x) => (a * a + x, b * b - x)",
    "the first is no reduction": "fun ((a, b), x) => (a * a + x, max(a, b))",
    "the other is no reduction": "fun ((a, b), x) => (a + x, b * b - a)",
    "it is one as it stands": "fun ((a, b), x) => (2 * a + x, b + a)",
}


def folded(pattern: str, operator: str, initial: str, n: int) -> ir.Program:
    return parse_program(f"program p(xs: [i32]{n}) = {pattern}({operator}, {initial}, xs)")


@in_turn(6)
@pytest.mark.parametrize("name", IN_PARTS)
def test_what_is_known_of_some_components_makes_the_others_reductions(name: str):
    pattern, operator, initial, phases = IN_PARTS[name]
    program = folded(pattern, operator, initial, N if "long_rows" in phases else SHORT)
    term, found = program.body, list[str]()
    for step in cascade_steps(program.body, ROWS, SHORT):
        leg = Leg(step.phase, step.term, 8, "cpu", step.tiling)
        assert leads_to(term, leg.phase, step.term)
        term = step.term
        found.append(step.phase)
    assert found == phases
    assert list(refusals(program.body)) == []
    inputs = random_inputs(program, 1, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(term, inputs))
    acted = with_actions(term)
    if "long_rows" not in phases:
        assert acted is not None
        assert equal_values(evaluate(program.body, inputs), evaluate(in_chunks(acted), inputs))


def test_chunks_that_divide_the_length_start_from_what_the_fold_starts_from():
    program = folded("reduceSeq", IN_PARTS["deepest"][1], "(7, 5)", 32 * CHUNKS)
    (step,) = cascade_steps(program.body, ROWS, SHORT)
    assert leads_to(program.body, Leg(step.phase, step.term, 4, "cpu", step.tiling).phase, step.term)
    inputs = random_inputs(program, 1, "integer")
    assert equal_values(evaluate(program.body, inputs), evaluate(step.term, inputs))


@pytest.mark.parametrize("name", OTHERS)
def test_other_folds_are_left(name: str):
    program = folded("reduceSeq", OTHERS[name], "(0, 0)", SHORT)
    assert isinstance(program.body, ir.ReduceSeq)
    assert parts_of(program.body.operator) is None
    assert list(cascade_steps(program.body, ROWS, SHORT)) == []


def test_a_device_with_groups_scans_what_the_others_need():
    program = folded("reduceSeq", IN_PARTS["deepest"][1], "(0, 0)", N)
    (step,) = cascade_steps(program.body, Rows(NVIDIA), SHORT)
    assert step.phase == "algebra"
    assert with_actions(step.term) is not None


def test_the_first_part_is_what_needs_nothing_else():
    body = folded("reduceSeq", IN_PARTS["three one after the other"][1], "(0, 1, 2)", SHORT).body
    assert isinstance(body, ir.ReduceSeq)
    found = cascade_of(body.operator)
    assert found is not None
    assert print_term(found.step) == "add"
