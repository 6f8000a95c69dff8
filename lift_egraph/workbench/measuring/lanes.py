"""Validating and timing kernels while the search still runs: side by side in lanes, each timed alone.

A thread reads what the search finds, and one a lane waits for its worker process; all that happens arrives in one
queue. While a kernel is timed on a CPU, the search and the other workers are stopped (SIGSTOP).
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Generic, Protocol, Self, TypeVar

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References
from lift_egraph.errors import LiftError
from lift_egraph.process.child import End, Stream
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import NOT_RUN, Candidate
from lift_egraph.workbench.measuring.evaluation import Evaluation, evaluate
from lift_egraph.workbench.validation.references import load_references
from lift_egraph.workbench.validation.sampled import Sampled
from lift_egraph.workbench.validation.whole_numbers import WholeNumbers

M = TypeVar("M")

Measured = Future[tuple[Candidate, Runner]]
_SWITCH = 0.0005  # seconds until a lane that waits gets the interpreter: it asks hundreds of times for each kernel
_SHORT_MS = 10.0  # of the kernel that is timed beside others
LEAST_TURNS = 0.5  # seconds that there must be for turns
GRACE = 0.5  # seconds, beside a share of the budget


class Clock:
    """The time that a budget leaves, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began = seconds, time.perf_counter()

    @property
    def spent(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        """Until the end; below 0 after it."""
        return self.seconds - self.spent


def grace_of(budget: Budget) -> float:
    """The seconds after the end in which a kernel may finish that is being measured."""
    return budget.seconds * 0.05 + GRACE


def seconds_for(budget: Budget, clock: Clock, is_hope: bool) -> float:
    """How long a kernel may take that begins now, beside its own limit.

    That is what is left; one that is the only hope, as none is right yet, has all the time that its own limit gives it:
    a search without any kernel is of no use.
    """
    return inf if is_hope else clock.left + grace_of(budget) - budget.turns_seconds


@dataclass(frozen=True)
class SearchEnd:
    """The search found its last term, or failed."""

    end: End
    problem: LiftError | None = None


class Pausable(Protocol):
    """What runs in a process of its own."""

    def signal(self, number: int) -> None: ...


@contextmanager
def stopped(others: Iterable[Pausable]) -> Iterator[None]:
    """While something is timed, other processes stand still."""
    others = tuple(others)
    try:
        for other in others:
            other.signal(signal.SIGSTOP)
        yield
    finally:
        for other in others:
            other.signal(signal.SIGCONT)


class Finder(Generic[M]):
    """Reads the messages of a stream in a thread, and puts them into a queue, with a `SearchEnd` at last.

    The stream's process starts at once; leaving the context kills it.
    """

    def __init__(self, stream: Stream[M], inbox: queue.SimpleQueue[Any]) -> None:
        self._stream, self._inbox = stream, inbox
        self._thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        problem = None
        try:
            for message in self._stream:
                self._inbox.put(message)
        except LiftError as raised:
            problem = raised
        self._inbox.put(SearchEnd(self._stream.end, problem))

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        self._stream.signal(number)

    def __enter__(self) -> Self:
        self._stream.begin()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGKILL)
        self._thread.join()


class Measurers(Protocol):
    """What validates and times candidates side by side; each goes into a queue, as a future, when it is done.

    `busy` says how many are at work, `ended` why no more are taken, unless it is empty, and `patience` after how many
    seconds none of them is to be expected any more; it is None where each has its own limit. `interprets` is whether
    this process interprets something for one of them: what else it does may wait.
    """

    @property
    def busy(self) -> int: ...
    @property
    def ended(self) -> str: ...
    @property
    def patience(self) -> float | None: ...
    @property
    def interprets(self) -> bool: ...
    def free(self, beside: bool) -> bool: ...
    def submit(self, candidate: Candidate, next_ones: Sequence[Candidate] = ()) -> None: ...
    def done(self, measured: Any) -> Candidate: ...
    def working(self) -> AbstractContextManager[None]: ...
    def in_turns(self, candidates: Sequence[Candidate], rounds: int, seconds: float) -> list[tuple[float, ...]]: ...


class Beside:
    """The kernel that is timed beside all that are measured after it: the first one that takes little time."""

    def __init__(self) -> None:
        self.plan: Plan | None = None

    def offer(self, candidate: Candidate) -> None:
        """It is this one if there is none yet."""
        if self.plan is None and candidate.least_ms <= _SHORT_MS:
            self.plan = candidate.plan


