"""The race of the kernels that a search finds: the most promising one is always measured next.

What is promising is learned on the way (`lift_egraph.learned.strategies`).
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from queue import Empty, SimpleQueue
from textwrap import shorten
from typing import Any

from lift_egraph.egraph.saturate import StopReason
from lift_egraph.errors import LiftError, ModelProblem, RunProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.learned.strategies import ByFamily, Family, Point, Strategy
from lift_egraph.process.child import End
from lift_egraph.process.interrupts import heard, look
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import NOT_RUN, Candidate, Refusal, kernels, text_length
from lift_egraph.workbench.confirmation import sessions, slowdown
from lift_egraph.workbench.exploration.tuned import Tunable, Tuning
from lift_egraph.workbench.measuring.lanes import Clock, Measured, Measurers, SearchEnd, grace_of
from lift_egraph.workbench.phases import Found, PhaseSummary, family
from lift_egraph.workbench.progress import Event, Listener
from lift_egraph.workbench.recording import Recording

LONG = 0.25  # the part of what a kernel may take from which its runs are long, and of the budget in which it waits
ALIKE = 1.25  # times the least that is expected of long ones, up to which the first that was found goes first
LENGTHY = 2  # times what is expected of it, at least, that others may take before a kernel that takes long to build
TOGETHER = 4  # terms of one family that are compiled before one of another
FASTER = 0.5  # times the best time, below which a kernel is measured though enough were; 0 is expected of the unknown
WORSE = 1.25  # times the best time, above which another point of a plan is not expected to be of use
CONFIRMING = 2  # times the share of the budget that is kept for it which timing in turns takes where there is time
MOST_TOLD = 160  # characters of why a phase ended, in an event; the report has all
TURN = 0.05  # seconds between two looks at the clock where nothing else happens
ENOUGH = "enough kernels were measured, and none that waits promised to take half the time of the best"
TOO_LATE = "the time was over before all that it found were measured"
RUNS = 8  # of a kernel, until it is validated and timed …
ALONE = 4  # … and of a naive one with which others can only be compared
LATE = 0.5  # the part of the budget after which a naive kernel goes that takes long, if as much of the rest is enough …
MUCH = 0.25  # … and others go that are predicted to take more than this part of it
LONG_RUNS = 0.1  # the part of it from which its runs are long on a crowded machine too, where the limit is longer
SOME = 0.02  # the part of the budget from which a kernel's runs wait until the first of each family are compiled


class Race:
    """What a search finds becomes candidates, of which the one with the least predicted time is measured next.

    Parameters
    ----------
    naive
        The naive kernel, if there is one: it is measured first, or late if all its runs are predicted to take longer
        than `first_ms`, or as soon as there is nothing else with which others can be compared; if one run takes longer
        than a kernel may, never.
    make
        Compiles what was found.
    limit_ms, first_ms
        How long a kernel may take, and all runs of the naive one if it is to go first.
    records
        The best known kernels, which are measured next, and where all that are measured are kept.
    tuning
        Which other points of plans are tried when one of a plan was measured.
    together
        How many kernels are built at once.
    strategy, place
        What to expect of kernels; and where each stands among others, if it asks that.
    others
        What else to try of a kernel that is nearly as fast as the best of those for which there is something.

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
        first_ms: float = float("inf"),
        records: Recording | None = None,
        tuning: Tuning | None = None,
        together: int = 1,
        strategy: Strategy | None = None,
        place: Callable[[Candidate], tuple[float, ...]] = lambda candidate: (),
        others: Callable[[Candidate], Iterable[Found]] = lambda candidate: (),
    ) -> None:
        remembered = records.remembered if records else []
        self.candidates = [*naive, *remembered]
        self._naive = naive[0] if naive else None
        self.refused: list[Refusal] = []
        self.phases: list[PhaseSummary] = []
        self.stop_reason = "time limit"
        self._make, self._numbers, self._limit_ms = make, count(), limit_ms
        self._records = records
        self._texts = {kernels(c) for c in self.candidates}
        self._terms: dict[ir.Expr, bool] = {}  # and whether it is another point of a plan
        self._backlog: list[tuple[int, float, int, Found]] = []
        self._heard: Counter[Family] = Counter()
        in_time = [c for c in naive if c.predicted_ms <= limit_ms]
        is_soon = all(RUNS * c.predicted_ms <= first_ms for c in in_time)
        self._first = [*reversed(remembered), *(in_time if is_soon else ())]
        self._late = None if is_soon else in_time[0]
        self._open: list[_Ready] = []
        self._ready: list[_Ready] = []
        self._strategy, self._place, self._others = strategy or ByFamily(), place, others
        self._searching = True
        self._tuning, self._together = tuning, together
        self._began: dict[int, float] = {}
        self._again: set[int] = set()
        self._tuning_seconds, self._best_ms, self._best_with_others = 0.0, float("inf"), float("inf")

    def lets_search_end(self, budget: Budget, clock: Clock) -> bool:
        """Whether the rest of the time is for measuring: the share of the search is over, and something of it waits."""
        return clock.spent > budget.search_seconds and bool(self._terms) and (bool(self._backlog) or self._has_more)

    @heard()
    def run(
        self, inbox: SimpleQueue[Any], lanes: Measurers, budget: Budget, clock: Clock, top: int, listen: Listener
    ) -> None:
        """Compile and measure until the time is over, or the search, and what is worth measuring of its finds.

        Raises
        ------
        RunProblem, ModelProblem
            If the search or a model fails.
        """
        total = max(budget.measured_per_rank * top, budget.measured) * budget.longer + len(self.candidates)
        measured = tuned = begun = 0
        while (clock.left > budget.turns_seconds or (not begun and (self._first or self._late))) and not lanes.ended:
            look()
            at_work = self._searching or bool(self._backlog)
            while self._has_more and lanes.free(at_work):
                enough = not at_work and measured - tuned + lanes.busy >= total
                candidate = self._next(clock, budget.tuning_share * clock.seconds, enough)
                if candidate is None:
                    break
                lanes.submit(candidate, self._following(self._together - 1))
                begun += 1
            if not (at_work or lanes.busy):
                break
            compiles = bool(self._backlog) and not (self._ready and lanes.interprets)
            try:
                message = inbox.get(timeout=0 if compiles else max(0.0, min(TURN, clock.left)))
            except Empty:
                if compiles:
                    with lanes.working():
                        self._compile(budget, listen)
                continue
            if isinstance(message, Future):
                tuned += self._done(lanes, message)
                measured += 1
                listen(Event("measure", self._progress(measured), clock.spent / clock.seconds))
            else:
                self._hear(message, clock, listen)
        self._tuning = None  # no other points are worked out: their time is over
        with suppress(Empty):
            while lanes.busy:  # each has its own time limit, which is near
                if isinstance(message := inbox.get(timeout=lanes.patience), Future):
                    self._done(lanes, message)
        self.stop_reason = lanes.ended or self.stop_reason
        if not (self._searching or lanes.ended) and (self._ready or self._backlog):
            in_time = clock.left > budget.turns_seconds
            self.stop_reason += f"; {ENOUGH if in_time else TOO_LATE}"
        if not lanes.busy:
            self._confirm(lanes, budget, clock, listen)

    def _confirm(self, lanes: Measurers, budget: Budget, clock: Clock, listen: Listener) -> None:
        """Time the best kernels again, in turns, and beside them the naive one, which they are compared with."""
        valid = [c for c in self.candidates if c.valid and c.measured_ms is not None]
        if len(valid) < 2 or lanes.ended:
            return
        seconds = min(CONFIRMING * budget.turns_seconds, max(clock.left, 0.0) + grace_of(budget) / 2)
        end = clock.spent + seconds

        def turns(who: Sequence[int], rounds: int, seconds: float) -> Sequence[Sequence[float]]:
            listen(Event("confirm", f"timing the best {len(who)} kernels in turns"))
            return lanes.in_turns([valid[n] for n in who], rounds, seconds)

        promised = [c.least_ms / self._slowdown(c) for c in valid]
        naive = next((n for n, c in enumerate(valid) if c is self._naive), None)
        times = [c.measured_ms or 0.0 for c in valid]
        levelled: dict[int, list[float]] = {}
        for session in sessions(promised, times, turns, lambda: end - clock.spent, naive):
            levelled |= session.levelled
            if session.finalists:  # without these the times of the others were better
                for n, c in enumerate(valid):
                    c.turns_ms = session.times[n] if n in session.finalists else ()
                    if n in levelled:
                        c.retimed(levelled[n])

    def _slowdown(self, candidate: Candidate) -> float:
        """How slow its host was when a candidate was timed."""
        alike = [c.beside_ms for c in self.candidates if c.host == candidate.host and c.beside_ms is not None]
        return slowdown(candidate.beside_ms, min(alike, default=0.0))

    def _done(self, lanes: Measurers, measured: Measured) -> bool:
        """What was measured is kept at once: nothing that ends this process takes it back.

        Returns whether it is another point of a plan.
        """
        candidate = lanes.done(measured)
        if candidate.failure == "too slow" and self._slowdown(candidate) > 1 and id(candidate) not in self._again:
            self._again.add(id(candidate))
            candidate.message, candidate.failure = NOT_RUN, "wrong"
            self._ready.append(_Ready(candidate, self._point(candidate), True, id(candidate) in self._began))
        if self._records:
            self._records.add(candidate)
        if candidate.is_open:
            self._open.append(_Ready(candidate, self._point(candidate), False, id(candidate) in self._began))
        elif candidate.message != NOT_RUN:
            self._learn(candidate)
        if candidate.valid:
            self._reopen()
        began = self._began.pop(id(candidate), None)
        if began is not None:
            self._tuning_seconds += time.perf_counter() - began
        return began is not None

    def _reopen(self) -> None:
        """What had nothing to be compared with goes again: now it has."""
        for ready in self._open:
            if id(ready.candidate) not in self._again:
                self._again.add(id(ready.candidate))
                ready.candidate.message, ready.candidate.is_open = NOT_RUN, False
                self._ready.append(ready)
        self._open.clear()

    @property
    def _has_more(self) -> bool:
        return bool(self._first or self._ready or self._late)

    def _next(self, clock: Clock, for_tuning: float, enough: bool) -> Candidate | None:
        """The kernel to measure next; None if there is none, or something better is to be expected soon.

        Other points of plans take part until they took `for_tuning` seconds; where there is `enough` of others, they
        alone, if they are expected to be nearly as fast as the best, and what is expected to be much faster than it.
        """
        if self._first:
            return self._first.pop()
        lets_tune, best = self._tuning_seconds < for_tuning, self._best_ms
        open_to = [
            (_of_long(max(expected, r.candidate.predicted_ms), r.lengths) if r.is_long else expected, at)
            for at, (r, expected) in enumerate(self._expected())
            if (lets_tune and expected <= WORSE * best if r.is_tuned else not enough or 0 < expected < FASTER * best)
        ]
        are_done = not (open_to or self._searching or self._backlog)
        if self._late and (self._open or are_done or clock.spent > LATE * clock.seconds):
            late, self._late = self._late, None
            left = clock.left if self._best_ms < float("inf") else max(clock.left, LATE * clock.seconds)
            # where nothing is right yet, it is worth more time, and still more where others wait for its result
            runs, part = (ALONE, 1.0) if self._open else (RUNS, LATE)
            if 1e-3 * runs * late.predicted_ms <= part * left:
                return late
        if not open_to:
            return None
        least, first = min(open_to)
        are_long = all(self._ready[at].is_long for _, at in open_to)
        if are_long and least > 0 and self._best_ms == float("inf"):  # plans come in the order of what they promise
            first = min(at for expected, at in open_to if expected <= ALIKE * least)
        chosen = self._ready[first]
        seconds = 1e-3 * RUNS * chosen.candidate.predicted_ms
        firsts_wait = bool(self._backlog) and self._backlog[0][0] == 0
        if firsts_wait and seconds > SOME * clock.seconds and clock.spent < LATE * clock.seconds:
            return None  # one of them may be better, and is compiled in less time
        takes_much = seconds > MUCH * clock.seconds
        are_long = are_long or seconds > LONG_RUNS * clock.seconds
        if are_long and self._searching and clock.spent < (LATE if takes_much else LONG) * clock.seconds:
            return None
        self._ready = [r for r in self._ready if r is not chosen]
        if chosen.is_tuned:
            self._began[id(chosen.candidate)] = time.perf_counter()
        return chosen.candidate

    def _following(self, most: int) -> list[Candidate]:
        """The kernels that are likely to be measured next, without those that take long to build."""
        if not most:
            return []
        by_time = sorted((r for r in self._expected() if not r[0].is_long), key=itemgetter(1))
        return [*reversed(self._first), *(r.candidate for r, _ in by_time)][:most]

    def _expected(self) -> list[tuple[_Ready, float]]:
        """What waits, and the milliseconds to expect of it."""
        return list(zip(self._ready, self._strategy.expected([r.point for r in self._ready]), strict=True))

    def _point(self, candidate: Candidate) -> Point:
        return Point(family(candidate.way), candidate.predicted_ms, self._place(candidate))

    def _learn(self, candidate: Candidate) -> None:
        """Correct predictions by what was measured."""
        point = self._point(candidate)
        if candidate.measured_ms is not None:
            self._strategy.learn(point, candidate.measured_ms / self._slowdown(candidate))
            self._best_ms = min(self._best_ms, candidate.measured_ms)
        elif candidate.failure == "too slow" and candidate.tried_ms is not None:
            self._strategy.learn(point, candidate.tried_ms)
        else:
            self._strategy.fail(point)
        for found in self._tuning.learn(candidate) if self._tuning else ():
            self._take(found, is_tuned=True)
        if candidate.measured_ms is not None and (others := list(self._others(candidate))):
            self._best_with_others = min(self._best_with_others, candidate.measured_ms)
            for found in others if candidate.measured_ms <= WORSE * self._best_with_others else ():
                self._take(found, is_tuned=True)

    def _take(self, found: Found, *, is_tuned: bool = False) -> None:
        """Keep what was found for its turn, if it is new."""
        term = canonical(found.term)
        if term not in self._terms:
            self._terms[term] = is_tuned
            kind = family(found.way)
            turn = self._heard[kind] // TOGETHER
            self._heard[kind] += 1
            heapq.heappush(self._backlog, (turn, found.cost, next(self._numbers), found))

    def _hear(self, message: Found | Tunable | PhaseSummary | SearchEnd, clock: Clock, listen: Listener) -> None:
        """What came from the search."""
        if isinstance(message, Found):
            self._take(message)
        elif isinstance(message, Tunable):
            for found in self._tuning.hear(message) if self._tuning else ():
                self._take(found, is_tuned=True)
        elif isinstance(message, PhaseSummary):
            self.phases.append(message)
            ended = shorten(str(message), MOST_TOLD, placeholder=" …")
            text = f"{message.name}: {message.tuples} tuples, {ended}; {len(self._terms)} low-level terms"
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
            return ", ".join(sorted({_of_phase(p.stop_reason) for p in self.phases if p.name == "algorithmic"}))
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
            takes_long = RUNS * candidate.predicted_ms > LONG * self._limit_ms
            lengths = text_length(candidate) / max(budget.long_source, 1)
            is_long = takes_long or lengths > 1
            is_tuned = self._terms[canonical(found.term)]
            self._ready.append(_Ready(candidate, self._point(candidate), is_long, is_tuned, lengths))
        listen(Event("compile", f"{len(self._texts)} distinct kernels"))

    def _progress(self, measured: int) -> str:
        times = [c.measured_ms for c in self.candidates if c.measured_ms is not None]
        best = f"best {min(times):.3g} ms" if times else "none valid yet"
        return f"{measured} kernels validated and timed, {best}"


def _of_phase(reason: str) -> str:
    """Why a phase ended, as a reason of the search, whose time is another one."""
    return f"{reason} of a phase" if reason == StopReason.TIME.value else reason


def _of_long(expected: float, lengths: float) -> float:
    """What is expected of a kernel that takes long to build, as it stands among others: the longer its text is, the
    more; models of users may say less than none.
    """
    return expected + (max(LENGTHY, lengths) - 1) * abs(expected)


@dataclass(frozen=True)
class _Ready:
    """A candidate that waits to be measured: it may take long, or be another point of a plan.

    `lengths` is how many times its text is as long as one from which compilers take long.
    """

    candidate: Candidate
    point: Point
    is_long: bool
    is_tuned: bool
    lengths: float = 1.0
