"""The journal: what is appended is read back, whatever happens to the end of the file, or to a byte of it."""

from __future__ import annotations

import resource
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from lift_egraph.errors import InputProblem, OutputProblem
from lift_egraph.records import lines
from lift_egraph.records.journal import Contents, Journal, contents_of, journal_at
from lift_egraph.records.record import PhasePart, Record
from lift_egraph.workbench.planning.plan import PLANNED
from tests.command import start
from tests.depth import depth
from tests.lift_egraph.records.examples import RECORD, record, records

THREE = [record(reason=text) for text in ("one", "twö", "three\nlines")]


def contents(data: bytes) -> Contents:
    return contents_of(data, Path("journal"))


def written(path: Path, *items: Record) -> bytes:
    Journal(path).append(*items)
    return path.read_bytes()


@settings(max_examples=depth(12, 1000))
@given(st.lists(st.lists(records, max_size=3), max_size=3))
def test_what_is_appended_is_read_back_in_order(batches: list[list[Record]]):
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "new/journal")
        assert journal.read().records == ()
        for batch in batches:
            journal.append(*batch)
        found = journal.read()
        assert list(found.records) == [r for batch in batches for r in batch]
        assert found.notes == []
        assert found.records == journal.read(RECORD.program.hash).records
        assert journal.read("0" * 64).records == ()


def test_every_whole_record_survives_a_cut_at_any_byte(tmp_path: Path):
    path = tmp_path / "journal"
    data = written(path, *THREE)
    ends = [n for n, byte in enumerate(data) if byte == 0x0A]
    for cut in range(len(data)):
        found = contents(data[:cut])
        count = sum(end <= cut for end in ends)
        assert list(found.records) == THREE[:count]
        is_torn = bool(cut) and cut not in [e + shift for e in ends for shift in (0, 1)]
        assert found.notes == ["its last line is torn, and was left out"] * is_torn
        if cut % 997 == 0 or cut in ends:  # what comes later is not lost to the torn line before it
            path.write_bytes(data[:cut])
            Journal(path).append(RECORD)
            after = Journal(path).read()
            assert list(after.records) == [*THREE[:count], RECORD]
            assert after.damaged == ((count + 1,) if is_torn else ())


def test_every_flipped_byte_is_found(tmp_path: Path):
    data = written(tmp_path / "journal", *THREE)
    for at in range(len(data)):
        flipped = data[at] ^ (1, 0x20, 0xFF)[at % 3]
        found = contents(data[:at] + bytes([flipped]) + data[at + 1 :])
        assert found.damaged
        assert len(found.records) >= len(THREE) - 2  # a line break ends one record and begins another
        assert [r for r in THREE if r in found.records] == list(found.records)


@given(st.binary() | st.binary().map(lines.XZ.__add__))
def test_anything_else_is_refused_or_noted(data: bytes):
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal")
        journal.path.write_bytes(data)
        if lines.TAG[: len(data)] == data[: len(lines.TAG)]:
            assert journal.read().records == ()
        else:
            compressed = data.startswith(lines.XZ)
            why = "it is compressed|what is compressed in it is damaged" if compressed else "is no journal of records"
            with pytest.raises(InputProblem, match=why):
                journal.read()


def test_other_versions_are_left_out(tmp_path: Path):
    path = tmp_path / "journal"
    written(path, RECORD)
    text = msgspec.json.encode(RECORD)
    lines.append(path, [text.replace(b'"format":1', b'"format":7'), text.replace(b'"term"', b'"word"'), b"[]"])
    found = Journal(path).read()
    assert found.records == (RECORD,)
    assert found.notes == ["2 damaged or unknown lines left out (3, 4)", "1 of the format 7, this version reads 1"]


