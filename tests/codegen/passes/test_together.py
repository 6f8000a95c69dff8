"""Loops that need nothing of each other run together, and no others."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lift_egraph.codegen.c_ast import Allocate, Let
from lift_egraph.codegen.c_walk import statements
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.passes.together import Room, loops_together
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.depth import in_turn

SUM = "reduceSeq(add, 0.0, row)"
SQUARES = "reduceSeq(fun (acc, x) => acc + x * x, 0.0, row)"
LANES = "asVector(4, transpose(split(4, row)))"
KEPT = "let e = toPrivate(mapSeq(fun v => {}, row)) in"
KEPT_LANES = "let e = asScalar(mapSeq(vectorize(4, fun v => v * v), asVector(4, row))) in"
CASES = {  # the body of a map over rows of 1024, and its loops inside of the work-item
    "a sum and the squares": (f"let s = {SUM} in let q = {SQUARES} in q - s * s", 1),
    "with what follows from the first": (f"let m = {SUM} / 1024.0 in let q = {SQUARES} in q - m", 1),
    "the second needs the first": (
        f"let m = {SUM} / 1024.0 in reduceSeq(fun (acc, x) => acc + (x - m) * (x - m), 0.0, row)", 2),
    "of few steps in lanes": (
        "reduceSeq(add, 0.0, asScalar(mapSeq(vectorize(4, fun lane => reduceSeq(add, 0.0, "
        "mapSeq(reduceSeq(add, 0.0), transpose(split(4, lane))))), "
        "asVector(4, transpose(split(4, slice(0, 256, row)))))))", 1),
    "of few steps": (
        "let r = slice(0, 16, row) in reduceSeq(add, 0.0, r) - reduceSeq(fun (acc, x) => acc + x * x, 0.0, r)", 2),
    "of other lengths": (f"let s = {SUM} in let h = reduceSeq(add, 0.0, split(128, row)[0]) in s + h", 2),
    "of chains in lanes": (
        "reduceSeq(add, 0.0, asScalar(mapSeq(vectorize(4, fun lane => reduceSeq(add, 0.0, "
        f"mapSeq(reduceSeq(add, 0.0), transpose(split(4, lane))))), {LANES})))", 1),
    "in the steps of a short loop": (
        "reduceSeq(add, 0.0, asScalar(mapSeq(vectorize(4, fun lane => reduceSeq(fun (a, x) => "
        f"a + reduceSeq(add, 0.0, x), 0.0, transpose(split(4, lane)))), {LANES})))", 1),
    "steps that go on from each other": (
        "reduceSeq(fun (a, x) => reduceSeq(fun (b, y) => b * 0.5 + y, a, x), 0.0, split(64, row))", 2),
    "a sum of what the first keeps": (f"{KEPT.format('v * v')} reduceSeq(add, 0.0, e)", 1),
    "of several that it keeps": (
        f"{KEPT_LANES} reduceSeq(add, 0.0, asScalar(mapSeq(vectorize(4, fun lane => reduceSeq(fun (a, x) => "
        f"a + reduceSeq(add, 0.0, x), 0.0, transpose(split(4, lane)))), {LANES.replace('row', 'e')})))", 1),
    "of neighbours that it keeps": (
        f"{KEPT.format('v * v')} reduceSeq(fun (a, (x, y)) => a + x * y, 0.0, "
        "zip(slice(0, 1023, e), slice(1, 1023, e)))", 2),
    "of others that it keeps": (
        f"{KEPT.format('v * v')} reduceSeq(fun (a, x) => a * 0.5 + x, 0.0, gather(reverse, e))", 2),
    "of functions that are spelled out": (f"{KEPT.format('exp(v)')} reduceSeq(add, 0.0, e)", 2),
}  # fmt: skip


def loops(text: str) -> int:
    return len(re.findall(r"\bfor \(", text))


@in_turn(6)
@pytest.mark.parametrize("what", CASES)
def test_loops_that_need_nothing_of_each_other_run_together(what: str, runner: Runner):
    body, expected = CASES[what]
    program = parse_program(f"program p(X: [[f32]1024]6) = mapGlb(0, fun row => {body}, X)")
    plan = compile_program(program, POCL)
    assert loops(plan.source) == expected
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs(what, inputs)
    assert np.allclose(runner.run(plan, what), evaluate(program.body, inputs), rtol=1e-6)


def test_more_sums_than_registers_stay_apart():
    sums = [f"reduceSeq(fun (acc, x) => acc + x * {n}.0, 0.0, row)" for n in range(1, 41)]
    lets = " ".join(f"let s{n} = {text} in" for n, text in enumerate(sums))
    total = " + ".join(f"s{n}" for n in range(40))
    program = parse_program(f"program p(X: [[f32]1024]6) = mapGlb(0, fun row => {lets} {total}, X)")
    source = compile_program(program, POCL).source
    most = POCL.registers // 2
    assert loops(source) == -(-40 // most)


def test_names_are_only_made_for_steps_that_run_together():
    """What each step of a short loop declares got names of its own before it was known that the loops stay apart."""
    inner = "reduceSeq(fun (b, y) => let h = b * y in h * 0.5 + y, a, x)"
    body = f"reduceSeq(fun (a, x) => {inner}, 0.0, transpose(split(4, row)))"
    program = parse_program(f"program p(X: [[f32]32]6) = mapGlb(0, fun row => {body}, X)")
    (kernel,) = compile_program(program, POCL, with_text=False).kernels
    taken = set[str]()
    assert loops_together(kernel.body, Room(POCL.registers // 2), taken) == kernel.body
    declared = {s.name for s in statements(kernel.body) if isinstance(s, Let)}
    assert taken == declared | {s.buffer.name for s in statements(kernel.body) if isinstance(s, Allocate)}


def test_a_gpu_has_other_work_items():
    body, _ = CASES["a sum and the squares"]
    program = parse_program(f"program p(X: [[f32]1024]6) = mapGlb(0, fun row => {body}, X)")
    assert loops(compile_program(program, NVIDIA).source) == 2
