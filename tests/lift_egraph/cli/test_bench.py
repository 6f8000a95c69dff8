"""``lift-egraph bench``: rows are kept, a run goes on, and kernels of other machines are run beside ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lift_egraph.bench import run
from lift_egraph.bench.folder import Folder
from tests.codegen.opencl import needs_opencl
from tests.command import lift
from tests.lift_egraph.cli.test_main import fail, succeed

TEXT = "program scale(x: [f32]N) where N = 4096 = map(fun v => v * 2.0, x)\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of a run, and what it printed."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "scale.lift").write_text(TEXT)
    shown = succeed(*command(folder), "--json", "--plot", folder / "picture.svg")
    return folder, json.loads(shown.stdout)


def command(folder: Path) -> tuple[object, ...]:
    return "bench", folder / "scale.lift", "--budget", 2, "--rounds", 1, "--device", "Portable", "--out", folder / "out"


@needs_opencl
def test_a_row_says_what_was_found(made: tuple[Path, dict[str, Any]]):
    folder, shown = made
    (row,) = shown["rows"]
    assert (row["program"], row["sizes"], row["library"]) == ("scale", {"N": 4096}, "the interpreter, in NumPy")
    assert row["best_ms"] > 0
    assert row["library_ms"] > 0
    assert shown["crossings"] == []
    assert {p.name for p in (folder / "out/kernels" / row["kernel"]).iterdir()} >= {"kernel.cl", "launch.json"}
    table = (folder / "out/bench.md").read_text()
    assert "| scale | N = 4096 |" in table
    assert "- device: " in table
    assert "<svg" in (folder / "picture.svg").read_text()


@needs_opencl
def test_it_goes_on_where_it_was_interrupted(made: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch):
    folder, shown = made

    def interrupted(source: Any, **_: Any) -> Any:
        assert source.name == "other"
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "optimize", interrupted)
    (folder / "other.lift").write_text(TEXT.replace("scale", "other").replace("2.0", "3.0"))
    _, program, *options = command(folder)
    result = lift("bench", program, folder / "other.lift", *options, "--json")
    assert result.exit_code == 130
    assert json.loads(result.stdout)["rows"] == shown["rows"]


@needs_opencl
def test_kernels_of_another_machine_are_run_here(made: tuple[Path, dict[str, Any]], tmp_path: Path):
    folder, _ = made
    (row,), _, _ = Folder(folder / "out").read()
    others: list[object] = []
    for name, before, after in (("far", "", ""), ("wrong", "2.0f", "3.0f"), ("broken", "{\n", "{ no C\n")):
        other = Folder(tmp_path / name)
        device = msgspec.structs.replace(
            row, device=msgspec.convert({**vars(row.device), "name": name}, type(row.device))
        )
        other.keep(msgspec.structs.replace(device, kernel=name))
        shutil.copytree(folder / "out/kernels" / row.kernel, other.kernel(name))
        changed(other.kernel(name), before, after)
        others += ["--with", other.path]
    crossings = json.loads(succeed(*command(folder), *others, "--json").stdout)["crossings"]
    assert [c["origin"].rpartition(" ")[2] for c in crossings] == ["far", "wrong", "broken"]
    assert [c["ms"] is None for c in crossings] == [False, True, True]
    assert "elements are wrong" in crossings[1]["problem"]
    assert "refused the kernel" in crossings[2]["problem"]
    assert "| scale |" in (folder / "out/bench.md").read_text().partition("best kernel on the others")[2]


def changed(kernel: Path, before: str, after: str) -> None:
    """Change the text of a kept kernel, and what `launch.json` says of it."""
    from lift_egraph.codegen.plans.launch_file import sha256

    text, launch = (kernel / "kernel.cl").read_text(), json.loads((kernel / "launch.json").read_text())
    (kernel / "kernel.cl").write_text(text.replace(before, after, 1))
    launch["kernel_sha256"] = sha256((kernel / "kernel.cl").read_text())
    (kernel / "launch.json").write_text(json.dumps(launch))


def test_bad_requests(tmp_path: Path):
    (tmp_path / "file").write_text("# Notes")
    assert "it is a file, not a folder" in fail("bench", "mm", "--out", tmp_path / "file")
    assert "mm has no size Q: its sizes are M, K, N" in fail("bench", "mm:Q=3", "--out", tmp_path / "out")
    assert "no bundled program 'mn'; did you mean" in fail("bench", "mn", "--out", tmp_path / "out")
    assert "is no folder of a benchmark" in fail("bench", "mm", "--with", tmp_path, "--out", tmp_path / "out")
    assert "ends with .svg, .png or .pdf" in fail(
        "bench", "mm", "--plot", tmp_path / "p.txt", "--out", tmp_path / "out"
    )
    assert "cannot write to /proc/out" in fail("bench", "mm", "--device", "Portable", "--out", "/proc/out")


def test_damaged_and_foreign_rows(tmp_path: Path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("# Notes")
    assert "no line of it is ours" in fail("bench", "mm", "--device", "Portable", "--out", tmp_path)
    rows.write_bytes(b"")
    Folder(tmp_path).keep()
    from lift_egraph.records import lines

    lines.append(rows, [b"{}", b'{"kind": "row"}'])
    assert Folder(tmp_path).read() == ([], [], [f"{rows}: damaged or unknown lines left out: 1, 2"])
