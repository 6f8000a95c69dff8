"""What the benchmarks share: tables with their circumstances, interleaved timing, and memory of a tree of processes."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console

from lift_egraph.api import Program, describe, naive_term
from lift_egraph.bench.tables import Row, Table, markdown
from lift_egraph.bench.timing import SPIN, interleaved
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.process.child_process import resident_bytes
from lift_egraph.workbench.candidates import Candidate

RESULTS = Path(__file__).parent / "results"
__all__ = [
    "SPIN",
    "PeakMemory",
    "Row",
    "interleaved",
    "naive_plan",
    "options",
    "options_of_searches",
    "report",
    "show",
    "way_in_words",
]


def options(name: str, description: str, *, has_device: bool = True) -> argparse.ArgumentParser:
    """The command line of a benchmark."""
    parser = argparse.ArgumentParser(description=description)
    where = RESULTS / f"{name}.md"
    parser.add_argument("--out", type=Path, default=where, help="the file to write (default: %(default)s)")
    if has_device:
        parser.add_argument("--device", help="an index or a part of a device's name, as for lift-egraph")
    return parser


def options_of_searches(name: str, description: str, *, budget: float, rounds: int) -> argparse.Namespace:
    """What the command line of a benchmark says that optimises programs by name and times what it finds, in rounds."""
    parser = options(name, description)
    parser.add_argument("names", nargs="*", help="of programs; all by default")
    parser.add_argument("--budget", type=float, default=budget, help="seconds for each search (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=rounds, help="of timing (default: %(default)s)")
    return parser.parse_args()


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
    made = Table(title, headings, list(rows), notes)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(markdown([made], [device] if device else []), encoding="utf-8")
    if not quietly:
        show(title, headings, made.rows, notes=notes)
        print(f"written to {out}")


def show(title: str, headings: Sequence[str], rows: Iterable[Row], *, notes: Sequence[str] = ()) -> None:
    """Print a table."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(Table(title, headings, list(rows)).shown())
    for note in notes:
        console.print(note, markup=False, highlight=False)


def naive_plan(program: Program, device: DeviceInfo) -> Plan:
    """The kernel with one work-item for each element of the result."""
    return compile_program(naive_term(program), describe(device))


def way_in_words(candidate: Candidate) -> str:
    """The names of the phases that led to a kernel, each once."""
    return ", ".join(dict.fromkeys(leg.name for leg in candidate.way))


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
