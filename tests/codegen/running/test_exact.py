"""Kernels that are to be exact: how they are built, and that one bit of a float is enough to be wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lift_egraph.api import Runner, describe, evaluate, find_device, judge, naive_term, parse_program, references
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.workbench import load_references
from tests.codegen.opencl import needs_opencl

PROGRAM = parse_program("""
    program p(x: [f32]4096, y: [f32]4096) =
      (map(fun (a, b) => a * b - b, zip(x, y)), reduce(add, 0.0, map(fun (a, b) => a / b, zip(x, y))))
""")
EXACT = references(PROGRAM, exact=True)


@needs_opencl
def test_exact_kernels_round_each_operation():
    device, naive = find_device(), naive_term(PROGRAM)
    with Runner(device) as runner:
        load_references(runner, EXACT)
        verdict = EXACT.check(naive, compile_program(naive, describe(device).exact), runner)
    assert verdict.valid, verdict.message
    assert verdict.max_error == 0
    assert verdict.message.endswith("on floats: 4097 of 4097 elements equal bit for bit")


def test_what_they_are_built_with():
    exact = replace(POCL, emission=replace(POCL.emission, options=("-cl-mad-enable", "-Werror"))).exact
    plan = compile_program(naive_term(PROGRAM), exact)
    assert plan.options == ("-Werror", "-cl-fp32-correctly-rounded-divide-sqrt")
    assert "\n#pragma OPENCL FP_CONTRACT OFF\n" in plan.source
    assert "FP_CONTRACT" not in compile_program(naive_term(PROGRAM), POCL).source


def test_a_contracted_product_is_wrong():
    x, y = (np.asarray(EXACT.floats.inputs[name], np.float64) for name in "xy")
    assert EXACT.how.endswith("on two sets of inputs, floats bit for bit")
    right = EXACT.floats.value
    contracted = (x * y - y).astype(np.float32), right[1]
    whole = evaluate(PROGRAM.body, EXACT.integers.inputs)
    assert judge(EXACT, whole, right).valid
    verdict = judge(EXACT, whole, contracted)
    assert not verdict.valid
    assert "elements are wrong" in verdict.message
    assert judge(references(PROGRAM), whole, contracted).valid  # within the error bound
