"""The race of the kernels that a search finds: the most promising one is always measured next.

What is promising is learned on the way (`lift_egraph.workbench.ranking`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from lift_egraph.errors import LiftError, ModelProblem, RunProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.process.child import End
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import kernels
from lift_egraph.workbench.measuring import Clock, Lanes, Measured, SearchEnd
from lift_egraph.workbench.phases import Found, PhaseSummary
from lift_egraph.workbench.ranking import Family, Ranking, family
from lift_egraph.workbench.recording import Recording
from lift_egraph.workbench.report import Candidate, Event, Listener, Refusal

LONG = 0.25  # the part of what a kernel may take from which one is long, and of the budget in which it waits for others
TOGETHER = 4  # terms of one family that are compiled before one of another
TURN = 0.05  # seconds between two looks at the clock where nothing else happens


class Race:
    """What a search finds becomes candidates, of which the one with the least predicted time is measured next.

    Parameters
    ----------
    naive
        The naive kernel, if there is one: it is measured first, if it is not predicted to take longer than it may.
    make
        Compiles what was found.
    limit_ms
        How long a kernel may take.
    records
        The best known kernels, which are measured next, and where all that are measured are kept.

    Attributes
    ----------
    candidates
        The naive one, and all that were made, however far they got.
    refused
        What was found, but cannot be made.
    phases, stop_reason
        Of the search.
    """

    def __init__(
        self,
        naive: list[Candidate],
        make: Callable[[Found], Candidate],
        limit_ms: float = float("inf"),
        records: Recording | None = None,
    ) -> None:
        remembered = records.remembered if records else []
        self.candidates = [*naive, *remembered]
        self.refused: list[Refusal] = []
        self.phases: list[PhaseSummary] = []
        self.stop_reason = "time limit"
        self._make, self._numbers, self._limit_ms = make, count(), limit_ms
        self._records = records
        self._texts = {kernels(c) for c in self.candidates}
        self._terms: set[ir.Expr] = set()
        self._backlog: list[tuple[int, float, int, Found]] = []
        self._heard: Counter[Family] = Counter()
        self._first = [*reversed(remembered), *(c for c in naive if c.predicted_ms <= limit_ms)]
        self._ready: list[tuple[bool, Candidate]] = []
        self._ranking = Ranking()
        self._searching = True

    def run(
        self, inbox: SimpleQueue[Any], lanes: Lanes, budget: Budget, clock: Clock, top: int, listen: Listener
    ) -> None:
        """Compile and measure until the time is over, or the search, and what is worth measuring of its finds.

        Raises
        ------
        RunProblem, ModelProblem
            If the search or a model fails.
        """
        total = max(budget.measured_per_rank * top, budget.measured) + len(self.candidates)
        measured = 0
        while clock.left > 0:
            at_work = self._searching or bool(self._backlog)
            while self._has_more and (at_work or measured + lanes.busy < total) and lanes.free(at_work):
                candidate = self._next(clock)
                if candidate is None:
                    break
                lanes.submit(candidate)
            if not (at_work or lanes.busy):
                break
            try:
                message = inbox.get(timeout=0 if self._backlog else max(0.0, min(TURN, clock.left)))
            except Empty:
                if self._backlog:
                    with lanes.working():
                        self._compile(budget, listen)
                continue
            if isinstance(message, Future):
                self._done(lanes, message)
                measured += 1
                listen(Event("measure", self._progress(measured), clock.spent / clock.seconds))
            else:
                self._hear(message, clock, listen)
        while lanes.busy:  # each has its own time limit, which is near
            if isinstance(message := inbox.get(), Future):
                self._done(lanes, message)

    def _done(self, lanes: Lanes, measured: Measured) -> None:
        """What was measured is kept at once: nothing that ends this process takes it back."""
        candidate = lanes.done(measured)
        if self._records:
            self._records.add(candidate)
        self._learn(candidate)

    @property
    def _has_more(self) -> bool:
        return bool(self._first or self._ready)

    def _next(self, clock: Clock) -> Candidate | None:
        """The kernel to measure next; None if there is none, or something better is to be expected soon."""
        if self._first:
            return self._first.pop()
        places = range(len(self._ready))
        place = min(places, key=lambda k: (self._ready[k][0], self._ranking.of(self._ready[k][1])))
        is_long, chosen = self._ready[place]
        if is_long and self._searching and clock.spent < LONG * clock.seconds:
            return None
        del self._ready[place]
        return chosen

    def _learn(self, candidate: Candidate) -> None:
        """Correct predictions by what was measured."""
        kind, predicted = family(candidate.way), candidate.predicted_ms
        if candidate.measured_ms is not None:
            self._ranking.learn(kind, predicted, candidate.measured_ms)
        else:
            self._ranking.fail(kind, predicted)

    def _hear(self, message: Found | PhaseSummary | SearchEnd, clock: Clock, listen: Listener) -> None:
        """What came from the search."""
        if isinstance(message, Found):
            term = canonical(message.term)
            if term not in self._terms:
                self._terms.add(term)
                kind = family(message.way)
                turn = self._heard[kind] // TOGETHER
                self._heard[kind] += 1
                heapq.heappush(self._backlog, (turn, message.cost, next(self._numbers), message))
        elif isinstance(message, PhaseSummary):
            self.phases.append(message)
            text = f"{message.name}: {message.tuples} tuples, {message.stop_reason}; {len(self._terms)} low-level terms"
            listen(Event("search", text, clock.spent / clock.seconds))
        else:
            self._searching = False
            if message.problem is not None:
                raise message.problem
            self.stop_reason = self._why(message.end)

    def _why(self, end: End) -> str:
        if end.kind == "error":
            raise RunProblem(f"the search failed: {end.text}")
        if end.kind == "finished":
            return ", ".join(sorted({p.stop_reason for p in self.phases if p.name == "algorithmic"}))
        return {"time": "time limit", "memory": "memory limit"}.get(end.kind, end.text or end.kind)

    def _compile(self, budget: Budget, listen: Listener) -> None:
        """A candidate of the cheapest term that has none yet, some of each family in turn; those that take long, to
        build too, are measured last.
        """
        *_, found = heapq.heappop(self._backlog)
        try:
            candidate = self._make(found)
        except ModelProblem:
            raise
        except LiftError as problem:  # legal in the e-graph's eyes, but not for the code generator or this device
            self.refused.append(Refusal(found.term, str(problem)))
            return
        text = kernels(candidate)
        is_new = text not in self._texts
        self._texts.add(text)
        if is_new and not (self._records and self._records.knows(candidate, 1e-3 * self._limit_ms)):
            self.candidates.append(candidate)
            is_long = len(text) > budget.long_source or candidate.predicted_ms > LONG * self._limit_ms
            self._ready.append((is_long, candidate))
        listen(Event("compile", f"{len(self._texts)} distinct kernels"))

    def _progress(self, measured: int) -> str:
        times = [c.measured_ms for c in self.candidates if c.measured_ms is not None]
        best = f"best {min(times):.3g} ms" if times else "none valid yet"
        return f"{measured} kernels validated and timed, {best}"
