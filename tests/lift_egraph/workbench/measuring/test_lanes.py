"""Kernels are validated before they are timed; those that are far slower than the best are neither.

Points of a space are both, however slow they are.
"""

from __future__ import annotations

import time
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running import worker
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.codegen.running.validate import references
from lift_egraph.errors import RunProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.interp import run
from lift_egraph.process.child import End, Ended
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import NOT_RUN, make_candidate
from lift_egraph.workbench.measuring import surveying
from lift_egraph.workbench.measuring.evaluation import TOO_SLOW, evaluate
from lift_egraph.workbench.measuring.surveying import survey
from lift_egraph.workbench.validation.references import load_references

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


@pytest.mark.parametrize(("seconds", "message"), [(0.0, NOT_RUN), (60.0, "ran past")])
def test_a_point_that_the_end_cuts_short_is_not_run(monkeypatch: pytest.MonkeyPatch, seconds: float, message: str):
    """A journal would keep it as too slow."""
    candidate = make_candidate(naive_term(PROGRAM), 0.0, find_device("Portable"), POCL, (), predict)

    def is_right(*_: object) -> bool:
        raise RunProblem("ran past") from Ended(End("time", "ran past"))

    monkeypatch.setattr(surveying, "is_right", is_right)
    runner: Any = SimpleNamespace(left=1.0, deadline=time.perf_counter() + seconds)
    survey(candidate, runner, cast(Any, None), Budget())
    assert (candidate.message, candidate.valid) == (message, False)


@pytest.mark.parametrize(("counts_ms", "runs"), [(0.0, 1), (1e9, 2)])
def test_a_first_run_counts_if_it_is_long(monkeypatch: pytest.MonkeyPatch, counts_ms: float, runs: int):
    launched: list[None] = []
    monkeypatch.setattr(worker, "_COUNTS_MS", counts_ms)
    fake: Any = SimpleNamespace(_prepare=lambda *_: ([], SimpleNamespace(check_guards=lambda: None)))
    fake._timed = lambda *_: launched.append(None) or [700.0]
    timing = worker._Worker.measure(fake, cast(Any, None), "", 1, 0.0, 1.0, float("inf"), 0.0)
    assert (timing.runs, len(launched)) == (1, runs)


def test_the_runs_before_a_kernel_is_validated_take_no_longer_than_those_for_its_time():
    asked: list[dict[str, Any]] = []
    candidate = make_candidate(naive_term(PROGRAM), 0.0, find_device("Portable"), POCL, (), predict)
    runner: Any = SimpleNamespace(left=1.0, deadline=inf)
    runner.measure = lambda *_, **how: asked.append(how) or SimpleNamespace(min_ms=9.0)
    evaluate(candidate, runner, cast(Any, SimpleNamespace(timed="")), Budget(10, timing_share=0.5), cut_off_ms=1.0)
    assert (candidate.failure, [how["max_time"] for how in asked]) == ("too slow", [5.0])


def test_what_is_not_checked_in_time_is_not_run():
    """The interpreter stops with the time of the kernel that it is asked about: nothing waits for it."""
    candidate = make_candidate(naive_term(PROGRAM), 0.0, find_device("Portable"), POCL, (), predict)
    given: Any = references(PROGRAM).floats.inputs
    checks: Any = SimpleNamespace(check=lambda *_: run(PROGRAM, given))
    runner: Any = SimpleNamespace(left=1.0, deadline=time.perf_counter() - 1)
    evaluate(candidate, runner, checks)
    assert not candidate.valid
    assert candidate.message == NOT_RUN
