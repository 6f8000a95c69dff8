import resource
from pathlib import Path

import pytest

from lift_egraph.errors import InputProblem, OutputProblem
from lift_egraph.files import read_text, replacing, require_writable_file, write_texts
from tests.schemas import SCHEMAS, schema_text


def contents(directory):
    return {path.name: path.read_text() for path in directory.iterdir()}


@pytest.fixture
def no_room():
    """Files of this process cannot grow beyond 4096 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("no_room")
def test_without_room_everything_stays(tmp_path):
    old = {"kernel.cl": "old", "report.json": "of the old"}
    write_texts(tmp_path, old)
    with pytest.raises(OutputProblem, match="File too large"):
        write_texts(tmp_path, {"kernel.cl": "new", "lowered.lift": "x" * 5000}, stale=["report.json"])
    with pytest.raises(OutputProblem, match="File too large"), replacing(tmp_path / "kernel.cl") as file:
        file.write(bytes(5000))
    assert contents(tmp_path) == old


def test_what_was_said_about_the_old_goes(tmp_path):
    write_texts(tmp_path, {"kernel.cl": "old", "report.json": "of the old", "mine": "kept"})
    write_texts(tmp_path, {"kernel.cl": "nëw"}, stale=["report.json"])
    assert contents(tmp_path) == {"kernel.cl": "nëw", "mine": "kept"}


@pytest.mark.parametrize("path", SCHEMAS, ids=str)
def test_schemas_are_published(path):
    assert (Path(__file__).parents[2] / path).read_text(encoding="utf-8") == schema_text(SCHEMAS[path])


def test_a_text_is_read_without_the_mark_of_its_bytes(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert read_text(file) == "one\ntwo"
    file.write_bytes("\ufeffone\nzwölf \udcff".encode("utf-8", "surrogateescape"))
    with pytest.raises(InputProblem, match=r"text:2:7: this is no text in UTF-8: 0xff, invalid start byte"):
        read_text(file)


def test_what_cannot_be_written_is_told_before(tmp_path):
    require_writable_file(tmp_path / "new")
    assert not contents(tmp_path)
    (tmp_path / "old").write_text("old")
    require_writable_file(tmp_path / "old")
    require_writable_file(Path("/dev/null"))
    assert contents(tmp_path) == {"old": "old"}
    for path, why in (("", "it is a directory"), ("no/file", "there is no directory"), ("old/file", "there is no")):
        with pytest.raises(OutputProblem, match=why):
            require_writable_file(tmp_path / path)
    with pytest.raises(OutputProblem, match="cannot write to /proc/file"):
        require_writable_file(Path("/proc/file"))
