"""Runs plans with PyOpenCL in this process, for tests: no checks."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
import pytest

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import find_device
from lift_egraph.errors import LiftError
from lift_egraph.language.scalar import NUMPY_TYPES
from tests.codegen.corpus.harness import merged

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
_TYPES = {**NUMPY_TYPES, "bool": np.uint8}


@cache
def pocl_queue():
    """The queue on PoCL; skips the test where there is none."""
    cl = pytest.importorskip("pyopencl", reason="PyOpenCL is not installed")
    for platform in cl.get_platforms():
        if "Portable" in platform.name:
            return cl.CommandQueue(cl.Context(platform.get_devices()))
    pytest.skip("there is no PoCL platform")


def in_one_build(plans: Sequence[Plan]) -> list[Plan]:
    """The plans with the kernels of all in the source of each: a build takes longer than to run small kernels.

    Their kernels must have different names.
    """
    source = merged(plans)
    return [replace(plan, source=source) for plan in plans]


def text_of(plan: Plan) -> str:
    """The kernels of a plan alone."""
    return "\n".join(k.source for k in plan.kernels)


def as_pocl_likes(plan: Plan) -> Plan:
    """A plan that is not optimised, and does not wish to unroll: PoCL takes long for that where loops have barriers."""
    source = re.sub(r"#pragma unroll \d+\n", "\n", plan.source)
    return replace(plan, source=source, options=(*plan.options, "-cl-opt-disable"))


def run_plan(plan: Plan, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a plan as flat arrays, one per leaf."""
    import pyopencl as cl

    queue = pocl_queue()
    context = queue.context
    program = built(context, plan.source, plan.options)
    buffers = {}
    for info in plan.buffers:
        dtype = np.dtype(_TYPES[info.element])
        if info.role == "input":
            data = np.ascontiguousarray(inputs[info.name if info.name in inputs else info.value], dtype)
            assert data.size == info.length, (info.name, data.size, info.length)
            buffers[info.name] = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=data)
        else:
            buffers[info.name] = cl.Buffer(context, cl.mem_flags.READ_WRITE, max(info.length, 1) * dtype.itemsize)
    types = {**_TYPES, "bool": np.int32, "f16": np.float32}
    scalars = {s.name: types[s.element](inputs[s.name if s.name in inputs else s.value]) for s in plan.scalars}
    for kernel in plan.kernels:
        handle = cl.Kernel(program, kernel.name)
        handle.set_args(*(buffers[a.name] if a.kind == "buffer" else scalars[a.name] for a in kernel.arguments))
        cl.enqueue_nd_range_kernel(queue, handle, kernel.launch.global_size, kernel.launch.local_size)
    results = []
    for info in plan.outputs:
        host = np.empty(info.length, _TYPES[info.element])
        cl.enqueue_copy(queue, host, buffers[info.name])
        results.append(host.astype(bool) if info.element == "bool" else host)
    return results


@lru_cache(8)
def built(context, source: str, options: tuple[str, ...]):
    """A program that is built."""
    import pyopencl as cl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return cl.Program(context, source).build(options=list(options))


def _no_device() -> str:
    """Why no OpenCL device can be used; empty where one can."""
    try:
        list_devices_here()
    except LiftError as problem:
        return str(problem)
    return ""


@cache
def list_devices_here():
    """The device that the tools would choose."""
    return find_device()


needs_opencl = pytest.mark.skipif(bool(_no_device()), reason=f"needs an OpenCL device: {_no_device()}")
