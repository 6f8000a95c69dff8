import resource
from pathlib import Path

import pytest

from lift_egraph.errors import OutputProblem
from lift_egraph.files import replacing, write_texts
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
