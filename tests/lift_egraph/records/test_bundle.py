"""Bundles: made without a device, measured without the package, and what breaks on the way is recorded or refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lift_egraph.codegen.devices import NVIDIA, POCL, describe
from lift_egraph.codegen.running.run import find_device
from lift_egraph.egraph.saturate import Limits
from lift_egraph.errors import DeviceProblem, InputProblem, OutputProblem, SizeProblem
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.syntax import parse_program
from lift_egraph.meaning.inputs import PERIOD, repeated
from lift_egraph.records import trial
from lift_egraph.records.bundle import MODULES, shortened
from lift_egraph.records.journal import Journal
from lift_egraph.records.measure import measure
from lift_egraph.records.opened import Bundle
from lift_egraph.records.record import MOST_SAMPLES
from lift_egraph.workbench import Budget, bundle, bundling
from lift_egraph.workbench.validation.sampled import Sampled
from tests.codegen.opencl import needs_opencl
from tests.command import ENVIRONMENT, leaving_nobody, marked, start
from tests.depth import in_turn
from tests.lift_egraph.cli.test_main import fail, succeed

SMALL = Budget(
    seconds=60, seeds=1, lowered=2, staged=0, limits=Limits(iterations=1, nodes=5_000), cpu_blocks=(8,), gpu_blocks=(8,)
)  # fmt: skip
DOT = parse_program("program dot(x: [(f32, f32)]N, a: f32) where N = 64 = a * reduce(add, 0.0, map(mul, x))")
PAIRS = parse_program(
    "program pairs(x: [f32]N, y: [i32]N) where N = 64 = map(fun (u, v) => (u + 1.0, v * 2), zip(x, y))"
)
LAUNCH = "candidates/0002/launch.json"
Change = Callable[[dict[str, bytes]], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a small program."""
    path = tmp_path_factory.mktemp("bundle") / "dot.zip"
    assert bundle(DOT, None, path, description=POCL, budget=SMALL, count=2).count == 2
    return path


