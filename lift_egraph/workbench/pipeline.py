"""The way from a program to validated, timed kernels."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import cloudpickle

from lift_egraph.algebra.declared import believe
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device, describe
from lift_egraph.codegen.running.roofline import Roofline, kept_roofline
from lift_egraph.codegen.running.run import Runner, check_limits, find_device
from lift_egraph.codegen.running.validate import UNBOUNDED
from lift_egraph.egraph.rule import Rule
from lift_egraph.errors import (
    DeviceProblem,
    InputProblem,
    LiftError,
    ModelProblem,
    NestingProblem,
    SearchProblem,
    SizeProblem,
    TypeProblem,
)
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.baseline import naive_term
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.models import PerformanceModel, StructuralModel
from lift_egraph.garbage import drop_unused_e_graphs
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.learned.model import Model
from lift_egraph.learned.strategies import ByFamily, Confident, Strategy
from lift_egraph.meaning.in_order import unlike
from lift_egraph.process.child import End, Ended, Stream, begun
from lift_egraph.records.journal import journal_at
from lift_egraph.records.searched import as_searched
from lift_egraph.soundness.many_rules import EXAMPLES
from lift_egraph.workbench.additions import Plans, additions_of
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import Candidate, make_candidate, text_length
from lift_egraph.workbench.demands import data_bytes, require_elements, require_kinds, require_result
from lift_egraph.workbench.exploration.search import get_ready, search
from lift_egraph.workbench.exploration.tuned import Tuning
from lift_egraph.workbench.measuring.executors import ANSWER, Job, Workers, asked, prepared
from lift_egraph.workbench.measuring.halved import halved
from lift_egraph.workbench.measuring.lanes import Clock, Finder, Lanes, stopped
from lift_egraph.workbench.measuring.race import Race
from lift_egraph.workbench.measuring.streamed import streamed
from lift_egraph.workbench.measuring.turns import in_turns
from lift_egraph.workbench.phases import Found, naive_leg
from lift_egraph.workbench.progress import Event, Listener
from lift_egraph.workbench.rates import numpy_ms, roofline
from lift_egraph.workbench.recording import Recording
from lift_egraph.workbench.report import Report
from lift_egraph.workbench.validation.references import reference_of, room_for
from lift_egraph.workbench.validation.whole_numbers import WholeNumbers

BUDGET, STRUCTURAL = Budget(), StructuralCost()
FIRST_SHARE, FIRST_SECONDS = 0.05, 0.5  # of the budget, and in any case, that the naive kernel may take to go first


def optimize(
    program: ir.Program,
    sizes: dict[str, int] | None = None,
    *,
    device: str | DeviceInfo | Device | None = None,
    description: Device | None = None,
    top: int = 10,
    budget: Budget | float = BUDGET,
    seed: int = 0,
    exact: bool = False,
    structural: StructuralModel = STRUCTURAL,
    cost: PerformanceModel = predict,
    strategy: Strategy | None = None,
    rules: Rule | Path | str | Iterable[Rule | Path | str] = (),
    unchecked: bool = False,
    plans: Plans | None = None,
    records: Path | str | None = None,
    executor: Executor | None = None,
    listen: Listener = lambda event: None,
) -> Report:
    """Search, compile, validate and time low-level versions of a program.

    Parameters
    ----------
    program
        A high-level program. Its alternatives take part in the search once they were found to agree with their
        functions, as rules do.
    sizes
        Values of its size variables; the program's defaults for the rest.
    device
        An index or a part of a device's name (`lift_egraph.codegen.running.run.find_device`); or a description of your
        own (`lift_egraph.codegen.devices.load_device`), of the device that it fits.
    description
        Of the device that `device` names, where none of the built-in ones will do.
    top
        How many valid candidates to report.
    budget
        Seconds for everything. A `Budget` also says how they are spent.
    seed
        Of the random inputs.
    exact
        Whether kernels must compute each bit of floats as the program says it, from left to right: no rule takes part
        that changes one (`lift_egraph.egraph.rule.FLAGS`), and no alternative; nothing is contracted, and the results
        are compared bit for bit where all devices compute the same. Whole numbers are reduced in any order still.
        Without it all rules take part.
    structural
        Chooses the terms that become kernels. It is sent to a child process, by cloudpickle.
    cost
        Predicts the kernels' times: the least is measured first. The analytical one takes the bandwidth that was
        measured on the device once (``lift-egraph devices --calibrate``, or a search with time for it).
    strategy
        Which kernel goes next, by these predictions and by what was measured: a new one of
        `lift_egraph.learned.strategies`. By default `Confident` with a performance model that was learned, for it
        compares kernels by where they stand, which only such a model says; else `ByFamily`.
    rules
        Rules of your own, or files with rules, that take part in the search beside the book's. They are checked for
        soundness first, which takes seconds beside the budget, unless they are to be used `unchecked`.
    plans
        A function of your own from a stage, a term, and a device to `lift_egraph.workbench.Plan`, which are tried
        beside ours, with your rules in their phases. It is sent to a child process, by cloudpickle.
    records
        The journal to which each kernel is appended when it was measured, a file; ``none`` for none. The best that it
        knows of the program go first, and what failed or was slow is not measured again. By default that of the user
        (`lift_egraph.records.journal.journal_at`).
    executor
        Whose workers validate and time the kernels, `budget.lanes` at a time, on a device of theirs: one of
        `concurrent.futures`, or one like it (``Client.get_executor()`` of dask). The package must be installed there.
        The search stays here.
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
    InputProblem, OutputProblem
        If an argument is of another kind, the journal of records is none, or a given one cannot be written to; or a
        file with rules cannot be read.
    RuleProblem
        If a rule is not sound, cannot be used, or has the name of another one; or an alternative disagrees with its
        function, or a declared law does not hold.
    BudgetProblem, ModelProblem
        If a knob of the budget is out of range, or a model or the function for plans fails.
    """
    if not isinstance(program, ir.Program):
        raise TypeProblem(f"optimize takes a program, got {program!r}; programs.load or parse_program makes one")
    require_kinds(top, seed, device, description, cost, strategy, listen)
    budget = budget if isinstance(budget, Budget) else Budget(budget)
    clock = Clock(budget.seconds)
    _require_portable(structural, f"the structural cost {type(structural).__name__}")
    _require_portable(plans, "the function for plans")
    require_elements(program, sizes or {})
    laws = believe(program.laws, budget.checks_seconds)
    program = as_searched(program, sizes)
    special = specialise(program, sizes)
    require_result(special)
    given_device = device, description
    memory = budget.limits.memory_mb << 20
    with begun(get_ready, memory) as child:
        info, model = asked(executor, ANSWER, found_device, *given_device) if executor else found_device(*given_device)
        model = model.exact if exact else model
        if cost is predict and description is None and not isinstance(device, Device):
            known = asked(executor, ANSWER, kept_roofline, info) if executor else kept_roofline(info)
            model = model.calibrated(known.gb_per_s) if known else model
        examples = 0 if unchecked else EXAMPLES
        alternatives = () if exact else program.alternatives
        own = {"alternatives": alternatives, "examples": examples, "seconds": budget.checks_seconds}
        additions = additions_of(rules, plans, **own, listen=listen)
        recording = Recording(journal_at(records), special, info, model, must=records is not None, exact=exact)
        baseline = _baseline(special, info, model, cost, exact)
    naive = [baseline] if isinstance(baseline, Candidate) else []
    inbox: SimpleQueue[Any] = SimpleQueue()
    seconds = max(clock.left - budget.turns_seconds, 0.0)

    def end_in_time() -> None:
        if race.lets_search_end(budget, clock):
            raise Ended(End("time", "its share of the time is over"))

    given = special, model, budget, structural, additions, program, exact
    stream = Stream(search, *given, time_limit=seconds, memory_limit=memory, on_tick=end_in_time, child=child)

    def make(found: Found) -> Candidate:
        lowered = replace(special, body=found.term)
        way = tuple(replace(leg, exact=exact) for leg in found.way)
        made = make_candidate(lowered, found.cost, info, model, way, cost)
        check_limits(made.plan, info)
        return made

    kernel_seconds = budget.kernel_seconds(data_bytes(special))
    recording.remember(naive, cost, lambda made: check_limits(made.plan, info))
    if recording.remembered:
        listen(Event("records", f"{len(recording.remembered)} known kernels go first"))
    tuning = Tuning(model, round(budget.points * budget.longer), seed)

    def place(candidate: Candidate) -> tuple[float, ...]:
        return cost.place(candidate.plan, model) if isinstance(cost, Model) else ()

    together = model.built_together
    chosen = strategy or (Confident() if isinstance(cost, Model) else ByFamily())

    def others(candidate: Candidate) -> Iterable[Found]:
        return (*halved(candidate, model), *streamed(candidate, model), *in_turns(candidate, model))

    takes_long_to_build = any(text_length(c) > budget.long_source for c in naive)
    first_seconds = 0.0 if takes_long_to_build else max(FIRST_SHARE * budget.seconds, FIRST_SECONDS)
    limits = 1e3 * kernel_seconds, 1e3 * first_seconds
    race = Race(naive, make, *limits, recording, tuning, together, chosen, place, others)
    how, in_numpy, roof = "", None, None
    drop_unused_e_graphs()
    told = "timing the naive kernel" if naive else f"there is none: {baseline}"
    try:
        with Finder(stream, inbox) as finder:
            listen(Event("reference", "interpreting the program"))
            job = Job(program, special, info, model, budget, kernel_seconds, seed, exact)
            if executor:
                how, in_numpy, roof = asked(executor, ANSWER + budget.seconds, prepared, job)
                measurers = Workers(executor, job, clock, inbox)
            else:
                how, in_numpy, roof, measurers = _here(job, clock, inbox, finder)
            with measurers:
                listen(Event("baseline", told))
                race.run(inbox, measurers, budget, clock, top, listen)
    except KeyboardInterrupt:
        race.stop_reason = "interrupted"
        if not any(c.valid for c in race.candidates):
            raise
    no_baseline = "" if naive else str(baseline)
    found = race.phases, race.candidates, top, clock.spent, no_baseline, tuple(race.refused), how, in_numpy, roof
    checks = (*map(str, laws), *additions.checks)
    report = Report(
        special, str(info), race.stop_reason, *found, recording.summary(), exact=exact, checks=checks
    )
    if not report.valid:
        raise SearchProblem(f"no valid kernel was found for {special.name}: {_why_none(report, budget)}")
    if (best := report.best) and (found := tuning.plan_of(best.program.body)):
        plan, numbers = found
        report = replace(report, numbers=numbers, drawn=partial(tuning.drawn, plan))
    return report


def _why_none(report: Report, budget: Budget) -> str:
    """Why no kernel of a report is valid, and what might help."""
    messages = [c.message for c in report.rejected] or [r.message for r in report.refused]
    reasons = "; ".join(dict.fromkeys(messages)) or "the search found no legal term"
    if report.no_baseline:
        reasons += f"; and there is no naive kernel: {report.no_baseline}"
    if not report.exact and UNBOUNDED in reasons and not unlike(report.source.body):
        reasons += "; exact kernels are compared bit for bit instead (--exact)"
    elif report.stop_reason.startswith("time limit") and not report.refused:
        reasons += f"; in {budget.seconds:.3g} s there was no time for more: give it a larger budget (--budget)"
    return reasons


def _here(
    job: Job, clock: Clock, inbox: SimpleQueue[Any], finder: Finder[Any]
) -> tuple[str, float | None, Roofline | None, Lanes]:
    """How kernels are validated, the program's time in NumPy, the device's roofline, and what measures on this host."""
    budget, program, info = job.budget, job.program, job.device
    room = room_for(program, info, budget.lanes, budget.copy_rate * budget.seconds / 2)
    compiled = partial(compile_program, device=job.description.run_once)
    limit = budget.reference_seconds
    asked_for = {"seed": job.seed, "seconds": limit, "exact": job.exact}
    first = Runner(info, time_limit=job.kernel_seconds)
    first.begin()
    reference = reference_of(job.source, program, room, compiled, **asked_for)
    with stopped([finder, first]):
        in_numpy = numpy_ms(program, reference.inputs[reference.timed], budget.numpy_seconds)
        roof = roofline(info, budget.roofline_seconds)
    workers = replace(budget, lanes=room.workers)
    whole_numbers = WholeNumbers(job.source, program, compiled, job.seed)
    lanes = Lanes(info, reference, workers, clock, job.kernel_seconds, inbox, (finder,), whole_numbers, first=first)
    return reference.how, in_numpy, roof, lanes


def recall(
    program: ir.Program,
    sizes: dict[str, int] | None = None,
    *,
    device: str | DeviceInfo | Device | None = None,
    description: Device | None = None,
    exact: bool = False,
    records: Path | str | None = None,
    seconds: float = 60.0,
    listen: Listener = lambda event: None,
) -> Report:
    """The best known kernels of a program, validated and timed again beside the naive one, without a search.

    Parameters are those of `optimize`; `seconds` is the most that it may take.

    Raises
    ------
    SearchProblem
        If none is known of this device; else as `optimize` does.
    """
    report = optimize(
        program,
        sizes,
        device=device,
        description=description,
        budget=Budget(seconds, search_share=0.0, numpy_share=0.0, roofline_share=0.0),
        exact=exact,
        records=records,
        listen=listen,
    )
    if report.records is None or not report.records.remembered:
        finds = "`optimize --exact`" if exact else "`optimize`"
        what = f"{'exact' if exact else 'right'} kernel of {program.name} at these sizes"
        raise SearchProblem(f"no {what} is known on {report.device}: {finds} finds one")
    return report


def _baseline(
    program: ir.Program, info: DeviceInfo, model: Device, cost: PerformanceModel, exact: bool
) -> Candidate | LiftError:
    """The naive kernel, or why there is none.

    Raises
    ------
    DeviceProblem
        If the device has no room for its inputs and its result.
    """
    naive = naive_term(program)
    try:
        leg = replace(naive_leg(naive.body, model.mapping), exact=exact)
        made = make_candidate(naive, 0.0, info, model, (leg,), cost)
    except (NestingProblem, SizeProblem) as problem:
        return problem
    check_limits(replace(made.plan, buffers=made.plan.inputs + made.plan.outputs, kernels=()), info)
    try:
        check_limits(made.plan, info)
    except DeviceProblem as problem:
        return problem
    return made


def found_device(device: str | DeviceInfo | Device | None, description: Device | None) -> tuple[DeviceInfo, Device]:
    """The OpenCL device that a user means, and its description; a description alone means the device that it fits.

    Raises
    ------
    DeviceProblem
        If there is no such device.
    InputProblem
        If two descriptions are given.
    """
    if isinstance(device, Device):
        if description is not None:
            raise InputProblem(f"a description is given twice, {device.name} as the device beside {description.name}")
        device, description = None, device
    info = device if isinstance(device, DeviceInfo) else find_device(device, description)
    return info, description.on(info) if description else describe(info)


def _require_portable(value: object, what: str) -> None:
    """Raise a `ModelProblem` for a model or function that cannot be sent to the process that searches."""
    try:
        cloudpickle.dumps(value)
    except Exception as problem:  # anything at all: a user's model may say itself how it is pickled
        raise ModelProblem(
            f"{what} cannot be sent to the process that searches: {problem}; "
            "it should hold only what cloudpickle can copy, so no open files, locks or devices"
        ) from problem
