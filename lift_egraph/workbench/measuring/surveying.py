"""Measuring a point of a space for a model to learn from: slow kernels count as well as fast ones, and cost little.

`lift_egraph.workbench.measuring.evaluation.evaluate` looks for the best kernel: what is far slower it neither compares
nor times, and the others it holds against more. Here each is compared, and then timed: the slow ones by one run.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext

from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import NOT_RUN, Candidate
from lift_egraph.workbench.measuring.evaluation import is_right, noting_failures, take_time
from lift_egraph.workbench.validation.sampled import Sampled
from lift_egraph.workbench.validation.whole_numbers import WholeNumbers


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

    What the runner's deadline cut short counts as not run.

    Parameters are those of `lift_egraph.workbench.measuring.evaluation.evaluate`: no kernel is timed `beside` it, and
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
    with noting_failures(candidate):
        if is_right(candidate, runner, reference):
            with alone or nullcontext():
                take_time(candidate, runner, reference, budget, cut_off_ms)
    if candidate.failure == "too slow" and time.perf_counter() >= runner.deadline:
        candidate.message = NOT_RUN  # what it says was made by the end, not by its kernel
