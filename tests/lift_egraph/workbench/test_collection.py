"""Collecting points of a space: each is kept at once, and the same call goes on where it stopped."""

from __future__ import annotations

import itertools
import time
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lift_egraph import programs
from lift_egraph.api import find_device, parse_program
from lift_egraph.codegen.devices import describe
from lift_egraph.errors import InputProblem, SearchProblem, SizeProblem
from lift_egraph.language.check import specialise
from lift_egraph.learned.samples import samples_of
from lift_egraph.records.journal import Journal
from lift_egraph.records.record import point_of
from lift_egraph.workbench import Event, collection
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import Candidate, make_candidate
from lift_egraph.workbench.collection import collect, recorded
from lift_egraph.workbench.exploration import drawing
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.phases import Found
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn
from tests.lift_egraph.records.examples import DEVICE, RECORD, record

pytestmark = needs_opencl

MESSAGES = 12  # of a search
SCAL, SIZES = programs.load("scal"), {"N": 1024}
BODIES = "alpha * e", "e * alpha", "2.0 * e", "alpha * e + 0.0"  # the third is wrong


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A space that needs no search."""
    info = find_device()
    device = describe(info)

    def drawn(*given: Any) -> Iterator[tuple[str, Candidate]]:
        known: Container[str] = given[-2]
        for body in BODIES:
            text = f"program scal(alpha: f32, x: [f32]1024) = mapGlb(0, fun e => {body}, x)"
            made = make_candidate(parse_program(text), 0.0, info, device)
            if point_of(made.program, made.plan) not in known:
                yield "mapped", made

    monkeypatch.setattr(collection, "drawn", drawn)


def judged(journal: Path) -> list[str]:
    """What became of each point."""
    return [f"{r.validity}: {r.reason}" for r in Journal(journal).read().records]


def first_messages(*given: Any, **named: Any) -> Iterator[Any]:
    return islice(search(*given, **named), MESSAGES)


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends after some finds, however slow the machine is."""
    monkeypatch.setattr(drawing, "search", first_messages)


@pytest.mark.usefixtures("briefly")
@in_turn(3)
def test_points_are_drawn_measured_and_learned_from(tmp_path: Path):
    """From the program to samples; the second call finds that nothing is missing."""
    journal = tmp_path / "points.jsonl"
    found = collect(SCAL, SIZES, journal=journal, points=2)
    assert (found.valid, found.new) == (2, 2)
    records = Journal(journal).read().records
    assert len({r.point for r in records}) == len(records) == 2 + found.failed
    assert len(samples_of(records)) == 2
    assert collect(SCAL, SIZES, journal=journal, points=2).new == 0
    assert Journal(journal).read().records == records
    assert collect(SCAL, SIZES, journal=journal, points=3).new == 1
    assert len({r.point for r in Journal(journal).read().records}) == len(Journal(journal).read().records)


@pytest.mark.usefixtures("points")
def test_what_was_measured_is_kept_and_not_measured_again(tmp_path: Path):
    journal = tmp_path / "points.jsonl"

    def interrupt(event: Event) -> None:
        if event.stage == "measure":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(SCAL, SIZES, journal=journal, points=9, listen=interrupt)
    assert len(Journal(journal).read().records) == 1
    found = collect(SCAL, SIZES, journal=journal, points=9)
    assert (found.valid, found.new, found.failed) == (3, 2, 1)
    records = Journal(journal).read().records
    assert sorted(r.validity for r in records) == ["valid", "valid", "valid", "wrong"]
    assert str(collect(SCAL, SIZES, journal=journal, points=9)) == "scal: 3 points, 0 of them new; 0 more are not valid"


def test_terms_of_records_are_measured_again_in_the_place_of_a_search(tmp_path: Path):
    """Each kernel once, with the phases that led to its term; the same call goes on, and then finds nothing to do."""
    head = "program scale(x: [f32]64) ="
    mapped = (f"mapGlb(0, fun {function}, x)" for function in ("v => v * 2.0", "w => w * 2.0", "v => v"))
    of_other_device = replace(DEVICE, name="abacus")
    known = [
        record(term=f"{head} {body}", device=of_other_device, phases=[structs.replace(RECORD.phases[0], iterations=n)])
        for n, body in enumerate((*mapped, "unknown(x)"))
    ]
    [(program, records)] = recorded([*known, record(validity="wrong", term="program p(x: [f32]2) = x")])
    assert (program.name, program.sizes, records) == ("scale", (("N", 64),), known)
    journal, told = tmp_path / "points.jsonl", list[str]()

    def interrupt(event: Event) -> None:
        told.append(event.text)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(program, journal=journal, points=1, again=records, listen=interrupt)
    assert len(Journal(journal).read().records) == 1
    found = collect(program, journal=journal, points=1, again=records)
    made = Journal(journal).read().records
    assert (found.valid, sorted(r.validity for r in made)) == (1, ["valid", "wrong"])
    assert {r.phases[0].iterations for r in made} in ({0, 2}, {1, 2})
    assert {r.device.name for r in made} == {find_device().name}
    assert {(r.program.hash, r.program.sizes["N"]) for r in made} == {(RECORD.program.hash, 64)}
    assert collect(program, journal=journal, points=1, again=[known[2]]).new == 0


@pytest.mark.usefixtures("points")
def test_workers_of_an_executor_measure(tmp_path: Path):
    with ThreadPoolExecutor(2) as executor:
        found = collect(SCAL, SIZES, journal=tmp_path / "points.jsonl", points=2, executor=executor)
    assert found.valid == found.new >= 2, judged(tmp_path / "points.jsonl")


