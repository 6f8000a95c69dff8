"""The way from a program to validated, timed kernels."""

from __future__ import annotations

import time

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device, describe
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner, check_limits, find_device
from lift_egraph.codegen.running.validate import References, Verdict, judge, references
from lift_egraph.egraph.saturate import Limits
from lift_egraph.errors import BuildProblem, DeviceProblem, LiftError, RunProblem, SearchProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import print_program
from lift_egraph.process.child import Stream
from lift_egraph.workbench.demands import data_bytes, require_elements, require_feasible, require_parallelism
from lift_egraph.workbench.report import Candidate, Event, Listener, Report
from lift_egraph.workbench.search import Found, Leg, PhaseSummary, naive_leg, search

SEARCH_SHARE = 0.3  # of the budget, at most, for searching
LEAST_SEARCH = 6.0  # seconds for it, also where the budget is small
LEAST_COMPILE = 3.0
MEASURE_SHARE = 0.4  # of the budget, at least, for validating and timing
COMPILE_SHARE = 0.2  # of the budget, at most, for generating code and predicting its time
LONG_SOURCE = 20_000  # characters of kernels from which a device compiler may take many seconds
KERNEL_LIMIT = 20.0  # seconds for a candidate's build and run before it counts as hanging
MEMORY = 1 << 30  # bytes for the process that searches
COPY_RATE = 50e6  # bytes a second, at the least, that move between the processes and the device


def optimize(
    program: ir.Program,
    sizes: dict[str, int] | None = None,
    *,
    device: str | DeviceInfo | None = None,
    description: Device | None = None,
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
        An index or a part of a device's name; see `lift_egraph.codegen.running.run.find_device`.
    description
        Of the device, where none of the built-in ones will do (`lift_egraph.codegen.devices.load_device`).
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
    require_elements(program, sizes or {})
    special = specialise(program, sizes)
    require_parallelism(special)
    info, model = found_device(device, description)
    naive = naive_term(special)
    baseline = make_candidate(naive, 0.0, info, model, (naive_leg(naive.body, model.kind),))
    check_limits(baseline.plan, info)
    require_feasible(special)
    stop_reason = ""
    phases: list[PhaseSummary] = []
    pool: list[Candidate] = []
    try:
        listen(Event("reference", "interpreting the program on two sets of inputs"))
        reference = references(special, seed)
        patience = min(KERNEL_LIMIT, max(budget / 4, 5.0)) + data_bytes(special) / COPY_RATE
        with Runner(info, time_limit=patience) as runner:
            load_references(runner, reference)
            listen(Event("baseline", "timing the naive kernel"))
            evaluate(baseline, runner, reference)
            clock = time.perf_counter()
            listen(Event("search", "saturating"))
            search_seconds = max(budget * SEARCH_SHARE, LEAST_SEARCH)
            found, stop_reason = _gather(special, model, search_seconds, limits or Limits(), phases, listen)
            compile_seconds = max(budget * COMPILE_SHARE, LEAST_COMPILE)
            pool = _compile(found, baseline, special, info, model, compile_seconds, listen)
            deadline = max(clock + budget, time.perf_counter() + budget * MEASURE_SHARE)
            _measure(pool, baseline, runner, reference, deadline, top, listen)
    except KeyboardInterrupt:
        stop_reason = "interrupted"
        if not any(c.valid for c in (baseline, *pool)):
            raise
    seconds = time.perf_counter() - began
    report = Report(special, str(info), stop_reason, phases, [baseline, *pool], top, seconds)
    if not report.valid:
        reasons = "; ".join(dict.fromkeys(c.message for c in report.rejected)) or "the search found no legal term"
        raise SearchProblem(f"no valid kernel was found for {special.name}: {reasons}")
    return report


def found_device(device: str | DeviceInfo | None, description: Device | None) -> tuple[DeviceInfo, Device]:
    """The OpenCL device that a user means, and its description.

    Raises
    ------
    DeviceProblem
        If there is no such device.
    """
    info = device if isinstance(device, DeviceInfo) else find_device(device, description)
    return info, description.on(info) if description else describe(info)


def make_candidate(
    lowered: ir.Program,
    cost: float,
    info: DeviceInfo,
    model: Device,
    way: tuple[Leg, ...] = (),
) -> Candidate:
    """Compile a low-level program and predict its time. `way` are the phases that led to it from the program.

    Raises
    ------
    NestingProblem, DeviceProblem
        If it is not legal on the device.
    """
    plan = compile_program(lowered, model, term_text=print_program(lowered))
    predicted = predict(plan, model).predicted_ms
    return Candidate(lowered, plan, cost, predicted, way)


def load_references(runner: Runner, reference: References) -> None:
    """Ship the two sets of inputs to the runner once."""
    runner.load_inputs("integers", reference.integers.inputs)
    runner.load_inputs("floats", reference.floats.inputs)


def validate(plan: Plan, runner: Runner, reference: References) -> Verdict:
    """Run a plan on both sets of inputs (`load_references`), and hold its results against the interpreter's."""
    return judge(reference, runner.run(plan, "integers"), runner.run(plan, "floats"))


def evaluate(candidate: Candidate, runner: Runner, reference: References) -> None:
    """Validate a candidate, and time it if it is valid. Failures are noted on it."""
    try:
        verdict = validate(candidate.plan, runner, reference)
        candidate.valid, candidate.message = verdict.valid, verdict.message
        candidate.max_error, candidate.error_bound = verdict.max_error, verdict.error_bound
        if verdict.valid:
            candidate.measured_ms = runner.measure(candidate.plan, "floats").median_ms
    except (BuildProblem, RunProblem, DeviceProblem) as problem:
        candidate.valid, candidate.message = False, str(problem)


def _gather(
    program: ir.Program, model: Device, seconds: float, limits: Limits, phases: list[PhaseSummary], listen: Listener
) -> tuple[list[Found], str]:
    """Search in a child process: the terms it found, in the order of their structural cost, and why it ended.

    Ends of phases are added to `phases` as they come.
    """
    found: dict[ir.Expr, Found] = {}
    began = time.perf_counter()
    stream = Stream(search, program, model, limits, time_limit=seconds, memory_limit=MEMORY)
    for message in stream:
        if isinstance(message, Found):
            found.setdefault(canonical(message.term), message)
            continue
        phases.append(message)
        text = f"{message.name}: {message.tuples} tuples, {message.stop_reason}; {len(found)} low-level terms"
        listen(Event("search", text, min(1.0, (time.perf_counter() - began) / seconds)))
    end = stream.end
    assert end is not None
    if end.kind == "error":
        raise RunProblem(f"the search failed: {end.text}")
    if end.kind == "finished":
        stop_reason = ", ".join(sorted({p.stop_reason for p in phases if p.name == "algorithmic"}))
    else:
        stop_reason = {"time": "time limit", "memory": "memory limit"}.get(end.kind, end.text or end.kind)
    return sorted(found.values(), key=lambda f: f.cost), stop_reason


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
            candidate = make_candidate(lowered, item.cost, info, model, item.way)
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