def changed(bundle: Path, to: Path, change: Change) -> Path:
    """A bundle with other files in it."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(to, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return to


def source(number: int, before: str, after: str) -> Change:
    """Replaces a text in the kernels of a candidate."""

    def change(files: dict[str, bytes]) -> None:
        name = f"candidates/{number:04}/kernel.cl"
        assert before.encode() in files[name]
        files[name] = files[name].replace(before.encode(), after.encode(), 1)

    return change


def test_it_is_made_for_a_device_that_is_not_here(tmp_path: Path):
    made = bundle(PAIRS, {"N": 96}, tmp_path / "pairs.zip", description=NVIDIA, budget=SMALL, count=2)
    opened = Bundle(tmp_path / "pairs.zip")
    assert made.count == opened.count == 2
    assert {stub["description"] for stub in opened.stubs} == {"nvidia"}
    assert opened.array("inputs/integers/y").shape == (96,)
    positions, values, bounds = opened.checks("floats", "result.1")
    assert len(positions) == len(values) == len(bounds) == 96
    with pytest.raises(SizeProblem, match="over 1 GiB"):
        bundle(PAIRS, {"N": 1 << 28}, tmp_path / "large.zip", description=NVIDIA)
    with pytest.raises(OutputProblem, match="cannot write to"):
        bundle(PAIRS, None, tmp_path / "no/pairs.zip", description=NVIDIA, budget=SMALL)


ROWS = parse_program(
    "program rows(x: [[f32x4]N]M) where N = 64, M = 64 = "
    "map(fun r => (map(fun e => e + e, r), reduce(add, 0.0, asScalar(r))), x)"
)


@needs_opencl
@in_turn(3)
def test_what_is_too_much_to_interpret_is_compared_at_some_elements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def sampled(source: Any, program: Any, room: Any, compiled: Any, *, seed: int, seconds: float) -> Sampled:
        return Sampled(source, program, compiled, seed, share)

    monkeypatch.setattr(bundling, "reference_of", sampled)
    share = 5.0
    path = tmp_path / "rows.zip"
    made = bundle(ROWS, None, path, description=POCL, budget=SMALL, count=2)
    positions, values, _ = Bundle(path).checks("floats", "result.0")
    assert 0 < len(positions) == len(values) < 64 * 64 * 4
    assert f"up to {len(positions)} elements" in made.how
    assert {r["validity"] for r in measure(Bundle(path), tmp_path / "out", "Portable")} == {"valid"}
    wrong = changed(path, tmp_path / "wrong.zip", source(0, "0.0f", "9.0f"))
    assert next(measure(Bundle(wrong), tmp_path / "wrong", "Portable"))["validity"] == "wrong"
    share = 0.0
    with pytest.raises(SizeProblem, match="no element of rows can be interpreted"):
        bundle(ROWS, None, path, description=POCL, budget=SMALL)


@needs_opencl
@in_turn(3)
def test_results_that_look_unwritten(tmp_path: Path):
    """All their bits are set, as those of memory that no kernel wrote."""
    path = tmp_path / "ones.zip"
    bundle(parse_program("program ones(xs: [i32]64) = map(fun x => x - x - 1, xs)"), None, path, budget=SMALL, count=1)
    assert {r["validity"] for r in measure(Bundle(path), tmp_path / "out", "Portable")} == {"valid"}


@in_turn(3)
@needs_opencl
@pytest.mark.parametrize("program", [DOT, PAIRS], ids=lambda p: p.name)
def test_records_come_home(program: Any, tmp_path: Path, made: Path):
    path = tmp_path / "bundle.zip"
    if program is DOT:
        shutil.copy(made, path)
    else:
        bundle(program, None, path, budget=SMALL, count=2)
    shown = succeed("measure", path).stdout
    assert shown.startswith("2 kernels measured, 2 of them right, the best takes ")
    records = Journal(tmp_path / "bundle.records.jsonl").read().records
    assert [r.validity for r in records] == ["valid", "valid"]
    assert all(r.median and r.samples and len(r.samples) <= MOST_SAMPLES and r.phases for r in records)
    own = tmp_path / "own.jsonl"
    succeed("records", "merge", tmp_path / "bundle.records.jsonl", "--records", own)
    (tmp_path / "mine.lift").write_text(records[0].program.text)
    assert "The best of 2 kernels, 2 of them right" in succeed("best", tmp_path / "mine.lift", "--records", own).stdout
    no_point_twice = succeed("measure", path, "--device", describe(find_device()).name).stdout
    assert no_point_twice == "0 kernels measured, 0 of them right\n"


@needs_opencl
def test_it_needs_numpy_and_pyopencl_alone(made: Path, tmp_path: Path):
    folder = tmp_path / "without"  # stands before the site-packages, also for the process that measures
    folder.mkdir()
    for name in ["msgspec", "egglog", "lark", "typer", "rich", "cloudpickle", "networkx"]:
        (folder / f"{name}.py").write_text("raise ImportError(__name__)")
    command = [sys.executable, made, "--out", tmp_path / "out", "--device", "Portable"]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "brings them home" in done.stdout
    assert {r.validity for r in Journal(tmp_path / "out").read().records} == {"valid"}


@needs_opencl
@in_turn(3)
def test_what_fails_is_recorded_and_the_others_go_on(tmp_path: Path):
    faults = {
        "wrong": source(0, "{\n", "{\n  return;\n"),
        "failed to build": source(1, "{\n", "{ no C\n"),
        "refused": lambda files: files.update({LAUNCH: _huge(files[LAUNCH])}),
        "crashed": source(3, "{\n", "{\n  *(volatile global int *)(size_t)(16) = 1;\n"),
        "too slow": source(4, "{\n", "{\n  for (volatile int z = 1; z;) {}\n"),
        "valid": lambda files: None,
    }
    path, budget = tmp_path / "dot.zip", replace(SMALL, seeds=3, lowered=3)
    assert bundle(DOT, None, path, description=POCL, budget=budget, count=len(faults)).count == len(faults)

    def change(files: dict[str, bytes]) -> None:
        for fault in faults.values():
            fault(files)

    faulty, out = Bundle(changed(path, tmp_path / "faults.zip", change)), tmp_path / "out"
    for count, limit in ((4, 60.0), (1, 1.0), (1, 60.0)):  # the one that hangs is not waited for as long as the others
        assert len([*islice(measure(faulty, out, "Portable", limit=limit), count)]) == count
    kept = Journal(out).read().records
    assert [r.validity for r in kept] == [*faults], [r.reason for r in kept]
    assert [r.median is None for r in kept] == [True] * 5 + [False]
    assert all(r.reason for r in kept[:5])


def _huge(launch: bytes) -> bytes:
    """A launch in work-groups that no device has."""
    content = json.loads(launch)
    for kernel in content["kernels"]:
        kernel["global_size"] = kernel["local_size"] = [1 << 20, 1, 1]
    return json.dumps(content).encode()


@needs_opencl
def test_an_interrupted_measurement_goes_on_where_it_ended(made: Path, tmp_path: Path):
    opened, out = Bundle(made), tmp_path / "out"
    first = next(measure(opened, out, "Portable"))
    data = out.read_bytes()
    out.write_bytes(data + data[:100])  # killed while it wrote
    rest = list(measure(opened, out, "Portable"))
    assert len(rest) == opened.count - 1
    assert first["point"] not in [r["point"] for r in rest]
    assert len(Journal(out).read().records) == opened.count


@needs_opencl
def test_a_killed_measurement_leaves_nobody(made: Path, tmp_path: Path):
    path = changed(made, tmp_path / "hangs.zip", source(1, "{\n", "{\n  for (volatile int z = 1; z;) {}\n"))
    mark = f"bundle-{os.getpid()}"
    process = start(path, "--out", tmp_path / "out", "--device", "Portable", MARK=mark)
    with leaving_nobody(process, mark):
        assert process.stderr is not None
        assert process.stderr.readline().startswith("1 of ")
        end = time.monotonic() + 15
        time.sleep(0.5)
        while len(marked(mark)) > 2 and time.monotonic() < end:  # a compiler's linker is one too, until it is done
            time.sleep(0.1)
        assert len(marked(mark)) == 2  # in the endless kernel
        process.kill()
        process.communicate()
    assert len(Journal(tmp_path / "out").read().records) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"# Notes", "is no bundle, or damaged"),
        (lambda data: data[: len(data) // 2], "is no bundle, or damaged"),
        (lambda data: data.replace(b"lift", b"lyft", 1), "is no bundle, or damaged|is damaged"),
        (lambda data: b"", "is no bundle, or damaged"),
    ],
)
def test_what_is_no_bundle(made: Path, tmp_path: Path, change: Any, message: str):
    path = tmp_path / "bundle"
    path.write_bytes(change(made.read_bytes()))
    with pytest.raises(InputProblem, match=message):
        Bundle(path)
    assert fail("measure", path).count("\n") == 1


def test_damage_anywhere_in_a_bundle_is_found(made: Path, tmp_path: Path):
    data, path = made.read_bytes(), tmp_path / "bundle"
    whole = Bundle(made)
    for at in range(0, len(data), max(1, len(data) // 150)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            opened = Bundle(path)
        except InputProblem:
            continue
        # a byte that says nothing of the content: dates, attributes
        assert opened.head == whole.head
        assert opened.stubs == whole.stubs
        assert [opened.source(n) for n in range(opened.count)] == [whole.source(n) for n in range(whole.count)]


def test_foreign_files_and_devices(made: Path, tmp_path: Path):
    foreign = changed(made, tmp_path / "other.zip", lambda files: files.pop("bundle.json") and None)
    with pytest.raises(InputProblem, match=r"is no bundle: it has no bundle\.json"):
        Bundle(foreign)
    newer = changed(
        made, tmp_path / "newer.zip", lambda f: f.update({"bundle.json": f["bundle.json"].replace(b"1", b"7", 1)})
    )
    with pytest.raises(InputProblem, match="has the format 7, expected 1"):
        Bundle(newer)
    with pytest.raises(InputProblem, match="there is no such file"):
        Bundle(tmp_path / "nothing")
    (tmp_path / "notes").write_text("# Notes")
    with pytest.raises(InputProblem, match="is no journal"):
        next(measure(Bundle(made), tmp_path / "notes"))
    with pytest.raises(DeviceProblem, match="no OpenCL device fits 'abacus'; there are "):
        next(measure(Bundle(made), tmp_path / "out", "abacus"))
    with pytest.raises(OutputProblem, match="cannot write to"):
        next(measure(Bundle(made), Path("/proc/out"), "Portable"))


def test_large_inputs_are_the_block_that_they_repeat():
    block = np.arange(PERIOD, dtype=np.float32)
    large = repeated(block, (2, PERIOD // 2 + 10))
    assert np.array_equal(shortened(large), block)
    assert np.array_equal(np.resize(shortened(large), large.size), large.reshape(-1))
    large[-1, -1] += 1
    assert shortened(large) is large


def test_what_it_takes_along_is_what_is_known_here(made: Path):
    with zipfile.ZipFile(made) as archive:
        assert {f"lift_egraph/{name}" for name in MODULES} <= set(archive.namelist())
    assert {name: np.dtype(t).name for name, t in NUMPY_TYPES.items()} == trial.ELEMENTS
    assert trial.MOST_SAMPLES == MOST_SAMPLES
