"""How well predictions rank kernels: Spearman's correlation with measured times, over random points of programs.

The points of a program are drawn from all that its search yields: the low-level terms of every family (with chunk sizes
drawn, too), and points of its plans with parameters, each family and each plan as often as the others. Every kernel is
validated and timed, with a rest before each run; one that is much slower than the best runs twice only. Where other
programs run at times, ``--turns 2`` times all of them once more after the last, and the least time counts. Drawn terms
and measured times are kept in a journal beside the table: a run goes on from there after an interruption, or with more
points or turns, and with ``--again`` a changed model is judged by what was measured before.

No model was fitted to the programs that are held out.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import harness
from scipy.stats import spearmanr

from lift_egraph.api import Program, Runner, find_device, parse_program, print_program, specialise
from lift_egraph.bench import peers
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device, describe
from lift_egraph.errors import BuildProblem, DeviceProblem, RunProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.language.syntax import parse_file
from lift_egraph.workbench import load_references
from lift_egraph.workbench.exploration.drawing import drawn as random_points
from lift_egraph.workbench.validation.references import reference_of, room_for

HERE = Path(__file__).parent
MOST = 200  # points of a program that are drawn
RUNS, PAUSE, LONGEST = 10, 0.02, 1.5  # of a kernel, with seconds of rest before each; none is begun after so many
SLOW = 50.0  # times the best, from which a kernel is run twice at most
LIMIT = 5.0  # seconds for a kernel's build, and for its runs
FIRST = 10  # kernels that a search would measure first
HEADINGS = ("program", "sizes", "points", "Spearman", "fastest ms", "slowest ms", f"best of first {FIRST} / fastest")


@dataclass(frozen=True)
class Case:
    """A program, and its sizes by the kind of device: too large for caches, and small enough to be validated often."""

    name: str
    cpu: tuple[int, ...]
    gpu: tuple[int, ...]
    held_out: bool = False

    def source(self, kind: str) -> Program:
        """The program with open sizes, whose defaults are those for a kind of device."""
        is_peers = self.name in peers.names()
        program = peers.load(self.name) if is_peers else parse_file(HERE / "programs" / f"{self.name}.lift")
        values = self.cpu if kind == "cpu" else self.gpu
        return replace(program, sizes=tuple((n, v) for (n, _), v in zip(program.sizes, values, strict=True)))


CASES = (
    Case("mm", (512, 512, 512), (1024, 1024, 1024)),
    Case("matvec", (2048, 4096), (8192, 8192)),
    Case("vecmat", (2048, 4096), (8192, 8192)),
    Case("jacobi5", (2048, 4096), (4096, 8192)),
    Case("gauss25", (2048, 4096), (4096, 8192)),
    Case("dot", (1 << 23,), (1 << 26,)),
    Case("mm_tn", (512, 512, 512), (1024, 1024, 1024), True),
    Case("softmax_rows", (4096, 1024), (32768, 1024), True),
    Case("norm_rows", (4096, 1024), (32768, 1024), True),
    Case("laplace3d", (128, 256, 256), (256, 256, 512)),
)


# --- the journal --------------------------------------------------------------------------------------------


@dataclass
class Journal:
    """The drawn terms of a program as text, and the milliseconds of those that were measured, or why there are none."""

    file: Path
    run: list[Any]

    def _lines(self, what: str) -> Iterator[Any]:
        if self.file.exists():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                run, kind, value = json.loads(line)
                if run == self.run and kind == what:
                    yield value

    def append(self, what: str, value: Any) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([self.run, what, value]) + "\n")

    @property
    def drawn(self) -> list[list[str]] | None:
        """The group and the text of each term."""
        return next(self._lines("drawn"), None)

    @property
    def measured(self) -> dict[int, list[tuple[float | None, str]]]:
        """By the number of the term, what came of each turn."""
        found: defaultdict[int, list[tuple[float | None, str]]] = defaultdict(list)
        for number, ms, why in self._lines("measured"):
            found[number].append((ms, why))
        return found

    @property
    def times(self) -> dict[int, float | None]:
        """The least of all turns; none where one had no time."""
        found = dict[int, float | None]()
        for number, turns in sorted(self.measured.items()):
            known = [ms for ms, _ in turns if ms is not None]
            found[number] = min(known) if len(known) == len(turns) else None
        return found


# --- drawing ------------------------------------------------------------------------------------------------


def drawn(source: Program, info: DeviceInfo, seconds: float, seed: int) -> list[list[str]]:
    """Different low-level terms of a program that have kernels of their own, each with its kind."""
    points = random_points(source, specialise(source), info, describe(info), MOST, seconds, seed)
    return [[kind, print_program(candidate.program)] for kind, candidate in points]


# --- measuring ----------------------------------------------------------------------------------------------


def measure(source: Program, info: DeviceInfo, journal: Journal, points: int, turns: int) -> None:
    """Validate and time those of the first points that were not measured as many times yet."""
    terms, done, times = (journal.drawn or [])[:points], journal.measured, journal.times
    timed = [n for n in range(len(terms)) if times.get(n, 0.0) is not None]
    left = [n for turn in range(turns) for n in timed if len(done[n]) <= turn]
    if not left:
        return
    special, device = specialise(source), describe(info)
    compiled = partial(compile_program, device=device)
    reference = reference_of(source, special, room_for(special, info, 1), compiled, seconds=30.0)
    best = min((ms for ms in times.values() if ms is not None), default=float("inf"))
    failed = set[int]()
    with Runner(info, time_limit=LIMIT) as runner:
        load_references(runner, reference)
        for number in left:
            if number in failed:
                continue
            program = parse_program(terms[number][1])
            plan = compile_program(program, device)
            try:
                verdict = reference.check(program, plan, runner)
                if verdict.valid:
                    timing = runner.measure(
                        plan,
                        reference.timed,
                        repeats=RUNS,
                        min_time=0.0,
                        max_time=LONGEST,
                        cut_off_ms=SLOW * best,
                        pause=PAUSE,
                    )
                    best = min(best, timing.min_ms)  # others' load only adds
                    journal.append("measured", [number, timing.min_ms, ""])
                    continue
                why = f"wrong: {verdict.message}"
            except (BuildProblem, RunProblem, DeviceProblem) as problem:
                why = str(problem)
            journal.append("measured", [number, None, why])
            failed.add(number)


# --- judging ------------------------------------------------------------------------------------------------


def predictions(journal: Journal, device: Device) -> list[tuple[str, str, float, float]]:
    """The group, text, predicted and measured milliseconds of what was measured."""
    terms, found = journal.drawn or [], []
    for number, ms in journal.times.items():
        if ms is not None:
            group, text = terms[number]
            predicted = predict(compile_program(parse_program(text), device), device)
            found.append((group, text, predicted.device_ms, ms))
    return found


def _row(case: Case, source: Program, journal: Journal, device: Device) -> harness.Row:
    rows = predictions(journal, device)
    predicted, measured = [r[2] for r in rows], [r[3] for r in rows]
    name = case.name + (", held out" if case.held_out else "")
    sizes = ", ".join(f"{n} = {v}" for n, v in source.sizes)
    if len(rows) < 3:
        return name, sizes, len(rows), None, None, None, None
    first = [ms for _, ms in sorted(zip(predicted, measured, strict=True))[:FIRST]]
    best = min(measured)
    correlation = float(spearmanr(predicted, measured).statistic)
    return name, sizes, len(rows), correlation, best, max(measured), min(first) / best


def main() -> None:
    parser = harness.options("rank_correlation", __doc__ or "")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(c.name for c in CASES)}; all by default")
    parser.add_argument("--points", type=int, default=MOST, help="of each program, at most and by default %(default)s")
    parser.add_argument("--turns", type=int, default=1, help="in which each is timed (default: %(default)s)")
    parser.add_argument("--search", type=float, default=90.0, help="seconds to find them (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="measure nothing: judge the model by the journal")
    parser.add_argument("--note", action="append", default=[], help="a line to write below the table")
    parser.set_defaults(out=None)
    arguments = parser.parse_args()
    info = find_device(arguments.device)
    device, rows, failed = describe(info), [], 0
    out = arguments.out or harness.RESULTS / f"rank_correlation_{device.name}.md"
    for case in CASES:
        if arguments.names and case.name not in arguments.names:
            continue
        source, began = case.source(device.kind), time.perf_counter()
        run = [str(info), case.name, arguments.seed]
        journal = Journal(out.with_suffix(".jsonl"), run)
        if not arguments.again:
            if journal.drawn is None:
                journal.append("drawn", drawn(source, info, arguments.search, arguments.seed))
            measure(source, info, journal, arguments.points, arguments.turns)
        rows.append(_row(case, source, journal, device))
        failed += sum(ms is None for ms in journal.times.values())
        print(*rows[-1], f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    notes = (
        f"seed {arguments.seed}; {failed} more points were not valid, or took too long",
        "measured: the least of the runs, by the device's own clock; predicted: without launches",
        f"best of first {FIRST} / fastest: what is lost where only those predicted best are measured",
        *arguments.note,
    )
    title = f"Predicted and measured times of kernels on {info.name}"
    harness.report(out, title, HEADINGS, rows, notes=notes, device=info)


if __name__ == "__main__":
    main()
