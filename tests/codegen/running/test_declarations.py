"""Programs for PoCL declare what they name, and their build does without the header of all functions."""

from __future__ import annotations

from typing import Any

import pytest

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running import opencl
from lift_egraph.codegen.running.declarations import WITHOUT_HEADER, declared
from lift_egraph.errors import BuildProblem

PROGRAM = """\
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void f(global float *restrict x, global double *d, volatile global int *n, local int *l) {
  float4 v = clamp(vload4(get_global_id(0), x), 0.0f, (float4)(fma(*x, sqrt(*x), 1.0f)));
  vstore4(select(v, convert_float4(as_int4(v)), isgreater(v, pow(v, v))), get_group_id(0), x);
  l[get_local_id(0)] = atomic_add(n, popcount(*n));
  barrier(CLK_LOCAL_MEM_FENCE);
  *d = fmin(*d, 2.0) + vload_half(0, (global half *)x) + mad24(l[0], 2, 3);
}
"""


@pytest.fixture
def built(queue: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The options with which programs are built from now on."""
    cl = pytest.importorskip("pyopencl")
    options: list[list[str]] = []

    class Program(cl.Program):
        def build(self, given: list[str]) -> Any:
            options.append(given)
            return super().build(given)

    monkeypatch.setattr(opencl.cl, "Program", Program)
    return options


def test_the_build_does_without_the_header(queue: Any, built: list[list[str]]):
    program = opencl.build(queue.context, Plan("f", "", PROGRAM, (), (), (), ("-DX=1",)))
    assert built == [["-DX=1", WITHOUT_HEADER]]
    assert program.kernel_names == "f"


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("#define ROOT(x) s##qrt(x)\nkernel void f(global float *x) {\n  *x = ROOT(*x);\n}", True),
        ("kernel void f(global float *x) {\n  *x = sqrt(y);\n}", False),
    ],
    ids=["a name that is put together", "a mistake"],
)
def test_what_does_not_build_without_it_is_built_with_it(
    queue: Any, built: list[list[str]], text: str, is_right: bool
):
    plan = Plan("f", "", text, (), (), ())
    if is_right:
        assert opencl.build(queue.context, plan).kernel_names == "f"
    else:
        with pytest.raises(BuildProblem, match=r":2:13: .*'y'\n(.*\n)*    2 \|   \*x = sqrt\(y\);"):
            opencl.build(queue.context, plan)
    assert built == [[WITHOUT_HEADER], []]


def test_only_of_pocl_from_pip_the_header_is_known(queue: Any):
    version = queue.device.platform.version
    assert "float16 __ovld __cnfn sqrt(float16);" in (declared("sqrt(x)", version) or "")
    for other in ("OpenCL 3.0 PoCL 31.0", "OpenCL 3.0 LINUX", "OpenCL 3.0"):
        assert declared("sqrt(x)", other) is None
