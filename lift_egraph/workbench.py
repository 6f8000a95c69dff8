"""From a program to validated, timed kernels: the pipeline that joins all packages.

Each arrow of the way is one function, so that a notebook can stop at each and look:
`specialise` → `explore` (phases of rules, extraction) → `compile_program` → `predict` →
`Runner.run` and `judge` → `Report`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import rules as book
from codegen.arrays import save_plan
from codegen.compiler import compile_program
from codegen.device_info import DeviceInfo
from codegen.dialect import DIALECTS
from codegen.kernel import Plan
from codegen.run import Runner, check_limits, find_device
from codegen.validate import References, judge, references
from extract.analytical import predict
from extract.baseline import naive_term
from extract.cost import StructuralCost
from extract.devices import Device, describe
from extract.search import best_terms, skeleton
from extract.tiling import Tiling, tilings, vector_widths
from lift_egraph import ir
from lift_egraph.binders import canonical
from lift_egraph.check import specialise, type_of
from lift_egraph.child import Stream
from lift_egraph.errors import (
    BuildProblem,
    DeviceProblem,
    LiftError,
    OutputProblem,
    RunProblem,
    SearchProblem,
    SizeProblem,
)
from lift_egraph.provenance import applied_rules
from lift_egraph.saturate import Limits, Phase, Saturation, run_phase
from lift_egraph.syntax import print_program, print_term
from lift_egraph.types import SCALAR_BYTES, leaves, scalar_of, width_of
from lift_egraph.workload import workload

SEEDS = 16  # high-level terms that are lowered, for each tiling
STAGED = 2  # of those, how many are tried with data staged in local or private memory
LOWERED = 12  # low-level terms taken from each of them
WORSE = 4.0  # how much worse than the best high-level term a seed may be rated
PLAINNESS = 0.001  # what a layout pattern counts when seeds are chosen
SEARCH_SHARE = 0.3  # of the budget, at most, for searching
LEAST_SEARCH = 6.0  # seconds for it, also where the budget is small
LEAST_COMPILE = 3.0
MEASURE_SHARE = 0.4  # of the budget, at least, for validating and timing
COMPILE_SHARE = 0.2  # of the budget, at most, for generating code and predicting its time
NOT_RUN = "not run"  # what a candidate says before it is validated
LONG_SOURCE = 20_000  # characters of kernels from which a device compiler may take many seconds
KERNEL_LIMIT = 20.0  # seconds for a candidate's build and run before it counts as hanging
MEMORY = 1 << 30  # bytes for the process that searches
COPY_RATE = 50e6  # bytes a second, at the least, that move between the processes and the device
HOST_COPIES = 10  # how often inputs and result are held at once while a kernel is validated
MOST_WORK = 2e10  # values that the reference may compute: some minutes


# --- searching: runs in a child process ---------------------------------------------------------------


@dataclass(frozen=True)
class PhaseSummary:
    """The size of an e-graph when its phase ended, how long it took and why it ended."""

    name: str
    tuples: int
    classes: int
    nodes: int
    iterations: int
    seconds: float
    stop_reason: str


@dataclass(frozen=True)
class Found:
    """A low-level term with its structural cost."""

    cost: float
    term: ir.Expr


def summarise(saturation: Saturation, seconds: float) -> PhaseSummary:
    """The figures of a phase that a report shows."""
    graph = saturation.graph
    return PhaseSummary(
        saturation.phase,
        graph.tuples,
        graph.class_count,
        graph.node_count,
        len(saturation.iterations),
        seconds,
        saturation.stop_reason.value,
    )


def algorithmic_phase(tiling: Tiling, limits: Limits) -> Phase:
    """The phase that restructures the high-level program."""
    return Phase("algorithmic", book.algorithmic, book.simplification, tiling, (), limits)


def lowering_phase(device: Device, widths: tuple[int, ...], limits: Limits) -> Phase:
    """The phase that maps a high-level term to the device."""
    levels = book.global_rules + (book.group_rules if device.kind == "gpu" else ())
    return Phase("lowering", book.loop_rules + book.vector_rules + levels, book.simplification, {}, widths, limits)


def memory_phase(spaces: tuple[str, ...], limits: Limits) -> Phase:
    """The phase that stages the data of work-groups in local, and of work-items in private memory."""
    once = replace(limits, iterations=1)
    return Phase("memory", book.memory_rules, book.simplification, limits=once, staging=spaces)


def search(program: ir.Program, device: Device, limits: Limits) -> Iterator[PhaseSummary | Found]:
    """Low-level terms for a program at concrete sizes, tiling by tiling, in this process.

    Yields
    ------
    PhaseSummary or Found
        The end of each phase, and each term as it is found.
    """
    widths = vector_widths(program, device)
    parallel = device.compute_units if device.kind == "cpu" else device.compute_units * 64
    made = tilings(program, device)
    for tiling in (*made[:2], {}, *made[2:]):
        began = time.perf_counter()
        saturation = _last(run_phase(program.body, algorithmic_phase(tiling, limits)))
        yield summarise(saturation, time.perf_counter() - began)
        seeds = best_terms(
            saturation.graph,
            saturation.root,
            StructuralCost(),
            SEEDS,
            tries=150,
            per_shape=8,
            key=skeleton,
            plainness=PLAINNESS,
        )
        for seed in seeds:
            if seed.cost > WORSE * seeds[0].cost:
                break
            began = time.perf_counter()
            lowered = _last(run_phase(seed.term, lowering_phase(device, widths, limits)))
            model = StructuralCost(units=parallel, lowered=True)
            terms = best_terms(lowered.graph, lowered.root, model, LOWERED, tries=60, per_shape=3, key=skeleton)
            yield summarise(lowered, time.perf_counter() - began)
            for found in terms:
                yield Found(found.cost, found.term)
            spaces = ("local", "private") if device.local_memory_is_cheap else ("private",)
            for found in terms[:STAGED]:
                staged = _last(run_phase(found.term, memory_phase(spaces, limits)))
                for copy in best_terms(staged.graph, staged.root, model, 3, per_shape=1, key=skeleton):
                    yield Found(copy.cost, copy.term)


def _last(saturations: Iterator[Saturation]) -> Saturation:
    *_, last = saturations
    return last


# --- the report ---------------------------------------------------------------------------------------


@dataclass
class Candidate:
    """A low-level program with its kernels, and what became of it."""

    program: ir.Program
    plan: Plan
    cost: float
    predicted_ms: float
    rules: tuple[str, ...]
    measured_ms: float | None = None
    valid: bool = False
    max_error: float | None = None
    error_bound: float | None = None
    message: str = NOT_RUN

    @property
    def lowered(self) -> str:
        """The low-level term as text."""
        return print_term(self.program.body)


@dataclass
class Report:
    """The outcome of `optimize`; only validated candidates have a rank.

    `valid_count` is the number of distinct valid kernels, of which `ranked` holds the fastest; `not_run` is
    the number of kernels that were generated, but neither validated nor timed in the budget.
    """

    program: str
    sizes: dict[str, int]
    device: str
    stop_reason: str
    phases: list[PhaseSummary]
    baseline_ms: float | None
    ranked: list[Candidate]
    rejected: list[Candidate] = field(default_factory=list)
    valid_count: int = 0
    not_run: int = 0
    seconds: float = 0.0

    @property
    def best(self) -> Candidate | None:
        """The fastest valid candidate."""
        return self.ranked[0] if self.ranked else None

    @property
    def speedup(self) -> float | None:
        """How many times as fast as the naive kernel the best candidate is."""
        if self.best is None or self.baseline_ms is None or not self.best.measured_ms:
            return None
        return self.baseline_ms / self.best.measured_ms

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        rows = [_row(rank, c) for rank, c in enumerate(self.ranked, 1)] + [_row(None, c) for c in self.rejected]
        largest = max(self.phases, key=lambda p: p.tuples, default=None)
        return {
            "program": self.program,
            "sizes": self.sizes,
            "device": self.device,
            "stop_reason": self.stop_reason,
            "egraph": {
                "phases": len(self.phases),
                "largest": vars(largest) if largest else None,
                "seconds": round(sum(p.seconds for p in self.phases), 3),
            },
            "baseline": {"measured_ms": self.baseline_ms},
            "valid_candidates": self.valid_count,
            "not_run": self.not_run,
            "candidates": rows,
            "best": rows[0] if self.ranked else None,
            "speedup": self.speedup,
            "seconds": round(self.seconds, 2),
        }


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: null stands for it."""
    return value if value is not None and math.isfinite(value) else None


