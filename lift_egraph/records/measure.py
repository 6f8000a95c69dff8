"""Measures the candidates of a bundle, on a machine that has only Python, NumPy and PyOpenCL.

``python BUNDLE`` runs this module out of the bundle, ``lift-egraph measure BUNDLE`` the installed one. Candidates are
built, run on the bundle's inputs, compared with the elements of the result that the bundle holds, and timed, in a
process of their own: if it crashes or hangs, that is recorded as well, and another one goes on. Each record is on the
disk before the next candidate begins, and what the file has already is not measured again. What this module imports
goes into every bundle.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lift_egraph.errors import DeviceProblem, InputProblem, LiftError, OutputProblem
from lift_egraph.records import lines

FORMAT = 1
BUNDLE, RECORDS = "bundle.json", ".records.jsonl"
LIMIT = 60.0  # seconds for a candidate
STARTUP = 120.0  # seconds until a process has found the device
REPEATS, LEAST_SECONDS, MOST_SECONDS, CUT_OFF, MOST_RUNS = 5, 0.05, 2.0, 4.0, 10_000
MOST_SAMPLES = 50
GUARD, GUARD_PATTERN = 4096, 0xAB  # bytes behind each buffer that kernels write
ELEMENTS = {
    "f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i64": "int64", "u32": "uint32",
    "u8": "uint8", "bool": "bool",
}  # fmt: skip
PASSED = {"bool": "int32", "f16": "float32"}  # kernels have no arguments of these types
_SAME = "platform", "name", "driver_version"  # of two devices
_BROKEN = (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, EOFError, NotImplementedError)


class Bundle:
    """A bundle, opened; every byte of it is checked.

    Raises
    ------
    InputProblem
        If it cannot be read, is damaged, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as files:
                if BUNDLE not in files.namelist():
                    raise InputProblem(f"{path} is no bundle: it has no {BUNDLE}")
                if damaged := files.testzip():
                    raise InputProblem(f"{path} is damaged: the checksum of {damaged} is wrong")
            self.head = json.loads(self._read(BUNDLE))
            if self.head["format"] != FORMAT:
                raise InputProblem(f"{path} has the format {self.head['format']}, expected {FORMAT}: make it again")
            self.count = int(self.head["count"])
            self.stubs = [json.loads(self._read(f"{_folder(n)}/record.json")) for n in range(self.count)]
            self.points = [stub["point"] for stub in self.stubs]
        except FileNotFoundError:
            raise InputProblem(f"cannot read {path}: there is no such file") from None
        except OSError as problem:
            raise InputProblem(f"cannot read {path}: {problem.strerror or problem}") from None
        except _BROKEN as problem:
            raise InputProblem(f"{path} is no bundle, or damaged: {problem}") from None

    def _read(self, name: str) -> bytes:
        with zipfile.ZipFile(self.path) as files:
            return files.read(name)

    def launch(self, number: int) -> dict[str, Any]:
        """The ``launch.json`` of a candidate."""
        return json.loads(self._read(f"{_folder(number)}/launch.json"))

    def source(self, number: int) -> str:
        """The kernels of a candidate."""
        return self._read(f"{_folder(number)}/kernel.cl").decode()

    def array(self, name: str) -> Any:
        """An array."""
        import numpy as np

        return np.load(io.BytesIO(self._read(f"{name}.npy")), allow_pickle=False)

    def checks(self, kind: str, leaf: str) -> Iterator[Any]:
        """For a leaf of the result: positions in it, the values there, and their error bounds."""
        for part in ("positions", "values", "bounds"):
            yield self.array(f"checks/{kind}/{leaf}/{part}")


def _folder(number: int) -> str:
    return f"candidates/{number:04}"


def leaf_name(place: Mapping[str, Any]) -> str:
    """The name of a leaf of an input or of the result in a bundle."""
    return ".".join((place["value"], *map(str, place["components"])))


# --- the process that measures ----------------------------------------------------------------------------


