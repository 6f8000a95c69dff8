"""`optimize mm` at its defaults: time, memory, candidates, and the best kernel beside the naive one and NumPy."""

from __future__ import annotations

import math
import time

import harness
import numpy as np

from lift_egraph.api import Runner, find_device, references, specialise
from lift_egraph.programs import load
from lift_egraph.workbench import load_references, optimize

ROUNDS = 7


def main() -> None:
    parser = harness.options("search_mm", __doc__ or "")
    parser.add_argument("--budget", type=float, help="seconds for search and measurements, instead of the default")
    parser.add_argument("--size", type=int, help="of the square matrices, instead of the default")
    arguments = parser.parse_args()
    device, program = find_device(arguments.device), load("mm")
    sizes = {name: arguments.size or default for name, default in program.sizes}
    extra = {} if arguments.budget is None else {"budget": arguments.budget}
    began = time.perf_counter()
    with harness.PeakMemory() as memory:
        found = optimize(program, sizes, device=device, records="none", **extra)
    wall = time.perf_counter() - began

    special = specialise(program, sizes)
    reference = references(special)
    a, b = (np.asarray(reference.floats.inputs[name]) for name in "AB")
    with Runner(device) as runner:
        load_references(runner, reference)
        best = found.ranked[0]
        plans = {"best": best.plan, "naive": harness.naive_plan(special, device)}
        times = harness.interleaved(runner, plans, {"NumPy": lambda: a @ b}, ROUNDS)

    operations = 2.0 * math.prod(sizes.values())
    labels = {"best": "best kernel found", "naive": "naive kernel", "NumPy": "NumPy matmul (float32)"}
    rows = [
        (labels[name], ms, operations / ms / 1e6, times["naive"] / ms, times["NumPy"] / ms)
        for name, ms in times.items()
    ]
    largest = max(found.phases, key=lambda p: p.tuples)
    harness.report(
        arguments.out,
        "optimize mm, " + ", ".join(f"{name} = {size}" for name, size in sizes.items()),
        ("", "ms", "GFLOP/s", "× naive", "× NumPy"),
        rows,
        notes=(
            f"{wall:.1f} s in all; peak resident memory of all processes {memory.peak / 1e6:.0f} MB",
            f"{len(found.valid)} distinct valid kernels, the naive one among them, {len(found.rejected)} rejected, "
            f"{found.not_run} not run in the budget",
            f"search ended: {found.stop_reason}; {len(found.phases)} e-graphs, the largest of {largest.tuples} tuples",
            f"best kernel: {'; '.join(str(leg) for leg in best.way)}; {best.message}",
            f"medians of {ROUNDS} interleaved rounds; kernels by the device's clock, NumPy by the wall clock",
        ),
        device=device,
    )


if __name__ == "__main__":
    main()
