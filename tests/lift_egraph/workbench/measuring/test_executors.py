"""Kernels on the workers of an executor: what is found is what is found without, and workers may end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from lift_egraph import programs, workbench
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.running.run import find_device
from lift_egraph.errors import DeviceProblem
from lift_egraph.workbench.candidates import NOT_RUN, Candidate
from lift_egraph.workbench.measuring import executors
from lift_egraph.workbench.measuring.executors import Job, Workers, asked
from lift_egraph.workbench.measuring.lanes import Clock
from lift_egraph.workbench.progress import Event
from tests.codegen.opencl import needs_opencl
from tests.command import marked
from tests.depth import in_turn
from tests.lift_egraph.records.examples import DEVICE, PROGRAM, SOURCE, candidate
from tests.lift_egraph.workbench.test_pipeline import SMALL

SCALE, SIZES = programs.load("scal"), {"N": 64}
LITTLE = replace(
    SMALL, seconds=60, seeds=1, lowered=3, staged=0, roofline_share=0.0, tuning_share=0.0, cut_off=1e9
)  # it ends long before
JOB = Job(SOURCE, PROGRAM, DEVICE, POCL, SMALL, kernel_seconds=5.0, seed=0)
MARK = f"executor-{os.getpid()}"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Of a dask cluster of two processes, which leave nobody behind."""
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    dask = pytest.importorskip("dask")
    with monkeypatch.context() as patch, dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        patch.setenv("MARK", MARK)
        # Workers are forks of a process that imports once what all need.
        distributed.utils.get_mp_context().set_forkserver_preload(["distributed", "distributed.nanny", "tests.forked"])
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        with cluster, distributed.Client(cluster) as made:
            yield made
    forkserver._forkserver._stop()  # pyright: ignore[reportAttributeAccessIssue]
    end = time.perf_counter() + 10
    while left := [pid for pid in marked(MARK) if "resource_tracker" not in command(pid)]:  # that is this process's
        assert time.perf_counter() < end, left
        time.sleep(0.05)


def command(pid: int) -> str:
    with suppress(OSError):  # it has just ended
        return Path(f"/proc/{pid}/cmdline").read_text()
    return "resource_tracker"


def verdicts(report: workbench.Report) -> dict[str, tuple[bool, str]]:
    """What is said of each kernel, but on random whole numbers: only of the fastest, which are not always the same."""
    return {c.lowered: (c.valid, c.message.partition("; with i32 for f32")[0]) for c in report.candidates}


@needs_opencl
@in_turn(3)
def test_a_dask_cluster_finds_the_same_though_a_worker_is_killed(client: Any):
    killed: list[int] = []

    def listen(event: Event) -> None:
        if event.stage == "measure" and not killed:
            killed.extend([*client.run(os.getpid).values()][:1])
            os.kill(killed[0], signal.SIGKILL)

    budget = replace(LITTLE, lanes=2)
    found = workbench.optimize(SCALE, SIZES, budget=budget, executor=client.get_executor(), listen=listen)
    assert killed
    assert len(found.valid) >= 3
    assert verdicts(found) == verdicts(workbench.optimize(SCALE, SIZES, budget=LITTLE))
    assert all(c.host for c in found.valid)
    assert found.numpy_ms


# --- what workers answer, without any ---------------------------------------------------------------------


class Fake(Executor):
    """An executor whose workers answer as they are told, in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        if not self.answers:
            raise RuntimeError("cannot schedule new futures after shutdown")
        made: Future[Any] = Future()
        answer = self.answers.pop(0)
        made.set_exception(answer) if isinstance(answer, BaseException) else made.set_result(answer)
        return made


def after(*answers: Any) -> tuple[Workers, Candidate]:
    """What becomes of a candidate."""
    inbox: SimpleQueue[Any] = SimpleQueue()
    sent = candidate(valid=False, measured_ms=None, message=NOT_RUN)
    with Workers(Fake(*answers), JOB, Clock(9.0), inbox) as workers:
        workers.submit(sent)
        while not inbox.empty():
            workers.done(inbox.get())
        assert workers.busy == 0
        assert workers.free(beside=True) == (not workers.ended)
    return workers, sent


def test_a_kernel_is_sent_again_when_its_worker_ended():
    workers, sent = after(OSError("killed"), {"valid": True, "message": "equal", "measured_ms": 1.0})
    assert (sent.valid, sent.message, workers.ended) == (True, "equal", "")
    workers, sent = after(OSError("killed"), OSError("killed"))
    assert (sent.valid, sent.failure, sent.message) == (False, "crashed", "its worker ended: OSError: killed")
    assert workers.ended == ""


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((), "the executor takes no more work: RuntimeError: cannot schedule"),
        ((CancelledError("closed"),), "the executor takes no more work: RuntimeError"),
        ((DeviceProblem("no such device"),), "a worker failed: no such device"),
    ],
)
def test_what_ends_a_race_is_not_the_kernels_fault(answers: tuple[Any, ...], why: str):
    workers, sent = after(*answers)
    assert workers.ended.startswith(why)
    assert sent.message == NOT_RUN


def test_workers_that_cannot_be_asked():
    with pytest.raises(DeviceProblem, match="cannot be asked: ModuleNotFoundError: no lift_egraph"):
        asked(Fake(ModuleNotFoundError("no lift_egraph")), 1.0, find_device)
    with ThreadPoolExecutor(1) as threads, pytest.raises(DeviceProblem, match=r"no worker .* answered within 0 s"):
        asked(threads, 0.0, time.sleep, 0.1)


@needs_opencl
def test_another_device_is_none_of_the_search():
    with pytest.raises(DeviceProblem, match="has no such device as the first worker's"):
        executors.prepared(replace(JOB, device=replace(DEVICE, driver_version="0")))
