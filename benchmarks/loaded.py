"""What `lift_egraph.load` costs a call: beside bare calls of PyOpenCL for the same kernels, on the host's clock."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

import lift_egraph
from lift_egraph.api import describe, find_device, parse_program, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.plans.arrays import save_plan

N, CALLS = 1024, 300
PROGRAMS = (
    "program scal(a: f32, x: [f32]N) = mapGlb(0, fun e => a * e, x)",
    "program axpy(a: f32, x: [f32]N, y: [f32]N) = mapGlb(0, fun (e, f) => a * e + f, zip(x, y))",
    "program asum(x: [f32]N) = reduceSeq(add, 0.0, mapGlb(0, reduceSeq(fun (s, e) => s + abs(e), 0.0), split(16, x)))",
)
HEADINGS = (
    "program",
    "kernels",
    "bare µs",
    "enqueue µs",
    "over bare",
    "out= µs",
    "bare, new result µs",
    "new result µs",
)


def microseconds(work: Callable[[], Any], queue: cl.CommandQueue) -> float:
    """The host's time of a call, and of what the device does meanwhile."""
    began = time.perf_counter()
    for _ in range(CALLS):
        work()
    queue.finish()
    return (time.perf_counter() - began) / CALLS * 1e6


def measure(text: str, queue: cl.CommandQueue, model: Any, rounds: int) -> harness.Row:
    """One program's row."""
    program = specialise(parse_program(text), {"N": N})
    plan = compile_program(program, model)
    with tempfile.TemporaryDirectory() as folder:
        save_plan(plan, folder)
        loaded = lift_egraph.load(folder, queue)
    values: dict[str, Any] = {i.name: cl_array.to_device(queue, np.ones(N, np.float32)) for i in program.inputs}
    values |= {"a": np.float32(2)} if "a" in values else {}
    result = loaded(**values)
    built = cl.Program(queue.context, plan.source).build(list(plan.options))
    kernels = [(cl.Kernel(built, k.name), k.arguments, k.launch) for k in plan.kernels]
    memory = {b.name: cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4 * b.length) for b in plan.buffers}
    memory |= {name: value.base_data for name, value in values.items() if name != "a"} | {"a": values.get("a")}

    def bare() -> None:
        for kernel, arguments, launch in kernels:
            kernel.set_args(*(memory[a.name] for a in arguments))
            cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size)

    def bare_with_result() -> None:
        memory[plan.outputs[0].name] = cl_array.Array(queue, result.shape, np.float32).base_data
        bare()

    ways = (
        bare,
        lambda: loaded.enqueue(**values, out=result),
        lambda: loaded(**values, out=result),
        bare_with_result,
        lambda: loaded(**values),
    )
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, spent in zip(ways, times, strict=True):
            spent.append(microseconds(way, queue))
    plain, enqueue, out, fresh, new = map(statistics.median, times)
    return program.name, len(kernels), plain, enqueue, enqueue - plain, out, fresh, new


def main() -> None:
    parser = harness.options("loaded", __doc__ or "")
    parser.add_argument("--rounds", type=int, default=21, help="how often, in turns (default: %(default)s)")
    arguments = parser.parse_args()
    info = find_device(arguments.device)
    platform, device = map(int, info.index.split(":"))
    queue = cl.CommandQueue(cl.Context([cl.get_platforms()[platform].get_devices()[device]]))
    model = describe(info)
    rows = [measure(text, queue, model, arguments.rounds) for text in PROGRAMS]
    harness.report(
        arguments.out,
        f"Calls of loaded kernels, arrays of {N} numbers on the device",
        HEADINGS,
        rows,
        notes=(
            f"Each is the median of {arguments.rounds} rounds of {CALLS} calls that wait for nothing but the last.",
        ),
        device=info,
    )


if __name__ == "__main__":
    main()
