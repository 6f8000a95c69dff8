"""Columns of a matrix times a vector by groups: chunks of the vector, and a tree of lines, in local memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.staged_columns import staged_columns
from lift_egraph.workbench.planning.staged_rows import staged_rows
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

COLUMNS = """program columns(A: [[f32]96]384, x: [f32]384) =
  map(fun own => reduce(add, 0.0, map(mul, zip(own, x))), transpose(A))"""


@in_turn(3)
def test_lines_of_sums_meet_in_local_memory():
    program = parse_program(COLUMNS)
    (plan,) = staged_columns(program.body, NVIDIA)
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.launch.local_size == (32, 16, 1)
    assert kernel.local_bytes <= 4 * (16 * 8 + 32 * 32)
    assert kernel.source.count("barrier(") >= 3


@pytest.mark.parametrize(
    "text",
    [
        COLUMNS.replace("96]384", "384]96").replace("transpose(A)", "A"),
        COLUMNS.replace("zip(own, x)", "zip(x, own)"),
        COLUMNS.replace("384", "380"),
        COLUMNS.replace("96", "100"),
        COLUMNS.replace("384", "512"),
    ],
    ids=["rows", "the vector is first", "a length that nothing divides", "odd columns", "parts as long as a block"],
)
def test_others_have_no_such_plan(text: str):
    assert not list(staged_columns(parse_program(text).body, NVIDIA))


def test_columns_are_no_rows():
    assert not list(staged_rows(parse_program(COLUMNS.replace("384", "512")).body, NVIDIA))
