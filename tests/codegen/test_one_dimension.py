"""Groups of one work-item are launched in one dimension where a runtime shares out several in an order of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lift_egraph.api import Runner
from lift_egraph.codegen.devices import INTEL, POCL
from lift_egraph.codegen.plans.kernel import Launch
from tests.codegen.low_level import plan_of
from tests.codegen.opencl import needs_opencl, results

FLAT = replace(POCL, emission=replace(POCL.emission, in_one_dimension=True))
SUMS = "mapGlb(1, fun rows => mapGlb(0, fun row => reduceSeq(add, 0.0, row), rows), xs)"
SQUARES = "toGlobal(mapSeq(fun x => x * x, row))"
KEPT = f"mapGlb(1, fun rows => mapGlb(0, fun row => reduceSeq(add, 0.0, {SQUARES}), rows), xs)"


def test_that_is_so_on_intels_runtime_alone():
    assert INTEL.emission.in_one_dimension
    assert not POCL.emission.in_one_dimension


@needs_opencl
@pytest.mark.parametrize("body", [SUMS, KEPT], ids=["results", "memory of each item"])
def test_each_work_item_knows_its_place(runner: Runner, body: str):
    text = f"program p(xs: [[[f32]512]3]5) = {body}"
    plan, flat = (plan_of(text, device) for device in (POCL, FLAT))
    assert plan.kernels[0].launch == Launch((3, 5, 1), (1, 1, 1))
    assert flat.kernels[0].launch == Launch((15, 1, 1), (1, 1, 1))
    assert "get_global_id(1)" not in flat.source
    xs = np.random.default_rng(0).integers(-9, 9, (5, 3, 512)).astype(np.float32)
    expected, found = (results(runner, made, {"xs": xs}) for made in (plan, flat))
    np.testing.assert_array_equal(found, expected)


def test_groups_of_several_work_items_stay():
    body = "mapGlb(1, fun row => mapGlb(0, fun x => x + 1.0, row), xs)"
    (kernel,) = plan_of(f"program p(xs: [[f32]64]32) = {body}", FLAT).kernels
    assert kernel.launch == Launch((64, 32, 1), None)


def test_a_launch_of_ones_own_stays():
    launch = Launch((3, 5, 1), (1, 1, 1))
    (kernel,) = plan_of(f"program p(xs: [[[f32]512]3]5) = {SUMS}", FLAT, launch=launch).kernels
    assert kernel.launch == launch


@pytest.mark.parametrize(("rows", "columns", "size"), [(0, 1, (12, 1, 1)), (1, 0, (3, 4, 1))])
def test_only_neighbours_that_read_the_same_vectors_come_after_each_other(
    rows: int, columns: int, size: tuple[int, int, int]
):
    lanes = "vectorize(8, fun c => reduceSeq(fun (acc, x, y) => acc + x * y, 0.0, zip(a, c)))"
    each = f"asScalar(mapSeq({lanes}, asVector(8, cs)))"
    body = f"mapGlb({columns}, fun cs => mapGlb({rows}, fun a => {each}, A), split(8, transpose(B)))"
    (kernel,) = plan_of(f"program p(A: [[f32]512]4, B: [[f32]24]512) = {body}", FLAT).kernels
    assert kernel.launch == Launch(size, (1, 1, 1))
