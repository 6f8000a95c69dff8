"""What the benchmarks share: tables with their circumstances, interleaved timing, and memory of a tree of processes."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

import numpy as np
from rich.console import Console
from rich.table import Table

from lift_egraph.api import Program, Runner, describe, naive_term
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.process.child_process import resident_bytes

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("lift-egraph", "numpy", "egglog", "pyopencl", "pocl-binary-distribution")
SPIN = 0.2  # seconds for which OpenBLAS's threads go on spinning after a call
Row = Sequence[str | float | int | None]


def options(name: str, description: str, *, has_device: bool = True) -> argparse.ArgumentParser:
    """The command line of a benchmark."""
    parser = argparse.ArgumentParser(description=description)
    where = RESULTS / f"{name}.md"
    parser.add_argument("--out", type=Path, default=where, help="the file to write (default: %(default)s)")
    if has_device:
        parser.add_argument("--device", help="an index or a part of a device's name, as for lift-egraph")
    return parser


def report(
    out: Path,
    title: str,
    headings: Sequence[str],
    rows: Iterable[Row],
    *,
    notes: Sequence[str] = (),
    device: DeviceInfo | None = None,
    quietly: bool = False,
) -> None:
    """Write a table as Markdown with the circumstances under which it was made, and print it, but `quietly`."""
    rows = list(rows)
    texts = [[_text(value) for value in row] for row in rows]
    lines = [f"# {title}", "", _line(headings), _line(["---"] * len(headings)), *map(_line, texts), ""]
    lines += [f"- {note}" for note in notes]
    lines += ["", "## Circumstances", "", *(f"- {key}: {value}" for key, value in circumstances(device).items())]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if not quietly:
        show(title, headings, rows, notes=notes)
        print(f"written to {out}")


def show(title: str, headings: Sequence[str], rows: Iterable[Row], *, notes: Sequence[str] = ()) -> None:
    """Print a table."""
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*map(_text, row))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)


def circumstances(device: DeviceInfo | None) -> dict[str, str]:
    """The machine, the versions, the date and the command of this run."""
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]]),
        "CPU": f"{_cpu()}, {os.cpu_count()} processors",
        "platform": platform.platform(),
        "Python": platform.python_version(),
    }
    found.update((package, _version(package)) for package in PACKAGES)
    if device is not None:
        found["device"] = f"{device}, {device.platform_version}, driver {device.driver_version}"
    return found


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _text(value: str | float | int | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def naive_plan(program: Program, device: DeviceInfo) -> Plan:
    """The kernel with one work-item for each element of the result."""
    return compile_program(naive_term(program), describe(device))


# --- time ---------------------------------------------------------------------------------------------


def interleaved(
    runner: Runner, plans: dict[str, Plan], peers: dict[str, Callable[[], object]], rounds: int
) -> dict[str, float]:
    """The median milliseconds of plans (on the input set ``floats``) and of functions, measured turn by turn.

    A plan's time is the device's own, for its kernels; a function's is the wall clock's. Each round is the
    median of a few runs, so that one disturbance does not count; a pause follows each function.
    """
    times: dict[str, list[float]] = {name: [] for name in (*plans, *peers)}
    for call in peers.values():
        call()
    for _ in range(rounds):
        time.sleep(SPIN)
        for name, plan in plans.items():
            times[name].append(runner.measure(plan, "floats", repeats=5, min_time=0.02).median_ms)
        for name, call in peers.items():
            times[name].append(_milliseconds(call, 5))
            time.sleep(SPIN)
    return {name: statistics.median(values) for name, values in times.items()}


def _milliseconds(call: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return 1e3 * float(np.median(found))


# --- memory -------------------------------------------------------------------------------------------


class PeakMemory:
    """The largest resident memory, in bytes, of this process and its descendants together inside a ``with``.

    Pages that processes share count for each of them.
    """

    def __init__(self, interval: float = 0.05) -> None:
        self.peak = 0
        self._interval = interval
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, sum(map(resident_bytes, family())))
            if self._done.wait(self._interval):
                return


def family() -> list[int]:
    """The ids of this process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            parent = int(status.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return found