def test_a_place_that_cannot_be_read_or_written(tmp_path: Path):
    with pytest.raises(InputProblem, match=r"cannot read .*: Is a directory"):
        Journal(tmp_path).read()
    with pytest.raises(InputProblem, match="cannot read /dev/zero: Not a regular file"):
        Journal(Path("/dev/zero")).read()
    with pytest.raises(OutputProblem, match=r"cannot write to .*: Is a directory"):
        Journal(tmp_path).append(RECORD)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputProblem, match=r"cannot write to .*: (Not a directory|File exists)"):
        Journal(tmp_path / "file/journal").require_writable()
    with pytest.raises(OutputProblem, match=r"cannot write to /dev/full: No space left on device"):
        Journal(Path("/dev/full")).append(RECORD)


def test_asking_whether_it_can_be_written_changes_nothing(tmp_path: Path):
    """A file that was named by mistake had a line break more."""
    for data in (b"PK\x03\x04", b"lift-record 0000", b""):
        (tmp_path / "file").write_bytes(data)
        Journal(tmp_path / "file").require_writable()
        assert (tmp_path / "file").read_bytes() == data


def test_without_room_nothing_is_half_written(tmp_path: Path):
    path = tmp_path / "journal"
    before = written(path, *THREE)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        with pytest.raises(OutputProblem, match="File too large"):
            Journal(path).append(RECORD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    Journal(path).append(RECORD)
    assert Journal(path).read().records == (*THREE, RECORD)


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert journal_at() is journal_at("none") is None  # tests keep none
    assert journal_at(tmp_path) == Journal(tmp_path)
    monkeypatch.setenv("LIFT_EGRAPH_RECORDS", "mine")
    assert journal_at() == Journal(Path("mine"))
    monkeypatch.delenv("LIFT_EGRAPH_RECORDS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert journal_at() == Journal(tmp_path / "lift-egraph/records.jsonl")
    assert journal_at("none") is None


def test_joining_drops_what_is_there_already(tmp_path: Path):
    journal = Journal(tmp_path / "journal")
    journal.append(THREE[0])
    assert journal.add_all([THREE[1], THREE[0], THREE[2], THREE[1]]) == (4, 2)
    assert list(journal.read().records) == THREE


WRITER = """
import sys
from pathlib import Path
from lift_egraph.records import lines
path, name, count = sys.argv[1:]
text = Path(path).with_name("text").read_bytes()
for n in range(int(count)):
    lines.append(Path(path), [text.replace(b"all equal", f"{name} {n}".encode() + 5_000 * b"x")])
    print("appended", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a journal, beside the text of a record."""
    (tmp_path / "text").write_bytes(msgspec.json.encode(RECORD))
    return tmp_path / "journal"


def test_two_writers_at_once(path: Path):
    writers = [start("-c", WRITER, path, name, 50) for name in ("a", "b")]
    for writer in writers:
        _, complaints = writer.communicate()
        assert writer.returncode == 0, complaints
    found = Journal(path).read()
    assert found.notes == []
    for name in ("a", "b"):
        own = [r.reason.rstrip("x").split()[1] for r in found.records if r.reason.startswith(name)]
        assert own == [str(n) for n in range(50)]


def test_a_killed_writer_loses_nothing(path: Path):
    for turn in range(5):
        before = len(Journal(path).read().records)
        writer = start("-c", WRITER, path, turn, 100_000)
        assert writer.stdout is not None
        said = sum(writer.stdout.readline() == "appended\n" for _ in range(1 + 7 * turn))
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read()  # with what `readline` has read ahead, which `communicate` leaves out
        writer.communicate()
        found = Journal(path).read()
        assert len(found.records) - before - said - rest.count("appended\n") in (0, 1)
        assert len(found.damaged) <= turn + 1


@pytest.mark.parametrize(
    "phase", ["stages", "invariants", "remainders", *PLANNED, "algorithmic", "lowering", "sharing", "memory"]
)
def test_every_phase_can_be_recorded(phase: str) -> None:
    part = PhasePart(phase, 1, "cpu", [], [], [], "x")
    assert msgspec.json.decode(msgspec.json.encode(part), type=PhasePart) == part
