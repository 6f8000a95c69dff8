import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lift_egraph.api import optimize, workbench
from lift_egraph.cli.options import USUAL_START, left_of
from lift_egraph.codegen.plans.arrays import save_plan
from lift_egraph.codegen.plans.kernel import Argument, BufferInfo, Kernel, Launch, Plan, ScalarInfo
from lift_egraph.codegen.running.run import list_devices
from lift_egraph.errors import OutputProblem
from tests.command import ENVIRONMENT, interrupted, lift, search_little, start
from tests.depth import in_turn

FILES = {"kernel.cl", "launch.json", "lowered.lift", "report.json", "derivation.json"}
AXPY = """-- a * x + y
program axpy(a: f32, x: [f32]N, y: [f32]N) where N = 4096 =
  map(fun (e, f) => a * e + f, zip(x, y))
"""
BLUR = """-- A stencil of three points
program blur(x: [f32]N) where N = 4096 =
  map(fun w => 0.25 * at(0, w) + 0.5 * at(1, w) + 0.25 * at(2, w), slide(3, 1, pad(1, 1, clamp, x)))
"""
BUDGET = 4  # seconds: enough for a first kernel where other tests keep the processors busy
KEYS = {
    "program", "sizes", "device", "stop_reason", "egraph", "baseline", "candidates", "best", "speedup"
}  # fmt: skip
CANDIDATE_KEYS = {
    "rank", "predicted_ms", "measured_ms", "valid", "max_error", "error_bound", "phases", "lowered"
}  # fmt: skip


@pytest.fixture(scope="module")
def device():
    """The index of a device; tests that need one are skipped where there is none."""
    found = list_devices()
    if not found:
        pytest.skip("there is no OpenCL device")
    return found[0].index


def succeed(*arguments: object):
    result = lift(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def fail(*arguments: object, code: int = 1) -> str:
    """The message of a command that must fail, and must say nothing else."""
    result = lift(*arguments)
    assert result.exit_code == code, (result.exit_code, result.stderr, result.exception)
    assert isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    if code == 1:
        assert "error: " in result.stderr
    return result.stderr


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# --- what there is ----------------------------------------------------------------------------------------


def test_help_is_quick():
    """In seconds of a processor, which other processes may keep busy, and without what takes long to import."""
    code = "from lift_egraph.__main__ import main\ntry: main()\n"
    code += "finally:\n  import sys, time; print(time.process_time(), 'numpy' in sys.modules, file=sys.stderr)"
    shown, told = start("-c", code, "--help").communicate()
    assert "optimize" in shown
    seconds, is_imported = told.split()
    assert float(seconds) < 1.0
    assert is_imported == "False"


def test_version():
    assert succeed("--version").stdout.startswith("lift-egraph")


def test_devices(device):
    assert device in succeed("devices").stdout
    facts = json.loads(succeed("devices", "--json").stdout)
    assert device in [fact["index"] for fact in facts]


def test_a_description_of_ones_own(dot, device, tmp_path):
    (known, *_), mine = json.loads(succeed("devices", "--json").stdout), tmp_path / "mine.toml"
    mine.write_text(f'like = "{known["description"]}"')
    assert json.loads(succeed("devices", "--json", "--device-file", mine).stdout)[0] == {**known, "description": "mine"}
    result = succeed("compile", dot, "--device", device, "--device-file", mine, "--size=N=64")
    assert result.stdout.splitlines()[0].endswith("for mine")
    mine.write_text("like = 3")
    failed = lift("optimize", "dot", "--device-file", mine)
    assert failed.exit_code == 1
    assert failed.stderr.startswith(f"error: {mine}: like: there is no description 3; there are cpu")


def test_a_full_device_takes_no_output():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "lift_egraph", "programs"]
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False)
    assert process.returncode == 1
    assert process.stderr == b"error: standard output: No space left on device\n"


