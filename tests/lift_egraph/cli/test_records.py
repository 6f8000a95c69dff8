"""The commands that answer from the records: what is known is said at once, and what is not, in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lift_egraph.codegen.devices import describe
from lift_egraph.records.journal import Journal
from lift_egraph.records.t4 import INVALIDITY, T4
from tests.codegen.opencl import needs_opencl
from tests.command import lift, start
from tests.depth import in_turn
from tests.lift_egraph.cli.test_main import fail, succeed
from tests.lift_egraph.records.examples import DEVICE, RECORD, record

SOURCE = "program mine(x: [f32]N) where N = 64 = map(fun y => y * 2.0, x)"
GPU = replace(DEVICE, platform="Some GPUs", name="GPU 1")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "mine.lift"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """The user's journal, with a fast and a slow kernel, a wrong one, and one on another device."""
    made = Journal(tmp_path / "records.jsonl")
    monkeypatch.setenv("LIFT_EGRAPH_RECORDS", str(made.path))
    slow = record(term="program scale(x: [f32]64) = slow", point="1" * 64, median=5e-3, date="2026-01-01T00:00:00")
    wrong = record(term="program scale(x: [f32]64) = wrong", point="2" * 64, validity="wrong", median=None, samples=[])
    made.append(slow, wrong, RECORD, msgspec.structs.replace(RECORD, median=3e-3), record(device=GPU, median=1e-4))
    return made


def test_the_best_is_known_by_what_the_program_computes(journal: Journal, program: Path):
    shown = succeed("best", program).stdout
    assert "The best of 3 kernels, 2 of them right, takes 2 ms. Measured 2 times" in shown
    assert RECORD.term in shown
    assert "Some GPUs / GPU 1\nThe best of 1 kernels, 1 of them right, takes 0.1 ms. Measured once" in shown
    assert "Some GPUs" not in succeed("best", program, "--device", describe(DEVICE).name).stdout
    (known,) = json.loads(succeed("best", program, "--device", "gpu 1", "--json").stdout)
    assert (known["median_ms"], known["times"], known["versions"]) == (0.1, 1, RECORD.versions)
    assert known["launches"][0]["global"] == list(RECORD.launches[0].global_size)


def test_exact_kernels_are_known_apart(journal: Journal, program: Path):
    message = fail("best", program, "--exact")
    assert message.startswith("error: no exact kernel of mine at N = 64 is known: `lift-egraph optimize ")
    assert message.endswith(" --exact` finds one\n")
    (phase,) = RECORD.phases
    exact = msgspec.structs.replace(RECORD, phases=[msgspec.structs.replace(phase, exact=True)], median=1e-6)
    journal.append(exact)
    assert "The best of 1 kernels, 1 of them right, takes 0.001 ms" in succeed("best", program, "--exact").stdout
    assert succeed("best", program, "--fast").stdout == succeed("best", program).stdout
    assert "takes 0.001 ms" not in succeed("best", program).stdout


def test_nothing_is_known(journal: Journal, program: Path):
    message = fail("best", program, "--size", "N=32")
    assert message.startswith("error: no right kernel of mine at N = 32 is known: `lift-egraph optimize ")
    assert fail("best", program, "--device", "abacus").startswith(
        "error: no right kernel of mine at N = 64 on 'abacus'"
    )
    program.write_text(SOURCE.replace("mine", "scale"))
    assert fail("best", program, "--size", "N=32").endswith("; known at N = 64\n")
    assert "says none" in fail("best", program, "--records", "none")
    assert "is known" in fail("best", program, "--records", journal.path.with_name("other"))


def test_no_device_is_asked_and_no_search_is_loaded(journal: Journal, program: Path):
    code = (
        "import sys\nfrom lift_egraph.cli.main import app\n"
        f"try: app(['best', {str(program)!r}])\n"
        "except SystemExit: print({'egglog', 'pyopencl', 'lift_egraph.workbench'} & {*sys.modules})"
    )
    shown, complaints = start("-c", code, LIFT_EGRAPH_RECORDS=str(journal.path)).communicate()
    assert shown.endswith("set()\n"), complaints


@needs_opencl
@in_turn(3)
def test_the_best_is_validated_again_before_it_is_written(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LIFT_EGRAPH_RECORDS", str(tmp_path / "records.jsonl"))
    succeed("optimize", program, "--size", "N=4096", "--budget", "3")
    before = len(Journal(tmp_path / "records.jsonl").read().records)
    result = succeed("best", program, "--size", "N=4096", "--out", tmp_path / "out")
    assert "wrote " in result.stderr
    written = json.loads((tmp_path / "out/report.json").read_text())
    assert written["best"]["valid"]
    assert len(Journal(tmp_path / "records.jsonl").read().records) == before + written["records"]["appended"] > before


def test_list_and_check(journal: Journal):
    assert "GPU 1" in succeed("records", "list").stdout
    rows = json.loads(succeed("records", "list", "--json").stdout)
    assert [(r["device"], r["kernels"], r["valid"], r["records"]) for r in rows] == [
        (DEVICE.name, 3, 2, 4),
        ("GPU 1", 1, 1, 1),
    ]
    assert succeed("records", "check").stdout == f"{journal.path}: 5 records of 1 programs on 2 devices\n"
    data = journal.path.read_bytes()
    journal.path.write_bytes(data[:-10])
    result = lift("records", "check")
    assert (result.exit_code, result.stderr) == (1, f"note: {journal.path}: its last line is torn, and was left out\n")
    assert "4 records" in result.stdout


def test_a_journal_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for command in (["list"], ["check"], ["export", "--t4", tmp_path / "out.json"]):
        assert "none: there is no such file" in fail("records", *command, "--records", tmp_path / "none")
    monkeypatch.setenv("LIFT_EGRAPH_RECORDS", str(tmp_path / "own"))
    result = lift("records", "list", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert result.stderr == f"note: nothing was recorded yet: `optimize` and `collect` write {tmp_path}/own\n"


def test_merge(journal: Journal, tmp_path: Path):
    other = Journal(tmp_path / "other")
    other.append(RECORD, record(reason="elsewhere"))
    shown = succeed("records", "merge", other.path, other.path).stdout
    assert shown == f"{other.path}: 2 records, 1 of them new\n{other.path}: 2 records, 0 of them new\n"
    assert journal.read().records[-1].reason == "elsewhere"
    (tmp_path / "notes").write_text("# Notes")
    before = journal.path.read_bytes()
    assert "is no journal of records" in fail("records", "merge", other.path, tmp_path / "notes")
    assert "no such file" in fail("records", "merge", tmp_path / "nothing")
    assert journal.path.read_bytes() == before


def test_export(journal: Journal, tmp_path: Path):
    succeed("records", "export", "--t4", tmp_path / "t4.json")
    found = msgspec.json.decode((tmp_path / "t4.json").read_bytes(), type=T4)
    assert found.schema_version == "1.0.0"
    assert [r.invalidity for r in found.results] == ["correct", "correctness", "correct", "correct", "correct"]
    third = found.results[2]
    assert third.times.runtimes == [1.0, 2.0, 3.0]
    assert third.configuration["N"] == 64
    assert (third.measurements[0].name, third.measurements[0].value, third.measurements[0].unit) == ("time", 2.0, "ms")
    assert set(INVALIDITY.values()) == {"timeout", "compile", "runtime", "correctness", "constraints", "correct"}
    assert "cannot write to" in fail("records", "export", "--t4", tmp_path / "no/where.json")
