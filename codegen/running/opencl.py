"""Building kernels with PyOpenCL, in the worker and in a user's own process.

Beside these two only what measures bundles imports PyOpenCL (`lift_egraph.records.trial`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyopencl as cl

from lift_egraph.codegen.plans.kernel import Kernel, Origins, Plan
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.codegen.running.declarations import WITHOUT_HEADER, declared
from lift_egraph.codegen.running.host_cpu import name_host_cpu
from lift_egraph.errors import BuildProblem, RunProblem

_LOG_LINES = 24
_EMPTY_BYTES = 8  # of a buffer without elements: OpenCL has no empty ones
_HUGE_PAGE = 1 << 21  # bytes
_LARGE = 2 * _HUGE_PAGE  # bytes of an array for which NumPy asks for huge pages
_PASSED: dict[type, type] = {np.bool_: np.int32, np.float16: np.float32}


def build(context: cl.Context, plan: Plan | OpenPlan) -> cl.Program:
    """The kernels of a plan, built.

    Raises
    ------
    BuildProblem
        If the compiler refuses them.
    """
    for device in context.devices:
        name_host_cpu(device)
    short = declared(plan.source, context.devices[0].platform.version)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        if short is not None:
            with suppress(cl.RuntimeError):
                return cl.Program(context, short).build([*plan.options, WITHOUT_HEADER])
        try:
            return cl.Program(context, plan.source).build(list(plan.options))
        except cl.RuntimeError as error:
            raise BuildProblem(build_report(str(error), plan.source, plan.origins)) from None


def memory_of(size: int) -> int:
    """The bytes of device memory for a buffer of a plan that has so many."""
    return max(size, _EMPTY_BYTES)


def new_buffer(context: cl.Context, size: int, contents: np.ndarray | None = None) -> cl.Buffer:
    """Device memory of so many bytes, with a copy of what it is to hold, if that is given.

    On a CPU large memory lies in huge pages, for which NumPy asks the operating system: that of PoCL and of Intel's
    runtime lies in pages of 4 KB, of which address translation holds few. Stencils on 64 MB take 1.25 times as long in
    these, matrices times vectors 1.1 times.
    """
    flags = cl.mem_flags.READ_WRITE if contents is None else cl.mem_flags.READ_ONLY
    if size >= _LARGE and all(device.type & cl.device_type.CPU for device in context.devices):
        whole = np.empty(size + _HUGE_PAGE, np.uint8)
        start = -whole.ctypes.data % _HUGE_PAGE
        memory = whole[start : start + size]
        if contents is not None:
            memory[:] = np.ascontiguousarray(contents).reshape(-1).view(np.uint8)
        return cl.Buffer(context, flags | cl.mem_flags.USE_HOST_PTR, hostbuf=memory)
    if contents is None:
        return cl.Buffer(context, flags, memory_of(size))
    return cl.Buffer(context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=contents)


def kernel_of(program: cl.Program, launch: Kernel) -> cl.Kernel:
    """A kernel that takes as many arguments as its launch gives.

    Raises
    ------
    RunProblem
        If the program has none.
    """
    try:
        kernel = cl.Kernel(program, launch.name)
    except cl.Error as error:
        raise _other_launch(launch, error) from None
    if kernel.num_args != len(launch.arguments):
        raise _other_launch(launch, f"it takes {kernel.num_args} arguments, not {len(launch.arguments)}")
    return kernel


def passed(number: Any) -> Any:
    """A number of an element type as kernels take it: they have no arguments that are bools or halves."""
    return _PASSED.get(type(number), type(number))(number)


def set_arguments(kernel: cl.Kernel, launch: Kernel, values: Mapping[str, Any]) -> None:
    """Set the arguments of a kernel: buffers, and values of scalars and sizes, by their names in the launch.

    Raises
    ------
    RunProblem
        If it takes others.
    """
    try:
        kernel.set_args(*[values[a.name] for a in launch.arguments])
    except cl.Error as error:
        raise _other_launch(launch, error) from None


def _other_launch(launch: Kernel, why: object) -> RunProblem:
    return RunProblem(f"the kernel {launch.name} does not go with its launch: {why}")


def build_report(log: str, source: str, origins: Origins | None = None) -> str:
    r"""The compiler's log, shortened, and the source lines that it refers to, with what they were made from.

    Examples
    --------
    >>> print(build_report("/tmp/x.cl:2:3: error: use of undeclared identifier 'y'", "void f() {\n  y;\n}"))
    the device's compiler refused the kernel
    /tmp/x.cl:2:3: error: use of undeclared identifier 'y'
    in the source
        2 |   y;
    """
    lines = [line for line in log.strip().splitlines() if line.strip()]
    numbers = sorted({int(n) for n in re.findall(r":(\d+):\d+:", log)})
    text = source.splitlines()
    shown: list[str] = []
    for n in numbers[:_LOG_LINES]:
        if 0 < n <= len(text):
            shown.append(f"{n:5} | {text[n - 1]}")
            subterm = origins.of(n) if origins else None
            shown += [f"      | from {subterm}"] if subterm else []
    rest = [f"... {len(lines) - _LOG_LINES} more lines"] if len(lines) > _LOG_LINES else []
    return "\n".join(["the device's compiler refused the kernel", *lines[:_LOG_LINES], *rest, "in the source", *shown])
