"""The way from a program to validated, timed kernels."""

from __future__ import annotations

import math
import time

import cloudpickle

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device, describe
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner, check_limits, find_device
from lift_egraph.codegen.running.validate import References, Verdict, judge, references
from lift_egraph.errors import BuildProblem, DeviceProblem, LiftError, ModelProblem, RunProblem, SearchProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.baseline import naive_term
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.models import PerformanceModel, StructuralModel
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import print_program
from lift_egraph.process.child import Stream
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.demands import data_bytes, require_elements, require_feasible, require_parallelism
from lift_egraph.workbench.report import Candidate, Event, Listener, Report
from lift_egraph.workbench.search import Found, Leg, PhaseSummary, naive_leg, search

BUDGET, STRUCTURAL = Budget(), StructuralCost()


def optimize(
    program: ir.Program,
    sizes: dict[str, int] | None = None,
    *,
    device: str | DeviceInfo | None = None,
    description: Device | None = None,
    top: int = 10,
    budget: Budget | float = BUDGET,
    seed: int = 0,
    structural: StructuralModel = STRUCTURAL,
    performance: PerformanceModel = predict,
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
        Seconds for search and measurements together; validation's reference comes on top. A `Budget` also says
        how they are spent.
    seed
        Of the random inputs.
    structural
        Chooses the terms that become kernels. It is sent to a child process, by cloudpickle.
    performance
        Predicts the kernels' times: the least is measured first.
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
    BudgetProblem, ModelProblem
        If a knob of the budget is out of range, or a model fails.
    """
    began = time.perf_counter()
    budget = budget if isinstance(budget, Budget) else Budget(budget)
    _require_portable(structural)
    require_elements(program, sizes or {})
    special = specialise(program, sizes)
    require_parallelism(special)
    info, model = found_device(device, description)
    naive = naive_term(special)
    baseline = make_candidate(naive, 0.0, info, model, (naive_leg(naive.body, model.kind),), performance)
    check_limits(baseline.plan, info)
    require_feasible(special)
    stop_reason = ""
    phases: list[PhaseSummary] = []
    pool: list[Candidate] = []
    try:
        listen(Event("reference", "interpreting the program on two sets of inputs"))
        reference = references(special, seed)
        with Runner(info, time_limit=budget.kernel_seconds(data_bytes(special))) as runner:
            load_references(runner, reference)
            listen(Event("baseline", "timing the naive kernel"))
            evaluate(baseline, runner, reference, budget)
            clock = time.perf_counter()
            listen(Event("search", "saturating"))
            found, stop_reason = _gather(special, model, budget, structural, phases, listen)
            pool = _compile(found, baseline, special, info, model, budget, performance, listen)
            share = time.perf_counter() + budget.seconds * budget.measure_share
            _measure(pool, baseline, runner, reference, max(clock + budget.seconds, share), top, budget, listen)
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
    performance: PerformanceModel = predict,
) -> Candidate:
    """Compile a low-level program and predict its time. `way` are the phases that led to it from the program.

    Raises
    ------
    NestingProblem, DeviceProblem
        If it is not legal on the device.
    ModelProblem
        If the performance model fails, or predicts no finite number.
    """
    plan = compile_program(lowered, model, term_text=print_program(lowered))
    return Candidate(lowered, plan, cost, _predicted(performance, plan, model), way)


def _predicted(performance: PerformanceModel, plan: Plan, device: Device) -> float:
    what = f"the performance model {getattr(performance, '__name__', type(performance).__name__)}"
    try:
        ms = float(performance(plan, device))
    except LiftError:
        raise
    except Exception as problem:  # anything at all: it may be a user's model
        raise ModelProblem(f"{what} failed on {plan.name}: {type(problem).__name__}: {problem}") from problem
    if not math.isfinite(ms):
        raise ModelProblem(f"{what} predicts {ms} ms for {plan.name}; a prediction is a finite number")
    return ms


def _require_portable(structural: StructuralModel) -> None:
    """Raise a `ModelProblem` for a model that cannot be sent to the process that searches."""
    try:
        cloudpickle.dumps(structural)
    except Exception as problem:  # anything at all: a user's model may say itself how it is pickled
        raise ModelProblem(
            f"the structural cost {type(structural).__name__} cannot be sent to the process that searches: {problem}; "
            "it should hold only what cloudpickle can copy, so no open files, locks or devices"
        ) from problem


def load_references(runner: Runner, reference: References) -> None:
    """Ship the two sets of inputs to the runner once."""
    runner.load_inputs("integers", reference.integers.inputs)
    runner.load_inputs("floats", reference.floats.inputs)


def validate(plan: Plan, runner: Runner, reference: References) -> Verdict:
    """Run a plan on both sets of inputs (`load_references`), and hold its results against the interpreter's."""
    return judge(reference, runner.run(plan, "integers"), runner.run(plan, "floats"))


def evaluate(candidate: Candidate, runner: Runner, reference: References, budget: Budget = BUDGET) -> None:
    """Validate a candidate, and time it if it is valid. Failures are noted on it."""
    try:
        verdict = validate(candidate.plan, runner, reference)
        candidate.valid, candidate.message = verdict.valid, verdict.message
        candidate.max_error, candidate.error_bound = verdict.max_error, verdict.error_bound
        if verdict.valid:
            options = {"repeats": budget.repeats, "min_time": budget.timing_seconds}
            candidate.measured_ms = runner.measure(candidate.plan, "floats", **options).median_ms
    except (BuildProblem, RunProblem, DeviceProblem) as problem:
        candidate.valid, candidate.message = False, str(problem)


def _gather(
    program: ir.Program,
    model: Device,
    budget: Budget,
    structural: StructuralModel,
    phases: list[PhaseSummary],
    listen: Listener,
) -> tuple[list[Found], str]:
    """Search in a child process: the terms it found, in the order of their structural cost, and why it ended.

    Ends of phases are added to `phases` as they come.
    """
    found: dict[ir.Expr, Found] = {}
    began = time.perf_counter()
    seconds, memory = budget.search_seconds, budget.limits.memory_mb << 20
    stream = Stream(search, program, model, budget, structural, time_limit=seconds, memory_limit=memory)
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
    budget: Budget,
    performance: PerformanceModel,
    listen: Listener,
) -> list[Candidate]:
    """Distinct kernels for the terms, as many as the time allows: best prediction first, those that are
    slow to build last.
    """
    made: dict[str, Candidate] = {}
    naive = _kernels(baseline)
    began = time.perf_counter()
    for number, item in enumerate(found, 1):
        if time.perf_counter() - began > budget.compile_seconds:
            break
        lowered = ir.Program(program.name, program.inputs, item.term, program.sizes)
        try:
            candidate = make_candidate(lowered, item.cost, info, model, item.way, performance)
            check_limits(candidate.plan, info)
        except ModelProblem:
            raise
        except LiftError:  # legal in the e-graph's eyes, but not for the code generator or this device
            continue
        if _kernels(candidate) != naive:
            made.setdefault(_kernels(candidate), candidate)
        listen(Event("compile", f"{len(made)} distinct kernels", number / len(found)))
    return sorted(made.values(), key=lambda c: (len(_kernels(c)) > budget.long_source, c.predicted_ms))


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
    budget: Budget,
    listen: Listener,
) -> None:
    """Validate and time candidates in the order of their prediction until the budget is spent."""
    total = min(len(pool), max(budget.measured_per_rank * top, budget.measured))
    for number, candidate in enumerate(pool[:total], 1):
        if time.perf_counter() > deadline:
            break
        evaluate(candidate, runner, reference, budget)
        times = [c.measured_ms for c in (baseline, *pool) if c.measured_ms is not None]
        best = f"best {min(times):.3g} ms" if times else "none valid yet"
        listen(Event("measure", f"{number} of {total} kernels validated and timed, {best}", number / total))
