"""Candidates: low-level programs with their kernels and predicted times, and what became of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.errors import LiftError, ModelProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.models import PerformanceModel
from lift_egraph.language import ir
from lift_egraph.language.syntax import print_program, print_term
from lift_egraph.records.record import Validity
from lift_egraph.workbench.phases import Found, Leg

if TYPE_CHECKING:
    from lift_egraph.codegen.running.loaded import LoadedKernel

NOT_RUN = "not run"  # what a candidate says before it is validated


@dataclass
class Candidate:
    """A low-level program with its kernels, and what became of it.

    `cost` is the structural cost of its term, `predicted_ms` what a performance model says of its kernels.
    `measured_ms` is the median of its runs, and half of them lie in `spread_ms`; `times_ms` has them all. `way` has the
    phases that led to it. Which rules they applied, and where, only a derivation knows: `explain`. `failure` says in a
    word what is wrong where it is not valid, `limit` how many seconds its build and run were given, `recorded` when it
    was measured before, if it comes from the records. `tried_ms` is the least of its runs before it was validated, and
    `beside_ms` the time of another kernel, the same for all, in the slower of the moments before and after it.
    `turns_ms` are its times in turns with other kernels, if it was among the best
    (`lift_egraph.workbench.confirmation`); `measured_ms` and `spread_ms` are of these then, as if all rounds had been
    equally quiet. `host` names the machine where it ran, if it is another one. It `is_open` while there is nothing to
    compare its result with.
    """

    program: ir.Program
    plan: Plan
    cost: float
    predicted_ms: float
    way: tuple[Leg, ...] = ()
    measured_ms: float | None = None
    spread_ms: tuple[float, float] | None = None
    valid: bool = False
    max_error: float | None = None
    error_bound: float | None = None
    message: str = NOT_RUN
    times_ms: tuple[float, ...] = ()
    failure: Validity = "wrong"
    limit: float = 0.0
    recorded: str = ""
    tried_ms: float | None = None
    turns_ms: tuple[float, ...] = ()
    host: str = ""
    beside_ms: float | None = None
    is_open: bool = False

    @property
    def least_ms(self) -> float:
        """The least of all its runs: whatever else the host does only adds to a time."""
        known = [ms for ms in (self.tried_ms, self.measured_ms) if ms is not None]
        return min((*known, *self.times_ms), default=math.inf)

    @property
    def lowered(self) -> str:
        """The low-level term as text."""
        return print_term(self.program.body)

    @property
    def rank(self) -> tuple[bool, float]:
        """What valid ones are ordered by: the best, which were timed in turns, before others."""
        return not self.turns_ms, self.measured_ms or 0.0

    def retimed(self, times_ms: Sequence[float]) -> None:
        """Let times in turns with other kernels stand for it, so that what is told of two kernels can be compared."""
        low, middle, high = (float(t) for t in np.quantile(times_ms, (0.25, 0.5, 0.75)))
        self.measured_ms, self.spread_ms = middle, (low, high)

    def then(self, phase: str, term: ir.Expr, steps: int, device: Device) -> Found:
        """What one more phase leads to from its term, in so many steps."""
        return Found(self.cost, term, (*self.way, Leg(phase, term, steps, device.mapping)))

    def load(self, queue: Any) -> LoadedKernel:
        """The kernels as a function, on a `pyopencl.CommandQueue` (`lift_egraph.load` is for those in a directory)."""
        from lift_egraph.codegen.running.loaded import LoadedKernel

        return LoadedKernel(self.plan, queue)


@dataclass(frozen=True)
class Refusal:
    """A low-level term that the search found, and why it cannot become kernels for the device."""

    term: ir.Expr
    message: str

    @property
    def lowered(self) -> str:
        """The term as text."""
        return print_term(self.term)


def make_candidate(
    lowered: ir.Program,
    cost: float,
    info: DeviceInfo,
    model: Device,
    way: tuple[Leg, ...] = (),
    performance: PerformanceModel = predict,
) -> Candidate:
    """Compile a low-level program and predict its time.

    Parameters
    ----------
    cost
        The structural cost of its term.
    way
        The phases that led to it from the program.
    performance
        Predicts the time of its kernels, in ms.

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


def text_length(candidate: Candidate) -> int:
    """The characters of its longest kernel, which say how long it takes to build."""
    return max((len(k.source) for k in candidate.plan.kernels), default=0)


def kernels(candidate: Candidate) -> str:
    """The text of a candidate's kernels, without the comment above them."""
    return "\n".join(k.source for k in candidate.plan.kernels)
