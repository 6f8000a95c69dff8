"""Steps of one work-item, one after the other."""

from __future__ import annotations

import pytest

from lift_egraph.api import Runner, parse_program
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES
from tests.codegen.opencl import needs_opencl
from tests.codegen.test_compiler import check

TREE = """
program p(k: [f64]20, up: f64) =
  let r = exp(0.01 * up) in
  let q = (r - 1.0 / up) / (up - 1.0 / up) in
  mapGlb(0,
    fun strike => at(0, iterate(TIMES,
      fun v => mapSeq(fun w => (q * at(1, w) + (1.0 - q) * at(0, w)) / r, slide(2, 1, pad(0, 1, clamp, v))),
      generate(100, fun i => max(strike - pow(up, to_f64(i)), 0.0)))), k)
"""


@needs_opencl
@pytest.mark.parametrize("times", [40, 41])
def test_many_steps_are_a_loop_between_two_arrays(runner: Runner, times: int) -> None:
    program = parse_program(TREE.replace("TIMES", str(times)))
    plan = compile_program(program, DEVICES["pocl"])
    (kernel,) = plan.kernels
    assert kernel.source.count("double tmp") == 2
    assert "< 20; " in kernel.source
    check(runner, program, plan)


def test_what_has_a_name_before_the_maps_is_computed_once_a_work_item() -> None:
    (kernel,) = compile_program(parse_program(TREE.replace("TIMES", "40")), DEVICES["pocl"]).kernels
    assert kernel.source.count(" exp(") == 1
    assert kernel.source.index(" exp(") < kernel.source.index("for (")


def test_kernels_compute_only_what_they_need_of_it() -> None:
    plan = compile_program(parse_program("""
        program p(x: [f32]9000, y: [f32]9000, a: f32) =
          let s = tan(a) in
          let t = tan(s + 1.0) in
          (mapGlb(0, fun v => v * s, x), mapGlb(0, fun v => v / t * t, y))"""), DEVICES["nvidia"])
    assert [kernel.source.count("tan(") for kernel in plan.kernels] == [1, 2]
