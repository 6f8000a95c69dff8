"""What `optimize` keeps, what it starts from, and what a killed one leaves behind."""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lift_egraph import programs, workbench
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running.run import Runner, find_device
from lift_egraph.codegen.running.validate import references
from lift_egraph.errors import InputProblem, OutputProblem, SearchProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.baseline import naive_term
from lift_egraph.files import json_text
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.records.journal import Journal
from lift_egraph.records.record import Record, point_of, program_hash
from lift_egraph.workbench.recording import SLOWER, Recording
from lift_egraph.workbench.way_file import phases_of, way_of
from tests.codegen.opencl import needs_opencl
from tests.command import leaving_nobody, start
from tests.depth import depth, in_turn
from tests.in_process import no_children
from tests.lift_egraph.records.examples import DEVICE, PROGRAM, RECORD, candidate, record
from tests.lift_egraph.workbench.test_pipeline import SMALL

SUM, SIZES = programs.load("asum"), {"N": 4096}
BUDGET = replace(SMALL, seconds=60, seeds=1, lowered=2, staged=0, measured=3, roofline_share=0.0, tuning_share=0.0)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "records.jsonl")


def recording(journal: Journal, *records: Record) -> Recording:
    """Of the program of the examples, after some records."""
    journal.append(*records)
    return Recording(journal, PROGRAM, DEVICE, POCL)


def remembered(made: Recording, *naive: workbench.Candidate) -> list[workbench.Candidate]:
    made.remember(list(naive), predict, lambda candidate: None)
    return made.remembered


# --- programs and kernels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("program other(x: [f32]64) =\n  map(fun element =>\n element*2.0, x)", True),
        ("program scale(x: [f32]M) where M = 64 = map(fun v => v * 2.0, x)", True),
        ("program scale(x: [f32]N) where N = 32 = map(fun v => v * 2.0, x)", False),
        ("program scale(y: [f32]N) where N = 64 = map(fun v => v * 2.0, y)", False),
        ("program scale(x: [f32]N in 0.0..1.0) where N = 64 = map(fun v => v * 2.0, x)", False),
        ("program scale(x: [i32]N) where N = 64 = map(fun v => v * 2, x)", False),
        ("program scale(x: [f32]N) where N = 64 = map(fun v => 2.0 * v, x)", False),
    ],
)
def test_what_a_program_is_known_by(text: str, same: bool):
    assert (program_hash(specialise(parse_program(text))) == RECORD.program.hash) == same


# --- what is known ----------------------------------------------------------------------------------------


def test_the_best_of_devices_like_this_one_is_tried_but_not_known(journal: Journal):
    far, near = (replace(DEVICE, name=name, compute_units=n * DEVICE.compute_units) for name, n in (("B", 8), ("C", 2)))
    other = replace(near, name="D", kind="gpu")
    slow = "program scale(x: [f32]64) = mapGlb(0, fun v => v * 2.0, x)"
    twice = "program scale(x: [f32]64) = join(mapGlb(0, mapSeq(fun v => v * 2.0), split({}, x)))"
    made = recording(
        journal,
        record(device=other, term=twice.format(2)),
        record(device=far, term=twice.format(4)),
        record(device=near, term=twice.format(8), median=2e-3),
        record(device=near, term=slow, median=3e-3),
        record(device=near, term=twice.format(16), validity="wrong", median=None),
    )
    tried = remembered(made)
    assert ["split(8," in str(c.plan.source) for c in tried] == [True, False]
    assert "split(4," in tried[1].plan.source
    assert not any(c.recorded for c in tried)
    summary = made.summary()
    assert summary is not None
    assert summary.remembered == 0


def test_what_failed_here_is_not_tried_because_it_is_the_best_of_another_device(journal: Journal):
    near = replace(DEVICE, name="B")
    made = recording(journal, record(device=near), record(validity="crashed", median=None))
    assert not remembered(made)


def test_what_another_device_alone_can_run_is_noted(journal: Journal):
    near = replace(DEVICE, name="B")
    made = recording(journal, record(device=near, term="program scale(x: [f32]64) = map(fun v => v * 2.0, x)"))
    assert not remembered(made)
    assert any("on B cannot be compiled here" in note for note in made.notes)


