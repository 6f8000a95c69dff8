"""Candidates: low-level programs with their kernels and predicted times."""

from __future__ import annotations

import math

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.errors import LiftError, ModelProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.models import PerformanceModel
from lift_egraph.language import ir
from lift_egraph.language.syntax import print_program
from lift_egraph.workbench.phases import Leg
from lift_egraph.workbench.report import Candidate


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


def text_length(candidate: Candidate) -> int:
    """The characters of its longest kernel, which say how long it takes to build."""
    return max((len(k.source) for k in candidate.plan.kernels), default=0)


def kernels(candidate: Candidate) -> str:
    """The text of a candidate's kernels, without the comment above them."""
    return "\n".join(k.source for k in candidate.plan.kernels)
