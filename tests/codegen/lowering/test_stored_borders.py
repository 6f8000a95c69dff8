"""Matrices with borders are stored on a CPU where large windows read them."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import Runner, parse_program, random_inputs, run, specialise
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.codegen.lowering.stored_borders import with_stored_borders
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.meaning.values import leaves_of
from tests.codegen.low_level import plan_of
from tests.codegen.opencl import needs_opencl, results
from tests.depth import in_turn

MEANS = """program p(x: [[f32]31]33) =
  map2d(fun w => reduce(add, 0.0, join(w)) / SQUARE.0, slide2d(SIZE, 1, pad2d(HALF, HALF, mirror, x)))"""
STEPS = """program p(x: [[f32]31]33) =
  iterate(4, fun y => map2d(fun w => reduce(add, 0.0, join(w)) / 25.0, slide2d(5, 1, pad2d(2, 2, clamp, y))), x)"""
TWICE = """program p(x: [[f32]31]33) =
  let a = map2d(fun w => reduce(add, 0.0, join(w)), slide2d(5, 1, pad2d(2, 2, wrap, x))) in
  let b = map2d(fun w => reduce(max, -inf, join(w)), slide2d(5, 1, pad2d(2, 2, wrap, x))) in
  map2d(fun w => reduce(min, inf, join(w)), slide2d(5, 1, pad2d(2, 2, wrap, map(fun (r, s) => map(add, zip(r, s)),
    zip(a, b)))))"""
IN_ROWS = """program p(x: [[f32]31]33) = mapGlb(0, mapSeq(fun w => reduceSeq(add, 0.0, join(w))),
  map(transpose, slide(5, 1, map(fun row => slide(5, 1, pad(2, 2, clamp, row)), pad(2, 2, clamp, x)))))"""

BY_VECTORS = """program p(x: [[f32]32]33) = mapGlb(0, fun row => asScalar(mapSeq(
    vectorize(16, fun w => reduceSeq(add, 0.0, join(w))), asVector(16, row))),
  map(transpose,
    slide(SIZE, 1, map(fun row => slide(SIZE, 1, pad(HALF, HALF, BORDER, row)), pad(HALF, HALF, BORDER, x)))))"""


def by_vectors(size: int, border: str) -> ir.Program:
    text = BY_VECTORS.replace("SIZE", str(size)).replace("HALF", str(size // 2)).replace("BORDER", border)
    return specialise(parse_program(text))


def naive(text: str) -> ir.Program:
    return naive_term(specialise(parse_program(text)))


def means(size: int) -> str:
    return MEANS.replace("SIZE", str(size)).replace("HALF", str(size // 2)).replace("SQUARE", str(size**2))


def temporaries(program: ir.Program, device: Device = POCL) -> list[int]:
    return [b.length for b in plan_of(program, device).buffers if b.role == "temporary"]


def test_what_large_windows_read_is_stored_with_its_border_on_a_cpu():
    assert temporaries(naive(means(5))) == [37 * 35]
    assert temporaries(naive(means(3))) == []
    assert temporaries(naive(means(5)), NVIDIA) == []
    assert temporaries(parse_program(IN_ROWS)) == [37 * 35]


@pytest.mark.parametrize(
    ("size", "border", "stored"), [(5, "clamp", 0), (5, "constant(0.0)", 1), (7, "mirror", 0), (11, "clamp", 1)]
)
def test_what_vectors_of_a_loop_read_is_stored_for_larger_windows_alone(size: int, border: str, stored: int):
    assert len(temporaries(by_vectors(size, border))) == stored


@pytest.mark.parametrize(("size", "step", "stored"), [(9, 8, 0), (12, 8, 1), (8, 2, 1)])
def test_tiles_that_overlap_a_little_are_read_where_they_stand(size: int, step: int, stored: int):
    text = f"""program p(x: [[f32]64]64) =
      map2d(fun w => reduce(add, 0.0, join(w)), slide2d({size}, {step}, pad2d({size - step}, 0, clamp, x)))"""
    assert len(temporaries(naive(text))) == stored


def test_a_term_without_borders_is_not_made_again():
    term = parse_program("program p(A: [f32]64) = mapGlb(0, reduceSeq(add, 0.0), slide(3, 1, A))").body
    assert with_stored_borders(term, lambda padded: padded) is term


def test_windows_of_the_same_input_share_it():
    assert temporaries(naive(TWICE)).count(37 * 35) == 2  # the input's, and that of the sum


@in_turn(6)
@needs_opencl
@pytest.mark.parametrize(
    "program",
    [*(specialise(parse_program(text)) for text in (means(5), STEPS, TWICE, IN_ROWS)), by_vectors(5, "clamp")],
    ids=["means", "steps", "twice", "in rows", "by vectors"],
)
def test_stored_borders_are_right(runner: Runner, program: ir.Program):
    """Also those of steps, whose arrays have the same names and memory."""
    inputs = random_inputs(program, 0, "float")
    made = program if any(isinstance(p, ir.MapLevel) for p in ir.subterms(program.body)) else naive_term(program)
    for found, right in zip(results(runner, plan_of(made), inputs), leaves_of(run(program, inputs)), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)


@pytest.mark.parametrize("border", ["constant(0.5)", "mirror"])
def test_rows_are_stored_as_rows_though_borders_of_columns_are_added_to_columns(border: str) -> None:
    plan = plan_of(naive(means(5).replace("mirror", border)))
    assert [b.length for b in plan.buffers if b.role == "temporary"] == [37 * 35]
    assert "tmp[glb_0 + 35 * glb_1 + i + i1]" in plan.source
