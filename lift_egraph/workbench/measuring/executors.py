"""Validating and timing kernels on the workers of an executor, such as those of a dask cluster.

An executor is what `concurrent.futures` calls one: what is asked of it is `submit`, and nothing of its own. A worker is
told the program and the device (`Job`), with each kernel; the inputs, and what results are compared with, it makes by
itself, once in each process, and keeps them beside a process for the kernels until it was idle for a while. So little
is sent, and a kernel that crashes ends no worker.

Workers of one host that use one device time their kernels in turns, while no other validates (a lock in the folder
for temporary files).
"""

from __future__ import annotations

import fcntl
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from lift_egraph.caching import cached_property
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.roofline import Roofline
from lift_egraph.codegen.running.run import Runner, bare, list_devices
from lift_egraph.codegen.running.validate import References
from lift_egraph.errors import DeviceProblem, LiftError
from lift_egraph.language import ir
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.measuring.evaluation import Evaluation, evaluate
from lift_egraph.workbench.measuring.lanes import Beside, Clock, grace_of, seconds_for
from lift_egraph.workbench.rates import numpy_ms, roofline
from lift_egraph.workbench.validation.references import load_references, reference_of, room_for
from lift_egraph.workbench.validation.sampled import Sampled
from lift_egraph.workbench.validation.whole_numbers import WholeNumbers

ANSWER = 120.0  # seconds in which a worker begins: a cluster may have to start it first
IDLE = 60.0  # seconds after which a worker without work ends its process for kernels, and forgets inputs
TRIES = 2  # how often a kernel is sent whose worker ended
OUTCOME = (
    "valid", "message", "failure", "max_error", "error_bound", "measured_ms", "spread_ms", "times_ms", "tried_ms",
    "limit", "host", "beside_ms", "is_open",
)  # fmt: skip

R = TypeVar("R")


@dataclass(frozen=True)
class Job:
    """What a worker makes inputs and references from, and where kernels run.

    Attributes
    ----------
    source, program
        With open sizes, and at the wanted ones.
    kernel_seconds
        The limit for the build and run of a kernel.
    exact
        Whether results must agree bit for bit where all devices compute the same.
    measure
        What validates and times a candidate: a function of a module.
    """

    source: ir.Program
    program: ir.Program
    device: DeviceInfo
    description: Device
    budget: Budget
    kernel_seconds: float
    seed: int
    exact: bool = False
    measure: Evaluation = evaluate


# --- here -------------------------------------------------------------------------------------------------


def asked(executor: Executor, seconds: float, function: Callable[..., R], *arguments: Any) -> R:
    """What a worker answers.

    Raises
    ------
    DeviceProblem
        If none does.
    """
    try:
        return executor.submit(function, *arguments).result(max(seconds, 0.0))
    except LiftError:
        raise
    except TimeoutError:
        raise DeviceProblem(f"no worker of the executor answered within {seconds:.0f} s") from None
    except (Exception, CancelledError) as problem:  # an executor may fail in any way, and its workers lack packages
        raise DeviceProblem(f"the executor's workers cannot be asked: {_shown(problem)}") from problem


class Workers:
    """The workers of an executor, as `lift_egraph.workbench.measuring.lanes.Measurers`.

    A kernel whose worker ended is sent again; if that ends its worker too, it counts as the reason. An executor that
    takes no more work ends the race: what was measured stands.
    """

    def __init__(self, executor: Executor, job: Job, clock: Clock, inbox: SimpleQueue[Any]) -> None:
        self.ended, self.patience = "", job.kernel_seconds + grace_of(job.budget)
        self.interprets = False  # elsewhere, if at all
        self._executor, self._job, self._clock, self._inbox = executor, job, clock, inbox
        self._sent: dict[Future[Any], tuple[Candidate, int]] = {}
        self._best_ms, self._beside = float("inf"), Beside()

    @property
    def busy(self) -> int:
        """How many kernels are on their way."""
        return len(self._sent)

    def free(self, beside: bool) -> bool:
        """Whether another kernel may be sent."""
        return not self.ended and self.busy < self._job.budget.lanes

    def submit(self, candidate: Candidate, next_ones: Sequence[Candidate] = (), tries: int = 1) -> None:
        """Send a candidate to a worker."""
        limit = seconds_for(self._job.budget, self._clock, not self._sent and not isfinite(self._best_ms))
        cut_off_ms = self._job.budget.cut_off * self._best_ms
        try:
            future = self._executor.submit(
                evaluated, self._job, candidate.program, bare(candidate.plan), limit, cut_off_ms, self._beside.plan
            )
        except (Exception, CancelledError) as problem:  # it is broken, or shut down
            self.ended = f"the executor takes no more work: {_shown(problem)}"
            return
        self._sent[future] = candidate, tries
        future.add_done_callback(self._inbox.put)

    def done(self, measured: Future[Any]) -> Candidate:
        """The candidate that came out of the queue; it is `NOT_RUN` where it is on its way again."""
        candidate, tries = self._sent.pop(measured)
        try:
            outcome = measured.result()
        except LiftError as problem:  # not the kernel's: a worker cannot work
            self.ended = self.ended or f"a worker failed: {problem}"
        except (Exception, CancelledError) as problem:  # the worker's end, in the executor's own words
            if tries < TRIES and not self.ended:
                self.submit(candidate, tries=tries + 1)
            if tries == TRIES and not self.ended:
                candidate.message, candidate.failure = f"its worker ended: {_shown(problem)}", "crashed"
        else:
            for name, value in outcome.items():
                setattr(candidate, name, value)
            if candidate.measured_ms is not None:
                self._best_ms = min(self._best_ms, candidate.measured_ms)
                self._beside.offer(candidate)
        return candidate

    def working(self) -> AbstractContextManager[None]:
        """Work in this process disturbs nobody."""
        return nullcontext()

    def in_turns(self, candidates: Sequence[Candidate], rounds: int, seconds: float) -> list[tuple[float, ...]]:
        """The times of kernels in turns, on one worker; none where that fails."""
        plans = [bare(c.plan) for c in candidates]
        try:
            return asked(self._executor, self.patience + seconds, in_turns, self._job, plans, rounds, seconds)
        except LiftError:  # what was measured stands
            return []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._sent:
            future.cancel()
        self._sent.clear()