def test_output_is_utf8_in_any_locale():
    process = start("-m", "lift_egraph", "rules", "show", "eta", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", LC_ALL="C")
    shown, complaints = process.communicate()
    assert "λ" in shown, complaints


def test_programs():
    assert "Matrix multiplication" in succeed("programs").stdout
    facts = {fact["name"]: fact for fact in json.loads(succeed("programs", "--json").stdout)}
    assert facts["mm"]["sizes"] == {"M": 512, "K": 512, "N": 512}
    assert facts["mm"]["description"].startswith("Matrix multiplication")


def test_rules():
    assert "map_fusion" in succeed("rules").stdout
    facts = {fact["name"]: fact for fact in json.loads(succeed("rules", "--json").stdout)}
    assert facts["map_fusion"]["family"] == "fusion"
    assert facts["map_fusion"].keys() == {"name", "law", "source", "family", "phase", "flags", "notes", "checked"}
    assert all(fact["law"] for fact in facts.values())


# --- programs and options that are wrong ------------------------------------------------------------------

ARGUMENT = "program f(x: [f32]N, y: [f32]M, z: [i32]N) where N = 16, M = 8 =\n  "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("map(fun e => 2.0 * e x", ":2:24: expected an operator"),
        ("mpa(fun e => 2.0 * e, x)", ":2:3: unknown name 'mpa'; did you mean 'map'?"),
        ("map(fun (a, b) => a + b, zip(x, z))", "add needs arguments of one type, got f32, i32"),
        ("map(fun (a, b) => a + b, zip(x, y))", "zip needs arrays of one length, got N and M"),
    ],
)
def test_a_wrong_program(tmp_path, body, message):
    shown = fail("optimize", write(tmp_path / "f.lift", ARGUMENT + body))
    assert message in shown
    assert "^" in shown


def test_a_split_by_a_non_divisor(tmp_path):
    body = "join(map(fun c => map(fun e => 2.0 * e, c), split(3, x)))"
    path = write(tmp_path / "f.lift", f"program f(x: [f32]N) where N = 16 =\n  {body}")
    assert "split(3) does not divide an array of length 16" in fail("optimize", path)
    assert "split(3) does not divide an array of length 1" in fail("optimize", path, "--size", "N=1")


def test_an_unknown_program(tmp_path, monkeypatch):
    assert "no bundled program 'mn'; did you mean 'mm'?" in fail("optimize", "mn")
    (tmp_path / "mine.lift").write_text("")
    monkeypatch.chdir(tmp_path)
    assert "no bundled program 'mine'; did you mean the file mine.lift?" in fail("optimize", "mine")
    assert "missing.lift: No such file" in fail("optimize", tmp_path / "missing.lift")
    assert "Is a directory" in fail("optimize", tmp_path)
    (tmp_path / "binary.lift").write_bytes(b"\xff\xfe\x00")
    assert "binary.lift:1:1: this is no text in UTF-8" in fail("optimize", tmp_path / "binary.lift")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (["N=0"], "the size N must be at least 1, got 0"),
        (["N=-4"], "the size N must be at least 1, got -4"),
        (["Q=4"], "mm has no size 'Q'; it has K, M, N"),
        (["N=99999999999"], "beyond the 32-bit index range"),
    ],
)
def test_a_wrong_size(sizes, message):
    assert message in fail("optimize", "mm", *(f"--size={size}" for size in sizes))


def test_sizes_that_the_device_has_no_memory_for(device):
    shown = fail("optimize", "mm", "--size", "M=1048576", "--size", "N=1048576", "--device", device)
    assert "one allocation may have" in shown


@pytest.mark.parametrize(
    "options",
    [
        ["--size", "N"],
        ["--size", "N=x"],
        ["--size", "N=3", "--size", "N=4"],
        ["--budget", "0"],
        ["--budget", "nan"],
        ["--budget", "inf"],
        ["--top", "0"],
        ["--seed", "-1"],
        ["--nothing"],
    ],
)
def test_wrong_usage(options):
    assert "Usage" in fail("optimize", "mm", *options, code=2)


def test_an_unknown_device(device):
    shown = fail("optimize", "dot", "--device", "no such device", "--json")
    assert "no OpenCL device fits 'no such device'" in shown
    assert device in shown


