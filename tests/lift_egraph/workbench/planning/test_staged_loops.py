"""Loops over one array for each element of another: a group copies chunks of it to local memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import INTEL, NVIDIA
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.staged_loops import staged_loops
from tests.lift_egraph.workbench.planning.test_plans import reached

PULLS = """program pulls(xs: [f32]512, vs: [f32]512, qs: [f32]256) =
  map(fun (x, v) =>
    let s = reduceSeq(fun (a, q) => a + (q - x) * abs(q - x), 0.0, qs) in v + s * {}, zip(xs, vs))"""


def test_a_group_copies_chunks_for_all_of_its_items():
    program = parse_program(PULLS.format("2.0"))
    (plan,) = staged_loops(program.body, NVIDIA)
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), NVIDIA).kernels
    assert kernel.local_bytes == 128 * 4
    assert kernel.source.count("barrier(") == 2
    assert kernel.launch.local_size == (128, 1, 1)


def test_on_a_cpu_an_item_has_a_vector_of_elements():
    program = parse_program(PULLS.format("2.0").replace("256", "1024"))
    (plan,) = staged_loops(program.body, INTEL)
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(term, inputs), evaluate(program.body, inputs))
    (kernel,) = compile_program(replace(program, body=term), INTEL).kernels
    assert kernel.local_bytes == 512 * 4
    assert kernel.launch.local_size == (1, 1, 1)
    assert "float16" in kernel.source


@pytest.mark.parametrize(
    "text",
    [
        PULLS.format("x").replace("qs)", "map(abs, qs))"),
        PULLS.format("2.0").replace("0.0, qs", "v, qs"),
        PULLS.format("2.0").replace("256", "192"),
    ],
    ids=["an array that is computed", "what reads two arrays", "a length that nothing divides"],
)
def test_other_loops_have_no_such_plan(text: str):
    assert not list(staged_loops(parse_program(text).body, NVIDIA))
