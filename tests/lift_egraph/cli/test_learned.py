"""The commands that make and judge learned models, and what they say of bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from lift_egraph import workbench
from lift_egraph.cli import learned as cli
from lift_egraph.errors import OutputProblem, SearchProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.learned.model import Model, load_model
from lift_egraph.learned.strategies import STRATEGIES
from lift_egraph.records.journal import Journal
from lift_egraph.records.record import Record
from lift_egraph.workbench import collection
from lift_egraph.workbench.collection import Collection
from tests.codegen.opencl import needs_opencl
from tests.depth import in_turn
from tests.lift_egraph.cli.test_main import fail, succeed
from tests.lift_egraph.learned.tables import samples
from tests.lift_egraph.records.examples import PROGRAM, RECORD, record

OTHER = "program scale(x: [f32]64) = mapSeq(fun v => v * 2.0, x)"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file of samples, as `train` writes one."""
    path = tmp_path / "samples.npz"
    table = samples(points=12)
    Model(replace(table, device=replace(table.device, name="abacus 1")), "published").save(path)
    return path


def test_a_model_is_trained_again_by_another_method(model: Path, tmp_path: Path):
    shown = succeed("train", model, "--method", "forest", "--out", tmp_path / "other.npz").stdout
    assert "learned by forest from 36 kernels of 3 programs" in shown
    assert load_model(tmp_path / "other.npz").method == "forest"


@in_turn(2)
def test_an_evaluation_is_shown_drawn_and_told_as_json(model: Path, tmp_path: Path):
    shown = succeed("evaluate", model, "--plot", tmp_path / "all.svg")
    assert "p2, N = 64" in shown.stdout
    assert "blended confident" in shown.stdout
    assert "left out: 1 of 3 programs" in shown.stderr
    assert "</svg>" in (tmp_path / "all.svg").read_text()
    found = json.loads(succeed("evaluate", model, "--method", "gaussian", "--json").stdout)
    assert {row["strategy"] for row in found["effort"]} >= {"random", "analytical", "published", "gaussian"}
    assert len(found["accuracy"]) == 3
    assert "vector_width" in found["redundancy"]


def test_what_nothing_can_be_learned_from(model: Path, tmp_path: Path):
    out = tmp_path / "model.npz"
    journal = Journal(tmp_path / "few.jsonl")
    journal.append(RECORD)
    assert "needs 20 right kernels at least, there are 1" in fail("train", journal.path, "--out", out)
    assert "no record is of a device 'abacus'" in fail("train", journal.path, "--device", "abacus", "--out", out)
    assert "there is no such file" in fail("train", tmp_path / "none.jsonl", "--out", out)
    assert "no method 'oracle'" in fail("train", model, "--method", "oracle", "--out", out)
    assert "no method 'oracle'" in fail("evaluate", model, "--method", "oracle")
    assert "there is only scale" in fail("evaluate", journal.path)
    (tmp_path / "notes").write_text("no journal")
    assert "is no journal of records" in fail("evaluate", tmp_path / "notes")
    assert "the name of a picture ends with" in fail("evaluate", model, "--plot", tmp_path / "all.txt")
    assert not out.exists()


def test_the_records_that_were_learned_from_are_kept(model: Path, tmp_path: Path):
    """Small and compressed; what was changed in a journal is left out, and told."""
    journal, kept = tmp_path / "points.jsonl", tmp_path / "kept.jsonl.xz"
    terms = [RECORD.term.replace("2.0", f"{n}.0") for n in range(20)]
    numbered = [record(point=f"{n:064}", term=terms[n], samples=[1e-3 * (n + 1), 1.0]) for n in range(20)]
    Journal(journal).append(*numbered, record(validity="wrong", median=None, samples=[]))
    other = record(term=OTHER, point="a" * 64)
    Journal(journal).append(other, other)
    shown = succeed("train", journal, "--out", tmp_path / "a.npz", "--keep", kept)
    assert "21 records" in shown.stdout
    assert "2 records left out: of kernels that are not right, or known twice" in shown.stderr
    assert "features: 1 of 21 kernels" in shown.stderr
    assert kept.stat().st_size < journal.stat().st_size / 10
    assert "from 21 kernels" in succeed("train", kept, "--out", tmp_path / "b.npz").stdout
    both = [load_model(tmp_path / name).samples for name in ("a.npz", "b.npz")]
    assert (both[0].features == both[1].features).all()
    data = journal.read_bytes()
    journal.write_bytes(data.replace(b'"valid"', b'"vault"', 1))
    assert "1 damaged or unknown line left out (1)" in succeed("train", journal, "--out", tmp_path / "c.npz").stderr
    assert "is a model, which has no records" in fail("train", model, "--out", tmp_path / "d.npz", "--keep", kept)


def test_the_time_of_a_collection_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shares: list[float] = []

    def collect(program: Any, *, seconds: float, **_: Any) -> Collection:
        shares.append(seconds)
        return Collection(PROGRAM, 7)

    monkeypatch.setattr(collection, "collect", collect)
    given = "--out", tmp_path / "points.jsonl"
    succeed("collect", "scal", "mm", *given, "--seconds", 100)
    assert [round(share, -1) for share in shares] == [50, 100]
    succeed("collect", "scal", *given)
    assert shares[-1] == float("inf")
    assert "is not a number of seconds above 0" in fail("collect", "scal", *given, "--seconds", 0, code=2)
    monkeypatch.setattr(cli, "time", SimpleNamespace(monotonic=iter((0.0, 2.0)).__next__))
    assert "scal: no time is left" in succeed("collect", "scal", *given, "--seconds", 1).stdout