@in_turn(6)
@pytest.mark.parametrize("arguments", [("devices",), ("optimize", "dot")])
def test_no_platform(tmp_path, arguments):
    hidden = {"OCL_ICD_VENDORS": str(tmp_path / "none"), "OCL_ICD_FILENAMES": ""}
    process = start("-m", "lift_egraph", *arguments, **hidden)
    _, complaints = process.communicate()
    assert process.returncode == 1
    assert complaints.startswith("error: no OpenCL device was found; `pip install pocl-binary-distribution`")
    assert "Traceback" not in complaints


def test_an_unwritable_out(tmp_path, device, monkeypatch):
    monkeypatch.setattr(workbench, "optimize", pytest.fail)  # it is found before the long work
    file = write(tmp_path / "file", "")
    for out in (file, file / "below", "/proc/nowhere"):
        assert f"cannot write to {out}" in fail("optimize", "mm", "--out", out)


# --- run, with a kernel by hand ---------------------------------------------------------------------------

N = 64


@pytest.fixture
def written(tmp_path):
    """A directory with a kernel that makes (a * x, x + y) of a number a and an array of pairs (x, y)."""
    source = (
        "kernel void f(global const float *x, global const int *y, global float *p, global float *q, float a)"
        "{ int i = get_global_id(0); p[i] = a * x[i]; q[i] = x[i] + y[i]; }"
    )
    buffers = (
        BufferInfo("x", "input", "f32", N, "xs", (0,), (N,)),
        BufferInfo("y", "input", "i32", N, "xs", (1,), (N,)),
        BufferInfo("p", "output", "f32", N, "result", (0,), (N,)),
        BufferInfo("q", "output", "f32", N, "result", (1,), (N,)),
    )
    arguments = (*(Argument("buffer", b.name) for b in buffers), Argument("scalar", "a"))
    kernel = Kernel("f", "", arguments, Launch((N, 1, 1)), 0)
    save_plan(Plan("f", "generic", source, (kernel,), buffers, (ScalarInfo("a", "f32", "a"),)), tmp_path / "k")
    np.save(tmp_path / "x.npy", np.arange(N, dtype=np.float32))
    np.save(tmp_path / "y.npy", np.arange(N, dtype=np.int32))
    np.save(tmp_path / "a.npy", np.float32(2.5))
    return tmp_path


def run_options(folder: Path, a="2.5", x="x.npy", y="y.npy", p="p.npy", q="q.npy") -> list[str]:
    inputs = (f"--input=a={a}", f"--input=xs={folder / x}", f"--input=xs={folder / y}")
    return ["run", str(folder / "k"), *inputs, f"--output={folder / p}", f"--output={folder / q}"]


@pytest.mark.parametrize("by_file", [False, True])
def test_run_with_tuples(written, device, by_file):
    succeed(*run_options(written, a=written / "a.npy" if by_file else "2.5"), "--device", device)
    numbers = np.arange(N, dtype=np.float32)
    assert np.array_equal(np.load(written / "p.npy"), 2.5 * numbers)
    assert np.array_equal(np.load(written / "q.npy"), 2 * numbers)
    assert not list(written.glob(".*"))


def test_run_imports_no_egglog(written, device):
    code = "import sys; from lift_egraph.cli.main import app; app(sys.argv[1:], standalone_mode=False); "
    code += "assert 'egglog' not in sys.modules and 'numpy' in sys.modules; print('done')"
    shown, complaints = start("-c", code, *run_options(written)).communicate()
    assert shown == "done\n", complaints
    assert (written / "p.npy").exists()


def test_run_writes_into_what_is_no_regular_file(written, device):
    reader, writer = os.pipe()
    p, q = Path(f"/proc/self/fd/{writer}"), written / "link.npy"
    q.symlink_to("q.npy")
    succeed(*run_options(written, p=p, q=q), "--device", device)
    with open(reader, "rb") as pipe:
        os.close(writer)
        assert pipe.read().endswith((2.5 * np.load(written / "x.npy")).tobytes())
    assert q.is_symlink()
    assert np.array_equal(np.load(written / "q.npy"), 2 * np.load(written / "x.npy"))


