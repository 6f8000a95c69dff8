"""Loops that do the same in each step of a loop around them are run once, before it; others stay."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lift_egraph.api import Runner
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.interp import run
from lift_egraph.meaning.values import leaves_of
from tests.codegen.low_level import plan_of
from tests.codegen.opencl import in_one_build, needs_opencl, results, text_of

SUM = "reduceSeq(fun (s, b) => s + b, 0.0, row)"
CASES = {  # what is computed of each row, and in how many loops the sum's own loop stands then
    "a sum of what is around the loop": (f"mapSeq(fun a => a / {SUM}, row)", 0),
    "with what follows from it": (f"mapSeq(fun a => let m = {SUM} / 5.0 in (a - m) * m, row)", 0),
    "out of two loops": (f"mapSeq(fun a => mapSeq(fun b => a * b / {SUM}, x), row)", 0),
    "of other lengths": ("mapSeq(fun a => a * reduceSeq(fun (s, b) => s + b, a, slice(1, 3, x)), row)", 1),
    "it needs the element": ("mapSeq(fun a => a / reduceSeq(fun (s, b) => s + b * a, 0.0, row), row)", 1),
    "out of the inner loop": (
        "mapSeq(fun a => mapSeq(fun c => c / reduceSeq(fun (s, b) => s + b * a, 0.0, row), x), row)",
        1,
    ),
    "beside an accumulator": (f"reduceSeq(fun (t, a) => t * {SUM} + a, 1.0, row)", 0),
    "from an accumulator": ("reduceSeq(fun (t, a) => reduceSeq(fun (s, b) => s + b, t, row) + a, 1.0, row)", 1),
    "through global memory": (
        "mapSeq(fun a => a / reduceSeq(fun (s, b) => s + b, 0.0, toGlobal(mapSeq(fun b => b * b, row))), row)",
        0,
    ),
    "an array": (
        "mapSeq(fun a => reduceSeq(fun (t, b) => t + a * b, 0.0, toPrivate(mapSeq(fun c => "
        "c * reduceSeq(fun (s, b) => s + b, 0.0, row), x))), row)",
        0,
    ),
}


def program(number: int, body: str) -> ir.Program:
    return parse_program(f"program p{number}(A: [[f32]5]3, x: [f32]5) = mapGlb(0, fun row => {body}, A)")


def loops_around_the_sum(plan: Plan) -> int:
    (indent,) = re.findall(r"^( *)s(?:_\d+)? = s(?:_\d+)? \+", text_of(plan), re.MULTILINE)
    return len(indent) // 2 - 2


@pytest.mark.parametrize(("body", "loops"), CASES.values(), ids=CASES)
def test_sums_leave_the_loops_that_they_do_not_depend_on(body: str, loops: int):
    assert loops_around_the_sum(plan_of(program(0, body), POCL)) == loops


def test_nothing_leaves_a_loop_with_barriers():
    plan = plan_of(
        """program p(A: [[f32]8]4, x: [f32]8) = mapWrg(0, fun row => mapSeq(fun a =>
             let u = reduceSeq(fun (s, b) => s + b, 0.0, x) in
             mapLcl(0, fun y => a * y * u, gather(reverse, toLocal(mapLcl(0, fun y => y + a, row)))), row), A)"""
    )
    assert loops_around_the_sum(plan) == 1


@needs_opencl
def test_results_stay(runner: Runner):
    made = [program(k, body) for k, (body, _) in enumerate(CASES.values())]
    rng = np.random.default_rng(0)
    inputs = {"A": rng.uniform(1, 2, (3, 5)).astype(np.float32), "x": rng.uniform(1, 2, 5).astype(np.float32)}
    for each, plan in zip(made, in_one_build([plan_of(p, POCL) for p in made]), strict=True):
        for found, right in zip(results(runner, plan, inputs), leaves_of(run(each, inputs)), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5)
