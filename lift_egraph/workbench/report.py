"""What `optimize` found: candidates, the report, events on the way, and the files it becomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.arrays import plan_texts
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.codegen.running.roofline import Roofline
from lift_egraph.errors import OutputProblem
from lift_egraph.files import json_text, write_texts
from lift_egraph.language import ir
from lift_egraph.language.syntax import print_program, print_term
from lift_egraph.meaning.flops import operations
from lift_egraph.records.record import Validity
from lift_egraph.workbench.changes.actions import refusals
from lift_egraph.workbench.confirmation import SIGNIFICANT, sign_test
from lift_egraph.workbench.demands import data_bytes
from lift_egraph.workbench.phases import Found, Leg, PhaseSummary
from lift_egraph.workbench.way_file import WAY_FILE, derivation_of

if TYPE_CHECKING:
    from lift_egraph.codegen.running.loaded import LoadedKernel

REPORT_FILE = "report.json"
NOT_RUN = "not run"  # what a candidate says before it is validated


@dataclass
class Candidate:
    """A low-level program with its kernels, and what became of it.

    `measured_ms` is the median of its runs, and half of them lie in `spread_ms`; `times_ms` has them all. `way` has the
    phases that led to it. Which rules they applied, and where, only a derivation knows: `explain`. `failure` says in a
    word what is wrong where it is not valid, `limit` how many seconds its build and run were given, `recorded` when it
    was measured before, if it comes from the records. `tried_ms` is the least of its runs before it was validated, and
    `beside_ms` the time of another kernel, the same for all, in the slower of the moments before and after it.
    `turns_ms` are its times in turns with other kernels, if it was among the best
    (`lift_egraph.workbench.confirmation`); `measured_ms` and `spread_ms` are of these then, as if all rounds had been
    equally quiet. `host` names the machine where it ran, if it is another one. It `is_open` while there is nothing to
    compare its result with.
    """

    program: ir.Program
    plan: Plan
    cost: float
    predicted_ms: float
    way: tuple[Leg, ...] = ()
    measured_ms: float | None = None
    spread_ms: tuple[float, float] | None = None
    valid: bool = False
    max_error: float | None = None
    error_bound: float | None = None
    message: str = NOT_RUN
    times_ms: tuple[float, ...] = ()
    failure: Validity = "wrong"
    limit: float = 0.0
    recorded: str = ""
    tried_ms: float | None = None
    turns_ms: tuple[float, ...] = ()
    host: str = ""
    beside_ms: float | None = None
    is_open: bool = False

    @property
    def least_ms(self) -> float:
        """The least of all its runs: whatever else the host does only adds to a time."""
        known = [ms for ms in (self.tried_ms, self.measured_ms) if ms is not None]
        return min((*known, *self.times_ms), default=math.inf)

    @property
    def lowered(self) -> str:
        """The low-level term as text."""
        return print_term(self.program.body)

    @property
    def rank(self) -> tuple[bool, float]:
        """What valid ones are ordered by: the best, which were timed in turns, before others."""
        return not self.turns_ms, self.measured_ms or 0.0

    def retimed(self, times_ms: Sequence[float]) -> None:
        """Let times in turns with other kernels stand for it, so that what is told of two kernels can be compared."""
        low, middle, high = (float(t) for t in np.quantile(times_ms, (0.25, 0.5, 0.75)))
        self.measured_ms, self.spread_ms = middle, (low, high)

    def then(self, phase: str, term: ir.Expr, steps: int, device: Device) -> Found:
        """What one more phase leads to from its term, in so many steps."""
        return Found(self.cost, term, (*self.way, Leg(phase, term, steps, device.mapping)))

    def load(self, queue: Any) -> LoadedKernel:
        """The kernels as a function, on a `pyopencl.CommandQueue` (`lift_egraph.load` is for those in a directory)."""
        from lift_egraph.codegen.running.loaded import LoadedKernel

        return LoadedKernel(self.plan, queue)


@dataclass(frozen=True)
class Refusal:
    """A low-level term that the search found, and why it cannot become kernels for the device."""

    term: ir.Expr
    message: str

    @property
    def lowered(self) -> str:
        """The term as text."""
        return print_term(self.term)


@dataclass(frozen=True)
class Recorded:
    """What a run had from its journal of records, and what it added.

    Attributes
    ----------
    path
        Of the journal.
    appended
        How many kernels were added.
    remembered
        How many of the best known went first, the naive one among them if it is one.
    skipped
        How many that were found again were not measured again.
    problem
        Why no more could be added; empty where nothing failed.
    notes
        What of the journal was left out.
    """

    path: str
    appended: int
    remembered: int
    skipped: int
    problem: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        known = f"; {self.remembered} known kernels went first" if self.remembered else ""
        skipped = f", {self.skipped} found again were not measured again" if self.skipped else ""
        return f"{self.appended} kernels added to {self.path}{known}{skipped}"


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
        All whose kernels were generated, the naive one first if there is one.
    top
        How many of them may have a rank.
    seconds
        All in all.
    no_baseline
        Why there is no naive kernel; empty where there is one.
    refused
        What the search found, but the code generator or the device's limits refuse.
    validation
        What the kernels' results were compared with.
    numpy_ms
        The time of the interpreter, which is NumPy, in the program's own types; None where that takes too long.
    roofline
        What the device reaches; None where that was never measured.
    records
        What was known before, and what was added; None where no journal was kept.
    numbers
        The parameters of the best one's plan; empty where it has none.
    drawn
        What that plan leads to at so many points, each as likely as any other.
    exact
        Whether kernels had to keep each bit of floats.
    checks
        How often declared laws and alternatives were tried.
    """

    source: ir.Program
    device: str
    stop_reason: str
    phases: list[PhaseSummary]
    candidates: list[Candidate]
    top: int
    seconds: float
    no_baseline: str = ""
    refused: tuple[Refusal, ...] = ()
    validation: str = ""
    numpy_ms: float | None = None
    roofline: Roofline | None = None
    records: Recorded | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    drawn: Callable[[int], Sequence[Found]] = lambda count: ()
    exact: bool = False
    checks: tuple[str, ...] = ()

    @property
    def valid(self) -> list[Candidate]:
        """The candidates whose kernels gave the right results, fastest first: first those that were timed in turns."""
        return sorted((c for c in self.candidates if c.valid), key=lambda c: c.rank)

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
        return None if self.no_baseline else self.candidates[0].measured_ms

    @property
    def best(self) -> Candidate | None:
        """The fastest valid candidate."""
        return next(iter(self.valid), None)

    @property
    def runner_up(self) -> Candidate | None:
        """The one that was timed in turns with the best, and is next to it."""
        return next((c for c in self.valid[1:2] if c.turns_ms), None)

    def p_value(self, candidate: Candidate) -> float | None:
        """How often kernels as fast as each other would differ like a candidate and the best did in turns.

        None where these were not both timed so.
        """
        best = self.best
        if best is None or best is candidate or not best.turns_ms or not candidate.turns_ms:
            return None
        return sign_test(best.turns_ms, candidate.turns_ms)

    @property
    def speedup(self) -> float | None:
        """How many times as fast as the naive kernel the best candidate is."""
        if self.best is None or self.baseline_ms is None or not self.best.measured_ms:
            return None
        return self.baseline_ms / self.best.measured_ms

    def is_tie(self, candidate: Candidate) -> bool:
        """Whether a candidate is another one than the best, but cannot be told from it.

        Where both were timed in turns, the sign test says so; else their times overlap.
        """
        best, p = self.best, self.p_value(candidate)
        if p is not None:
            return p >= SIGNIFICANT
        if best is None or best is candidate or not best.spread_ms or not candidate.spread_ms:
            return False
        return candidate.spread_ms[0] <= best.spread_ms[1] and best.spread_ms[0] <= candidate.spread_ms[1]

    @property
    def only_naive(self) -> str:
        """Why no kernel but the naive one is valid; empty where another one is, or not even that."""
        if self.no_baseline or self.valid != self.candidates[:1]:
            return ""
        found = [f"{len(self.rejected)} rejected"] if self.rejected else []
        found += [f"{len(self.refused)} refused by the code generator"] if self.refused else []
        skipped = self.records.skipped if self.records else 0
        found += [f"{skipped} known to be wrong or much slower"] if skipped else []
        found += [f"{self.not_run} not measured before the time was over"] if self.not_run else []
        return f"of others, {', '.join(found)}" if found else f"the search found no other ({self.stop_reason})"

    @property
    def by_rules(self) -> list[Candidate]:
        """The valid candidates that rules led to without any plan, fastest first; the naive one is none of them."""
        naive = None if self.no_baseline else self.candidates[0]
        return [c for c in self.valid if c.way and c is not naive and not any(leg.is_planned for leg in c.way)]

    @property
    def by_plans(self) -> list[Candidate]:
        """The valid candidates that plans led to, fastest first."""
        return [c for c in self.valid if any(leg.is_planned for leg in c.way)]

    @property
    def not_derived(self) -> tuple[str, ...]:
        """Phases at which plans ended, each with what its sketch asked in vain, and rules that would make such."""
        return tuple(f"{p.name}: {p.why_not}" for p in self.phases if p.why_not)

    @property
    def loops(self) -> tuple[str, ...]:
        """Why folds of the program stay loops."""
        return tuple(dict.fromkeys(refusals(self.source.body)))

    def rates(self, candidate: Candidate) -> tuple[float, float] | None:
        """GFLOP/s, of the program as it is written, and GB/s, of its inputs and its result once each."""
        if not candidate.measured_ms:
            return None
        return self._work[0] / candidate.measured_ms * 1e-6, self._work[1] / candidate.measured_ms * 1e-6

    def of_roofline(self, candidate: Candidate) -> float | None:
        """Which share of the device's roofline it reaches: more than 1 where caches hold the program's data."""
        if self.roofline is None or not candidate.measured_ms:
            return None
        return self.roofline.least_ms(*self._work) / candidate.measured_ms

    @property
    def _work(self) -> tuple[int, int]:
        """The program's operations, and the bytes of its inputs and its result."""
        return operations(self.source.body), data_bytes(self.source)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        ranked = self.ranked
        rows = [self._row(rank, c) for rank, c in enumerate(ranked, 1)] + [self._row(None, c) for c in self.rejected]
        largest = max(self.phases, key=lambda p: p.tuples, default=None)
        return {
            "program": self.source.name,
            "sizes": dict(self.source.sizes),
            "device": self.device,
            "exact": self.exact,
            "stop_reason": self.stop_reason,
            "by_plans": _best_of(self.by_plans),
            "by_rules": _best_of(self.by_rules),
            "not_derived": self.not_derived,
            "egraph": {
                "phases": len(self.phases),
                "largest": vars(largest) if largest else None,
                "seconds": round(sum(p.seconds for p in self.phases), 3),
            },
            "baseline": {"measured_ms": self.baseline_ms, "refused": self.no_baseline or None},
            "only_naive": self.only_naive or None,
            "validation": self.validation,
            "checks": self.checks,
            "numpy_ms": self.numpy_ms,
            "roofline": self.roofline and vars(self.roofline),
            "records": self.records and vars(self.records),
            "valid_candidates": len(self.valid),
            "not_run": self.not_run,
            "refused": [{"lowered": r.lowered, "message": r.message} for r in self.refused],
            "candidates": rows,
            "best": rows[0] if ranked else None,
            "speedup": self.speedup,
            "seconds": round(self.seconds, 2),
        }

    def _row(self, rank: int | None, c: Candidate) -> dict[str, Any]:
        gflop, gb = self.rates(c) or (None, None)
        return {
            "rank": rank,
            "predicted_ms": c.predicted_ms,
            "measured_ms": c.measured_ms,
            "spread_ms": c.spread_ms,
            "tie": self.is_tie(c),
            "rounds": len(c.turns_ms),
            "p_value": self.p_value(c),
            "gflop_per_s": gflop,
            "gb_per_s": gb,
            "of_roofline": self.of_roofline(c),
            "valid": c.valid,
            "max_error": _finite(c.max_error),
            "error_bound": _finite(c.error_bound),
            "recorded": c.recorded or None,
            "phases": [str(leg) for leg in c.way],
            "lowered": c.lowered,
            "message": c.message,
        }


def _best_of(found: Sequence[Candidate]) -> dict[str, Any]:
    return {"valid": len(found), "best_ms": found[0].measured_ms if found else None}


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: null stands for it."""
    return value if value is not None and math.isfinite(value) else None


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
    found = {REPORT_FILE: report.to_json(), WAY_FILE: derivation_of(report.source, best.way)}
    texts = {name: json_text(content) for name, content in found.items()}
    write_texts(directory, {**_kernel_texts(best.plan, best.program), **texts}, stale=found)


def write_kernel(plan: Plan | OpenPlan, term: ir.Program, directory: Path) -> None:
    """Write ``kernel.cl``, ``launch.json``, and the term that they were generated from as ``lowered.lift``.

    What `write` wrote about another kernel goes.

    Raises
    ------
    OutputProblem
        If the directory cannot be written to.
    """
    write_texts(directory, _kernel_texts(plan, term), stale=(REPORT_FILE, WAY_FILE))


def _kernel_texts(plan: Plan | OpenPlan, term: ir.Program) -> dict[str, str]:
    return {**plan_texts(plan), "lowered.lift": print_program(term)}


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
