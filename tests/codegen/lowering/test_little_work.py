"""Kernels that have little to do are one on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import Runner, parse_program, run
from lift_egraph.codegen.devices import NVIDIA, POCL, Device
from lift_egraph.codegen.lowering.little_work import LITTLE
from lift_egraph.meaning.values import leaves_of
from tests.codegen import low_level as low
from tests.codegen.opencl import needs_opencl, results
from tests.depth import in_turn

STEP = """
program p(A: [[f64]K]K, p: [f64]K) where K = 6 =
  iterate(TIMES, fun (x, r) =>
    let Ax = mapGlb(0, fun row => reduceSeq(fun (acc, a, b) => acc + a * b, 0.0f64, zip(row, x)), A) in
    let norm = reduceSeq(fun (acc, a) => acc + a * a, 0.0f64, Ax) in
    let s = mapGlb(0, fun (a, b) => a / norm - b, zip(Ax, r)) in
    (s, mapGlb(0, fun (a, b) => a + norm * b, zip(s, r))), (p, p))
"""


def stages(n: int, device: Device = POCL) -> list[tuple[int, ...]]:
    text = f"program p(x: [f32]{n}) = let s = reduceSeq(add, 0.0, x) in let y = mapGlb(0, neg, x) in "
    plan = low.plan_of(f"{text}mapGlb(0, fun v => v / s, y)", device)
    return [kernel.launch.global_size for kernel in plan.kernels]


def test_neighbours_that_have_little_to_do_are_one_kernel_on_a_cpu():
    assert stages(100) == [(1, 1, 1)]
    assert len(stages(100, NVIDIA)) == 3
    assert len(stages(LITTLE + 1)) == 3


@pytest.mark.parametrize(("times", "kernels", "texts"), [(1, 1, 1), (2, 1, 1), (3, 1, 1), (8, 3, 3)])
def test_the_steps_of_an_iterate_are_the_same_kernels_again(times: int, kernels: int, texts: int):
    plan = low.plan_of(STEP.replace("TIMES", str(times)))
    assert len(plan.kernels) == kernels
    assert len({kernel.name for kernel in plan.kernels}) == texts


def test_both_parts_of_an_array_that_others_read_stand_in_one_memory():
    plan = low.plan_of("""
        program p(x: [f32]20003) =
          let y = concat(mapGlb(0, neg, slice(0, 20000, x)), mapGlb(0, neg, slice(20000, 3, x))) in
          mapGlb(0, add, zip(y, gather(reverse, y)))
    """)
    assert [b.length for b in plan.buffers if b.role == "temporary"] == [20003]
    assert len(plan.kernels) == 2


def test_both_parts_of_rows_stand_in_one_memory_as_rows():
    plan = low.plan_of("""
        program p(A: [[f32]7]2000) =
          let B = transpose(concat(
            transpose(mapGlb(0, fun r => asScalar(mapSeq(vectorize(4, neg), asVector(4, slice(0, 4, r)))), A)),
            slice(1, 3, transpose(mapGlb(0, fun r => asScalar(mapSeq(vectorize(4, neg), asVector(4, slice(3, 4, r)))),
              A))))) in
          mapGlb(0, fun r => reduceSeq(add, 0.0, r), gather(reverse, B))
    """)
    assert len(plan.kernels) == 2
    assert "float4_u *)(tmp + 7 * glb_0)" in plan.kernels[0].source


def test_an_array_of_a_state_that_others_are_made_of_is_computed_in_its_place():
    plan = low.plan_of("""
        program p(x: [f32]20000, y: [f32]20000) =
          iterate(4, fun state =>
            let a = mapGlb(0, add, state) in
            let b = mapGlb(0, sub, zip(a, gather(reverse, a))) in zip(b, a), zip(x, y))
    """)
    assert len(plan.kernels) == 8


@in_turn(8)
@needs_opencl
@pytest.mark.parametrize("times", [1, 3, 8])
def test_what_one_part_writes_the_next_one_reads(runner: Runner, times: int):
    program = parse_program(STEP.replace("TIMES", str(times)))
    A, p = np.random.default_rng(0).uniform(-1, 1, (6, 6)), np.linspace(0.5, 1, 6)
    special = low.specialise(program)
    wanted = leaves_of(run(special, {"A": A, "p": p}))
    for found, right in zip(results(runner, low.plan_of(program), {"A": A, "p": p}), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)
