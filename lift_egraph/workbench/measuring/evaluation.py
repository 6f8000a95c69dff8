"""Validating and timing one kernel, and what became of it in a word."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import isfinite

from lift_egraph.codegen.device_info import Timing
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References
from lift_egraph.errors import BuildProblem, DeviceProblem, LiftError, RunProblem, TimeProblem
from lift_egraph.files import require_room
from lift_egraph.meaning.time_limit import within
from lift_egraph.process.child import Ended
from lift_egraph.records.record import Validity
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import NOT_RUN, Candidate
from lift_egraph.workbench.validation.sampled import Sampled
from lift_egraph.workbench.validation.whole_numbers import Outcome, WholeNumbers

Evaluation = Callable[..., None]
"""What validates and times a candidate: `evaluate`, or a function with its parameters."""
BUDGET = Budget()
TOO_SLOW = "far slower than the best in its first runs"
_TRIALS = 3  # runs before a kernel is validated, and of that which is timed beside it
NEAR = 1.25  # times the best time, up to which kernels are held against more


def evaluate(
    candidate: Candidate,
    runner: Runner,
    reference: References | Sampled,
    budget: Budget = BUDGET,
    cut_off_ms: float = float("inf"),
    alone: AbstractContextManager[None] | None = None,
    beside: Plan | None = None,
    whole_numbers: WholeNumbers | None = None,
) -> None:
    """Validate a candidate, and time it if it is valid. Failures are noted on it.

    Parameters
    ----------
    cut_off_ms
        If its first runs take longer, in milliseconds, it is neither validated nor run any more.
    alone
        Entered for as long as it is timed.
    beside
        Another kernel, whose time in that moment says how slow the host is.
    whole_numbers
        What it is held against on whole numbers, if it is nearly as fast as the best.

    Raises
    ------
    OutputProblem
        If it fails where there is no room for temporary files, which is not its fault.
    """
    candidate.limit = runner.left
    with noting_failures(candidate), within(runner.deadline - time.perf_counter()):
        if isfinite(cut_off_ms):  # large results take seconds to compare
            most = budget.seconds * budget.timing_share
            tried = {"repeats": _TRIALS, "min_time": 0.0, "max_time": most, "cut_off_ms": cut_off_ms}
            candidate.tried_ms = runner.measure(candidate.plan, reference.timed, **tried).min_ms
            if candidate.tried_ms > cut_off_ms:
                with alone or nullcontext():
                    candidate.beside_ms = _beside_ms(runner, beside, reference.timed)
                candidate.message, candidate.failure = f"{TOO_SLOW}: not compared", "too slow"
                return
        if is_right(candidate, runner, reference):
            with alone or nullcontext():
                before = _beside_ms(runner, beside, reference.timed)
                timing = take_time(candidate, runner, reference, budget, cut_off_ms)
                after = _beside_ms(runner, beside, reference.timed)
            candidate.beside_ms = None if before is None or after is None else max(before, after)
            if whole_numbers and timing.median_ms <= NEAR * cut_off_ms / budget.cut_off:
                hold(candidate, _on_whole_numbers(whole_numbers, candidate, runner))


def _on_whole_numbers(whole_numbers: WholeNumbers, candidate: Candidate, runner: Runner) -> Outcome | None:
    """What becomes of it on whole numbers; None also where the search ends meanwhile: it is right and timed already."""
    try:
        return whole_numbers.check(candidate.program, runner)
    except TimeProblem:
        return None
    except RunProblem as problem:
        if _failure_of(problem) == "too slow" and time.perf_counter() >= runner.deadline:
            return None
        raise


@contextmanager
def noting_failures(candidate: Candidate) -> Iterator[None]:
    """What goes wrong with a candidate inside is noted on it; where the time was over for checking it, it was not run.

    Raises
    ------
    OutputProblem
        If it fails where there is no room for temporary files, which is not its fault.
    """
    try:
        yield
    except TimeProblem:
        candidate.valid, candidate.message = False, NOT_RUN
    except (BuildProblem, RunProblem, DeviceProblem) as problem:
        require_room()
        candidate.valid, candidate.message, candidate.failure = False, str(problem), _failure_of(problem)


def is_right(candidate: Candidate, runner: Runner, reference: References | Sampled) -> bool:
    """Whether a candidate computes what it should, which is noted on it."""
    verdict = reference.check(candidate.program, candidate.plan, runner)
    candidate.valid, candidate.message = verdict.valid, verdict.message
    candidate.max_error, candidate.error_bound = verdict.max_error, verdict.error_bound
    candidate.is_open = verdict.is_open
    return verdict.valid


def take_time(
    candidate: Candidate, runner: Runner, reference: References | Sampled, budget: Budget, cut_off_ms: float
) -> Timing:
    """The times of a candidate, which are noted on it; one whose first run takes more than `cut_off_ms` is run once."""
    timing = runner.measure(
        candidate.plan,
        reference.timed,
        repeats=budget.repeats,
        min_time=budget.timing_seconds,
        max_time=budget.seconds * budget.timing_share,
        cut_off_ms=cut_off_ms,
    )
    candidate.measured_ms, candidate.spread_ms = timing.median_ms, timing.spread_ms
    candidate.times_ms = timing.times_ms
    return timing


def hold(candidate: Candidate, outcome: Outcome | None) -> None:
    """Keep what became of a valid candidate on whole numbers; one that is wrong there has no time."""
    if outcome is None:
        return
    candidate.message = f"{candidate.message}; {outcome.message}" if outcome.valid else outcome.message
    if not outcome.valid:
        candidate.valid, candidate.measured_ms, candidate.spread_ms, candidate.times_ms = False, None, None, ()


def _beside_ms(runner: Runner, beside: Plan | None, inputs: str) -> float | None:
    """The least time of some runs of the kernel beside."""
    if beside is None:
        return None
    try:
        return runner.measure(beside, inputs, repeats=_TRIALS, min_time=0.0).min_ms
    except LiftError:  # the time is over, which is no fault of the kernel that was measured
        return None


def _failure_of(problem: LiftError) -> Validity:
    """What went wrong with a kernel, in a word."""
    if isinstance(problem, BuildProblem):
        return "failed to build"
    if isinstance(problem, DeviceProblem):
        return "refused"
    if isinstance(problem.__cause__, Ended):
        return "too slow" if problem.__cause__.end.kind == "time" else "crashed"
    return "wrong"  # it wrote outside of its buffers, or not all of its result