def _shown(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}".partition("\n")[0]


# --- on a worker ------------------------------------------------------------------------------------------


def prepared(job: Job) -> tuple[str, float | None, Roofline | None]:
    """What kernels are compared with, in a sentence; the program's time in NumPy; and the device's roofline."""
    with _station(job) as station:
        reference, budget = station.reference, job.budget
        with _lock(job.device, fcntl.LOCK_EX):
            in_numpy = numpy_ms(job.program, reference.inputs[reference.timed], budget.numpy_seconds)
            return reference.how, in_numpy, roofline(station.runner.device, budget.roofline_seconds)


def evaluated(
    job: Job, lowered: ir.Program, plan: Plan, limit: float, cut_off_ms: float, beside: Plan | None = None
) -> dict[str, Any]:
    """What becomes of a kernel within so many seconds: the fields of a candidate in `OUTCOME`.

    `cut_off_ms` and `beside` are as for `lift_egraph.workbench.measuring.evaluation.evaluate`.
    """
    candidate = Candidate(lowered, plan, 0.0, 0.0, host=platform.node())
    with _station(job) as station:
        station.runner.deadline = time.perf_counter() + limit
        with _lock(job.device, fcntl.LOCK_SH) as change:
            alone = change(fcntl.LOCK_EX)
            exactly = station.whole_numbers
            job.measure(candidate, station.runner, station.reference, job.budget, cut_off_ms, alone, beside, exactly)
    return {name: getattr(candidate, name) for name in OUTCOME}


def in_turns(job: Job, plans: Sequence[Plan], rounds: int, seconds: float) -> list[tuple[float, ...]]:
    """The times of plans in turns."""
    with _station(job) as station, _lock(job.device, fcntl.LOCK_EX):
        station.runner.deadline = time.perf_counter() + seconds + job.kernel_seconds
        return station.runner.in_turns(plans, station.reference.timed, rounds=rounds, max_time=seconds)


class _Station:
    """One job in this process: its references, and the process for its kernels. One kernel is at work at a time."""

    def __init__(self, job: Job) -> None:
        self._job, self._lock, self._timer = job, threading.Lock(), threading.Timer(IDLE, self._close)
        self._made: tuple[Runner, References | Sampled] | None = None

    @property
    def runner(self) -> Runner:
        return self._parts[0]

    @property
    def reference(self) -> References | Sampled:
        return self._parts[1]

    @cached_property
    def whole_numbers(self) -> WholeNumbers:
        job = self._job
        compiled = partial(compile_program, device=job.description.run_once)
        return WholeNumbers(job.source, job.program, compiled, job.seed)

    @property
    def _parts(self) -> tuple[Runner, References | Sampled]:
        if self._made is None:
            job = self._job
            runner = Runner(_here(job.device), time_limit=job.kernel_seconds)
            compiled = partial(compile_program, device=job.description.run_once)
            room, seconds = room_for(job.program, runner.device, 1), job.budget.reference_seconds
            how = {"seed": job.seed, "seconds": seconds, "exact": job.exact}
            made = reference_of(job.source, job.program, room, compiled, **how)
            load_references(runner, made)
            self._made = runner, made
        return self._made

    def _close(self) -> None:
        with self._lock:
            if self._made is not None:
                self._made[0].close()
                self._made = None

    def __enter__(self) -> _Station:
        self._lock.acquire()
        self._timer.cancel()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer = threading.Timer(IDLE, self._close)
        self._timer.daemon = True
        self._timer.start()
        self._lock.release()


_stations: dict[Job, _Station] = {}
_registry = threading.Lock()


def _station(job: Job) -> _Station:
    with _registry:
        return _stations.setdefault(job, _Station(job))


def _here(device: DeviceInfo) -> DeviceInfo:
    """The device of this host that is the same as another: of several the one that ``PYOPENCL_CTX`` names.

    Raises
    ------
    DeviceProblem
        If there is none: times of others cannot be compared.
    """
    alike = [d for d in list_devices() if replace(d, index=device.index, global_memory=device.global_memory,
                                                  max_allocation=device.max_allocation) == device]  # fmt: skip
    if not alike:
        raise DeviceProblem(f"{platform.node()} has no such device as the first worker's, {device}, of that driver")
    wanted = os.environ.get("PYOPENCL_CTX") or device.index
    return next((d for d in alike if d.index == wanted), alike[0])


@contextmanager
def _lock(device: DeviceInfo, how: int) -> Iterator[Callable[[int], AbstractContextManager[None]]]:
    """Hold the lock of a device among this user's workers on a host; yields how to hold it otherwise for a while."""
    name = f"lift-egraph-{os.getuid()}-{'cpu' if device.kind == 'cpu' else device.index.replace(':', '-')}.lock"
    with (Path(tempfile.gettempdir()) / name).open("a") as file:

        @contextmanager
        def change(other: int) -> Iterator[None]:
            fcntl.flock(file, fcntl.LOCK_UN)  # two that wait for each other would wait for ever
            fcntl.flock(file, other)
            try:
                yield
            finally:
                fcntl.flock(file, how)

        fcntl.flock(file, how)
        yield change