def work(path: str, device: str) -> None:
    """Measure the candidates whose numbers come as a line of JSON; each that begins and ends is told as another."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a driver prints must not mix with it

    def say(**message: Any) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        worker = _Worker(Bundle(Path(path)), device)
    except (LiftError, ImportError) as problem:
        say(problem=str(problem))
        return
    say(device=worker.facts, versions=worker.versions)
    todo = json.loads(sys.stdin.readline())

    def watch() -> None:
        sys.stdin.read()  # the parent is gone
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    for number in todo:
        say(begin=number)
        say(end=number, outcome=worker.outcome(number))
    channel.close()
    os._exit(0)  # some drivers crash at their end


class _Failed(Exception):
    """What became of a candidate, in a word, and why."""


class _Worker:
    def __init__(self, bundle: Bundle, text: str) -> None:
        import numpy as np
        import pyopencl as cl

        from lift_egraph.codegen.running.facts import facts_of

        self.cl, self.np, self.bundle = cl, np, bundle
        found: list[tuple[str, Any, Any]] = []
        with suppress(cl.LogicError):  # there is no platform
            for p, known in enumerate(cl.get_platforms()):
                with suppress(cl.Error):  # a platform without a device
                    found += [(f"{p}:{d}", known, device) for d, device in enumerate(known.get_devices())]
        index, known, device = _chosen(found, text)
        self.facts = asdict(facts_of(index, known, device))
        self.versions = {"pyopencl": cl.VERSION_TEXT, "numpy": np.__version__, "python": platform.python_version()}
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._inputs: dict[tuple[str, str], Any] = {}
        self._best = float("inf")

    def outcome(self, number: int) -> dict[str, Any]:
        """What becomes of a candidate."""
        times: list[float] = []
        try:
            validity, reason = "valid", self._measured(self.bundle.launch(number), self.bundle.source(number), times)
        except _Failed as failed:
            validity, reason = failed.args
        except self.cl.Error as problem:
            validity, reason = "refused", str(problem)
        valid = validity == "valid"
        median = float(self.np.median(times)) if valid else None
        samples = [times[i * len(times) // MOST_SAMPLES] for i in range(MOST_SAMPLES)] if len(times) > 50 else times
        if median is not None:
            self._best = min(self._best, median)
        facts = {"samples": samples if valid else [], "runs": len(times) if valid else 0, "median": median}
        return {"validity": validity, "reason": reason, **facts}

    def _measured(self, launch: dict[str, Any], source: str, times: list[float]) -> str:
        """How its results were compared; its times are added to the list."""
        try:
            program = self.cl.Program(self.context, source).build(launch["build_options"])
        except self.cl.Error as problem:
            raise _Failed("failed to build", str(problem)[:2000]) from None
        messages = [f"on {kind}: {self._checked(launch, program, kind)}" for kind in self.bundle.head["kinds"]]
        buffers, run = self._prepared(launch, program, self.bundle.head["kinds"][-1])
        run()
        self.queue.finish()
        began = time.perf_counter()
        while True:
            events = run()
            self.queue.finish()
            times.append(1e-9 * sum(e.profile.end - e.profile.start for e in events))
            spent = time.perf_counter() - began
            enough = len(times) >= REPEATS and spent >= LEAST_SECONDS
            if enough or spent >= MOST_SECONDS or times[0] > CUT_OFF * self._best or len(times) >= MOST_RUNS:
                break
        self._check_guards(buffers)
        return "; ".join(messages)

    def _prepared(self, launch: dict[str, Any], program: Any, kind: str) -> tuple[dict[str, Any], Any]:
        """The buffers that the kernels write, by their names, and a function that runs all kernels once."""
        cl, np = self.cl, self.np
        values: dict[str, Any] = {s["name"]: np.int32(s["value"]) for s in launch["sizes"]}
        for s in launch["scalars"]:
            value = self.bundle.array(f"inputs/{kind}/{leaf_name(s)}")
            values[s["name"]] = np.dtype(PASSED.get(s["element"], ELEMENTS[s["element"]])).type(value[()])
        written: dict[str, Any] = {}
        for b in launch["buffers"]:
            if b["role"] == "input":
                values[b["name"]] = self._input(kind, b)
                continue
            size = b["length"] * np.dtype(ELEMENTS[b["element"]]).itemsize
            made = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size + GUARD)
            pattern = np.full(size + GUARD, 0xFF, np.uint8)
            pattern[size:] = GUARD_PATTERN
            cl.enqueue_copy(self.queue, made, pattern)
            written[b["name"]] = values[b["name"]] = made
        prepared: list[tuple[Any, Any, Any]] = []
        for k in launch["kernels"]:
            kernel = cl.Kernel(program, k["name"])
            kernel.set_args(*(values[a["name"]] for a in k["arguments"]))
            prepared.append((kernel, tuple(k["global_size"]), k["local_size"] and tuple(k["local_size"])))

        def run() -> list[Any]:
            return [cl.enqueue_nd_range_kernel(self.queue, *one) for one in prepared]

        return written, run

    def _input(self, kind: str, buffer: dict[str, Any]) -> Any:
        cl, np = self.cl, self.np
        key = kind, leaf_name(buffer)
        if key not in self._inputs:
            block = self.bundle.array(f"inputs/{kind}/{key[1]}").reshape(-1)
            array = np.resize(block, buffer["length"]) if block.size else block  # a large one repeats itself
            flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
            held = array if array.nbytes else np.zeros(8, np.uint8)
            self._inputs[key] = cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(held))
        return self._inputs[key]

    def _check_guards(self, buffers: dict[str, Any]) -> None:
        np = self.np
        for name, buffer in buffers.items():
            zone = np.empty(GUARD, np.uint8)
            self.cl.enqueue_copy(self.queue, zone, buffer, src_offset=buffer.size - GUARD)
            if (zone != GUARD_PATTERN).any():
                raise _Failed("wrong", f"wrote outside: the memory behind the buffer {name} has changed")

    def _checked(self, launch: dict[str, Any], program: Any, kind: str) -> str:
        """What was compared, of the results on one set of inputs."""
        from lift_egraph.codegen.running.comparing import element_errors

        np = self.np
        buffers, run = self._prepared(launch, program, kind)
        run()
        self.queue.finish()
        self._check_guards(buffers)
        compared = total = 0
        largest = 0.0
        for b in launch["buffers"]:
            if b["role"] != "output" or not b["length"]:
                continue
            result = np.empty(b["length"], ELEMENTS[b["element"]])
            self.cl.enqueue_copy(self.queue, result.view(np.uint8), buffers[b["name"]])
            positions, values, bounds = self.bundle.checks(kind, leaf_name(b))
            untouched = (result.view(np.uint8).reshape(result.size, -1) == 0xFF).all(axis=1)
            if untouched.any() if result.dtype.kind == "f" else untouched.all():
                raise _Failed("wrong", f"left {untouched.sum()} of {result.size} elements of {b['name']} unwritten")
            taken = result[positions]
            error, failed = element_errors(taken, values, bounds)
            if failed.any():
                at = int(failed.argmax())
                where = f"{b['name']}[{positions[at]}] is {taken[at]}, not {values[at]}"
                within = f" within {bounds[at]:.3g}" if bounds[at] else ""
                counts = f"{int(failed.sum())} of {failed.size} elements are wrong"
                raise _Failed("wrong", f"on {kind}: {where}{within}; {counts}")
            compared += int(np.isfinite(bounds).sum())
            total += result.size
            largest = max(largest, float(error.max(initial=0.0)))
        if total and not compared:
            raise _Failed("wrong", f"on {kind}: no element can be compared: none has a finite error bound")
        return f"{compared} of {total} elements within their error bounds (largest error {largest:.3g})"


def _chosen(found: list[tuple[str, Any, Any]], text: str) -> tuple[str, Any, Any]:
    """The device that a text means: an index, or a part of a name; without one PYOPENCL_CTX counts, then PoCL."""
    wanted = text or os.environ.get("PYOPENCL_CTX") or "Portable Computing Language"
    index = wanted if ":" in wanted else f"{wanted}:0"
    named = [d for d in found if wanted.lower() in f"{d[1].name} / {d[2].name}".lower()]
    chosen = [d for d in found if d[0] == index] + named + ([] if text else found)
    if not chosen:
        there = "; ".join(f"{i} {p.name.strip()} / {d.name.strip()}" for i, p, d in found) or "none"
        raise DeviceProblem(f"no OpenCL device fits {text!r}; there are {there}")
    return chosen[0]


# --- the process that watches -----------------------------------------------------------------------------


class _Child:
    """A process that measures, killed when it is left."""

    def __init__(self, bundle: Path, device: str) -> None:
        code = (
            "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
            "from lift_egraph.records.measure import work; work(*sys.argv[2:])"
        )
        search = json.dumps([os.path.abspath(p) for p in sys.path])
        self._folder = tempfile.mkdtemp(prefix="lift-egraph-")  # PoCL never removes its files
        own = {
            "PYOPENCL_NO_CACHE": "1",
            "POCL_KERNEL_CACHE": "0",
            "POCL_CACHE_DIR": self._folder,
            "TMPDIR": self._folder,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code, search, str(bundle), device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **own},
            start_new_session=True,
        )
        self._text = b""

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """The next message; None where it has ended.

        Raises
        ------
        TimeoutError
            If none comes in time.
        """
        stdout, end = self._process.stdout, time.monotonic() + seconds
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._text:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise TimeoutError
                if not (read := os.read(stdout.fileno(), 1 << 16)):
                    return None
                self._text += read
        line, _, self._text = self._text.partition(b"\n")
        return json.loads(line)

    def tell(self, message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    @property
    def ending(self) -> str:
        """How it ended, which it must have."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.poll()
        return f"crashed with {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def measure(bundle: Bundle, out: Path, device: str = "", limit: float = LIMIT) -> Iterator[dict[str, Any]]:
    """Measure the candidates of a bundle that the file has no record of on that device.

    Yields
    ------
    dict
        Each record, when it is on the disk.

    Raises
    ------
    InputProblem, OutputProblem
        If the file is there and is no journal of records, or cannot be written to.
    DeviceProblem
        If there is no such device, or it cannot be asked.
    """
    try:
        data = lines.read(out) if out.exists() else b""
        if lines.is_foreign(data):
            raise InputProblem(f"{out} is no journal of records: it has no line of ours")
        lines.append(out, ())
    except OSError as problem:
        raise OutputProblem(f"cannot write to {out}: {problem.strerror or problem}") from None
    known = [json.loads(payload) for payload in lines.payloads(data) if payload is not None]
    known = [record for record in known if record["format"] == FORMAT]
    done: set[int] = set()
    while True:
        with _Child(bundle.path, device) as child:
            facts, versions = _greeted(child)
            here = {r["point"] for r in known if all(r["device"][key] == facts[key] for key in _SAME)}
            done |= {n for n, point in enumerate(bundle.points) if point in here}
            todo = [n for n in range(bundle.count) if n not in done]
            child.tell(todo)
            before = len(done)
            for number, outcome in _outcomes(child, limit):
                done.add(number)
                yield _kept(bundle, number, out, facts, versions, limit, outcome)
            if len(done) == bundle.count:
                return
            if len(done) == before:
                raise DeviceProblem(f"the process that measures {child.ending} before it began")