@in_turn(3)
def test_a_space_is_searched_again_and_longer_until_points_are_enough_or_nothing_is_new(
    points: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each search finds one point that is not known."""
    every, asked = collection.drawn, list[tuple[float, int]]()

    def one(*given: Any) -> Iterator[tuple[str, Candidate]]:
        asked.append((given[5], given[-1]))
        return islice(every(*given), 1)

    monkeypatch.setattr(collection, "drawn", one)
    found = collect(SCAL, SIZES, journal=tmp_path / "some.jsonl", points=2, search=3.0, seconds=600.0)
    assert (found.valid, asked) == (2, [(3.0, 0), (6.0, 1)]), judged(tmp_path / "some.jsonl")
    asked.clear()
    found = collect(SCAL, SIZES, journal=tmp_path / "all.jsonl", points=9, search=3.0, seconds=600.0)
    assert (found.valid, found.failed, asked) == (3, 1, [(3.0 * 2**n, n) for n in range(5)])
    asked.clear()
    found = collect(SCAL, SIZES, journal=tmp_path / "soon.jsonl", points=9, search=3.0, seconds=6.0)
    assert (found.valid, len(asked)) == (1, 1)


@pytest.mark.usefixtures("points")
def test_a_collection_ends_in_time(tmp_path: Path):
    assert collect(SCAL, SIZES, journal=tmp_path / "points.jsonl", points=2, seconds=1e-9).valid == 0


@pytest.mark.parametrize(("most", "cores", "rounds"), [(1, 1, 1), (9, 1, 4), (9, 2, 4)])
def test_a_space_is_searched_in_rounds_with_other_chunks_until_there_are_terms_enough(
    most: int, cores: int, rounds: int, monkeypatch: pytest.MonkeyPatch
):
    """Each round finds one term that all find, and one of its own."""
    info = find_device()
    device, special, chunks = describe(info), specialise(SCAL, SIZES), list[tuple[int, ...]]()
    numbers = itertools.count()  # two rounds may begin at once

    def stream(search: Any, program: Any, device: Any, budget: Budget, *_: Any, **__: Any) -> Iterator[Found]:
        chunks.append(budget.cpu_blocks)
        return iter([found_for("alpha * e"), found_for(f"{next(numbers)}.5 * e")])

    def found_for(body: str) -> Found:
        text = f"program scal(alpha: f32, x: [f32]1024) = mapGlb(0, fun e => {body}, x)"
        return Found(1.0, parse_program(text).body, ())

    monkeypatch.setattr(drawing, "Stream", stream)
    monkeypatch.setattr(drawing.os, "cpu_count", lambda: cores)
    found = list(drawing.drawn(SCAL, special, info, device, most, 60.0))
    assert len(found) == min(most, rounds + 1)
    assert len(chunks) == rounds
    assert {size for sizes in chunks for size in sizes} <= {*drawing.CHUNKS}
    assert len({*chunks}) == min(rounds, 3)


def test_a_later_search_looks_wider(monkeypatch: pytest.MonkeyPatch):
    info = find_device()
    budgets = list[Budget]()

    def stream(search: Any, program: Any, device: Any, budget: Budget, *_: Any, **__: Any) -> Iterator[Found]:
        budgets.append(budget)
        return iter(())

    monkeypatch.setattr(drawing, "Stream", stream)
    for searches in (0, 2):
        with pytest.raises(SearchProblem):
            list(drawing.drawn(SCAL, specialise(SCAL, SIZES), info, describe(info), 9, 60.0, 0, (), searches))
    assert {b.seeds for b in budgets[:4]} == {drawing.USUAL.seeds, drawing.WIDE.seeds}
    assert {b.seeds for b in budgets[4:]} == {4 * drawing.WIDE.seeds}


def test_what_cannot_be_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(SizeProblem, match="the size N must be at least 1"):
        collect(SCAL, {"N": 0}, journal=tmp_path / "points.jsonl", points=1)
    (tmp_path / "notes").write_text("no journal")
    with pytest.raises(InputProblem, match="is no journal"):
        collect(SCAL, SIZES, journal=tmp_path / "notes", points=1)
    monkeypatch.setattr(drawing, "Stream", lambda *_, **__: iter(()))
    with pytest.raises(SearchProblem, match="the space of scal is empty"):
        collect(SCAL, SIZES, journal=tmp_path / "points.jsonl", points=1)


def test_a_search_that_was_too_short_for_any_term_is_made_for_longer(points: None, tmp_path: Path, monkeypatch: Any):
    asked, told, nothing, drawn = list[float](), list[str](), [True, True], collection.drawn

    def slowly(*given: Any) -> Iterator[tuple[str, Candidate]]:
        asked.append(given[5])
        if nothing:
            nothing.pop()
            time.sleep(given[5])
            raise SearchProblem("the space of scal is empty")
        yield from drawn(*given)

    def listen(event: Event) -> None:
        if event.stage == "search":
            told.append(event.text)

    monkeypatch.setattr(collection, "drawn", slowly)
    found = collect(SCAL, SIZES, journal=tmp_path / "points.jsonl", points=1, search=0.01, listen=listen)
    assert found.valid == 1
    assert asked == [0.01, 0.02, 0.04]
    assert told == [f"the space of scal, for {seconds} s" for seconds in asked]
