"""Loops along borders choose at their ends alone, and compute what they did before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.optimise import NONE
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn

SUM = "reduceSeq(add, 0.0, w)"
IN_VECTORS = f"asScalar(mapSeq(vectorize(4, fun w => {SUM}), asVector(4, ws)))"
ONE_BY_ONE = f"mapSeq(fun w => {SUM}, ws)"


def sums(boundary: str, each: str = IN_VECTORS, length: int = 80, before: int = 2, after: int = 2) -> ir.Program:
    """The sums of the windows of each row."""
    size = before + after + 1
    return parse_program(
        f"""program sums(A: [[f32]{length}]3) =
              mapGlb(0, fun ws => {each}, map(slide({size}, 1), map(pad({before}, {after}, {boundary}), A)))"""
    )


def loops(text: str) -> list[str]:
    """What stands in each loop along a row."""
    return text.split("for (int i")[1:]


def test_the_loop_between_the_ends_does_not_choose():
    text = compile_program(sums("constant(0.0)"), POCL).source
    middle, end = loops(text)[0].split("\n    }\n", 1)
    assert "?" not in middle
    assert "float4_u" in middle
    assert "?" in end
    assert "?" in text.split("for (int i")[0]


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize("each", [IN_VECTORS, ONE_BY_ONE], ids=["in vectors", "one by one"])
@pytest.mark.parametrize(
    ("boundary", "before", "after"),
    [("constant(1.0)", 2, 2), ("constant(1.0)", 0, 5), ("clamp", 5, 1), ("wrap", 2, 2), ("mirror", 1, 3)],
)
def test_the_parts_compute_the_whole(boundary: str, before: int, after: int, each: str, runner: Runner):
    program = sums(boundary, each, before=before, after=after)
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs("inputs", inputs)
    result = runner.run(compile_program(program, POCL), "inputs")
    assert np.array_equal(result, evaluate(program.body, inputs))


def test_rows_and_columns_are_taken_apart():
    program = parse_program(
        f"""program sums(A: [[f32]64]64) =
              mapSeq(fun ws => mapSeq(fun w => {SUM.replace("w", "join(w)")}, ws),
                     slide2d(3, 1, pad2d(1, 1, constant(0.0), A)))"""
    )
    text = compile_program(program, POCL).source
    inner = [part for part in text.split("for (int i")[1:] if "for (int j" in part]
    assert any("?" not in part.split("for (int j")[1].split("}")[0] for part in inner)


@pytest.mark.parametrize(
    ("program", "device"),
    [
        pytest.param(sums("constant(0.0)", length=32), POCL, id="a short loop"),
        pytest.param(sums("constant(0.0)", ONE_BY_ONE, length=32, before=9, after=9), POCL, id="much at the ends"),
        pytest.param(sums("constant(0.0)", before=0, after=0), POCL, id="no border"),
        pytest.param(sums("constant(0.0)"), NVIDIA, id="a device that asks for one loop"),
    ],
)
def test_other_loops_stay(program: ir.Program, device):
    plain = replace(device, emission=replace(device.emission, borders_apart=False))
    assert compile_program(program, device).source == compile_program(program, plain).source


def test_it_is_an_optimisation_of_control_flow():
    plain = replace(POCL, emission=replace(POCL.emission, borders_apart=False))
    program = sums("constant(0.0)")
    without = compile_program(program, POCL, optimise=NONE).source
    assert without == compile_program(program, plain, optimise=NONE).source
