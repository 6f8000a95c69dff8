"""What `optimize` found: its candidates by how they did, and what a report says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lift_egraph.codegen.running.roofline import Roofline
from lift_egraph.language import ir
from lift_egraph.meaning.flops import operations
from lift_egraph.workbench.candidates import NOT_RUN, Candidate, Refusal
from lift_egraph.workbench.changes.actions import refusals
from lift_egraph.workbench.confirmation import SIGNIFICANT, sign_test
from lift_egraph.workbench.demands import data_bytes
from lift_egraph.workbench.phases import Found, PhaseSummary
from lift_egraph.workbench.recording import Recorded


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
