"""Windows along a row, in vectors: what they share is read in aligned vectors, and nothing behind an array is."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.running.run import Runner
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.meaning.interp import evaluate
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn


def sums(rows: str, width: int, length: int = 16, size: int = 3) -> ir.Program:
    """Of windows of a size along some rows of a matrix, in vectors of a width."""
    return parse_program(
        f"""program sums(A: [[f32]{length}]6) =
              mapGlb(1, fun ws => asScalar(mapGlb(0, vectorize({width}, reduceSeq(add, 0.0)), asVector({width}, ws))),
                map(slide({size}, 1), {rows}))"""
    )


def blur(boundary: str, width: int = 4) -> ir.Program:
    """Of windows in two dimensions, in vectors of a width, a work-item for two rows of them."""
    return parse_program(
        f"""program blur(A: [[f32]16]6) =
              join(mapGlb(1, fun chunk =>
                transpose(asScalar(mapGlb(0, vectorize({width}, mapSeq(fun w => reduceSeq(add, 0.0, join(w)))),
                  asVector({width}, transpose(chunk))))),
                split(2, slide2d(3, 1, pad2d(1, 1, {boundary}, A)))))"""
    )


def text_of(program: ir.Program) -> str:
    """Of its kernel for a device whose vectors are aligned."""
    text = compile_program(program, NVIDIA).source
    return text[text.index("kernel void") :]


ALIGNED = {
    "the nearest element at the ends": sums("map(pad(1, 1, clamp), A)", 4),
    "vectors of two": sums("map(pad(1, 1, clamp), A)", 2, 18),
    "from the other end": sums("map(pad(2, 0, wrap), A)", 4),
    "mirrored": sums("map(pad(0, 2, mirror), A)", 4, 8),
    "a row of one vector": sums("map(pad(1, 1, clamp), A)", 4, 4),
    "a number": sums("map(pad(1, 1, constant(7.0)), A)", 4),
    "no ends": sums("A", 2, 8, 3),
    "long windows": sums("map(pad(4, 4, clamp), A)", 8, size=9),
    "blocks": blur("clamp"),
    "blocks, and a number around": blur("constant(7.0)"),
}


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize("what", ALIGNED)
def test_windows_are_put_together_of_aligned_vectors(what: str, runner: Runner):
    program = ALIGNED[what]
    text = text_of(program)
    assert "A_aligned.s" in text
    assert "_u *" not in text
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs(what, inputs)
    assert np.array_equal(runner.run(compile_program(program, NVIDIA), what), evaluate(program.body, inputs))


def test_rows_outside_of_an_array_are_not_read():
    text = text_of(blur("constant(7.0)"))
    bound = [line for line in text.splitlines() if "A_aligned" in line and "=" in line and "const float4" in line]
    always = [line for line in bound if "?" not in line]
    assert len(bound) == 3
    assert len(always) == 1
    assert "A + at)" in always[0]


def at_once(padded: str, result: str = "{}") -> ir.Program:
    """Rows of 20 elements that are padded to 32, copied in vectors of four, into a result of as many or fewer."""
    copied = f"map(asScalar, mapGlb(1, mapGlb(0, vectorize(4, fun x => 2.0 * x)), map(asVector(4), {padded})))"
    return parse_program(f"program p(A: [[f32]20]6) = {result.format(copied)}")


ENDS = {
    "the last element": ("map(pad(0, 12, clamp), A)", 1, "(4 * glb_0 < 17) ? (A_aligned) : ((float4)(A_aligned.s3))"),
    "the first element": ("map(pad(12, 0, clamp), A)", 1, "(4 * glb_0 >= 12) ? (A_aligned) : ((float4)(A_aligned.s0))"),
    "a number": ("map(pad(0, 12, constant(7.0)), A)", 1, ": ((float4)(7.0f))"),
    "a number around the last element": ("pad(1, 1, constant(7.0), map(pad(0, 12, clamp), A))", 1, "A_aligned.s3"),
    "the last element, twice": ("map(pad(0, 4, clamp), map(pad(0, 8, clamp), A))", 1, "A_aligned.s3"),
    "not at once": ("map(pad(2, 10, constant(7.0)), A)", 0, "?"),
}


@needs_opencl
@pytest.mark.parametrize("what", ENDS)
def test_vectors_that_cross_an_end_at_once_are_read_in_one_piece(what: str, runner: Runner):
    """Where the array ends with a whole vector, its padding has whole ones, too."""
    padded, reads, how = ENDS[what]
    program = at_once(padded)
    text = text_of(program)
    assert text.count("*(global const float4 *)") == reads or not reads
    assert how in text
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs(what, inputs)
    for device in (NVIDIA, POCL):
        assert np.array_equal(runner.run(compile_program(program, device), what), evaluate(program.body, inputs))


@needs_opencl
def test_vectors_behind_what_is_kept_of_a_result_are_not_stored(runner: Runner):
    program = at_once("map(pad(0, 12, clamp), A)", "transpose(slice(0, 20, transpose({})))")
    text = text_of(program)
    assert text.count("*(global float4 *)(result") == 1
    assert "result[" not in text
    inputs = random_inputs(program, 0, "integer")
    runner.load_inputs("kept", inputs)
    assert np.array_equal(runner.run(compile_program(program, NVIDIA), "kept"), evaluate(program.body, inputs))


OTHERS = {
    "rows that no vector divides": sums("A", 4, 18, 3),
    "neighbours in other rows": parse_program(
        """program p(A: [[f32]8]8) =
             mapGlb(0, fun x => asScalar(mapSeq(vectorize(4, abs), asVector(4, x))), transpose(A))"""
    ),
    "no windows": parse_program("program p(x: [f32]64) = asScalar(mapGlb(0, vectorize(4, abs), asVector(4, x)))"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_vectors_stay(what: str):
    assert "aligned" not in text_of(OTHERS[what])