class TestWrongArrays:
    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros(N - 1, np.float32), "must have the shape (64,), got the shape (63,)"),
            (np.zeros((N, 1), np.float32), "must have the shape (64,), got the shape (64, 1)"),
            (np.zeros(0, np.float32), "must have the shape (64,), got the shape (0,)"),
            (np.zeros(N), "must have elements of type float32 (f32), got float64"),
            (np.zeros(N, ">f4"), "must have elements of type float32 (f32), got >f4"),
        ],
    )
    def test_wrong_shape_or_type(self, written, array, message):
        np.save(written / "wrong.npy", array)
        assert message in fail(*run_options(written, x="wrong.npy"))

    def test_a_file_that_is_no_array(self, written):
        np.save(written / "pickled.npy", np.array([print] * N), allow_pickle=True)
        cut_off, pickled = (written / "x.npy").read_bytes()[:-4], (written / "pickled.npy").read_bytes()
        headers = ("(", "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,)}" % 2**70, "{[]: 1}", " 1\n0")  # noqa: UP031
        made = [b"\x93NUMPY\x01\x00" + len(h).to_bytes(2, "little") + h.encode() for h in headers]
        for content in (*made, b"", b"no array", b"\x93NUMPY\x01\x00\xff\xff", b"PK\x03\x04", cut_off, pickled):
            (written / "wrong.npy").write_bytes(content)
            assert "wrong.npy is not a .npy file" in fail(*run_options(written, x="wrong.npy"))

    def test_a_missing_file(self, written):
        assert "none.npy: No such file or directory" in fail(*run_options(written, x="none.npy"))

    @pytest.mark.parametrize("number", ["zzz", "1e300", "true"])
    def test_a_number_that_does_not_fit(self, written, number):
        assert f"the input a: {number!r} is no f32 number" in fail(*run_options(written, a=number))


class TestWrongRuns:
    def test_missing_unknown_and_too_many_inputs(self, written):
        options = run_options(written)
        assert "the input a of f is missing" in fail(*(o for o in options if not o.startswith("--input=a=")))
        assert "f uses no input 'b'" in fail(*options, "--input", "b=2")
        assert "the input a has 1 array(s), each needs an --input; got 2" in fail(*options, "--input", "a=2")

    def test_outputs(self, written):
        options = run_options(written)
        assert "each needs an --output; got 1" in fail(*options[:-1])
        assert "there is no directory" in fail(*run_options(written, p="none/p.npy"))
        assert "it is a directory" in fail(*run_options(written, p="k"))
        assert "a file of its own" in fail(*run_options(written, p="q.npy"))
        assert "Usage" in fail(*options[:-2], code=2)
        assert "Usage" in fail(*options, "--input", "a", code=2)

    def test_no_kernel(self, written):
        options = run_options(written)[2:]
        assert "kernel.cl: No such file or directory" in fail("run", written / "none", *options)
        (written / "k" / "launch.json").write_text("{}")
        assert "does not follow its schema" in fail("run", written / "k", *options)
        (written / "k" / "launch.json").unlink()
        assert "launch.json: No such file or directory" in fail("run", written / "k", *options)

    def test_an_unknown_device(self, written, device):
        assert "no OpenCL device fits 'nope'" in fail(*run_options(written), "--device", "nope")


# --- optimize, from end to end ----------------------------------------------------------------------------


def optimised(path: Path, device: str, *options: object) -> dict:
    """The report on a program, checked for what every report has."""
    result = succeed("optimize", path, "--device", device, "--budget", BUDGET, "--json", *options)
    report = json.loads(result.stdout)
    assert report.keys() >= KEYS
    assert all(candidate.keys() >= CANDIDATE_KEYS for candidate in report["candidates"])
    assert report["best"]["valid"]
    assert report["best"]["rank"] == 1
    assert report["best"]["measured_ms"] > 0
    assert report["baseline"]["measured_ms"] > 0
    assert report["speedup"] == pytest.approx(report["baseline"]["measured_ms"] / report["best"]["measured_ms"])
    ranked = [c for c in report["candidates"] if c["rank"] is not None]
    times = [(c["rounds"] == 0, c["measured_ms"]) for c in ranked]
    assert times == sorted(times)
    assert "baseline: " in result.stderr
    return report