def _row(rank: int | None, c: Candidate) -> dict[str, Any]:
    return {
        "rank": rank,
        "predicted_ms": c.predicted_ms,
        "measured_ms": c.measured_ms,
        "valid": c.valid,
        "max_error": _finite(c.max_error),
        "error_bound": _finite(c.error_bound),
        "rules": list(c.rules),
        "lowered": c.lowered,
        "message": c.message,
    }


@dataclass(frozen=True)
class Event:
    """Something that happened on the way: its stage, a text, and how far the stage is (0 to 1)."""

    stage: str
    text: str
    done: float = 0.0


Listener = Callable[[Event], None]


# --- the pipeline ---------------------------------------------------------------------------------------


def optimize(
    program: ir.Program,
    sizes: dict[str, int] | None = None,
    *,
    device: str | DeviceInfo | None = None,
    top: int = 10,
    budget: float = 90.0,
    seed: int = 0,
    limits: Limits | None = None,
    listen: Listener = lambda event: None,
) -> Report:
    """Search, compile, validate and time low-level versions of a program.

    Parameters
    ----------
    program
        A high-level program.
    sizes
        Values of its size variables; the program's defaults for the rest.
    device
        An index or a part of a device's name; see `codegen.run.find_device`.
    top
        How many valid candidates to report.
    budget
        Seconds for search and measurements together; validation's reference comes on top.
    seed
        Of the random inputs.
    limits
        Bounds of each saturation phase.
    listen
        Called with an `Event` at each step.

    Returns
    -------
    Report
        The candidates that were validated in this run, fastest first. After Ctrl-C, and where the search
        is stopped, it holds what was found so far.

    Raises
    ------
    SizeProblem, TypeProblem, DeviceProblem, SearchProblem
        If the program, its sizes and the device do not go together, or nothing legal was found.
    """
    began = time.perf_counter()
    special = specialise(program, sizes)
    require_parallelism(special)
    info = device if isinstance(device, DeviceInfo) else find_device(device)
    model = describe(info)
    baseline = make_candidate(naive_term(special), 0.0, info, model, special)
    check_limits(baseline.plan, info)
    require_feasible(special)
    report = Report(special.name, dict(special.sizes), str(info), "", [], None, [])
    pool: list[Candidate] = []
    try:
        listen(Event("reference", "interpreting the program on two sets of inputs"))
        reference = references(special, seed)
        patience = min(KERNEL_LIMIT, max(budget / 4, 5.0)) + data_bytes(special) / COPY_RATE
        with Runner(info, time_limit=patience) as runner:
            load_references(runner, reference)
            listen(Event("baseline", "timing the naive kernel"))
            evaluate(baseline, runner, reference)
            if baseline.valid:
                report.baseline_ms = baseline.measured_ms
            clock = time.perf_counter()
            listen(Event("search", "saturating"))
            search_seconds = max(budget * SEARCH_SHARE, LEAST_SEARCH)
            found = _gather(special, model, search_seconds, limits or Limits(), report, listen)
            compile_seconds = max(budget * COMPILE_SHARE, LEAST_COMPILE)
            pool = _compile(found, baseline, special, info, model, compile_seconds, listen)
            deadline = max(clock + budget, time.perf_counter() + budget * MEASURE_SHARE)
            _measure(pool, baseline, runner, reference, deadline, top, report, listen)
    except KeyboardInterrupt:
        report.stop_reason = "interrupted"
        if not any(c.valid for c in (baseline, *pool)):
            raise
    candidates = [baseline, *pool]
    valid = sorted((c for c in candidates if c.valid), key=lambda c: c.measured_ms or 0.0)
    report.ranked, report.valid_count = valid[:top], len(valid)
    report.rejected = [c for c in candidates if not c.valid and c.message != NOT_RUN]
    report.not_run = sum(c.message == NOT_RUN for c in candidates)
    report.seconds = time.perf_counter() - began
    if not report.ranked:
        reasons = "; ".join(dict.fromkeys(c.message for c in report.rejected)) or "the search found no legal term"
        raise SearchProblem(f"no valid kernel was found for {special.name}: {reasons}")
    return report


