"""Kernels and calls of libraries, timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import numpy as np

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner

SPIN = 0.2  # seconds for which OpenBLAS's threads go on spinning after a call


def interleaved(
    runner: Runner,
    plans: Mapping[str, Plan],
    peers: Mapping[str, Callable[[], object]],
    rounds: int,
    inputs: str = "floats",
) -> dict[str, float]:
    """The median milliseconds of plans and of functions, measured turn by turn.

    A plan's time is the device's own, for its kernels; a function's is the wall clock's. Each round is the
    median of a few runs, so that one disturbance does not count; a pause follows each function.
    """
    times: dict[str, list[float]] = {name: [] for name in (*plans, *peers)}
    for call in peers.values():
        call()
    for _ in range(rounds):
        time.sleep(SPIN)
        for name, plan in plans.items():
            times[name].append(runner.measure(plan, inputs, repeats=5, min_time=0.02).median_ms)
        for name, call in peers.items():
            times[name].append(_milliseconds(call, 5))
            time.sleep(SPIN)
    return {name: statistics.median(values) for name, values in times.items()}


def _milliseconds(call: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return 1e3 * float(np.median(found))
