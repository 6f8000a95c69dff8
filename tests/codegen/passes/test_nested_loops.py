"""Loops over what is joined: one over the parts, and one inside of each."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from lift_egraph.codegen.c_ast import Block, Body, For, If
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.passes.nested_loops import nested_loops
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn

LOOPS = {  # and what is left: the steps of the loops, from outside to inside
    "windows of all channels": (
        """(X: [[[f32]7]5]4, f: [[[f32]3]3]4) =
           mapGlb(1, fun row => mapGlb(0, fun w =>
             reduceSeq(fun (s, a, b) => s + a * b, 0.0, zip(join(join(w)), join(join(f)))), row),
             map(transpose, transpose(map(fun c => slide2d(3, 1, c), X))))""",
        [4, 3, 3],
    ),
    "a matrix as one row": (
        """(A: [[f32]6]4, x: [f32]6, y: [f32]4, z: [f32]24) =
           mapGlb(0, fun k => reduceSeq(fun (s, a, b) => s + a * b, k,
             zip(join(transpose(A)), z)), x)""",
        [6, 4],
    ),
    "nothing to divide by": (
        "(A: [[f32]12]4) = mapGlb(0, reduceSeq(add, 0.0), A)",
        [12],
    ),
    "a length that the number does not divide": (
        "(x: [f32]12) = mapGlb(0, fun k => reduceSeq(add, k, slice(0, 10, join(transpose(split(4, x))))), x)",
        [10],
    ),
}  # fmt: skip


@in_turn(6)
@needs_opencl
@pytest.mark.parametrize("what", LOOPS)
def test_a_loop_has_a_loop_for_each_dimension(what: str, runner: Runner):
    text, steps = LOOPS[what]
    program = parse_program(f"program p{text}")
    plan = compile_program(program, POCL)
    inside = plan.source[plan.source.index("kernel void") :]
    assert [int(n) for n in re.findall(r"for \(int \w+ = 0; \w+ < (\d+);", inside)] == steps
    assert what.startswith("a length") or not re.search(r"[/%]", inside)
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs(what, inputs)
    assert np.array_equal(runner.run(plan, what), evaluate(program.body, inputs))


def test_a_body_that_divides_by_nothing_is_as_it_was():
    program = parse_program("program p(X: [[f32]6]6) = mapGlb(0, fun row => reduceSeq(add, 0.0, row), X)")
    (kernel,) = compile_program(program, POCL, with_text=False).kernels
    assert nested_loops(kernel.body, set()) is kernel.body


def names_inside(body: Body, around: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The variables of the loops around each innermost loop."""
    for loop in body:
        if isinstance(loop, For):
            inside = (*around, loop.variable.name)
            yield inside
            yield from names_inside(loop.body, inside)
        elif isinstance(loop, If | Block):
            yield from names_inside(loop.body, around)


def test_loops_inside_of_each_other_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lift_egraph.codegen.lowering.stored_borders.LARGE", 1000)
    program = parse_program(
        """program p(i: [[f32]64]64, weights: [f32]289) =
             mapGlb(0, fun rows => reduceSeq(fun (s, a, b) => s + a * b, 0.0, zip(join(at(0, rows)), weights)),
               slide2d(17, 1, map(pad(2, 2, constant(0.0)), pad(2, 2, clamp, i))))"""
    )
    (kernel,) = compile_program(program, POCL).kernels
    found = list(names_inside(kernel.body))
    assert max(map(len, found)) == 3  # and the border in a loop of its own
    assert all(len(set(around)) == len(around) for around in found)
