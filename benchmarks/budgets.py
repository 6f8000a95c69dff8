"""What a short search leaves to a long one: the best kernels of both, timed in turns.

Programs are those of `lift-egraph bench`, written with their sizes as there. The short search may go by a learned model
(`--cost learned`); the long one goes by the analytical one. The best few kernels of a journal can be timed with theirs:
one that `lift-egraph collect` filled until it found nothing new has the whole space, as far as is known. On a GPU whose
host has processors for all, the searches of several programs may be made at once: their kernels wait for each other, so
times are medians.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import harness

from lift_egraph.api import (
    LiftError,
    Program,
    Runner,
    describe,
    find_device,
    optimize,
    parse_program,
    random_inputs,
    specialise,
)
from lift_egraph.bench.peers import load
from lift_egraph.cli.learned import ANALYTICAL, performance_of
from lift_egraph.cli.options import read_program_with_sizes
from lift_egraph.cli.show import assignments
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.learned.model import records_in
from lift_egraph.records.known import best_first, same_device
from lift_egraph.records.record import Record, program_hash
from lift_egraph.records.searched import as_searched

FEW = 5  # of the best kernels of journals that are timed
PROGRAMS = ("mm:M=1024,K=1024,N=1024", "vecmat:M=4096,N=4096", "gauss25", "laplace7", "softmax_rows", "conv_layer")


def main() -> None:
    parser = harness.options("budgets", __doc__ or "")
    parser.add_argument("programs", nargs="*", default=PROGRAMS, help="with sizes; some by default")
    parser.add_argument("--seconds", nargs=2, type=float, default=(90.0, 600.0), help="of both searches")
    parser.add_argument("--rounds", type=int, default=15, help="of timing (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=1, help="searches at a time (default: %(default)s)")
    parser.add_argument("--cost", default=ANALYTICAL, help="of the short search: analytical, learned or a model's file")
    parser.add_argument("--journal", nargs="+", type=Path, default=[], help="whose best kernels are timed with both")
    parser.add_argument("--note", action="append", default=[], help="a line to write below the table")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    records, _ = records_in(arguments.journal)
    with ProcessPoolExecutor(arguments.at_once, get_context("spawn")) as pool:
        programs = [specialise(read_program_with_sizes(text, load)) for text in arguments.programs]
        searches = [*zip(arguments.seconds, (arguments.cost, ANALYTICAL), strict=True)]
        waiting = [[pool.submit(_searched, p, device, *search) for search in searches] for p in programs]
        found = [[future.result() for future in both] for both in waiting]
    rows = [
        _row(p, both, _known(p, device, records), device, arguments.rounds)
        for p, both in zip(programs, found, strict=True)
    ]
    short, long = (f"{seconds:g} s" for seconds in arguments.seconds)
    measured = "program", "sizes", f"{short}: ms", f"{long}: ms", "long / short", "journal: ms", "journal / short"
    headings = (*measured, "kernels", "kernels, long", "way", "way, long")
    notes = [f"{arguments.at_once} searches at a time; the best kernels of both in turns, {arguments.rounds} rounds"]
    if arguments.cost != ANALYTICAL:
        notes.append(f"the short search by the cost model {arguments.cost}, the long one by the analytical one")
    if records:
        notes.append(f"journal: the least of the best {FEW} that {len(records)} records have, if they have the program")
    notes += arguments.note
    title = "What a short search leaves to a long one"
    harness.report(arguments.out, title, headings, rows, notes=notes, device=device)


def _searched(program: Program, device: DeviceInfo, seconds: float, cost: str) -> tuple[Plan, int, str] | str:
    """The best kernel, how many were right, and how it came about; or why there is none."""
    try:
        performance = performance_of(cost, device.index, None)
        began = time.perf_counter()
        found = optimize(program, device=device, budget=seconds, cost=performance, records="none")
    except LiftError as problem:
        return str(problem).splitlines()[0]
    print(program.name, f"{seconds:g} s: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    best = found.ranked[0]
    return best.plan, len(found.valid), harness.way_in_words(best)


def _known(program: Program, device: DeviceInfo, records: Sequence[Record]) -> list[Plan]:
    """The best few kernels of a program that records have of a device of this make, as they are compiled now."""
    wanted, model = program_hash(specialise(as_searched(program))), describe(device)
    own = [r for r in records if r.program.hash == wanted and same_device(r.device, device)]
    terms = [parse_program(r.term) for r in best_first(own)[:FEW]]
    return [compile_program(replace(program, body=term.body), model) for term in terms]


def _row(
    program: Program,
    both: list[tuple[Plan, int, str] | str],
    known: Sequence[Plan],
    device: DeviceInfo,
    rounds: int,
) -> harness.Row:
    sizes = assignments(dict(program.sizes))
    found = [each for each in both if not isinstance(each, str)]
    if len(found) < len(both):
        return [program.name, sizes, *(each if isinstance(each, str) else None for each in both), *[None] * 7]
    plans = {str(place): plan for place, plan in enumerate((*(plan for plan, _, _ in found), *known))}
    with Runner(device) as runner:
        runner.load_inputs("floats", random_inputs(program, kind="float"))
        times = harness.interleaved(runner, plans, {}, rounds)
    short, long, *others = (times[place] for place in plans)
    best = min(others, default=None)
    shares = long / short, best, None if best is None else best / short
    return [program.name, sizes, short, long, *shares, *(n for _, n, _ in found), *(way for *_, way in found)]


if __name__ == "__main__":
    main()
