"""Work-items whose number has no divisors are launched in groups, and those that are over write nothing."""

from __future__ import annotations

import numpy as np
import pytest

from lift_egraph.api import Runner
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.passes.groups import in_groups
from lift_egraph.codegen.plans.kernel import Launch
from tests.codegen.low_level import plan_of
from tests.codegen.opencl import needs_opencl, results

Sizes = tuple[int, int, int]


@pytest.mark.parametrize(
    ("items", "most", "launch"),
    [
        pytest.param((5003, 1, 1), 4096, ((5120, 1, 1), (256, 1, 1)), id="a prime"),
        pytest.param((10006, 64, 1), 4096, ((10240, 64, 1), (256, 1, 1)), id="rows of twice a prime"),
        pytest.param((307, 5003, 1), 4096, ((320, 5003, 1), (160, 1, 1)), id="few are over"),
        pytest.param((3, 100003, 1), 4096, ((3, 100080, 1), (3, 80, 1)), id="short rows"),
        pytest.param((5003, 1, 1), 64, ((5056, 1, 1), (64, 1, 1)), id="a device with small groups"),
        pytest.param((5003, 1, 1), 8, ((5003, 1, 1), None), id="a device with tiny groups"),
        pytest.param((67, 2, 1), 4096, ((67, 2, 1), None), id="a group is the whole"),
        pytest.param((1000, 1021, 1), 4096, ((1000, 1021, 1), None), id="divisors"),
        pytest.param((3, 5, 1000003), 4096, ((3, 5, 1000003), None), id="others fill the group"),
        pytest.param((7, 7, 1), 4096, ((7, 7, 1), None), id="few items"),
    ],
)
def test_groups_of_our_own(items: Sizes, most: int, launch: tuple[Sizes, Sizes | None]):
    assert in_groups((), Launch(items), most)[1] == Launch(*launch)


@needs_opencl
def test_work_items_that_are_over_write_nothing(runner: Runner):
    plan = plan_of(
        """program p(xs: [[f32]M]N) =
             (mapGlb(1, fun row => mapGlb(0, fun x => x + 1.0, row), xs), mapGlb(0, fun row => row[M - 1], xs))""",
        POCL, N=263, M=67,
    )  # fmt: skip
    assert [k.launch for k in plan.kernels] == [Launch((67, 263, 1)), Launch((288, 1, 1), (144, 1, 1))]
    xs = np.arange(263 * 67, dtype=np.float32).reshape(263, 67)
    more, last = results(runner, plan, {"xs": xs})
    np.testing.assert_array_equal(more, xs + 1)
    np.testing.assert_array_equal(last, xs[:, -1])


@needs_opencl
@pytest.mark.parametrize(("border", "asks"), [("constant(0.0)", "?"), ("clamp", "index_min")])
def test_groups_at_no_border_do_not_ask_in_short_loops(runner: Runner, border: str, asks: str):
    window = f"slide(3, 1, pad(1, 1, {border}, xs))"
    plan = plan_of(f"program p(xs: [f32]1021) = mapGlb(0, fun w => reduceSeq(add, 0.0, w), {window})", POCL)
    inside, at_a_border = plan.kernels[0].source.split("else if")
    assert "i < 3" in inside
    assert asks not in inside
    assert asks in at_a_border
    xs = np.arange(1021, dtype=np.float32)
    padded = np.pad(xs, 1) if asks == "?" else np.pad(xs, 1, mode="edge")
    np.testing.assert_array_equal(results(runner, plan, {"xs": xs})[0], padded[:-2] + padded[1:-1] + padded[2:])
