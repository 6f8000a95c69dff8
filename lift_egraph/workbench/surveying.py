"""Measuring a point of a space for a model to learn from: slow kernels count as well as fast ones, and cost little.

`lift_egraph.workbench.measuring.evaluate` looks for the best kernel: what is far slower it neither compares nor times,
and the others it holds against more. Here each is compared, and then timed: the slow ones by one run.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References
from lift_egraph.errors import BuildProblem, DeviceProblem, RunProblem
from lift_egraph.files import require_room
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.measuring import failure_of
from lift_egraph.workbench.report import Candidate
from lift_egraph.workbench.sampled import Sampled
from lift_egraph.workbench.whole_numbers import WholeNumbers


def survey(
    candidate: Candidate,
    runner: Runner,
    reference: References | Sampled,
    budget: Budget,
    cut_off_ms: float = float("inf"),
    alone: AbstractContextManager[None] | None = None,
    beside: Plan | None = None,
    whole_numbers: WholeNumbers | None = None,
) -> None:
    """Validate a candidate, and time it if it is valid. Failures are noted on it.

    Parameters are those of `lift_egraph.workbench.measuring.evaluate`: no kernel is timed `beside` it, and
    `whole_numbers`, which few kernels are worth, are not asked.

    Parameters
    ----------
    cut_off_ms
        If its first runs take longer, it is run no more: one run after that which warms up tells its time well enough,
        two where the first may be an accident.

    Raises
    ------
    OutputProblem
        If it fails where there is no room for temporary files, which is not its fault.
    """
    candidate.limit = runner.left
    try:
        verdict = reference.check(candidate.program, candidate.plan, runner)
        candidate.valid, candidate.message = verdict.valid, verdict.message
        candidate.max_error, candidate.error_bound = verdict.max_error, verdict.error_bound
        if verdict.valid:
            with alone or nullcontext():
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
    except (BuildProblem, RunProblem, DeviceProblem) as problem:
        require_room()
        candidate.valid, candidate.message, candidate.failure = False, str(problem), failure_of(problem)
