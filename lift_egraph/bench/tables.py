"""Tables as Markdown, with the circumstances under which they were made."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.table import Table as Shown

from lift_egraph.codegen.device_info import DeviceInfo

PACKAGES = (
    "lift-egraph", "numpy", "scipy", "numba", "halide", "egglog", "pyopencl", "pocl-binary-distribution",
    "intel-opencl-rt",
)  # fmt: skip
Row = Sequence[str | float | int | None]


@dataclass(frozen=True)
class Table:
    """A table; `notes` say how it was made."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    def markdown(self, level: int = 1) -> str:
        """The table below its title, a heading of a level."""
        texts = [[text_of(value) for value in row] for row in self.rows]
        lines = ["#" * level + f" {self.title}", "", _line(self.headings), _line(["---"] * len(self.headings))]
        lines += [*map(_line, texts), "", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def shown(self) -> Shown:
        """The table for a terminal."""
        table = Shown(*self.headings, title=self.title)
        for row in self.rows:
            table.add_row(*map(text_of, row))
        return table


def markdown(tables: Iterable[Table], devices: Iterable[DeviceInfo]) -> str:
    """Tables, and below them the circumstances."""
    facts = circumstances(*devices)
    about = "\n".join(["## Circumstances", "", *(f"- {key}: {value}" for key, value in facts)])
    first, *others = tables
    return "\n".join([first.markdown(), *(table.markdown(level=2) for table in others), about]) + "\n"


def circumstances(*devices: DeviceInfo) -> list[tuple[str, str]]:
    """The machine, the versions, the date and the command of this run."""
    command = sys.argv[0] if Path(sys.argv[0]).suffix != ".py" else f"python {os.path.relpath(sys.argv[0])}"
    command = "lift-egraph" if Path(sys.argv[0]).name in ("lift-egraph", "__main__.py") else command
    found = [
        ("date", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("command", " ".join([command, shlex.join(sys.argv[1:])]).strip()),
        ("CPU", f"{_cpu()}, {os.cpu_count()} processors"),
        ("platform", platform.platform()),
        ("Python", platform.python_version()),
    ]
    found += [(package, _version(package)) for package in PACKAGES]
    return found + [("device", f"{d}, {d.platform_version}, driver {d.driver_version}") for d in devices]


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


def text_of(value: str | float | int | None) -> str:
    """A value in a table."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