def _greeted(child: _Child) -> tuple[dict[str, Any], dict[str, str]]:
    """The device's facts, and the versions there."""
    try:
        hello = child.hear(STARTUP)
    except TimeoutError:
        raise DeviceProblem(f"OpenCL did not answer within {STARTUP:g} s") from None
    if hello is None:
        raise DeviceProblem(f"asking OpenCL for its devices failed: the process {child.ending}")
    if "problem" in hello:
        raise DeviceProblem(hello["problem"])
    return hello["device"], hello["versions"]


def _outcomes(child: _Child, limit: float) -> Iterator[tuple[int, dict[str, Any]]]:
    """The candidates that a process measures, until it ends or one of them ends it."""
    now: int | None = None
    while True:
        try:
            message = child.hear(limit)
        except TimeoutError:
            if now is not None:
                yield now, _failed("too slow", f"ran past its {limit:g} s limit")
            return
        if message is None:
            if now is not None:
                yield now, _failed("crashed", child.ending)
            return
        if "begin" in message:
            now = message["begin"]
        else:
            yield message["end"], message["outcome"]
            now = None


def _failed(validity: str, reason: str) -> dict[str, Any]:
    return {"validity": validity, "reason": reason, "samples": [], "runs": 0, "median": None}


def _kept(
    bundle: Bundle,
    number: int,
    out: Path,
    facts: dict[str, Any],
    versions: dict[str, str],
    limit: float,
    outcome: dict[str, Any],
) -> dict[str, Any]:
    """The record of a candidate, on the disk."""
    record = {"format": FORMAT, **bundle.stubs[number], "device": facts}
    record["versions"] = {"lift-egraph": bundle.head["version"], **versions}
    record["host"], record["limit"] = platform.node(), limit
    record["date"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    record |= outcome
    try:
        lines.append(out, [json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()])
    except OSError as problem:
        raise OutputProblem(f"cannot write to {out}: {problem.strerror or problem}") from None
    return record


def told(records: Iterator[dict[str, Any]], count: int) -> str:
    """Say on stderr what becomes of each candidate, and return what became of all in a sentence."""
    number, medians = 0, list[float]()
    for number, record in enumerate(records, 1):
        median = record["median"]
        shown = record["reason"].partition("\n")[0] if median is None else f"{1e3 * median:.4g} ms"
        medians += [] if median is None else [median]
        print(f"{number} of {count}: {record['validity']}, {shown}", file=sys.stderr, flush=True)
    best = f", the best takes {1e3 * min(medians):.4g} ms" if medians else ""
    return f"{number} kernels measured, {len(medians)} of them right{best}"


def default_out(bundle: Path) -> Path:
    """Where records go if nobody says: beside the bundle."""
    return bundle.with_name(bundle.name.removesuffix(".zip") + RECORDS)


def main(bundle: str) -> int:
    """The command line of a bundle."""
    parser = argparse.ArgumentParser(prog=f"python {bundle}", description="Measure the kernels of this bundle.")
    parser.add_argument("--out", type=Path, default=default_out(Path(bundle)), help="where the records go")
    parser.add_argument("--device", default="", help="an index such as 0:1, or a part of a name")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one kernel")
    given = parser.parse_args()
    try:
        opened = Bundle(Path(bundle))
        print(told(measure(opened, given.out, given.device, given.limit), opened.count))
        print(f"`lift-egraph records merge {given.out}` brings them home")
    except LiftError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0
