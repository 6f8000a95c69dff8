"""Sizes that nothing divides, beside the nearest round ones: the rate of what `optimize` finds at each, and NumPy's.

Each program is optimised with the same budget at both sizes; the two best kernels and NumPy at both are timed in turns.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from math import prod
from typing import Any

import harness
import numpy as np

from lift_egraph.api import LiftError, Program, Runner, find_device, optimize, parse_program, random_inputs, specialise
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.programs import load

HEADINGS = ("program", "odd", "ms", "round", "ms", "rate at odd / round", "x NumPy at odd", "x NumPy at round")
SAXPY = parse_program(
    "program saxpy(a: f32, x: [f32]N, y: [f32]N) where N = 100352 = map(fun (u, v) => a * u + v, zip(x, y))"
)
SQUARES = parse_program("program squares(x: [f32]N) where N = 16 = map(fun u => u * u, x)")


@dataclass(frozen=True)
class Case:
    """A program at two sizes; its work is proportional to the product of its sizes."""

    program: Program
    odd: dict[str, int]
    even: dict[str, int]
    peer: Any


def _five_points(a: np.ndarray) -> np.ndarray:
    p = np.pad(a, 1, "edge")
    return np.float32(0.2) * (p[:-2, 1:-1] + p[1:-1, :-2] + p[1:-1, 1:-1] + p[1:-1, 2:] + p[2:, 1:-1])


def _gemv(matrix: np.ndarray, x: np.ndarray, y: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return alpha * (matrix @ x) + beta * y


CASES = {
    "saxpy": Case(SAXPY, {"N": 100_003}, {"N": 100_352}, lambda a, x, y: a * x + y),
    "j2d5pt": Case(load("j2d5pt"), {"M": 4093, "N": 2050}, {"M": 4096, "N": 2048}, _five_points),
    "mm": Case(load("mm"), {"M": 1000, "K": 1021, "N": 997}, dict.fromkeys("MKN", 1024), lambda a, b: a @ b),
    "mm small": Case(load("mm"), {"M": 250, "K": 255, "N": 249}, dict.fromkeys("MKN", 256), lambda a, b: a @ b),
    "dot": Case(load("dot"), {"N": 1_000_003}, {"N": 1 << 20}, np.dot),
    "gemv": Case(load("gemv"), {"M": 1021, "N": 997}, {"M": 1024, "N": 1024}, _gemv),
    "squares 13": Case(SQUARES, {"N": 13}, {"N": 16}, np.square),
    "squares 7": Case(SQUARES, {"N": 7}, {"N": 8}, np.square),
}


def main() -> None:
    arguments = harness.options_of_searches("odd_sizes", __doc__ or "", budget=60.0, rounds=5)
    device = find_device(arguments.device)
    rows = []
    for name in arguments.names or CASES:
        rows.append(_row(name, CASES[name], device, arguments.budget, arguments.rounds))
        print(rows[-1], file=sys.stderr, flush=True)
    notes = (
        "the rate is the product of the sizes over the time; 1 and more: no slower for what there is to do",
        "kernels by the device's own clock, NumPy by the wall clock, medians of interleaved rounds",
    )
    harness.report(arguments.out, "Sizes that nothing divides", HEADINGS, rows, notes=notes, device=device)


def _row(name: str, case: Case, device: DeviceInfo, budget: float, rounds: int) -> list[Any]:
    both = (case.odd, case.even)
    try:
        plans = [
            optimize(case.program, sizes, device=device, budget=budget, records="none").ranked[0].plan for sizes in both
        ]
    except LiftError as problem:
        return [f"{name}: {str(problem).splitlines()[0]}", *[None] * (len(HEADINGS) - 1)]
    inputs = [random_inputs(specialise(case.program, sizes), kind="float") for sizes in both]
    times: list[list[dict[str, float]]] = [[], []]
    with Runner(device) as odd, Runner(device) as even:
        for runner, values in zip((odd, even), inputs, strict=True):
            runner.load_inputs("floats", values)
        for _ in range(rounds):
            for k, runner in enumerate((odd, even)):
                peers = {"NumPy": lambda k=k: case.peer(*inputs[k].values())} if case.peer else {}
                times[k].append(harness.interleaved(runner, {"best": plans[k]}, peers, 1))
    best, peer = (
        [statistics.median(t[which] for t in each) if which in each[0] else None for each in times]
        for which in ("best", "NumPy")
    )
    rates = [prod(sizes.values()) / ms for sizes, ms in zip(both, best, strict=True) if ms]
    beside = [p and p / b for p, b in zip(peer, best, strict=True) if b]
    shown = ["x".join(map(str, sizes.values())) for sizes in both]
    return [name, shown[0], best[0], shown[1], best[1], rates[0] / rates[1], *beside]


if __name__ == "__main__":
    main()
