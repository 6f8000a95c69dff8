"""Private arrays that are moved as whole vectors alone are arrays of vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import INTEL, POCL, Device
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.codegen.opencl import needs_opencl, text_of

BLOCKS = """program p(xs: [[f32]2]60, ys: [[f32]8]60) = mapGlb(0, fun both => mapSeq(fun row => LAST,
    reduceSeq(
      fun (acc, as, bs) => mapSeq(
        fun (sums, a) => asScalar(mapSeq(vectorize(4, fun (s, b) => s + a * b), asVector(4, zip(sums, bs)))),
        zip(acc, as)),
      fill(2, fill(8, 0.0)), zip(get(0, both), get(1, both)))), zip(split(12, xs), split(12, ys)))"""
WHOLE = "asScalar(mapSeq(vectorize(4, abs), asVector(4, row)))"
WIDER = "asScalar(mapSeq(vectorize(8, abs), asVector(8, row)))"
ALONE = "mapSeq(abs, row)"
APART = "asScalar(mapSeq(vectorize(4, abs), asVector(4, join(transpose(split(2, row))))))"


def blocks(last: str, device: Device, whole: bool = True) -> str:
    return text_of(compile_program(parse_program(BLOCKS.replace("LAST", last)), with_vectors(device, whole)))


def with_vectors(device: Device, whole: bool = True) -> Device:
    return replace(device, emission=replace(device.emission, whole_vectors=whole))


@pytest.mark.parametrize("device", [INTEL, POCL], ids=["intel", "pocl"])
def test_results_that_lanes_go_on_with_are_vectors(device: Device):
    text, numbers = blocks(WHOLE, device), blocks(WHOLE, device, whole=False)
    assert "float4 acc_1_1 = (float4)(0.0f);" in text
    assert ".s3" not in text
    assert ".s3" in numbers
    assert "float4 acc_1_1" not in numbers


@pytest.mark.parametrize("last", [WIDER, ALONE, APART], ids=["wider", "alone", "apart"])
def test_what_is_also_read_in_other_ways_stays_numbers(last: str):
    assert blocks(last, INTEL) == blocks(last, INTEL, whole=False)


@needs_opencl
@pytest.mark.parametrize("last", [WHOLE, APART], ids=["whole", "apart"])
def test_vectors_have_the_numbers_that_stood_there(runner: Runner, last: str):
    program = parse_program(BLOCKS.replace("LAST", last))
    inputs = random_inputs(program, 0, "float")
    runner.load_inputs("inputs", inputs)
    found = runner.run(compile_program(program, with_vectors(POCL)), "inputs")
    np.testing.assert_allclose(found, evaluate(program.body, inputs), rtol=1e-5)
