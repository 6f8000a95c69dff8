"""Measures the candidates of a bundle, on a machine that has only Python 3.11 or newer, NumPy and PyOpenCL.

``python BUNDLE`` runs this module out of the bundle, ``lift-egraph measure BUNDLE`` the installed one. Candidates are
built, run on the bundle's inputs, compared with the elements of the result that the bundle holds, and timed, in a
process of their own: if it crashes or hangs, that is recorded as well, and another one goes on. Each record is on the
disk before the next candidate begins, and what the file has already is not measured again. What this module imports
goes into every bundle.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lift_egraph.codegen.running.host_cpu import pinned
from lift_egraph.errors import DeviceProblem, InputProblem, LiftError, OutputProblem
from lift_egraph.records import lines
from lift_egraph.records.opened import FORMAT, Bundle

RECORDS = ".records.jsonl"
LIMIT = 60.0  # seconds for a candidate
STARTUP = 120.0  # seconds until a process has found the device
_SAME = "platform", "name", "driver_version"  # of two devices


class _Child:
    """A process that measures, killed when it is left."""

    def __init__(self, bundle: Path, device: str) -> None:
        code = (
            "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
            "from lift_egraph.records.trial import work; work(*sys.argv[2:])"
        )
        search = json.dumps([os.path.abspath(p) for p in sys.path])
        self._folder = tempfile.mkdtemp(prefix="lift-egraph-")  # PoCL never removes its files
        own = {
            "PYOPENCL_NO_CACHE": "1",
            "POCL_KERNEL_CACHE": "0",
            "POCL_CACHE_DIR": self._folder,
            "TMPDIR": self._folder,
            **pinned(),
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

    Parameters
    ----------
    limit
        How long each may take, in seconds.

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