def test_a_known_kernel_is_compiled_again_with_its_way(journal: Journal):
    made = recording(journal, record(median=2e-3), record(median=1e-3, date="2026-01-02T03:04:05"))
    (known,) = remembered(made)
    assert known.recorded == "2026-01-02T03:04:05"  # that of the least median
    assert known.plan.source == candidate().plan.source
    assert known.way[-1].name == "lowering"
    assert alpha_equal(known.way[-1].term, known.program.body)
    assert not remembered(recording(journal), candidate())  # the naive kernel goes first anyway


@pytest.mark.parametrize(
    "changes",
    [
        {"validity": "wrong"},
        {"phases": []},
        {"term": "program scale(x: [f32]64) = nothing(x)"},
        {"device": replace(DEVICE, name="another", kind="gpu")},
        {"program": msgspec.structs.replace(RECORD.program, hash="0" * 64)},
    ],
)
def test_what_is_not_remembered(journal: Journal, changes: dict[str, Any]):
    before = [RECORD] if "validity" in changes else []
    made = recording(journal, *before, record(**changes))
    assert not remembered(made)
    assert len(made.notes) == ("term" in changes)


def test_only_good_kernels_are_remembered(journal: Journal):
    sources = [f"program scale(x: [f32]64) = mapGlb(0, fun v => v * {n}.0, x)" for n in range(1, 4)]
    medians = 1e-3, 1e-3 * SLOWER * 1.01, 1e-3 * SLOWER * 0.99
    made = recording(journal, *(record(term=t, median=m) for t, m in zip(sources, medians, strict=True)))
    assert ["* 1.0" in c.lowered for c in remembered(made)] == [True, False]


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"validity": "wrong"}, True),
        ({"validity": "crashed"}, True),
        ({"validity": "too slow"}, True),
        ({"validity": "too slow", "limit": 1.0}, False),
        ({"validity": "wrong", "versions": {"lift-egraph": "0.0"}}, False),
        ({"validity": "wrong", "device": replace(DEVICE, driver_version="0")}, False),
        ({"validity": "wrong", "point": "0" * 64}, False),
        ({}, False),
        ({"median": 3e-3 * SLOWER}, True),
    ],
)
def test_what_is_not_measured_again(journal: Journal, changes: dict[str, Any], known: bool):
    fast = record(term="another", point="1" * 64, median=2e-3)
    made = recording(journal, fast, record(**changes))
    assert made.knows(candidate(), limit=5.0) == known
    assert made.summary() is not None
    assert f"{int(known)} found again" in str(made.summary()) or not known


def test_a_full_disk_does_not_end_a_search(journal: Journal):
    made = recording(journal, RECORD)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 100, limits[1]))
    try:
        made.add(candidate())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    made.add(candidate())  # a gap would be worse than an end
    summary = made.summary()
    assert summary is not None
    assert (summary.appended, summary.problem) == (0, f"cannot write to {journal.path}: File too large")
    assert journal.read().records == (RECORD,)


@in_turn(2)
@needs_opencl
def test_why_a_kernel_failed_is_recorded(journal: Journal):
    info = find_device()
    good = naive_term(PROGRAM)
    reference = references(PROGRAM)
    faults = {
        "valid": ("", ""),
        "wrong": ("2.0f", "3.0f"),
        "failed to build": ("{\n", "{ no C\n"),
        "too slow": ("{\n", "{\n  for (volatile int z = 1; z;) {}\n"),
        "crashed": ("{\n", "{\n  *(global int *)(size_t)(16) = 1;\n"),
    }
    no_results = ("2.0f", "NAN"), ("2.0f", "INFINITY"), ("{\n", "{\n  return;\n"), ("] =", " + 1] =")
    made = Recording(journal, PROGRAM, info, POCL)
    tried: list[workbench.Candidate] = []
    with Runner(info) as runner:
        workbench.load_references(runner, reference)
        for before, after in (*faults.values(), *no_results):
            one = workbench.make_candidate(good, 0, info, POCL)
            tried.append(one)
            runner.time_limit = 0.5 if "for (" in after else 60
            assert before in one.plan.source
            one.plan = replace(one.plan, source=one.plan.source.replace(before, after, 1))
            workbench.evaluate(one, runner, reference)
            made.add(one)
    found = journal.read().records
    assert [r.validity for r in found] == [*faults, *(["wrong"] * len(no_results))]
    assert [r.median is None for r in found] == [False, *([True] * (len(found) - 1))]
    reasons = "is nan, not", "is inf, not", "left 64 of 64 elements .* unwritten", "wrote outside"
    for wrong, text in zip(found[len(faults) :], reasons, strict=True):
        assert re.search(text, wrong.reason)
    assert all(r.reason for r in found)
    assert workbench.Report(PROGRAM, "", "", [], tried, 10, 1.0).ranked == tried[:1]
    assert found[0].samples[0] > 0
    assert found[0].runs >= len(found[0].samples)


