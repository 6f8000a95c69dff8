"""How kernels were derived: from the program to exactly their term, in steps that replay and keep the result."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from lift_egraph.api import Limits, StructuralCost, alpha_equal, naive_term, programs, rules, specialise, workbench
from lift_egraph.codegen.devices import NVIDIA, POCL
from lift_egraph.derivation.steps import World
from lift_egraph.errors import InputProblem
from lift_egraph.files import json_text
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program, print_program
from lift_egraph.meaning.agreement import Comparer, Comparison
from lift_egraph.workbench import Explanation, Found, explain_way, read_way, search
from lift_egraph.workbench.phases import naive_leg
from lift_egraph.workbench.planning.plan import PLANNED
from lift_egraph.workbench.way_file import WAY_FILE, derivation_of
from tests.command import ctrl_c, lift
from tests.depth import in_turn
from tests.in_process import no_children

FAST = workbench.Budget(limits=Limits(iterations=2, nodes=5_000))
CPU = replace(POCL, compute_units=2, vector_width=4)
BLUR = parse_program("""
program blur(x: [f32]N) where N = 64 =
  map(fun w => 0.25 * at(0, w) + 0.5 * at(1, w) + 0.25 * at(2, w), slide(3, 1, pad(1, 1, clamp, x)))
""")
PROGRAMS = {
    "asum": specialise(programs.load("asum"), {"N": 64}),
    "blur": specialise(BLUR),
    "mm": specialise(programs.load("mm"), {"M": 16, "K": 16, "N": 16}),
}
EXPLAINED = ("asum", "blur")  # that of mm takes longest: the first notebook has one, as complete and as sound


@cache
def cheapest(name: str) -> Found:
    """The first term that a search finds, and rates best, whose program was restructured before it was lowered."""
    program = PROGRAMS[name]
    found = (item for item in search(program, CPU, FAST, StructuralCost()) if isinstance(item, Found))
    return next(item for item in found if not alpha_equal(item.way[0].term, program.body))


@cache
def explained(name: str) -> Explanation:
    with no_children():
        return explain_way(PROGRAMS[name], cheapest(name).way, time_limit=120)


@in_turn(6)
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_steps_lead_from_the_program_to_the_term(name: str):
    found = explained(name)
    assert found.complete, [leg.problem for leg in found.legs]
    assert [leg.leg.name for leg in found.legs] == [leg.name for leg in cheapest(name).way]
    now = PROGRAMS[name].body
    for leg in found.legs:
        assert alpha_equal(leg.seed, now)
        for checked in leg.steps:
            assert alpha_equal(checked.step.before, now)
            assert not alpha_equal(checked.step.after, now)
            now = checked.step.after
        assert alpha_equal(now, leg.leg.term)
    assert alpha_equal(now, cheapest(name).term)
    assert len(found.legs[0].steps) >= 1
    assert len(found.legs[1].steps) >= 2


@pytest.mark.parametrize(
    "body",
    [
        "scanExclusive(fun ((a, b), (c, d)) => (a * c, b * c + d), (1.0, 0.0), zip(xs, xs))",
        "reduce(fun (a, b) => a + b + a * b, 0.0, xs)",
        "reduce(fun (a, b) => a + a * b, 0.0, map(fun x => let y = x * x in y + 1.0 / y, xs))",
        "scan(fun (a, b) => if a > b then a else b, 0.0, map(fun x => let y = x * x in y + 1.0 / y, xs))",
    ],
)
def test_naive_loops_by_functions_are_those_that_rules_make(body: str) -> None:
    program = specialise(parse_program(f"program p(xs: [f32]N) where N = 16 = {body}"))
    with no_children():
        found = explain_way(program, (naive_leg(naive_term(program).body, "cpu"),), time_limit=120)
    assert found.complete, [leg.problem for leg in found.legs]


def test_a_naive_kernel_that_no_rules_lead_to_is_told() -> None:
    text = "program p(xs: [f32]N) where N = 16 = let ys = map(abs, xs) in (ys, reduce(add, 0.0, ys))"
    program = specialise(parse_program(text))
    with no_children():
        found = explain_way(program, (naive_leg(naive_term(program).body, "cpu"),), time_limit=120)
    assert "GAP: no rules lead to a naive kernel that copies results" in str(found)


@pytest.mark.parametrize("name", EXPLAINED)
def test_each_step_replays_and_is_interpreted_equal(name: str):
    found = explained(name)
    assert all(c.replays and c.comparison.equal for c in found.steps)
    assert found.sound
    assert f"all replay, {len(found.steps)} interpreted equal" in found.summary
    flagged = {c.step.rule.name for c in found.steps if c.step.rule.reassociates or c.step.rule.commutes}
    assert set(found.flagged) == flagged
    assert found.exactness.startswith("Results of floats may change by" if flagged else "No step changes")
    assert found.exactness in str(found)
    named = {rule.name for rule in rules.all_rules}
    assert all(c.step.rule.name in named and c.step.rule.law and c.step.place for c in found.steps)


def test_a_changed_step_does_not_replay():
    (leg, *_) = explained("asum").legs
    first, second = (checked.step for checked in leg.steps[:2])
    world = World(leg.leg.phase)
    assert world.replays(first)
    wrong = (
        replace(first, after=second.after),
        replace(first, before=second.before),
        replace(first, rule=rules.fusion.map_fusion),
        replace(first, path=(*first.path, 1)),
        replace(first, nodes=(first.nodes[0], second.nodes[1])),
    )
    for step in wrong:
        assert not world.replays(step)


def test_a_step_that_changes_the_result_is_seen():
    first = explained("asum").steps[0].step
    doubled = parse_program(print_program(replace(PROGRAMS["asum"], body=first.after)).replace("abs", "neg")).body
    assert Comparer(PROGRAMS["asum"]).compare(first.before, first.after).equal
    assert not Comparer(PROGRAMS["asum"]).compare(first.before, doubled).equal


@in_turn(3)
def test_staging_in_local_memory_is_a_step():
    program = PROGRAMS["mm"]
    found = next(
        item
        for item in search(program, NVIDIA, FAST, StructuralCost())
        if isinstance(item, Found) and len(item.way) == 3 and not alpha_equal(item.way[1].term, item.term)
    )
    with no_children():
        (*_, leg) = explain_way(program, found.way[1:], time_limit=120).legs  # from the second phase on
    assert leg.leg.name == "memory"
    assert not leg.problem
    assert {c.step.rule.name for c in leg.steps} <= {"stage_in_local", "stage_in_private"}
    assert leg.steps
    assert all(c.sound and c.comparison.equal for c in leg.steps)


def test_a_time_limit_leaves_a_gap():
    found = explain_way(PROGRAMS["asum"], cheapest("asum").way, time_limit=-4.8)  # less than a process takes to start
    assert not found.complete
    assert "not found within" in found.legs[0].problem
    assert found.legs[-1].problem == "not begun"


def write_way(name: str, directory: Path) -> Path:
    directory.mkdir()
    (directory / WAY_FILE).write_text(json_text(derivation_of(PROGRAMS[name], cheapest(name).way)))
    return directory


def test_a_way_is_read_as_it_was_written(tmp_path: Path):
    program, way = read_way(write_way("mm", tmp_path / "mm"))
    assert alpha_equal(program.body, PROGRAMS["mm"].body)
    assert program.inputs == PROGRAMS["mm"].inputs
    for read, written in zip(way, cheapest("mm").way, strict=True):
        assert alpha_equal(read.term, written.term)
        assert replace(read, term=written.term) == written
        assert read.phase == written.phase


@in_turn(3)
def test_the_command_line_shows_the_steps(tmp_path: Path):
    result = lift("explain", write_way("blur", tmp_path / "blur"))
    assert result.exit_code == 0, result.stderr
    steps = explained("blur").steps
    for number, checked in enumerate(steps, 1):
        assert f"  {number:3}  {checked.step.rule.name}  at {checked.step.place}\n" in result.stdout
        assert checked.step.rule.law in result.stdout
    assert result.stdout.count("replayed; equal in the whole result") == len(steps)
    assert "program blur(x: [f32]64) =" in result.stdout
    assert "lead from the program to the kernel's term: all replay" in result.stdout
    assert "lowering: " in result.stderr


def test_the_command_line_prints_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workbench, "explain_way", lambda program, way, **options: explained("blur"))
    result = lift("explain", write_way("blur", tmp_path / "blur"), "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["complete"]
    assert found["sound"]
    steps = [step for phase in found["phases"] for step in phase["steps"]]
    assert [s["rule"] for s in steps] == [c.step.rule.name for c in explained("blur").steps]
    assert all(s["replays"] and s["equal"] and s["law"] and s["before"] != s["after"] for s in steps)


def test_the_command_line_tells_of_a_gap(tmp_path: Path):
    other = parse_program(print_program(PROGRAMS["blur"]).replace("0.5", "0.75")).body  # computes something else
    (tmp_path / WAY_FILE).write_text(json_text(derivation_of(PROGRAMS["blur"], (naive_leg(other, "cpu"),))))
    result = lift("explain", tmp_path)
    assert result.exit_code == 1
    assert "GAP: the phase lowering does not reach the term" in result.stdout
    assert "there is a gap" in result.stdout


def test_a_wrong_step_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = explained("blur")
    (first, *others) = found.legs[-1].steps
    bad = replace(first, replays=False), replace(first, comparison=Comparison(False, "the whole result"))
    for step, text in zip(bad, ("DOES NOT REPLAY", "replayed; DIFFERENT in the whole result"), strict=True):
        wrong = replace(found, legs=(*found.legs[:-1], replace(found.legs[-1], steps=(step, *others))))
        monkeypatch.setattr(workbench, "explain_way", lambda program, way, wrong=wrong, **options: wrong)
        result = lift("explain", write_way("blur", tmp_path / text[:4]))
        assert result.exit_code == 1
        assert text in result.stdout
        assert "1 of them WRONG" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "optimize PROGRAM --out"),
        ("{", "does not follow its schema: Input data was truncated"),
        ("[]", "does not follow its schema: Expected `object`, got `array`"),
        ('{"format": 0}', "has the format 0, expected 1"),
        ('{"format": 1, "program": "program p(x: f32) = x"}', "missing required field `phases`"),
        ('{"format": 1, "program": "program p(", "phases": []}', "holds no correct program"),
        ('{"format": 1, "program": "", "phases": [{"phase": "magic"}]}', r"phases\[0\].phase"),
    ],
)
def test_a_file_that_is_none(text: str | None, message: str, tmp_path: Path):
    if text is not None:
        (tmp_path / WAY_FILE).write_text(text)
    with pytest.raises(InputProblem, match=message):
        read_way(tmp_path)
    result = lift("explain", tmp_path)
    assert result.exit_code == 1
    assert re.search(message, result.stderr)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_shows_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    directory = write_way("asum", tmp_path / "asum")
    with ctrl_c(0.3) as soon:
        monkeypatch.setattr(workbench, "explain_way", lambda *way, **_: explain_way(*way, listen=lambda event: soon()))
        result = lift("explain", directory)
    assert result.exit_code == 130, result.stderr
    assert "GAP: interrupted" in result.stdout


def test_a_report_says_by_which_phases():
    leg = cheapest("asum").way[0]
    assert str(leg).startswith(f"{leg.name} phase: chunks of {leg.tiling[64][0]} of 64 elements")
    assert isinstance(leg.term, ir.Expr)
    assert workbench.Leg("memory", leg.term, 1, "cpu", spaces=("private",)).phase.name == "memory"
    for name in PLANNED:
        assert workbench.Leg(name, leg.term, 1, "cpu", {8: (4,)}, (4,)).phase.name == name
