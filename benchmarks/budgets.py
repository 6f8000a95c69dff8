"""What a short search leaves to a long one: the best kernels of both, timed in turns.

Programs are those of `lift-egraph bench`, written with their sizes as there. On a GPU whose host has processors for
all, the searches of several programs may be made at once: their kernels wait for each other, so times are medians.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import harness

from lift_egraph.api import LiftError, Program, Runner, find_device, optimize, random_inputs, specialise
from lift_egraph.bench.peers import load
from lift_egraph.cli.options import read_program_with_sizes
from lift_egraph.cli.show import assignments
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Plan

PROGRAMS = ("mm:M=1024,K=1024,N=1024", "vecmat:M=4096,N=4096", "gauss25", "laplace7", "softmax_rows", "conv_layer")


def main() -> None:
    parser = harness.options("budgets", __doc__ or "")
    parser.add_argument("programs", nargs="*", default=PROGRAMS, help="with sizes; some by default")
    parser.add_argument("--seconds", nargs=2, type=float, default=(90.0, 600.0), help="of both searches")
    parser.add_argument("--rounds", type=int, default=15, help="of timing (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=1, help="searches at a time (default: %(default)s)")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    with ProcessPoolExecutor(arguments.at_once, get_context("spawn")) as pool:
        programs = [specialise(read_program_with_sizes(text, load)) for text in arguments.programs]
        waiting = [[pool.submit(_searched, p, device, s) for s in arguments.seconds] for p in programs]
        found = [[future.result() for future in both] for both in waiting]
    rows = [_row(p, both, device, arguments.rounds) for p, both in zip(programs, found, strict=True)]
    short, long = (f"{seconds:g} s" for seconds in arguments.seconds)
    measured = "program", "sizes", f"{short}: ms", f"{long}: ms", "long / short"
    headings = (*measured, "kernels", "kernels, long", "way", "way, long")
    notes = [f"{arguments.at_once} searches at a time; the best kernels of both in turns, {arguments.rounds} rounds"]
    title = "What a short search leaves to a long one"
    harness.report(arguments.out, title, headings, rows, notes=notes, device=device)


def _searched(program: Program, device: DeviceInfo, seconds: float) -> tuple[Plan, int, str] | str:
    """The best kernel, how many were right, and how it came about; or why there is none."""
    began = time.perf_counter()
    try:
        found = optimize(program, device=device, budget=seconds, records="none")
    except LiftError as problem:
        return str(problem).splitlines()[0]
    print(program.name, f"{seconds:g} s: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    best = found.ranked[0]
    return best.plan, len(found.valid), harness.way_in_words(best)


def _row(
    program: Program, both: list[tuple[Plan, int, str] | str], device: DeviceInfo, rounds: int
) -> harness.Row:
    sizes = assignments(dict(program.sizes))
    found = [each for each in both if not isinstance(each, str)]
    if len(found) < len(both):
        return [program.name, sizes, *(each if isinstance(each, str) else None for each in both), *[None] * 5]
    plans = {str(place): plan for place, (plan, _, _) in enumerate(found)}
    with Runner(device) as runner:
        runner.load_inputs("floats", random_inputs(program, kind="float"))
        times = harness.interleaved(runner, plans, {}, rounds)
    share = times["1"] / times["0"]
    return [program.name, sizes, times["0"], times["1"], share, *(n for _, n, _ in found), *(way for *_, way in found)]


if __name__ == "__main__":
    main()
