"""Batches of rows that become one array of rows, for sub-groups."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.egraph.saturate import Limits
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.changes.rows_as_one import with_rows_as_one
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes
from lift_egraph.workbench.planning.plans import plans

CENTRED = "fun r => let m = reduce(add, 0.0, r) / 64.0 in map(fun x => x - m, r)"
BATCH = "program p(X: [[[f32]64]256]6) = map(fun rows => map({}, rows), X)"
HEADS = "program p(X: [[[[f32]64]128]2]5) = map(fun heads => map(fun rows => map({}, rows), heads), X)"


@pytest.mark.parametrize("text", [BATCH, HEADS], ids=["batch", "heads"])
def test_they_are_reached_by_rules_and_have_the_plans_of_rows(text: str) -> None:
    program = parse_program(text.format(CENTRED))
    changes = Changes(NVIDIA, Limits(iterations=MOST_STEPS, nodes=20_000), lambda phase: phase)
    term = program.body
    for _, (then, way) in changes.of((program.body, ())):
        term, last = then, way[-1].name
        assert last == "rows_as_one"
    assert isinstance(term, ir.Split)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    assert any(plan.steps[-1].name == "row_lane_levels" for plan in plans(term, NVIDIA))


@pytest.mark.parametrize(
    "text",
    [
        BATCH.format(CENTRED).replace("256", "16"),  # too few rows
        BATCH.format("fun r => map(fun x => x * 2.0, r)"),  # nothing is folded
        "program p(A: [[[f32]64]256]6, B: [[f32]64]32) = map(fun rows => map(fun r => map(fun c => reduce(add, 0.0, "
        "map(mul, zip(r, c))), B), rows), A)",  # products
        "program p(X: [[[f32]64]256]6, b: [f32]6) = map(fun (rows, s) => map(fun r => reduce(add, s, r), rows), "
        "zip(X, b))",  # each batch has a number of its own
    ],
)
def test_others_stay(text: str) -> None:
    program = parse_program(text)
    assert alpha_equal(with_rows_as_one(program.body, NVIDIA), program.body)


def test_they_stay_where_there_are_no_sub_groups() -> None:
    program = parse_program(BATCH.format(CENTRED))
    assert alpha_equal(with_rows_as_one(program.body, POCL), program.body)
