"""Kernels and calls of libraries, timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import numpy as np

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner

SPIN = 0.2  # seconds for which OpenBLAS's threads go on spinning after a call
LONG = 1.0  # seconds of runs of one, after which it has no more rounds: what takes so long, a few runs tell


def interleaved(
    runner: Runner,
    plans: Mapping[str, Plan],
    peers: Mapping[str, Callable[[], object]],
    rounds: int,
    inputs: str = "floats",
) -> dict[str, float]:
    """The median milliseconds of plans and of functions, measured turn by turn.

    A plan's time is the device's own, for its kernels; a function's is the wall clock's. Each round is the
    median of a few runs, so that one disturbance does not count; a pause follows each function. What takes long has
    fewer rounds. `inputs` is the name that the runner's worker knows them by.
    """
    times: dict[str, list[float]] = {name: [] for name in (*plans, *peers)}
    spent = dict.fromkeys(times, 0.0)
    for call in peers.values():
        call()
    for _ in range(rounds):
        time.sleep(SPIN)
        for name in [n for n in times if spent[n] <= LONG]:
            began = time.perf_counter()
            if name in plans:
                timing = runner.measure(plans[name], inputs, repeats=5, min_time=0.02, max_time=LONG)
                times[name].append(timing.median_ms)
            else:
                times[name].append(_milliseconds(peers[name], 5))
            spent[name] += time.perf_counter() - began
            time.sleep(0.0 if name in plans else SPIN)
    return {name: statistics.median(values) for name, values in times.items()}


def _milliseconds(call: Callable[[], object], repeats: int) -> float:
    found: list[float] = []
    while len(found) < repeats and sum(found) <= LONG:
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return 1e3 * float(np.median(found))