def random_array(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, n).astype(np.float32)


@in_turn(2)
def test_axpy_from_its_text_to_arrays(tmp_path, device, monkeypatch):
    search_little(monkeypatch)
    out = tmp_path / "new" / "axpy"
    report = optimised(write(tmp_path / "axpy.lift", AXPY), device, "--size", "N=2048", "--out", out)
    assert report["sizes"] == {"N": 2048}
    assert {f.name for f in out.iterdir()} == FILES
    assert json.loads((out / "report.json").read_text())["best"]["lowered"] == report["best"]["lowered"]
    x, y = random_array(1, 2048), random_array(2, 2048)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    inputs = ("--input", "a=2.5", "--input", f"x={tmp_path}/x.npy", "--input", f"y={tmp_path}/y.npy")
    succeed("run", out, *inputs, "--output", tmp_path / "out.npy", "--device", device)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), np.float32(2.5) * x + y, rtol=0, atol=1e-6)


@in_turn(3)
def test_a_stencil_from_its_text_to_arrays(tmp_path, device, monkeypatch):
    search_little(monkeypatch)
    out = tmp_path / "blur"
    optimised(write(tmp_path / "blur.lift", BLUR), device, "--out", out)
    x = random_array(3, 4096)
    np.save(tmp_path / "x.npy", x)
    succeed("run", out, "--input", f"x={tmp_path}/x.npy", "--output", tmp_path / "out.npy", "--device", device)
    padded = np.pad(x, 1, mode="edge")
    expected = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=0, atol=1e-6)


@in_turn(3)
def test_the_table_also_where_the_disk_is_full(device, monkeypatch, tmp_path):
    def full(report, out):
        raise OutputProblem(f"cannot write to {out}: No space left on device")

    search_little(monkeypatch)
    monkeypatch.setattr(workbench, "write", full)
    options = ("--device", device, "--budget", BUDGET, "--top", 2, "--out", tmp_path / "o")
    result = lift("optimize", "nbody", "--size", "N=512", *options)
    shown = result.stdout
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert "speed-up" in shown
    assert "times as fast" in shown
    assert "Search ended: " in shown
    assert "Rejected: " in shown


DOT = """program dot(xs: [f32]N, ys: [f32]N) where N = 1024 =
  reduceSeq(add, 0.0,
    mapGlb(0, reduceSeq(fun (a, p) => a + get(0, p) * get(1, p), 0.0), split(4, zip(xs, ys))))
"""


@pytest.fixture
def dot(tmp_path):
    (tmp_path / "dot.lift").write_text(DOT)
    return tmp_path / "dot.lift"


def test_compile_prints_the_kernels_of_a_low_level_program(dot, device):
    result = succeed("compile", dot, "--device", device, "--size=N=64")
    assert "f32[64], the input xs" in result.stdout
    assert result.stdout.rstrip().endswith("}")
    assert "at N = 64: on integers: 1 of 1 elements equal bit for bit" in result.stderr
    assert " ms." in result.stderr


