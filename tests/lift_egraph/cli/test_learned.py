"""The commands that make and judge learned models, and what they say of bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lift_egraph import workbench
from lift_egraph.errors import SearchProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.learned.model import Model, load_model
from lift_egraph.records.journal import Journal
from lift_egraph.workbench import collection
from lift_egraph.workbench.collection import Collection
from tests.codegen.opencl import needs_opencl
from tests.lift_egraph.cli.test_main import fail, succeed
from tests.lift_egraph.learned.tables import samples
from tests.lift_egraph.records.examples import PROGRAM, RECORD


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


def test_an_evaluation_is_shown_drawn_and_told_as_json(model: Path, tmp_path: Path):
    shown = succeed("evaluate", model, "--plot", tmp_path / "all.svg").stdout
    assert "p2, N = 64" in shown
    assert "blended confident" in shown
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


def test_programs_are_collected_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, Any]] = []

    def collect(program: Any, **given: Any) -> Collection:
        asked.append({"name": program.name, "sizes": dict(program.sizes), **given})
        if program.name == "dot":
            raise SearchProblem("the space of dot is empty")
        if program.name == "asum":
            raise KeyboardInterrupt
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


@needs_opencl
def test_optimize_takes_the_model_that_is_named(model: Path, monkeypatch: pytest.MonkeyPatch):
    given: list[Any] = []

    def optimize(*_: Any, performance: Any, **__: Any) -> None:
        given.append(performance)
        raise SearchProblem("enough")

    monkeypatch.setattr(workbench, "optimize", optimize)
    for cost in ("analytical", "learned"):
        assert "enough" in fail("optimize", "scal", "--cost", cost)
    assert given[0] is predict
    assert isinstance(given[1], Model)
    assert "cannot read" in fail("optimize", "scal", "--cost", "learnt")
    assert "was trained on Portable Computing Language / abacus 1, not on" in fail("optimize", "scal", "--cost", model)
    assert len(given) == 2