def require_feasible(program: ir.Program) -> None:
    """Raise a `SizeProblem` for sizes at which the reference result could not be computed in reasonable time.

    Every kernel is compared with the interpreted program, so the program must be interpreted.
    """
    work = workload(program.body)
    if work > MOST_WORK:
        sizes = ", ".join(f"{name}={value}" for name, value in program.sizes)
        raise SizeProblem(
            f"{program.name} at {sizes} computes about {work:.2g} values; its reference result would take longer than "
            f"{MOST_WORK * 1e-8 / 60:.0f} minutes: choose smaller sizes"
        )
    needed, available = HOST_COPIES * data_bytes(program), available_memory()
    if available is not None and needed > available:
        raise SizeProblem(
            f"validating {program.name} needs about {needed / 2**30:.1f} GiB of memory, {available / 2**30:.1f} GiB "
            "are free: choose smaller sizes"
        )


def data_bytes(program: ir.Program) -> int:
    """The size of a program's inputs and result at concrete sizes, in bytes."""
    types = [*(i.type for i in program.inputs), type_of(program.body)]
    every = (leaf for t in types for leaf in leaves(t))
    return sum(
        math.prod(s.evaluate({}) for s in sizes) * width_of(t) * SCALAR_BYTES[scalar_of(t).name]
        for _, sizes, t in every
    )


