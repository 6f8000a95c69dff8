"""Runs plans with PyOpenCL, for tests: no checks, no timing protocol."""

from __future__ import annotations

import os
import re
import time
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import find_device
from lift_egraph.errors import LiftError
from lift_egraph.language.scalar import NUMPY_TYPES

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
_TYPES = {**NUMPY_TYPES, "bool": np.uint8}


def pocl_queue():
    """A queue on PoCL; skips the test where there is none."""
    cl = pytest.importorskip("pyopencl", reason="PyOpenCL is not installed")
    for platform in cl.get_platforms():
        if "Portable" in platform.name:
            context = cl.Context(platform.get_devices())
            return cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    pytest.skip("there is no PoCL platform")


def as_pocl_likes(plan: Plan) -> Plan:
    """A plan without the wish to unroll long loops, which PoCL takes minutes for where they contain barriers."""
    return replace(plan, source=re.sub(r"#pragma unroll \d+\n", "\n", plan.source))


def run_plan(plan: Plan, inputs: dict[str, np.ndarray], repeat: int = 0, queue=None):
    """The outputs of a plan as flat arrays, one per leaf; with `repeat` also the best time in seconds."""
    import pyopencl as cl

    queue = queue or pocl_queue()
    context = queue.context
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(context, plan.source).build(options=list(plan.options))
    buffers = {}
    for info in plan.buffers:
        dtype = np.dtype(_TYPES[info.element])
        if info.role == "input":
            data = np.ascontiguousarray(inputs[info.name], dtype)
            assert data.size == info.length, (info.name, data.size, info.length)
            buffers[info.name] = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=data)
        else:
            buffers[info.name] = cl.Buffer(context, cl.mem_flags.READ_WRITE, max(info.length, 1) * dtype.itemsize)
    scalars = {s.name: _TYPES[s.element](inputs[s.name]) for s in plan.scalars}
    scalars = {n: np.int32(v) if v.dtype == np.uint8 else v for n, v in scalars.items()}
    kernels = [(cl.Kernel(program, k.name), k) for k in plan.kernels]
    best = float("inf")
    for _ in range(repeat + 1):
        queue.finish()
        start = time.perf_counter()
        for handle, kernel in kernels:
            handle.set_args(*(buffers[a.name] if a.kind == "buffer" else scalars[a.name] for a in kernel.arguments))
            cl.enqueue_nd_range_kernel(queue, handle, kernel.launch.global_size, kernel.launch.local_size)
        queue.finish()
        best = min(best, time.perf_counter() - start)
    results = []
    for info in plan.outputs:
        host = np.empty(info.length, _TYPES[info.element])
        cl.enqueue_copy(queue, host, buffers[info.name])
        results.append(host.astype(bool) if info.element == "bool" else host)
    return (results, best) if repeat else results


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
