"""Sums of many short rows, and of few long columns, on a GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.long_columns import long_columns
from lift_egraph.workbench.plan import Plan, nests
from lift_egraph.workbench.plans import plans
from lift_egraph.workbench.short_rows import short_rows
from tests.lift_egraph.workbench.test_plans import reached

ROWS = """program p(A: [[f32]32]64, x: [f32]32) = map(fun row => reduce(add, 0.0, map(mul, zip(row, x))), A)"""
COLUMNS = """program p(A: [[f32]96]2048, x: [f32]2048) =
  map(fun col => reduce(add, 0.0, map(mul, zip(col, x))), transpose(A))"""


def derived(program: ir.Program, plan: Plan) -> ir.Program:
    """The low-level program that a plan leads to, which computes the same."""
    lowered = replace(program, body=reached(program, plan))
    inputs = random_inputs(program, 0, "integer")
    assert np.array_equal(evaluate(lowered.body, inputs), evaluate(program.body, inputs))
    return lowered


def test_a_group_has_several_short_rows():
    program = parse_program(ROWS)
    (plan,) = short_rows(next(nests(program.body)), NVIDIA)
    (kernel,) = compile_program(derived(program, plan), NVIDIA).kernels
    assert kernel.launch.local_size == (16, 16, 1)
    assert kernel.source.count("barrier(") == 1
    assert [step.name for step in next(plans(program.body, NVIDIA)).steps] == [step.name for step in plan.steps]
    assert not list(short_rows(next(nests(parse_program(ROWS.replace("]32", "]2048")).body)), NVIDIA))


def test_short_rows_are_combined_with_elements_of_other_arrays():
    text = ROWS.replace("x: [f32]32)", "x: [f32]32, y: [f32]64)").replace("fun row =>", "fun (row, t) =>")
    program = parse_program(text.replace("zip(row, x))), A)", "zip(row, x))) - t, zip(A, y))"))
    (plan,) = short_rows(next(nests(program.body)), NVIDIA)
    (kernel,) = compile_program(derived(program, plan), NVIDIA).kernels
    assert kernel.launch.local_size == (16, 16, 1)


def test_groups_have_chunks_of_long_columns():
    program, device = parse_program(COLUMNS), replace(NVIDIA, compute_units=32)
    (nest,) = nests(program.body)
    assert not list(long_columns(nest, replace(device, compute_units=3)))  # blocks of whole columns are enough
    plan = next(p for p in long_columns(nest, device) if p.steps[2].tiling[16] == (8,))
    first, second = compile_program(derived(program, plan), device).kernels
    assert (first.launch.local_size, second.launch.local_size) == ((96, 8, 1), (32, 32, 1))
    assert first.launch.global_size == (128 * 96, 8, 1)


def test_groups_have_blocks_of_many_long_columns():
    program = parse_program(
        """program p(A: [[f32]640]3072, m: [f32]640) =
          map(fun (m, col) => reduce(add, 0.0, map(fun v => (v - m) * (v - m), col)) * 0.5, zip(m, transpose(A)))"""
    )
    plan = next(long_columns(next(nests(program.body)), NVIDIA))
    first, second = compile_program(derived(program, plan), NVIDIA).kernels
    assert (first.launch.local_size, second.launch.local_size) == ((32, 16, 1), (32, 4, 1))
    assert first.launch.global_size == (8 * 32, 20 * 16, 1)
