"""What a report says of times: ties, rates, and why nothing but the naive kernel was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from lift_egraph import programs
from lift_egraph.cli.show import show_report
from lift_egraph.codegen.running.roofline import Roofline
from lift_egraph.language.check import specialise
from lift_egraph.meaning.inputs import random_inputs
from lift_egraph.workbench import Candidate, Leg, PhaseSummary, Report
from lift_egraph.workbench.rates import numpy_ms

PROGRAM = specialise(programs.load("mm"), {"M": 8, "N": 8, "K": 8})


def candidate(ms: float, low: float, high: float, **fields: Any) -> Candidate:
    facts: dict[str, Any] = {"valid": True, "message": "all equal", **fields}
    return Candidate(PROGRAM, cast(Any, None), 0.0, 1.0, measured_ms=ms, spread_ms=(low, high), **facts)


def report(*candidates: Candidate, **fields: Any) -> Report:
    return Report(PROGRAM, "a device", "saturated", [], list(candidates), 10, 1.0, **fields)


def test_times_that_overlap_are_a_tie(capsys: pytest.CaptureFixture[str]):
    naive, best, near, far = (candidate(*t) for t in ((2, 1.9, 3), (1.0, 0.9, 1.2), (1.3, 1.1, 1.4), (1.5, 1.3, 1.6)))
    made = report(naive, far, near, best, numpy_ms=4.0, validation="the whole result was compared")
    assert [made.is_tie(c) for c in made.ranked] == [False, True, False, False]
    assert [row["tie"] for row in made.to_json()["candidates"]] == [False, True, False, False]
    assert made.rates(best) == pytest.approx((2 * 8**3 * 1e-6, 3 * 8 * 8 * 4 * 1e-6))
    show_report(made)
    shown = capsys.readouterr().out
    for text in (
        "1.3 tie",
        "1.1–1.4",
        "2.00 times as fast",
        "NumPy takes 4 ms: the best is 4.00 times",
        "whole result",
    ):
        assert text in shown
    show_report(report(candidate(1.1, 1.0, 1.3), best))
    assert "the naive one 1.1 ms: a tie." in capsys.readouterr().out


def test_what_rules_alone_found_is_told_beside_plans(capsys: pytest.CaptureFixture[str]):
    rules, plan = [Leg("lowering", PROGRAM.body, 1, "cpu")], [Leg("lanes", PROGRAM.body, 1, "cpu")]
    ms = ((4, rules), (1.0, [*plan, *rules]), (3.0, rules), (2.0, [*plan, *rules]))
    made = report(*(candidate(t, t, t, way=tuple(way)) for t, way in ms))
    lost = PhaseSummary("lanes", 9, 9, 9, 9, 0.1, "saturated", "its sketch is not satisfied: no map 7")
    made.phases[:] = [replace(lost, why_not=""), lost]
    assert [c.measured_ms for c in made.by_rules] == [3.0]
    assert [c.measured_ms for c in made.by_plans] == [1.0, 2.0]
    assert made.to_json()["not_derived"] == ("lanes: its sketch is not satisfied: no map 7",)
    show_report(made)
    shown = capsys.readouterr().out
    assert "Plans led to 2 of the valid kernels, rules alone to 1; the best by rules takes 3 ms, 3.00 times" in shown
    assert "Plans that rules did not lead to: 1.\n  1 × lanes: its sketch is not satisfied: no map 7" in shown
    show_report(report(candidate(2, 2, 2), candidate(1, 1, 1, way=tuple(plan))))
    assert "Plans" not in capsys.readouterr().out


def test_no_rate_of_operations_is_told_that_depends_on_values(capsys: pytest.CaptureFixture[str]):
    """How many a sparse product has is what its offsets say."""
    made = Report(specialise(programs.load("spmv")), "a device", "saturated", [], [candidate(1, 1, 1)], 10, 1.0)
    show_report(made)
    shown = capsys.readouterr().out
    assert "GFLOP/s" not in shown
    assert "GB/s of inputs and result" in shown


def test_why_only_the_naive_kernel_was_measured(capsys: pytest.CaptureFixture[str]):
    naive, wrong, late = candidate(2, 2, 2), candidate(0, 0, 0, valid=False, message="wrong"), candidate(0, 0, 0)
    late.valid, late.message = False, "not run"
    assert report(naive, candidate(3, 3, 3)).only_naive == ""
    assert report(naive).only_naive == "the search found no other (saturated)"
    made = report(naive, wrong, late)
    assert made.only_naive == "of others, 1 rejected, 1 not measured before the time was over"
    show_report(made)
    assert f"Only the naive kernel was measured, 2 ms: {made.only_naive}." in capsys.readouterr().out
    assert made.to_json()["only_naive"] == made.only_naive


def test_what_starting_took_of_the_budget_is_told(capsys: pytest.CaptureFixture[str]):
    """Under load a command may spend much of it before it searches."""
    made = report(candidate(1, 1, 1))
    show_report(made, 13.4)
    assert "1.0 s in all, behind 13.4 s of the budget in which the command started." in capsys.readouterr().out
    show_report(made, 0.2)
    assert "1.0 s in all." in capsys.readouterr().out


def test_times_are_compared_with_what_the_device_reaches(capsys: pytest.CaptureFixture[str]):
    operations, moved = 2 * 8**3, 3 * 8 * 8 * 4
    roof = Roofline(gflop_per_s=operations * 1e-6, gb_per_s=4 * moved * 1e-6)  # 1 ms computing, a quarter moving data
    slow, fast = candidate(2.0, 2.0, 2.0), candidate(0.5, 0.5, 0.5)
    made = report(slow, fast, roofline=roof)
    assert [made.of_roofline(c) for c in (slow, fast)] == pytest.approx([0.5, 2.0])
    show_report(made)
    assert "200% of the device's roofline" in capsys.readouterr().out
    assert [row["of_roofline"] for row in made.to_json()["candidates"]] == pytest.approx([2.0, 0.5])
    assert report(slow).of_roofline(slow) is report(slow).to_json()["roofline"] is None


def test_numpy_is_timed_if_there_is_time():
    inputs = random_inputs(PROGRAM)
    assert numpy_ms(PROGRAM, inputs, 0.0) is None
    assert cast(float, numpy_ms(PROGRAM, inputs, 1.0)) > 0
