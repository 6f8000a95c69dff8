"""Parts of arrays, and arrays one after the other: how many kernels they are, and that each stores what is its own."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import parse_program, random_inputs, run
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.meaning.values import leaves_of
from tests.codegen import low_level as low
from tests.codegen.opencl import as_pocl_likes, needs_opencl, text_of
from tests.depth import in_turn

# a program, and its number of kernels
PARTS = {
    "a vector loop and a rest": (
        """program p(x: [f32]19) = concat(
             asScalar(mapGlb(0, vectorize(4, fun v => v * 2.0), asVector(4, slice(0, 16, x)))),
             mapGlb(0, fun v => v * 2.0, slice(16, 3, x)))""", 1),
    "a rest of one work-item": (
        """program p(x: [f32]19) = concat(mapGlb(0, fun v => v + 1.0, slice(0, 16, x)),
             mapSeq(fun v => v + 1.0, slice(16, 3, x)))""", 1),
    "a rest of folds": (
        """program p(A: [[f32]9]19) = concat(mapGlb(1, fun r => mapGlb(0, fun v => v + 1.0, r), slice(0, 16, A)),
             mapSeq(fun r => mapSeq(fun v => v * reduceSeq(add, 0.0, r), r), slice(16, 3, A)))""", 1),
    "a rest in another dimension": (
        """program p(A: [[f32]4]9) = concat(mapGlb(1, mapGlb(0, fun v => v + 1.0), slice(0, 8, A)),
             mapGlb(1, mapSeq(fun v => v + 1.0), slice(8, 1, A)))""", 1),
    "the shorter part first": (
        """program p(x: [f32]19) = concat(mapGlb(0, fun v => v + 1.0, slice(0, 3, x)),
             mapGlb(0, fun v => v + 2.0, slice(3, 16, x)))""", 2),
    "groups before work-items": (
        """program p(x: [f32]19) = concat(join(mapWrg(0, mapLcl(0, fun v => v + 1.0), split(4, slice(0, 16, x)))),
             mapGlb(0, fun v => v + 2.0, slice(16, 3, x)))""", 2),
    "groups before groups": (
        """program p(x: [f32]20) = concat(join(mapWrg(0, mapLcl(0, fun v => v + 1.0), split(4, slice(0, 16, x)))),
             join(mapWrg(0, mapLcl(0, fun v => v + 2.0), split(2, slice(16, 4, x)))))""", 1),
    "a whole vector, of which some lanes are kept": (
        """program p(x: [f32]19) = concat(mapGlb(0, fun v => -v, slice(0, 16, x)),
             slice(5, 3, asScalar(mapSeq(vectorize(8, fun v => -v), asVector(8, slice(11, 8, x))))))""", 1),
    "padded vectors": (
        """program p(x: [f32]19) =
             slice(0, 19, asScalar(mapGlb(0, vectorize(8, fun v => v * v), asVector(8, pad(0, 5, clamp, x)))))""", 1),
    "the middle of what is computed": ("program p(x: [f32]19) = slice(4, 7, mapGlb(0, fun v => v * v, x))", 1),
    "pairs": (
        """program p(x: [f32]9, y: [i32]9) = concat(mapGlb(0, fun (a, b) => (a * 2.0, b + 1), slice(0, 8, zip(x, y))),
             slice(3, 1, mapGlb(0, fun (a, b) => (a, b), slice(5, 4, zip(x, y)))))""", 1),
    "columns": (
        """program p(A: [[f32]7]4) = transpose(concat(
             transpose(mapGlb(0, fun r => mapSeq(fun v => v + 1.0, slice(0, 4, r)), A)),
             slice(1, 3, transpose(mapGlb(0, fun r => mapSeq(fun v => v - 1.0, slice(3, 4, r)), A)))))""", 1),
    "read at a place that only the index tells": (
        """program p(x: [f32]9, y: [f32]4) = mapGlb(0, reduceSeq(add, 0.0), slide(3, 1, concat(x, y)))""", 1),
    "vectors across the seam": (
        """program p(x: [f32]9, y: [f32]7) =
             asScalar(mapGlb(0, vectorize(4, fun v => v * 2.0), asVector(4, concat(x, y))))""", 1),
    "a fold that goes on": (
        """program p(x: [f32]19) = reduceSeq(add, reduceSeq(add, 0.0, mapGlb(0, reduceSeq(add, 0.0),
             split(4, slice(0, 16, x)))), slice(16, 3, x))""", 2),
    "parts of a finished result": (
        """program p(x: [f32]8) = let y = mapGlb(0, fun v => v * v, x) in concat(
             mapGlb(0, fun v => v + 1.0, slice(0, 6, y)), mapGlb(0, fun v => v - 1.0, slice(6, 2, y)))""", 2),
}  # fmt: skip


def compiled(what: str, device=POCL) -> Plan:
    return low.plan_of(PARTS[what][0], device, optimise=low.APART)


@in_turn(8)
@pytest.mark.parametrize("device", [POCL, NVIDIA], ids=lambda d: d.name)
@pytest.mark.parametrize("what", PARTS)
def test_parts_are_one_kernel_where_the_first_has_work_items_for_the_second(what: str, device) -> None:
    assert len(compiled(what, device).kernels) == PARTS[what][1]


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize("what", PARTS)
def test_parts_are_right(what: str, runner: Runner) -> None:
    program = parse_program(PARTS[what][0])
    for kind in ("integer", "float"):
        inputs = random_inputs(program, 1, kind)
        runner.load_inputs("inputs", inputs)
        found = runner.run(as_pocl_likes(compiled(what)), "inputs")
        for ours, wanted in zip(leaves_of(found), leaves_of(run(program, inputs)), strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-6, atol=1e-6)


def test_lanes_that_are_not_kept_are_not_stored() -> None:
    text = text_of(compiled("a whole vector, of which some lanes are kept"))
    assert [f".s{k}" in text for k in range(8)] == [False] * 5 + [True] * 3


def test_only_the_first_work_items_compute_a_rest_that_is_a_loop() -> None:
    text = text_of(compiled("a rest of folds"))
    assert max(text.index(f"if (get_global_id({d}) < 1)") for d in (0, 1)) < text.index("for (")
    assert text.count("get_global_id") == 4  # two for the others


def test_a_gpu_reads_parts_that_kernels_computed_where_they_stand():
    """No work-item copies what groups made."""
    text = """program p(x: [f32]1003) =
      let y = concat(scanSeq(add, 0.0, slice(0, 3, x)),
                     let t = toGlobal(mapGlb(0, fun v => v + 1.0, slice(3, 1000, x))) in t) in
      mapGlb(0, fun v => v * 2.0, y)"""
    kernels = compile_program(parse_program(text), NVIDIA).kernels
    assert [kernel.launch.global_size[0] for kernel in kernels] == [1, 1024, 1024]
    assert "1000" not in kernels[0].source
