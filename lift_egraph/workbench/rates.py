"""What times are compared with: a program's floating-point operations, its time in NumPy, the device's roofline."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from functools import lru_cache

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.running.roofline import Roofline, kept_roofline, measure_roofline
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import iterate_step, size_of, type_of
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import scalar_of, width_of
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value
from lift_egraph.meaning.workload import effort, repetitions
from lift_egraph.workbench.sampled import RATE

RUNS = 3  # of the program in NumPy
MEASURING = 5.0  # seconds that a roofline takes


def operations(term: ir.Part) -> int:
    """The floating-point operations of a term as it is written, at concrete sizes; 0 where its data say how many.

    Examples
    --------
    >>> from lift_egraph import programs
    >>> from lift_egraph.language.check import specialise
    >>> operations(specialise(programs.load("mm"), {"M": 4, "N": 5, "K": 6}).body) == 2 * 4 * 5 * 6
    True
    """
    return 0 if any(isinstance(t, ir.RANGE_FOLDS) for t in ir.subterms(term)) else _operations(term)


@lru_cache(maxsize=1024)
def _operations(term: ir.Part) -> int:
    if isinstance(term, ir.Vectorize):
        return term.width * _operations(term.function)
    if isinstance(term, ir.Iterate):
        return _operations(term.array) + term.times * _operations(iterate_step(term, size_of(term.array)))
    count = 0
    for part in ir.parts(term):
        count += _operations(part) * (repetitions(term) if isinstance(part, ir.Lambda | ir.Vectorize) else 1)
    if isinstance(term, ir.Call) and OPERATIONS[term.op].kind in ("arithmetic", "float", "lanes"):
        result = type_of(term.arguments[0])
        per_lane = 2 if OPERATIONS[term.op].kind == "lanes" else 1
        count += per_lane * width_of(result) if scalar_of(result).is_float else 0
    return count


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
