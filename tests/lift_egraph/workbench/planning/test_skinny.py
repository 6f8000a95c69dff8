"""Sums of many short rows, of few long columns, and products with few results, on a GPU."""

from __future__ import annotations

from dataclasses import replace

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.counterexamples import equal_values
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.long_rows import LongRows
from lift_egraph.workbench.planning.long_columns import long_columns
from lift_egraph.workbench.planning.plan import Plan, columns_of, nests
from lift_egraph.workbench.planning.plans import plans
from lift_egraph.workbench.planning.short_rows import short_rows
from lift_egraph.workbench.planning.small_products import small_products
from tests.lift_egraph.workbench.planning.test_plans import reached

ROWS = """program p(A: [[f32]32]64, x: [f32]32) = map(fun row => reduce(add, 0.0, map(mul, zip(row, x))), A)"""
COLUMNS = """program p(A: [[f32]96]2048, x: [f32]2048) =
  map(fun col => reduce(add, 0.0, map(mul, zip(col, x))), transpose(A))"""


def derived(program: ir.Program, plan: Plan) -> ir.Program:
    """The low-level program that a plan leads to, which computes the same."""
    lowered = replace(program, body=reached(program, plan))
    inputs = random_inputs(program, 0, "integer")
    assert equal_values(evaluate(lowered.body, inputs), evaluate(program.body, inputs))
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


def test_few_columns_are_shared_by_more_items():
    """Neighbouring items read neighbouring elements, in whole rows."""
    device = replace(NVIDIA, compute_units=16)
    for of_column in ("reduce(max, -1.0, col)", "let m = reduce(max, -1.0, col) + 2.0 in (m, 3.0 - m)"):  # named or not
        program = parse_program(f"program p(A: [[f32]10]6144) = map(fun col => {of_column}, transpose(A))")
        plan = next(long_columns(next(nests(program.body)), device))
        first, second = compile_program(derived(program, plan), device).kernels
        assert (first.launch.local_size, second.launch.local_size) == ((10, 32, 1), (10, 16, 1))
        assert first.launch.global_size == (64 * 10, 32, 1)


def test_columns_of_rows_are_folded_as_rows():
    """The numbers of such an element lie side by side: neighbouring items read those of one."""
    program = parse_program(
        "program p(X: [[[f32]512]64]32) = map(fun c => reduce(add, 0.0, join(c)) / 16384.0, transpose(X))"
    )
    nest = next(nests(program.body))
    assert columns_of(nest.maps[-1]) is None
    assert not list(long_columns(nest, NVIDIA))
    assert any(plan.lowered_by == "sharing" for plan in plans(program.body, NVIDIA))


def test_columns_that_groups_have_chunks_of_are_no_long_rows():
    columns, rows = "[[f32]10]1048576", "[[f32]1048576]10"
    for matrix, array, stays in ((columns, "transpose(A)", True), (rows, "A", False)):
        program = parse_program(f"program p(A: {matrix}) = map(fun v => reduce(add, 0.0, v), {array})")
        chunked = LongRows(Rows(NVIDIA))
        assert (chunked.in_chunks(program.body) == program.body) is stays
        assert (not chunked.tiling) is stays


def test_a_group_has_all_results_of_a_product():
    program = parse_program(
        """program p(A: [[[f32]128]3]4, B: [[[f32]128]5]4) = map(fun (a, b) =>
          map(fun x => map(fun y => reduce(add, 0.0, map(mul, zip(x, y))), b), a), zip(A, B))"""
    )
    (nest,), device = nests(program.body), replace(NVIDIA, compute_units=4)
    assert not list(small_products(nest, NVIDIA))  # too few products for all units
    plan, other = small_products(nest, device)
    (kernel,) = compile_program(derived(program, plan), device).kernels
    assert (kernel.launch.local_size, other.steps[0].tiling) == ((5, 32, 3), {128: (16,)})
    assert kernel.launch.global_size == (4 * 5, 32, 3)
    assert kernel.source.count("barrier(") == 1
