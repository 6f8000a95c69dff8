"""Kernels are validated before they are timed; those that are far slower than the best are neither.

Points of a space are both, however slow they are.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.codegen.running.validate import references
from lift_egraph.errors import RunProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.process.child import End, Ended
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import make_candidate
from lift_egraph.workbench.measuring import TOO_SLOW, evaluate
from lift_egraph.workbench.surveying import survey
from lift_egraph.workbench.validation import load_references

PROGRAM = parse_program("program p(xs: [f32]100000) = map(fun x => sqrt(abs(x)), xs)")


@pytest.mark.parametrize(("cut_off_ms", "is_compared"), [(1e6, True), (1e-6, False)])
def test_what_is_far_slower_than_the_best_is_not_compared(cut_off_ms: float, is_compared: bool):
    device, reference = find_device("Portable"), references(PROGRAM)
    candidate = make_candidate(naive_term(PROGRAM), 0.0, device, POCL, (), predict)
    with Runner(device) as runner:
        load_references(runner, reference)
        evaluate(candidate, runner, reference, cut_off_ms=cut_off_ms)
    assert candidate.tried_ms is not None
    assert candidate.valid == is_compared
    assert (candidate.measured_ms is not None) == is_compared
    if not is_compared:
        assert candidate.failure == "too slow"
        assert candidate.message.startswith(TOO_SLOW)


@pytest.mark.parametrize("is_over", [True, False])
def test_what_is_right_and_timed_stays_so_where_the_search_ends_with_its_last_check(is_over: bool):
    device, reference = find_device("Portable"), references(PROGRAM)
    candidate = make_candidate(naive_term(PROGRAM), 0.0, device, POCL, (), predict)

    class Slow:
        def check(self, lowered: object, runner: Runner) -> None:
            runner.deadline = time.perf_counter() + (0.0 if is_over else 60.0)
            raise RunProblem("ran past its limit") from Ended(End("time", "ran past its limit", ""))

    slow: Any = Slow()
    with Runner(device) as runner:
        load_references(runner, reference)
        evaluate(candidate, runner, reference, cut_off_ms=1e6, whole_numbers=slow)
    assert candidate.valid == is_over
    assert candidate.failure == ("wrong" if is_over else "too slow")


@pytest.mark.parametrize(("cut_off_ms", "runs"), [(1e6, range(7, 10_001)), (1e-6, range(1, 2))])
def test_a_slow_point_of_a_space_counts_and_is_run_once(cut_off_ms: float, runs: range):
    device, reference = find_device("Portable"), references(PROGRAM)
    candidate = make_candidate(naive_term(PROGRAM), 0.0, device, POCL, (), predict)
    with Runner(device) as runner:
        load_references(runner, reference)
        survey(candidate, runner, reference, Budget(repeats=7, timing_seconds=1e-3), cut_off_ms)
    assert candidate.valid
    assert candidate.measured_ms is not None
    assert len(candidate.times_ms) in runs