def available_memory() -> int | None:
    """Bytes of memory that can be had without swapping, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def require_parallelism(program: ir.Program) -> None:
    """Raise a `SearchProblem` for a program in which nothing can run in parallel."""
    from lift_egraph.encoding import known_operator

    for term in ir.subterms(program.body):
        if isinstance(term, ir.Map | ir.MapLevel | ir.Generate):
            return
        if isinstance(term, ir.Reduce) and known_operator(term.operator) is not None:
            return
    raise SearchProblem(
        f"{program.name} has no parallelism: it contains no map, and no reduction by an operator that is known to "
        "be associative (add, mul, min, max, and, or)"
    )


def make_candidate(lowered: ir.Program, cost: float, info: DeviceInfo, model: Device, program: ir.Program) -> Candidate:
    """Compile a low-level program and predict its time.

    Raises
    ------
    NestingProblem, DeviceProblem
        If it is not legal on the device.
    """
    plan = compile_program(lowered, DIALECTS[model.dialect], term_text=print_program(lowered))
    predicted = predict(plan, model).predicted_ms
    return Candidate(lowered, plan, cost, predicted, applied_rules(program.body, lowered.body))


def load_references(runner: Runner, reference: References) -> None:
    """Ship the two sets of inputs to the runner once."""
    runner.load_inputs("integers", reference.integers.inputs)
    runner.load_inputs("floats", reference.floats.inputs)


def evaluate(candidate: Candidate, runner: Runner, reference: References) -> None:
    """Validate a candidate, and time it if it is valid. Failures are noted on it."""
    try:
        integers, floats = runner.run(candidate.plan, "integers"), runner.run(candidate.plan, "floats")
        verdict = judge(reference, integers, floats)
        candidate.valid, candidate.message = verdict.valid, verdict.message
        candidate.max_error, candidate.error_bound = verdict.max_error, verdict.error_bound
        if verdict.valid:
            candidate.measured_ms = runner.measure(candidate.plan, "floats").median_ms
    except (BuildProblem, RunProblem, DeviceProblem) as problem:
        candidate.valid, candidate.message = False, str(problem)


def _gather(
    program: ir.Program, model: Device, seconds: float, limits: Limits, report: Report, listen: Listener
) -> list[Found]:
    """Search in a child process; the terms it found, in the order of their structural cost."""
    found: dict[ir.Expr, Found] = {}
    began = time.perf_counter()
    stream = Stream(search, program, model, limits, time_limit=seconds, memory_limit=MEMORY)
    for message in stream:
        if isinstance(message, Found):
            found.setdefault(canonical(message.term), message)
            continue
        report.phases.append(message)
        text = f"{message.name}: {message.tuples} tuples, {message.stop_reason}; {len(found)} low-level terms"
        listen(Event("search", text, min(1.0, (time.perf_counter() - began) / seconds)))
    end = stream.end
    assert end is not None
    if end.kind == "error":
        raise RunProblem(f"the search failed: {end.text}")
    if end.kind == "finished":
        reasons = {p.stop_reason for p in report.phases if p.name == "algorithmic"}
        report.stop_reason = ", ".join(sorted(reasons))
    else:
        report.stop_reason = {"time": "time limit", "memory": "memory limit"}.get(end.kind, end.text or end.kind)
    return sorted(found.values(), key=lambda f: f.cost)


def _compile(
    found: list[Found],
    baseline: Candidate,
    program: ir.Program,
    info: DeviceInfo,
    model: Device,
    seconds: float,
    listen: Listener,
) -> list[Candidate]:
    """Distinct kernels for the terms, as many as the time allows: best prediction first, those that are
    slow to build last.
    """
    made: dict[str, Candidate] = {}
    naive = _kernels(baseline)
    began = time.perf_counter()
    for number, item in enumerate(found, 1):
        if time.perf_counter() - began > seconds:
            break
        lowered = ir.Program(program.name, program.inputs, item.term, program.sizes)
        try:
            candidate = make_candidate(lowered, item.cost, info, model, program)
            check_limits(candidate.plan, info)
        except LiftError:  # legal in the e-graph's eyes, but not for the code generator or this device
            continue
        if _kernels(candidate) != naive:
            made.setdefault(_kernels(candidate), candidate)
        listen(Event("compile", f"{len(made)} distinct kernels", number / len(found)))
    return sorted(made.values(), key=lambda c: (len(_kernels(c)) > LONG_SOURCE, c.predicted_ms))


def _kernels(candidate: Candidate) -> str:
    """The text of a candidate's kernels, without the comment above them."""
    return "\n".join(k.source for k in candidate.plan.kernels)


