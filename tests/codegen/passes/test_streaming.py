"""Streams: what is written around the caches, and that it is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, NVIDIA, POCL, Device
from lift_egraph.codegen.plans.kernel import NON_TEMPORAL
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language.ir import Program
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.codegen.low_level import with_caches
from tests.codegen.opencl import needs_opencl


def doubled(width: int, length: int = 64, to: str = "toStream") -> Program:
    """Rows of a matrix, each element twice as much, in vectors."""
    each = f"asScalar(mapSeq(vectorize({width}, fun x => x * 2.0), asVector({width}, row)))"
    return parse_program(f"program doubled(A: [[f32]{length}]3) = {to}(mapGlb(0, fun row => {each}, A))")


@pytest.mark.parametrize("width", [16, 8, 4])
def test_long_results_are_written_around_the_caches(width: int):
    text = compile_program(doubled(width), with_caches(POCL, 768)).source
    assert text.count(NON_TEMPORAL) == 1
    assert NON_TEMPORAL not in compile_program(doubled(width, to="toGlobal"), with_caches(POCL, 768)).source


@pytest.mark.parametrize(
    ("program", "device"),
    [
        pytest.param(doubled(16), with_caches(POCL, 769), id="the cache holds it"),
        pytest.param(doubled(16), with_caches(NVIDIA, 768), id="no such stores on the device"),
        pytest.param(doubled(4, 68), with_caches(DEVICES["cpu"], 768), id="nor known to every compiler"),
        pytest.param(
            parse_program(
                "program columns(A: [[f32]24]16) = map(join, transpose(toStream(mapGlb(0, fun block => "
                "mapSeq(fun row => asScalar(mapSeq(vectorize(8, fun x => x * 2.0), asVector(8, row))), block), "
                "transpose(map(split(8), A))))))"
            ),
            with_caches(POCL, 768),
            id="half lines of one row after the other",
        ),
        pytest.param(
            parse_program(
                "program pad1(x: [f32]257) = toStream(mapGlb(0, fun w => at(0, w) + at(1, w), slide(2, 1, x)))"
            ),
            with_caches(POCL, 768),
            id="single elements",
        ),
    ],
)
def test_other_results_are_not(program: Program, device: Device):
    assert NON_TEMPORAL not in compile_program(program, device).source


def test_vectors_at_no_multiple_of_their_width_are_not():
    text = """program shifted(x: [f32]20, A: [[f32]64]3) =
                concat(mapGlb(0, fun v => v, slice(0, 1, x)), toStream(join(mapGlb(0,
                  fun row => asScalar(mapSeq(vectorize(16, fun x => x * 2.0), asVector(16, row))), A))))"""
    assert NON_TEMPORAL not in compile_program(parse_program(text), with_caches(POCL, 64)).source


@needs_opencl
@pytest.mark.parametrize("width", [16, 8])
def test_streams_hold_the_result(width: int, runner: Runner):
    program = doubled(width)
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs("inputs", inputs)
    result = runner.run(compile_program(program, with_caches(POCL, 768)), "inputs")
    assert np.array_equal(result, evaluate(program.body, inputs))
