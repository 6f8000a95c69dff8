"""Compressed journals: they are read as any journal, never appended to, and what models learn from is all there."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lift_egraph.errors import InputProblem, OutputProblem
from lift_egraph.learned.samples import samples_of
from lift_egraph.records import lines
from lift_egraph.records.journal import Journal
from lift_egraph.records.packed import packed, write_packed
from tests.lift_egraph.records.examples import RECORD, record


@pytest.fixture
def file(tmp_path: Path) -> Path:
    journal = Journal(tmp_path / "points.jsonl")
    journal.append(RECORD, record(point="1" * 64))
    path = tmp_path / "points.jsonl.xz"
    path.write_bytes(lzma.compress(journal.path.read_bytes()))
    return path


def test_a_compressed_journal_is_read_as_what_it_was_made_from(file: Path):
    assert Journal(file).read() == Journal(file.with_suffix("")).read()


def test_nothing_is_appended_to_it(file: Path):
    before = file.read_bytes()
    with pytest.raises(OutputProblem, match="it is compressed, and only read"):
        Journal(file).append(RECORD)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda data: data[:-20], "is compressed, and ends too early"),
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "what is compressed in it is damaged"),
        (lambda data: lzma.compress(b"notes"), "is no journal of records"),
    ],
)
def test_what_is_damaged_or_foreign_is_refused(file: Path, spoilt: Callable[[bytes], bytes], message: str):
    file.write_bytes(spoilt(file.read_bytes()))
    with pytest.raises(InputProblem, match=message):
        Journal(file).read()


def test_a_small_file_does_not_fill_the_memory(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lines, "MOST", 100)
    with pytest.raises(InputProblem, match="there are more than"):
        Journal(file).read()


def test_what_is_learned_from_is_all_there(tmp_path: Path):
    write_packed([RECORD], RECORD, tmp_path / "kept.jsonl.xz")
    (kept,) = Journal(tmp_path / "kept.jsonl.xz").read().records
    assert kept == packed(RECORD, RECORD)
    own, other = samples_of([RECORD]), samples_of([kept])
    assert (own.features == other.features).all()
    assert (own.seconds, own.analytical, own.families) == (other.seconds, other.analytical, other.families)
    assert (own.device, own.versions, own.programs) == (other.device, other.versions, other.programs)
    with pytest.raises(OutputProblem, match="cannot write"):
        write_packed([RECORD], RECORD, tmp_path / "none" / "kept.jsonl.xz")


def test_what_a_device_says_otherwise_from_day_to_day_is_said_once(tmp_path: Path):
    fuller = record(point="1" * 64, device=replace(RECORD.device, global_memory=RECORD.device.global_memory // 2))
    write_packed([RECORD, fuller], fuller, tmp_path / "kept.jsonl.xz")
    kept = Journal(tmp_path / "kept.jsonl.xz").read().records
    assert [r.device for r in kept] == [fuller.device] * 2
    assert samples_of(kept).device == samples_of([RECORD, fuller]).device