@needs_opencl
def test_without_room_for_temporary_files_no_kernel_is_to_blame(runner: Runner, monkeypatch: pytest.MonkeyPatch):
    one = workbench.make_candidate(naive_term(PROGRAM), 0, find_device(), POCL)
    one.plan = replace(one.plan, source="no C")
    reference = references(PROGRAM)
    workbench.load_references(runner, reference)
    workbench.evaluate(one, runner, reference)
    assert one.failure == "failed to build"
    monkeypatch.setattr("lift_egraph.files.LEAST_ROOM", 1 << 60)
    with pytest.raises(OutputProblem, match="is full, so kernels cannot be built: make room, or let TMPDIR"):
        workbench.evaluate(one, runner, reference)


def test_a_kernel_is_known_however_its_binders_are_called(journal: Journal):
    made = recording(journal, record(validity="wrong"))
    other = parse_program(RECORD.term.replace("fun v", "fun other").replace("v *", "other *"))
    assert other.body != parse_program(RECORD.term).body
    renamed = workbench.make_candidate(replace(PROGRAM, body=other.body), 0.0, DEVICE, POCL)
    assert made.knows(renamed, limit=5.0)
    going_first = recording(Journal(journal.path.with_name("other")), RECORD)
    (known,) = remembered(going_first)
    assert going_first.knows(known, limit=5.0)  # so that the search does not bring it once more


# --- optimize ---------------------------------------------------------------------------------------------


@needs_opencl
@in_turn(3)
def test_a_second_search_starts_from_the_best_of_the_first(journal: Journal, tmp_path: Path):
    first = workbench.optimize(SUM, SIZES, budget=BUDGET, records=journal.path)
    measured = [c for c in first.candidates if c.message != "not run"]
    assert first.records is not None
    assert first.records.appended == len(measured) == len(journal.read().records)
    assert first.best is not None
    assert not any(c.recorded for c in first.candidates)

    second = workbench.recall(SUM, SIZES, records=journal.path, seconds=6)
    assert second.records is not None
    assert second.records.remembered >= 1
    # beside other tests a kernel of a microsecond may seem far slower than another one: then it is not compared
    assert first.best.lowered in [c.lowered for c in second.candidates if c.recorded]
    workbench.write(second, tmp_path / "out")
    program, way = workbench.read_way(tmp_path / "out")
    assert alpha_equal(program.body, second.source.body)
    assert second.best is not None
    assert alpha_equal(way[-1].term, second.best.program.body)
    with no_children():
        assert workbench.explain_way(program, way, time_limit=60).sound

    earlier = {r.point for r in journal.read().records}
    third = workbench.optimize(SUM, SIZES, budget=BUDGET, records=journal.path)
    assert third.records is not None
    known = [point_of(c.program, c.plan) for c in third.candidates if c.recorded]
    assert known
    assert {*known} <= earlier
    terms = [c.lowered for c in third.candidates if c.message != "not run"]
    assert len(terms) == len(set(terms))
    points = [point_of(c.program, c.plan) for c in third.candidates]
    assert len(points) == len(set(points))
    before = {r.term: r.point for r in journal.read().records[: first.records.appended]}
    again = {r.term: r.point for r in journal.read().records[first.records.appended :]}
    assert all(before[term] == point for term, point in again.items() if term in before)


def test_a_journal_that_is_none_ends_the_search_before_it_begins(tmp_path: Path):
    (tmp_path / "notes").write_text("# Notes")
    with pytest.raises(InputProblem, match="is no journal of records"):
        workbench.optimize(SUM, SIZES, device=DEVICE, records=tmp_path / "notes")
    with pytest.raises(InputProblem, match=r"cannot read .*: Not a directory"):
        workbench.optimize(SUM, SIZES, device=DEVICE, records=tmp_path / "notes/journal")
    with pytest.raises(OutputProblem, match=r"cannot write to /proc/records"):
        workbench.optimize(SUM, SIZES, device=DEVICE, records="/proc/records")