def test_compile_leaves_sizes_open_and_run_takes_what_it_wrote(dot, device, tmp_path):
    (tmp_path / "k").mkdir()
    mine = write(tmp_path / "k" / "x.npy", "")
    for of_another_kernel in ("report.json", "derivation.json"):
        write(tmp_path / "k" / of_another_kernel, "{}")
    result = succeed("compile", dot, "--device", device, "--open", "N", "--any-launch", "--out", tmp_path / "k")
    assert result.stdout == ""
    mine.unlink()
    assert {p.name for p in (tmp_path / "k").iterdir()} == {"kernel.cl", "launch.json", "lowered.lift"}
    assert "const int N" in (tmp_path / "k" / "kernel.cl").read_text()
    x = np.arange(12, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    files = [f"--input=xs={tmp_path / 'x.npy'}", f"--input=ys={tmp_path / 'x.npy'}"]
    succeed("run", tmp_path / "k", *files, "--output", tmp_path / "o.npy", "--device", device)
    assert np.load(tmp_path / "o.npy") == np.dot(x, x)


def test_compile_compares_no_result_without_elements(dot, device):
    path = write(dot, "program same(xs: [f32]N) where N = 8 = mapGlb(0, fun x => x, xs)")
    message = fail("compile", path, "--device", device, "--open", "N", "--size=N=0")
    assert "computes no elements: its result is [f32]0; choose larger sizes" in message


def test_run_takes_sizes_that_no_shape_tells(device, tmp_path):
    (tmp_path / "rows.lift").write_text(
        "program rows(xs: [f32](M * N)) where M = 3, N = 4 =\n"
        "  mapGlb(0, fun row => reduceSeq(add, 0.0, row), split(N, xs))\n"
    )
    succeed("compile", tmp_path / "rows.lift", "--device", device, "--open=M", "--open=N", "--out", tmp_path / "k")
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float32))
    arguments = ("run", tmp_path / "k", f"--input=xs={tmp_path / 'x.npy'}", "--output", tmp_path / "o.npy")
    succeed(*arguments, "--device", device, "--size=M=2", "--size=N=6")
    assert np.load(tmp_path / "o.npy").tolist() == [15, 51]
    for sizes, message in (
        ((), "rows needs a value for the size M, N"),
        (("--size=M=2", "--size=N=5"), "the input xs must have the shape (10,), got the shape (12,)"),
        (("--size=M=2", "--size=K=6"), "rows has no open size 'K'; it has M, N"),
    ):
        result = lift(*arguments, "--device", device, *sizes)
        assert result.exit_code == 1
        assert message in result.stderr


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        ("mm", (), "lower it to mapGlb, mapWrg, mapLcl or mapSeq"),
        ("dot", ("--open", "M"), "dot has no size 'M'; it has N"),
        ("dot", ("--size=N=1023",), "split(4) does not divide an array of length 1023"),
    ],
)
def test_compile_says_what_is_wrong(dot, device, program, options, message):
    result = lift("compile", dot if program == "dot" else program, "--device", device, *options)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_shows_what_was_found(device):
    sizes = ("--size=M=64", "--size=K=64", "--size=N=64")
    process = start("-m", "lift_egraph", "optimize", "mm", *sizes, "--device", device, "--budget", 60)
    shown, complaints = interrupted(process, "stderr", "measure: ")
    assert process.returncode == 130, complaints
    assert "Search ended: interrupted" in shown


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_writes_what_was_found_as_json(device, monkeypatch):
    """In this process: the test above has one of its own."""

    def optimized(*given, listen, **options):
        def interrupting(event):
            listen(event)
            if event.stage == "measure":
                os.kill(os.getpid(), signal.SIGINT)

        return optimize(*given, listen=interrupting, **options)

    monkeypatch.setattr(workbench, "optimize", optimized)
    result = lift("optimize", "asum", "--size=N=4096", "--device", device, "--budget", 60, "--json")
    assert result.exit_code == 130, result.stderr
    report = json.loads(result.stdout)
    assert report["stop_reason"] == "interrupted"
    assert report["best"]["valid"]


def test_a_late_start_is_counted_in_the_budget():
    now = time.perf_counter()
    assert left_of(10.0, None) == 10.0
    assert left_of(10.0, now) == 10.0
    assert left_of(10.0, now - USUAL_START - 3) == pytest.approx(7.0, abs=0.5)
    assert left_of(10.0, now - 60) == 5.0  # something can be found in what is left


def test_a_command_knows_when_its_process_began():
    code = (
        "import time; from lift_egraph.__main__ import _began; time.sleep(0.3); print(time.perf_counter() - _began())"
    )
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert 0.3 < age < 60