def _measure(
    pool: list[Candidate],
    baseline: Candidate,
    runner: Runner,
    reference: References,
    deadline: float,
    top: int,
    report: Report,
    listen: Listener,
) -> None:
    """Validate and time candidates in the order of their prediction until the budget is spent."""
    total = min(len(pool), max(3 * top, 24))
    for number, candidate in enumerate(pool[:total], 1):
        if time.perf_counter() > deadline:
            break
        evaluate(candidate, runner, reference)
        times = [c.measured_ms for c in (baseline, *pool) if c.measured_ms is not None]
        best = f"best {min(times):.3g} ms" if times else "none valid yet"
        listen(Event("measure", f"{number} of {total} kernels validated and timed, {best}", number / total))


# --- writing ----------------------------------------------------------------------------------------------


def write(report: Report, directory: Path) -> None:
    """Write the best kernel: ``kernel.cl``, ``launch.json``, ``lowered.lift`` and ``report.json``.

    Raises
    ------
    OutputProblem
        If the directory cannot be written to.
    """
    best = report.best
    if best is None:
        raise OutputProblem("there is no valid kernel to write")
    save_plan(best.plan, directory)
    try:
        for name, text in (
            ("lowered.lift", print_program(best.program)),
            ("report.json", json.dumps(report.to_json(), indent=2) + "\n"),
        ):
            beside = directory / f".{name}.part"
            beside.write_text(text)
            beside.replace(directory / name)
    except OSError as problem:
        raise OutputProblem(f"cannot write to {directory}: {problem.strerror}") from None


def require_writable(directory: Path) -> None:
    """Make a directory, and check that files can be written there, before any long work.

    Raises
    ------
    OutputProblem
        If not.
    """
    try:
        if directory.exists() and not directory.is_dir():
            raise OutputProblem(f"cannot write to {directory}: it is a file, not a directory")
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as problem:
        raise OutputProblem(f"cannot write to {directory}: {problem.strerror}") from None
