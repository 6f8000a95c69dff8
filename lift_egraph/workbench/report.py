"""What `optimize` found: candidates, the report, events on the way, and the files it becomes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_egraph.codegen.plans.arrays import save_plan
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.errors import OutputProblem
from lift_egraph.language import ir
from lift_egraph.language.syntax import print_program, print_term
from lift_egraph.workbench.search import Leg, PhaseSummary
from lift_egraph.workbench.way_file import WAY_FILE, way_to_json

NOT_RUN = "not run"  # what a candidate says before it is validated


@dataclass
class Candidate:
    """A low-level program with its kernels, and what became of it.

    `way` has the phases that led to it. Which rules they applied, and where, only a derivation knows: `explain`.
    """

    program: ir.Program
    plan: Plan
    cost: float
    predicted_ms: float
    way: tuple[Leg, ...] = ()
    measured_ms: float | None = None
    valid: bool = False
    max_error: float | None = None
    error_bound: float | None = None
    message: str = NOT_RUN

    @property
    def lowered(self) -> str:
        """The low-level term as text."""
        return print_term(self.program.body)


@dataclass(frozen=True)
class Report:
    """The outcome of `optimize`.

    Attributes
    ----------
    source
        The program at these sizes.
    phases, stop_reason
        Of the search.
    candidates
        All whose kernels were generated, the naive one first.
    top
        How many of them may have a rank.
    seconds
        All in all.
    """

    source: ir.Program
    device: str
    stop_reason: str
    phases: list[PhaseSummary]
    candidates: list[Candidate]
    top: int
    seconds: float

    @property
    def valid(self) -> list[Candidate]:
        """The candidates whose kernels gave the right results, fastest first."""
        return sorted((c for c in self.candidates if c.valid), key=lambda c: c.measured_ms or 0.0)

    @property
    def ranked(self) -> list[Candidate]:
        """The fastest valid candidates: only they have a rank."""
        return self.valid[: self.top]

    @property
    def rejected(self) -> list[Candidate]:
        """The candidates that were validated in vain."""
        return [c for c in self.candidates if not c.valid and c.message != NOT_RUN]

    @property
    def not_run(self) -> int:
        """How many kernels were generated, but neither validated nor timed in the budget."""
        return sum(c.message == NOT_RUN for c in self.candidates)

    @property
    def baseline_ms(self) -> float | None:
        """The time of the naive kernel, if it is valid."""
        return self.candidates[0].measured_ms

    @property
    def best(self) -> Candidate | None:
        """The fastest valid candidate."""
        return min(self.valid, key=lambda c: c.measured_ms or 0.0, default=None)

    @property
    def speedup(self) -> float | None:
        """How many times as fast as the naive kernel the best candidate is."""
        if self.best is None or self.baseline_ms is None or not self.best.measured_ms:
            return None
        return self.baseline_ms / self.best.measured_ms

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        ranked = self.ranked
        rows = [_row(rank, c) for rank, c in enumerate(ranked, 1)] + [_row(None, c) for c in self.rejected]
        largest = max(self.phases, key=lambda p: p.tuples, default=None)
        return {
            "program": self.source.name,
            "sizes": dict(self.source.sizes),
            "device": self.device,
            "stop_reason": self.stop_reason,
            "egraph": {
                "phases": len(self.phases),
                "largest": vars(largest) if largest else None,
                "seconds": round(sum(p.seconds for p in self.phases), 3),
            },
            "baseline": {"measured_ms": self.baseline_ms},
            "valid_candidates": len(self.valid),
            "not_run": self.not_run,
            "candidates": rows,
            "best": rows[0] if ranked else None,
            "speedup": self.speedup,
            "seconds": round(self.seconds, 2),
        }


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: null stands for it."""
    return value if value is not None and math.isfinite(value) else None


def _row(rank: int | None, c: Candidate) -> dict[str, Any]:
    return {
        "rank": rank,
        "predicted_ms": c.predicted_ms,
        "measured_ms": c.measured_ms,
        "valid": c.valid,
        "max_error": _finite(c.max_error),
        "error_bound": _finite(c.error_bound),
        "phases": [str(leg) for leg in c.way],
        "lowered": c.lowered,
        "message": c.message,
    }


@dataclass(frozen=True)
class Event:
    """Something that happened on the way: its stage, a text, and how far the stage is (0 to 1)."""

    stage: str
    text: str
    done: float = 0.0


Listener = Callable[[Event], None]


def write(report: Report, directory: Path) -> None:
    """Write the best kernel: ``kernel.cl``, ``launch.json``, ``lowered.lift``, ``report.json``, ``derivation.json``.

    Raises
    ------
    OutputProblem
        If the directory cannot be written to.
    """
    best = report.best
    if best is None:
        raise OutputProblem("there is no valid kernel to write")
    write_kernel(best.plan, best.program, directory)
    _write_text(directory / "report.json", json.dumps(report.to_json(), indent=2) + "\n")
    _write_text(directory / WAY_FILE, json.dumps(way_to_json(report.source, best.way), indent=2) + "\n")


def write_kernel(plan: Plan | OpenPlan, term: ir.Program, directory: Path) -> None:
    """Write ``kernel.cl``, ``launch.json``, and the term that they were generated from as ``lowered.lift``.

    Raises
    ------
    OutputProblem
        If the directory cannot be written to.
    """
    save_plan(plan, directory)
    _write_text(directory / "lowered.lift", print_program(term))


def _write_text(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_text(text)
        beside.replace(path)
    except OSError as problem:
        raise OutputProblem(f"cannot write to {path.parent}: {problem.strerror}") from None


def require_writable(directory: Path) -> None:
    """Make a directory, and check that files can be written there, before any long work.

    Raises
    ------
    OutputProblem
        If not.
    """
    try:
        if directory.exists() and not directory.is_dir():
            raise OutputProblem(f"cannot write to {directory}: it is a file, not a directory")
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as problem:
        raise OutputProblem(f"cannot write to {directory}: {problem.strerror}") from None
