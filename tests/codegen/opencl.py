"""Runs plans for tests, many kernels in one build."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lift_egraph.api import LiftError, Runner, find_device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.meaning.values import leaves_of
from tests.codegen.corpus.harness import merged

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")


def in_one_build(plans: Sequence[Plan]) -> list[Plan]:
    """The plans with the kernels of all in the source of each: a build takes longer than to run small kernels.

    Their kernels must have different names.
    """
    source = merged(plans)
    return [replace(plan, source=source) for plan in plans]


def text_of(plan: Plan) -> str:
    """The kernels of a plan alone."""
    return "\n".join(k.source for k in plan.kernels)


def as_pocl_likes(plan: Plan) -> Plan:
    """A plan that is not optimised, and does not wish to unroll: PoCL takes long for that where loops have barriers."""
    source = re.sub(r"#pragma unroll \d+\n", "\n", plan.source)
    return replace(plan, source=source, options=(*plan.options, "-cl-opt-disable"))


def results(runner: Runner, plan: Plan, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """The leaves of what a plan computes."""
    runner.load_inputs("inputs", inputs)
    return list(leaves_of(runner.run(plan, "inputs")))


@cache
def _no_device() -> str:
    """Why no OpenCL device can be used; empty where one can."""
    try:
        find_device()
    except LiftError as problem:
        return str(problem)
    return ""


needs_opencl = pytest.mark.skipif(bool(_no_device()), reason=f"needs an OpenCL device: {_no_device()}")