class Lanes:
    """Workers that validate and time candidates; each puts its candidate into a queue when it is done with it.

    Parameters
    ----------
    others
        What else is stopped while a kernel is timed, if the device is the CPU.
    whole_numbers
        What the fastest kernels are held against, too.
    measure
        What validates and times a candidate: by default `evaluate`.
    first
        A worker that was begun before.
    """

    def __init__(
        self,
        info: DeviceInfo,
        reference: References | Sampled,
        budget: Budget,
        clock: Clock,
        kernel_seconds: float,
        inbox: queue.SimpleQueue[Any],
        others: tuple[Pausable, ...] = (),
        whole_numbers: WholeNumbers | None = None,
        measure: Evaluation | None = None,
        first: Runner | None = None,
    ) -> None:
        self.count = min(budget.lanes, os.cpu_count() or 1)
        self.busy, self.ended, self.patience = 0, "", None
        others_than_first = range(self.count - (first is not None))
        self._runners = [Runner(info, time_limit=kernel_seconds) for _ in others_than_first]
        self._runners += [first] if first else []
        self._kernel_seconds, self._first_seconds = kernel_seconds, max(kernel_seconds, budget.most_kernel)
        self._idle = list(self._runners)
        self._built: dict[Runner, set[int]] = {runner: set() for runner in self._runners}
        self._threads = ThreadPoolExecutor(self.count)
        self._reference, self._budget, self._clock, self._inbox = reference, budget, clock, inbox
        self._measure = measure or evaluate
        self._best_ms, self._ended, self._beside, self._whole = float("inf"), False, Beside(), whole_numbers
        self._grace = grace_of(budget)
        self._shares_the_cpu, self._others = info.kind == "cpu", others
        self._changed, self._wanted, self._is_timing, self._is_working = threading.Condition(), 0, False, False
        for runner in self._runners:
            load_references(runner, reference)

    @property
    def interprets(self) -> bool:
        """Whether something is interpreted for a candidate."""
        is_sampled = isinstance(self._reference, Sampled) and self._reference.interpreting
        return bool(is_sampled or (self._whole and self._whole.interpreting))

    def free(self, beside: bool) -> bool:
        """Whether there is room for another candidate; `beside` a search one core is the search's."""
        return self.busy < max(1, self.count - beside)

    def submit(self, candidate: Candidate, next_ones: Sequence[Candidate] = ()) -> None:
        """Begin to validate and time a candidate; those that are likely to follow are built with it."""
        self.busy += 1
        known = [runner for runner in self._idle if id(candidate) in self._built[runner]]
        runner = (known or self._idle)[-1]
        self._idle.remove(runner)
        together = [] if known else [candidate, *next_ones]
        self._built[runner].update(map(id, together))
        is_hope = self.busy == 1 and not isfinite(self._best_ms)  # none is right, and none at work that may be
        self._threads.submit(self._evaluate, runner, candidate, together, is_hope).add_done_callback(self._inbox.put)

    def done(self, measured: Measured) -> Candidate:
        """The candidate that came out of the queue; its worker is free again."""
        candidate, runner = measured.result()
        self.busy -= 1
        self._idle.append(runner)
        if candidate.measured_ms is not None:
            self._best_ms = min(self._best_ms, candidate.measured_ms)
            self._beside.offer(candidate)
        return candidate

    def in_turns(self, candidates: Sequence[Candidate], rounds: int, seconds: float) -> list[tuple[float, ...]]:
        """The times of kernels in turns, while no other is at work; none where that fails, or it is too late."""
        runner = max(self._idle, key=lambda idle: sum(id(c) in self._built[idle] for c in candidates))
        left = self._clock.left + self._grace
        if left < LEAST_TURNS:
            return []
        runner.deadline = time.perf_counter() + left
        plans = [c.plan for c in candidates]
        try:
            with self._alone(runner):
                missing = [c.plan for c in candidates if id(c) not in self._built[runner]]
                if len(missing) > 1:
                    runner.build(missing)
                self._built[runner].update(map(id, candidates))
                return runner.in_turns(plans, self._reference.timed, rounds=rounds, max_time=seconds)
        except LiftError:  # what was measured stands
            return []

    @contextmanager
    def working(self) -> Iterator[None]:
        """For work in this process that would disturb a kernel that is timed on the CPU."""
        with self._changed:
            self._changed.wait_for(lambda: not self._shares_the_cpu or not self._wanted)
            self._is_working = True
        try:
            yield
        finally:
            with self._changed:
                self._is_working = False
                self._changed.notify_all()

    def _evaluate(
        self, runner: Runner, candidate: Candidate, together: list[Candidate], is_hope: bool
    ) -> tuple[Candidate, Runner]:
        runner.deadline = time.perf_counter() + seconds_for(self._budget, self._clock, is_hope)
        runner.time_limit = self._first_seconds if is_hope else self._kernel_seconds
        cut_off_ms = self._budget.cut_off * self._best_ms
        if len(together) > 1:
            runner.build([c.plan for c in together])
        alone = self._alone(runner)
        others = self._beside.plan, self._whole
        self._measure(candidate, runner, self._reference, self._budget, cut_off_ms, alone, *others)
        if self._ended:  # what it says was made by the end, not by its kernel
            candidate.valid, candidate.message = False, NOT_RUN
        return candidate, runner

    @contextmanager
    def _alone(self, runner: Runner) -> Iterator[None]:
        others = [other for other in (*self._others, *self._runners) if other is not runner and self._shares_the_cpu]
        with self._changed:
            self._wanted += 1
            self._changed.wait_for(lambda: not self._is_timing and not (self._shares_the_cpu and self._is_working))
            self._is_timing = True
        try:
            with stopped(others):
                yield
        finally:
            with self._changed:
                self._wanted -= 1
                self._is_timing = False
                self._changed.notify_all()

    def __enter__(self) -> Self:
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setswitchinterval(self._interval)
        self._ended = True
        for runner in self._runners:
            runner.cancel()
        self._threads.shutdown()
        for runner in self._runners:
            runner.close()
