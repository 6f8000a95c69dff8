"""What a benchmark keeps in its folder: a line for each result, as soon as it is there, and the kernels.

``rows.jsonl`` has the lines (`lift_egraph.records.lines`): a killed run leaves all of them, and the next goes on there.
``kernels/NAME/`` is what `optimize --out` writes. The folder of another machine brings its kernels along.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.errors import InputProblem, OutputProblem
from lift_egraph.records import lines

FORMAT = 1
Milliseconds = Annotated[float, Meta(ge=0)]
Name = Annotated[str, Meta(pattern=r"^[\w-]*$")]


class PeerTime(Struct, frozen=True, forbid_unknown_fields=True):
    """How long a peer takes, by the best of its schedules; or why that is not known."""

    library: str
    how: str = ""
    ms: Milliseconds | None = None
    problem: str = ""


class BenchRow(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="row"):
    """What was found for a program on a device.

    Attributes
    ----------
    program, hash, sizes
        The program, what it is known by at these sizes (`lift_egraph.records.record.program_hash`), and these.
    text
        The program at these sizes.
    kernel
        The name of the best kernel's folder; empty where none was found, for `problem`.
    library, library_ms
        The fastest of what the program is compared with, in the same run.
    peers
        All of them.
    phases, numbers
        The way to the best kernel, and the parameters of its plan.
    median_ms, points
        The median over so many points of that plan, each as likely as any other; None where it has no parameters.
    p_value
        Of the best against the runner-up, in turns.
    """

    format: Literal[1]
    program: str
    hash: str
    sizes: dict[str, int]
    text: str
    device: DeviceInfo
    budget: float
    seconds: float
    problem: str = ""
    kernel: Name = ""
    naive_ms: Milliseconds | None = None
    best_ms: Milliseconds | None = None
    library: str = ""
    library_ms: Milliseconds | None = None
    peers: list[PeerTime] = []
    phases: list[str] = []
    numbers: dict[str, int] = {}
    median_ms: Milliseconds | None = None
    points: int = 0
    p_value: float | None = None

    @property
    def key(self) -> tuple[str, str, float]:
        """What a result is of: it is not measured twice."""
        return self.hash, key_of(self.device), self.budget


class Crossing(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="crossing"):
    """The best kernel of one device on another one, timed in turns with the best kernel of that.

    `kernel` and `own` are the names of the kernels' folders, `origin` is the device of the former.
    """

    format: Literal[1]
    program: str
    hash: str
    origin: str
    kernel: Name
    device: DeviceInfo
    own: Name
    ms: Milliseconds | None
    own_ms: Milliseconds | None
    problem: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What a result is of."""
        return self.kernel, self.own, key_of(self.device)


_DECODER = msgspec.json.Decoder(BenchRow | Crossing)


def key_of(device: DeviceInfo) -> str:
    """What a device is known by in tables."""
    return f"{device.platform} / {device.name}"


@dataclass(frozen=True)
class Folder:
    """The folder of a benchmark; it need not be there before something is kept."""

    path: Path

    def read(self) -> tuple[list[BenchRow], list[Crossing], list[str]]:
        """The latest result of each, and what of the file was left out.

        Raises
        ------
        InputProblem
            If the file cannot be read, or is something else.
        """
        where = self.path / "rows.jsonl"
        try:
            data = lines.read(where)
        except FileNotFoundError:
            return [], [], []
        except OSError as problem:
            raise InputProblem(f"cannot read {where}: {problem.strerror or problem}") from None
        if lines.is_foreign(data):
            raise InputProblem(f"{where} has no results of a benchmark: no line of it is ours")
        found: dict[object, BenchRow | Crossing] = {}
        damaged: list[int] = []
        for number, payload in enumerate(lines.payloads(data), 1):
            try:
                item = _DECODER.decode(payload or b"")
                found[item.key] = item
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                damaged.append(number)
        notes = [f"{where}: damaged or unknown lines left out: {', '.join(map(str, damaged))}"] if damaged else []
        items = found.values()
        return [r for r in items if isinstance(r, BenchRow)], [c for c in items if isinstance(c, Crossing)], notes

    def keep(self, *items: BenchRow | Crossing) -> None:
        """Append results: when this returns they are on the disk.

        Raises
        ------
        OutputProblem
            If they cannot be written.
        """
        where = self.path / "rows.jsonl"
        try:
            lines.append(where, map(msgspec.json.encode, items))
        except OSError as problem:
            raise OutputProblem(f"cannot write to {where}: {problem.strerror or problem}") from None

    def kernel(self, name: str) -> Path:
        """The folder of a kernel."""
        return self.path / "kernels" / name


def kernel_name(program: str, hashed: str, device: DeviceInfo) -> str:
    """The name of a kernel's folder."""
    return re.sub(r"\W+", "-", f"{program}-{hashed[:8]}-{device.platform}-{device.name}")
