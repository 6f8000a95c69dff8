"""What `optimize` finds with a learned model and with the analytical one, in the same time.

For each program and time both search, one after the other, without records. A model has not seen the program: it is
learned from the kernels of all others. Then the best kernels of both are timed in turns. What is done is kept in a
journal beside the table: the same command goes on where it was interrupted, and more names or seconds add rows.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import harness
import numpy as np

from lift_egraph import programs
from lift_egraph.api import Program, find_device, parse_program, print_program, specialise
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.running.run import Runner
from lift_egraph.errors import LiftError, SearchProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.models import PerformanceModel
from lift_egraph.learned.model import Model, load_model, nearest
from lift_egraph.learned.samples import Samples
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.workbench import optimize

SECONDS = 30.0, 90.0, 300.0
LOW_LEVEL = "partial_dot"  # what is not searched for
ROUNDS, TURNS = 20, 5.0  # in which the best of both are timed, and for how many seconds
HEADINGS = ("program", "seconds", "seen", "analytical ms", "learned ms", "analytical / learned")


def best_of(source: Program, info: DeviceInfo, performance: PerformanceModel, seconds: float) -> str:
    """The low-level term of the best kernel that is found, as text; empty where none is."""
    try:
        report = optimize(source, device=info, budget=seconds, cost=performance, records="none")
    except SearchProblem as problem:
        print(f"{source.name}: {problem}", file=sys.stderr)
        return ""
    assert report.best is not None
    return print_program(report.best.program)


def in_turns(source: Program, info: DeviceInfo, terms: list[str]) -> list[float]:
    """The milliseconds of the kernels of terms, timed in turns."""
    special, device = specialise(source), describe(info)
    plans = [compile_program(replace(special, body=parse_program(text).body), device) for text in terms]
    with Runner(info, time_limit=60.0) as runner:
        runner.load_inputs("floats", random_inputs(special, 0, "float"))
        return [statistics.median(ms) for ms in runner.in_turns(plans, "floats", rounds=ROUNDS, max_time=TURNS)]


def without(samples: Samples, program: str) -> Samples:
    """The kernels of all other programs."""
    return samples[np.array(samples.programs) != program]


def measured(source: Program, info: DeviceInfo, model: Model, seconds: float) -> dict[str, Any]:
    """The milliseconds of the best kernels by both; None where one found none."""
    unseen = Model(without(model.samples, source.name), model.method)
    unseen.fitted  # it is learned before the clock runs  # noqa: B018
    terms = [best_of(source, info, performance, seconds) for performance in (predict, unseen)]
    found = [text for text in terms if text]
    times = iter(in_turns(source, info, found) if found else ())
    analytical, learned = (next(times) if text else None for text in terms)
    return {"analytical": analytical, "learned": learned, "terms": terms}


def main() -> None:
    parser = harness.options("equal_time", __doc__ or "")
    known = [name for name in programs.names() if name != LOW_LEVEL]
    parser.add_argument("names", nargs="*", help=f"programs: of {', '.join(known)}; all by default")
    parser.add_argument(
        "--seconds", nargs="+", type=float, default=SECONDS, help="of each search (default: %(default)s)"
    )
    parser.add_argument("--model", type=Path, help="default: the bundled one for the device")
    parser.add_argument("--note", action="append", default=[], help="a line to write below the table")
    parser.set_defaults(out=None)
    arguments = parser.parse_args()
    info = find_device(arguments.device)
    out = arguments.out or harness.RESULTS / f"equal_time_{describe(info).name}.md"
    model = load_model(arguments.model) if arguments.model else nearest(info)
    journal, done = out.with_suffix(".jsonl"), dict[tuple[str, float], dict[str, Any]]()
    if journal.exists():
        for line in journal.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["device"] == str(info):
                done[row["program"], row["seconds"]] = row
    for seconds in arguments.seconds:
        for name in arguments.names or known:
            if (name, seconds) in done:
                continue
            began = time.perf_counter()
            try:
                row = measured(programs.load(name), info, model, seconds)
            except LiftError as problem:
                print(f"{name}, {seconds:g} s: {problem}", file=sys.stderr)
                continue
            row |= {"device": str(info), "program": name, "seconds": seconds, "seen": name in model.samples.programs}
            done[name, seconds] = row
            with journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(name, seconds, row["analytical"], row["learned"], f"{time.perf_counter() - began:.0f} s", flush=True)
    rows: list[harness.Row] = []
    ratios: dict[tuple[float, bool], list[float]] = {}
    for (name, seconds), row in sorted(done.items(), key=lambda item: (item[0][1], item[0][0])):
        first, second = row["analytical"], row["learned"]
        ratio = first / second if first and second else None
        if ratio:
            ratios.setdefault((seconds, row["seen"]), []).append(ratio)
        rows.append((name, seconds, "yes" if row["seen"] else "no", first, second, ratio))
    notes = [
        f"{seconds:g} s, {'' if seen else 'none of '}whose kernels were collected: analytical / learned is "
        f"{statistics.geometric_mean(found):.3g} in the geometric mean of {len(found)} programs"
        for (seconds, seen), found in sorted(ratios.items())
    ]
    notes += [
        "seen: kernels of the program were collected; those are left out of what the model for it is learned from",
        "the best kernels of both were timed in turns, by the device's own clock: above 1 the learned model is better",
        *arguments.note,
    ]
    title = f"optimize by a learned and by the analytical model on {info.name}, in equal time"
    harness.report(out, title, HEADINGS, rows, notes=notes, device=info)


if __name__ == "__main__":
    main()
