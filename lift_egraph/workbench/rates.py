"""What times are compared with: a program's time in NumPy, the device's roofline."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.running.roofline import Roofline, kept_roofline, measure_roofline
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value
from lift_egraph.meaning.workload import effort
from lift_egraph.workbench.validation.sampled import RATE

RUNS = 3  # of the program in NumPy
MEASURING = 5.0  # seconds that a roofline takes


def numpy_ms(program: ir.Program, inputs: Mapping[str, Value], seconds: float) -> float | None:
    """The median time of the interpreter, in the program's own types; None where that takes too long."""
    if RATE * effort(program.body) > seconds:
        return None
    began, times = time.perf_counter(), list[float]()
    while len(times) < RUNS and (not times or time.perf_counter() - began < seconds):
        start = time.perf_counter()
        evaluate(program.body, inputs)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def roofline(device: DeviceInfo, seconds: float) -> Roofline | None:
    """The device's roofline, measured if it never was and there is time; None if it stays unknown."""
    known = kept_roofline(device)
    if known is None and seconds >= MEASURING:
        try:
            return measure_roofline(device, seconds)
        except LiftError:  # on a device that is too busy, or has no room
            return None
    return known
