"""Several steps of a stencil in one kernel: overlapped tiles, all but input and result in local memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.workbench.planning.plans import plans
from lift_egraph.workbench.planning.stencil_steps import stencil_steps, steps_of, window_blocks
from tests.depth import in_turn
from tests.lift_egraph.workbench.planning.test_plans import reached

GPU = replace(NVIDIA, emission=POCL.emission)


def in_two(rows: int, columns: int, steps: int, boundary: str) -> str:
    """Steps that are not symmetric, so that rows and columns that change places give another result."""
    term = "A"
    for _ in range(steps):
        step = "fun w => at(0, at(0, w)) + 2.0 * at(2, at(1, w)) - at(1, at(2, w))"
        term = f"map2d({step}, slide2d(3, 1, pad2d(1, 1, {boundary}, {term})))"
    return f"program steps(A: [[f32]{columns}]{rows}) = {term}"


def in_one(length: int, steps: int, boundary: str) -> str:
    term = "x"
    for _ in range(steps):
        term = f"map(fun w => at(0, w) - 2.0 * at(2, w), slide(3, 1, pad(1, 1, {boundary}, {term})))"
    return f"program steps(x: [f32]{length}) = {term}"


@in_turn(8)
@pytest.mark.parametrize(
    ("text", "device"),
    [
        pytest.param(in_two(21, 35, 2, "constant(1.5)"), POCL, id="bands of rows with rests, around them a value"),
        pytest.param(in_one(600, 3, "clamp"), GPU, id="one dimension"),
        pytest.param(in_one(512, 2, "constant(1.5)"), GPU, id="one dimension, around it a value"),
    ],
)
def test_all_steps_are_one_kernel_in_local_memory(text: str, device):
    program = parse_program(text)
    plan = next(stencil_steps(program.body, device))
    term = reached(program, plan)
    inputs = random_inputs(program, 0, "integer")
    (kernel, *others) = (plan := compile_program(replace(program, body=term), device)).kernels
    assert not others
    assert kernel.local_bytes
    with Runner(find_device("Portable")) as runner:
        runner.load_inputs("inputs", inputs)
        assert np.array_equal(runner.run(plan, "inputs"), evaluate(program.body, inputs))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (in_two(24, 32, 1, "clamp"), 1),
        ("program p(A: [[f32]16]16) = map2d(abs, A)", 0),
        ("program p(x: [f32]16) = map(fun w => at(0, w), slide(2, 2, map(abs, x)))", 0),
    ],
    ids=["one step", "no windows", "windows that do not overlap"],
)
def test_others_have_no_such_plan(text: str, count: int):
    body = parse_program(text).body
    assert sum(1 for _ in steps_of(body)) == count
    assert not [*stencil_steps(body, POCL), *stencil_steps(body, GPU)]


@in_turn(3)
def test_groups_copy_what_the_windows_of_a_block_read():
    program = parse_program(
        """program blur(A: [[f32]96]64, W: [f32]25) =
             map2d(fun w => reduce(add, 0.0, map(mul, zip(join(w), W))), slide2d(5, 1, pad2d(2, 2, clamp, A)))"""
    )
    (found,) = window_blocks(program.body, GPU)
    assert found.steps in [plan.steps for plan in plans(program.body, NVIDIA)]
    inputs = random_inputs(program, 0, "integer")
    plan = compile_program(replace(program, body=reached(program, found)), GPU)
    assert 4 * 36 * 36 <= plan.kernels[0].local_bytes <= 4 * 36 * 37  # lines may be padded
    with Runner(find_device("Portable")) as runner:
        runner.load_inputs("inputs", inputs)
        assert np.array_equal(runner.run(plan, "inputs"), evaluate(program.body, inputs))
    assert not [*window_blocks(program.body, replace(GPU, local_memory=512))]
    assert not [*window_blocks(parse_program(in_two(61, 96, 1, "clamp")).body, GPU)]


def test_what_a_group_keeps_fits_its_local_memory():
    body = parse_program(in_one(4096, 3, "clamp")).body
    sizes = [plan.steps[1].tiling[4096] for plan in stencil_steps(body, GPU)]
    small = [plan.steps[1].tiling[4096] for plan in stencil_steps(body, replace(GPU, local_memory=4096))]
    assert sizes == [(256,), (512,), (128,)]
    assert small == [(256,), (128,)]