def test_programs_are_collected_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, Any]] = []

    def collect(program: Any, **given: Any) -> Collection:
        asked.append({"name": program.name, "sizes": dict(program.sizes), **given})
        if program.name == "dot":
            raise SearchProblem("the space of dot is empty")
        if program.name == "asum":
            raise KeyboardInterrupt
        if program.name == "gemv":
            raise OutputProblem("cannot write to points.jsonl: No space left on device")
        return Collection(PROGRAM, 7, 5, 1)

    monkeypatch.setattr(collection, "collect", collect)
    out = tmp_path / "points.jsonl"
    given = "--points", 7, "--out", out
    shown = succeed("collect", "scal:N=64", "mm", *given).stdout
    assert shown.count("scale: 7 points, 5 of them new; 1 more are not valid") == 2
    assert (asked[0]["sizes"], asked[0]["points"], asked[1]["name"]) == ({"N": 64}, 7, "mm")
    assert "scal has no size K: its sizes are N" in fail("collect", "scal:K=64", *given)
    asked.clear()
    with pytest.raises(AssertionError):  # the one that can be collected is, and the exit code is 1
        succeed("collect", "dot", "scal", *given)
    assert [a["name"] for a in asked] == ["dot", "scal"]
    assert "interrupted: " in fail("collect", "asum", "scal", *given, code=130)
    asked.clear()
    assert "the space of dot is empty (--search, and what" in fail("collect", "dot", *given)
    asked.clear()
    assert "error: gemv: cannot write" in fail("collect", "gemv", "scal", *given)
    assert [a["name"] for a in asked] == ["gemv"]


def test_a_journal_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The program with the fewest terms first."""
    asked: list[tuple[str, list[Record]]] = []

    def collect(program: Any, **given: Any) -> Collection:
        asked.append((program.name, given["again"]))
        return Collection(PROGRAM, 1, 1)

    monkeypatch.setattr(collection, "collect", collect)
    journal = tmp_path / "known.jsonl"
    of_other = record(program=structs.replace(RECORD.program, hash="b" * 64, text=OTHER), term=OTHER)
    Journal(journal).append(RECORD, record(point="a" * 64), of_other, record(validity="wrong", median=None, samples=[]))
    given = "--out", tmp_path / "new.jsonl"
    succeed("collect", "--again", journal, *given)
    assert [(name, len(records)) for name, records in asked] == [("scale", 1), ("scale", 2)]
    assert "give either programs, or --again" in fail("collect", *given, code=2)
    assert "give either programs, or --again" in fail("collect", "mm", "--again", journal, *given, code=2)
    (tmp_path / "empty.jsonl").write_text("")
    assert "no record is of a right kernel" in fail("collect", "--again", tmp_path / "empty.jsonl", *given)


@needs_opencl
def test_optimize_takes_the_strategy_that_is_named(monkeypatch: pytest.MonkeyPatch):
    given: list[Any] = []

    def optimize(*_: Any, strategy: Any, **__: Any) -> None:
        given.append(strategy)
        raise SearchProblem("enough")

    monkeypatch.setattr(workbench, "optimize", optimize)
    monkeypatch.setattr(Model, "fitted", None)  # nothing is asked of the model, and to learn it takes seconds
    told = " ".join(succeed("optimize", "--help").stdout.split())
    for name in STRATEGIES:
        assert "enough" in fail("optimize", "scal", "--strategy", name, "--cost", "learned")
        assert name in told
    assert [type(strategy) for strategy in given] == [type(make()) for make in STRATEGIES.values()]
    assert "enough" in fail("optimize", "scal")
    assert given[-1] is None
    assert "there is no strategy 'oracle'; there are random, " in fail("optimize", "scal", "--strategy", "oracle")
    shown = fail("optimize", "scal", "--strategy", "confident")
    assert "the strategy confident compares kernels as a learned model does" in shown


@needs_opencl
def test_optimize_takes_the_model_that_is_named(model: Path, monkeypatch: pytest.MonkeyPatch):
    given: list[Any] = []

    def optimize(*_: Any, cost: Any, **__: Any) -> None:
        given.append(cost)
        raise SearchProblem("enough")

    monkeypatch.setattr(workbench, "optimize", optimize)
    monkeypatch.setattr(Model, "fitted", None)  # as above; that it is learned before is a test of models
    for cost in ("analytical", "learned"):
        assert "enough" in fail("optimize", "scal", "--cost", cost)
    assert given[0] is predict
    assert isinstance(given[1], Model)
    shown = fail("optimize", "scal", "--cost", "learnt")
    assert "cannot read learnt: there is no such file; a cost model is analytical, learned, or a file" in shown
    assert "was trained on Portable Computing Language / abacus 1, not on" in fail("optimize", "scal", "--cost", model)
    assert len(given) == 2