def test_the_users_own_journal_may_be_of_no_use(tmp_path: Path):
    (tmp_path / "notes").write_text("# Notes")
    for place in (tmp_path / "notes", tmp_path / "notes/journal", Path("/proc/records")):
        made = Recording(Journal(place), PROGRAM, DEVICE, POCL)
        made.add(candidate())
        summary = made.summary()
        assert summary is not None
        assert summary.problem.count(str(place)) == 1
        assert "0 kernels added" in str(summary)
    assert (tmp_path / "notes").read_text() == "# Notes"


@needs_opencl
def test_nothing_is_recalled_where_nothing_is_known(journal: Journal):
    with pytest.raises(SearchProblem, match="no right kernel of asum at these sizes is known"):
        workbench.recall(SUM, SIZES, records=journal.path)


# --- kill -9 ----------------------------------------------------------------------------------------------

MOST_UNTOLD = 3  # records: one that was just kept, and those of lanes that finish when the time is over
LONGEST = 9.0  # seconds: about as long as this search takes
SEARCH = """
import sys
from lift_egraph import programs, workbench
def listen(event):
    if event.stage == "measure":
        print("measured", flush=True)
workbench.optimize(programs.load("mm"), {"M": 32, "N": 32, "K": 32}, budget=20, records=sys.argv[1], listen=listen)
"""


@needs_opencl
@in_turn(3)
@pytest.mark.parametrize("number", range(depth(1, 200)))
def test_a_search_killed_at_any_point_loses_nothing_and_leaves_nobody(journal: Journal, number: int):
    """The first two are killed after a kernel was measured, the others at any time."""
    mark, draw = f"{os.getpid()}-{number}", random.Random(number)
    process = start("-c", SEARCH, journal.path, MARK=mark)
    with leaving_nobody(process, mark):
        assert process.stdout is not None
        count = (1, 4)[number] if number < 2 else 0
        for _ in range(count):
            assert process.stdout.readline() == "measured\n"
        time.sleep(0.3 * draw.random() if count else LONGEST * draw.random())
        process.send_signal(signal.SIGKILL)
        rest, complaints = process.communicate()
        assert not complaints
        contents = journal.read()
        assert [note for note in contents.notes if "torn" not in note] == []
        assert 0 <= len(contents.records) - count - rest.count("measured\n") <= MOST_UNTOLD
    assert Journal(journal.path).add_all(contents.records) == (len(contents.records), 0)  # what comes later is not lost
    journal.append(RECORD)
    assert journal.read().records == (*contents.records, RECORD)


# --- exact kernels ----------------------------------------------------------------------------------------


def test_exact_kernels_and_others_do_not_know_each_other(journal: Journal):
    plan = compile_program(candidate().program, POCL.exact)
    made = candidate(plan=plan, way=tuple(replace(leg, exact=True) for leg in candidate().way))
    exact = Recording(None, PROGRAM, DEVICE, POCL.exact).record_of(made)
    assert (exact.exact, RECORD.exact) == (True, False)
    assert exact.point != RECORD.point  # they are built with other options
    others = recording(journal, exact, RECORD)
    alike = Recording(journal, PROGRAM, DEVICE, POCL.exact, exact=True)
    assert (alike.records, others.records) == ([exact], [RECORD])
    assert [leg.exact for c in remembered(alike) for leg in c.way] == [True]
    assert [leg.exact for c in remembered(others) for leg in c.way] == [False]


def test_an_exact_phase_has_the_exact_forms_of_rules():
    leg = replace(candidate().way[0], name="algorithmic", exact=True)
    (read,) = way_of(phases_of(PROGRAM, (leg,)))
    assert (read.exact, str(read)) == (True, "exact algorithmic phase")
    assert not any(rule.flags for rule in read.phase.rules)
    assert any(rule.flags for rule in replace(read, exact=False).phase.rules)
    assert "exact" not in json_text(phases_of(PROGRAM, (replace(leg, exact=False),)))
