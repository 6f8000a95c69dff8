"""Find OpenCL devices, and run and time plans on them, in child processes that may crash.

Only its children import PyOpenCL: a broken driver, a wild write or an endless kernel ends a child, not the caller.
(`lift_egraph.codegen.running.loaded` is for kernels in the caller's own process.)
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lift_egraph.codegen.device_info import DeviceInfo, Timing
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.plans.arrays import byte_size, join_outputs, read_plan, split_inputs
from lift_egraph.codegen.plans.kernel import Launch, Plan
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.codegen.running.host_cpu import pinned
from lift_egraph.errors import DeviceProblem, RunProblem, SizeProblem
from lift_egraph.meaning.values import Value
from lift_egraph.process.child import Ended, Server, call

if TYPE_CHECKING:
    from lift_egraph.codegen.devices import Device

# PoCL's own cache may return a program without kernels where its compiler warned
_ENVIRONMENT = {"PYOPENCL_NO_CACHE": "1", "POCL_KERNEL_CACHE": "0", **pinned()}
LEAST_LIMIT = 0.1  # seconds for a request, however late it is
_DISCOVERY_LIMIT = 60.0
_UNOPTIMISED = "-cl-opt-disable"
_NO_DEVICE = (
    "no OpenCL device was found; `pip install pocl-binary-distribution` brings one for the CPU, "
    "or let OCL_ICD_VENDORS name a folder with your driver's .icd file"
)


# --- devices ------------------------------------------------------------------------------------------


def list_devices(environment: Mapping[str, str] | None = None) -> list[DeviceInfo]:
    """Every OpenCL device, in the order of PyOpenCL.

    Parameters
    ----------
    environment
        Variables to add to the environment of the process that asks.

    Raises
    ------
    DeviceProblem
        When a driver crashes or hangs while it is asked.
    """
    return list(_devices(frozenset({**os.environ, **_ENVIRONMENT, **(environment or {})}.items())))


@cache
def _devices(variables: frozenset[tuple[str, str]]) -> tuple[DeviceInfo, ...]:
    """The devices that a process with these variables sees: they stay the same while this one lives."""
    try:
        return tuple(call(_facts, time_limit=_DISCOVERY_LIMIT, environment=dict(variables)))
    except RunProblem as problem:
        raise DeviceProblem(f"asking OpenCL for its devices failed: {problem}") from None


def find_device(text: str | None = None, description: Device | None = None) -> DeviceInfo:
    """The device that a text means, of those that a description fits.

    Parameters
    ----------
    text
        An index such as ``0:1`` (``0`` is ``0:0``), the name of a description such as ``pocl``, or a part of the
        platform's or the device's name, in any case. Without it the variable ``PYOPENCL_CTX`` counts, then PoCL, then
        the first device.

    Raises
    ------
    DeviceProblem
        When there is no device at all, or none fits.
    """
    found = list_devices()
    if not found:
        raise DeviceProblem(_NO_DEVICE)
    devices = [d for d in found if description is None or description.fits(d)]
    wanted = text or os.environ.get("PYOPENCL_CTX") or ""
    if devices and not wanted:
        return next((d for d in devices if d.platform == "Portable Computing Language"), devices[0])
    index = wanted if ":" in wanted else f"{wanted}:0"
    for device in devices:
        if device.index == index:
            return device
    for device in devices:
        if wanted.lower() == describe(device).name:
            return device
    for device in devices:
        if wanted.lower() in f"{device.platform} / {device.name}".lower():
            return device
    what = [repr(wanted)] if wanted else []
    what += [f"the description {description.name} ({description.whom})"] if description else []
    listing = "\n".join(f"  {d}" for d in found)
    file = " (a file with a description is given by --device-file)" if wanted.endswith(".toml") else ""
    raise DeviceProblem(f"no OpenCL device fits {' and '.join(what)}{file}; there are\n{listing}")


def check_limits(plan: Plan, device: DeviceInfo) -> None:
    """Check everything that can be known before the build.

    Raises
    ------
    DeviceProblem
        Naming the value and the limit.
    """
    for buffer in plan.buffers:
        size = byte_size(buffer)
        if size > device.max_allocation:
            raise DeviceProblem(
                f"the buffer {buffer.name} has {size} bytes, one allocation may have {device.max_allocation}: "
                "give smaller sizes"
            )
    if any(place.element == "f64" for place in (*plan.buffers, *plan.scalars)) and not device.supports_f64:
        raise DeviceProblem(f"{device.name} has no f64: declare the inputs as f32")
    total = sum(byte_size(b) for b in plan.buffers)
    if total > device.global_memory:
        raise DeviceProblem(
            f"the buffers have {total} bytes together, the device has {device.global_memory}: give smaller sizes"
        )
    most_local = max(device.local_memory, describe(device).most_local)
    for kernel in plan.kernels:
        what = f"the kernel {kernel.name}"
        if kernel.local_bytes > most_local:
            raise DeviceProblem(f"{what} needs {kernel.local_bytes} bytes of local memory, the device has {most_local}")
        _check_sizes(what, kernel.launch, device)


def _check_sizes(what: str, launch: Launch, device: DeviceInfo) -> None:
    local = launch.local_size
    if local is None:
        return
    if prod(local) > device.max_work_group:
        raise DeviceProblem(
            f"{what} has work-groups of {prod(local)} work-items, the device allows {device.max_work_group}"
        )
    if any(n > limit for n, limit in zip(local, device.max_work_items, strict=True)):
        raise DeviceProblem(f"{what} has the local size {local}, the device allows {device.max_work_items}")


# --- running ------------------------------------------------------------------------------------------


class Runner:
    """Builds, runs and times plans on one device, in a worker process.

    A plan that hangs or crashes costs its worker; the next plan meets a new one. Input sets are sent to
    a worker once and stay on the device.

    Parameters
    ----------
    device
        From `find_device`.
    time_limit
        Seconds for one request, build included.
    memory_limit
        Bytes of resident memory of the worker.
    environment
        Variables to add to the worker's environment.

    Examples
    --------
    ``with Runner(find_device()) as runner: runner.load_inputs("a", {"x": x}); runner.run(plan, "a")``
    """

    def __init__(
        self,
        device: DeviceInfo,
        *,
        time_limit: float = 60.0,
        memory_limit: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.device = device
        self.time_limit, self.deadline = time_limit, inf
        variables = {**_ENVIRONMENT, **(environment or {})}
        self._server = Server(_serve, device.index, memory_limit=memory_limit, environment=variables)
        self._inputs: dict[str, Mapping[str, Any]] = {}
        self._sent: set[tuple[str, str]] = set()
        self._is_used = self._is_cancelled = False

    @property
    def left(self) -> float:
        """Seconds for one request: the limit, or less before the deadline, a time of `time.perf_counter`."""
        return max(LEAST_LIMIT, min(self.time_limit, self.deadline - time.perf_counter()))

    def begin(self) -> None:
        """Start the worker, for which the first request waits."""
        self._server.begin()

    def load_inputs(self, name: str, inputs: Mapping[str, Any]) -> None:
        """Keep the values of a program's inputs under a name; a plan that uses them has them sent once."""
        self.forget_inputs(name)
        self._inputs[name] = dict(inputs)

    def forget_inputs(self, name: str) -> None:
        """Free the memory of an input set, here and on the device."""
        self._inputs.pop(name, None)
        if any(sent == name for sent, _ in self._sent):
            self._sent = {(sent, memory) for sent, memory in self._sent if sent != name}
            self._server.request(("forget", name), self.left)

    def run(self, plan: Plan, input_name: str, *, optimised: bool = True) -> Value:
        """The plan's result: an array, or a nested tuple of two for a tuple type.

        Parameters
        ----------
        optimised
            Whether the device's compiler optimises its kernels.

        Raises
        ------
        InputProblem
            When the inputs do not fit the plan.
        DeviceProblem
            When the plan exceeds a limit of the device.
        BuildProblem
            When the device's compiler refuses it.
        RunProblem
            When it crashes, hangs, writes outside its buffers or leaves a part of its output unwritten.
        """
        plan = plan if optimised else replace(plan, options=(*plan.options, _UNOPTIMISED))
        return join_outputs(plan, self._request("run", plan, input_name))

    def measure(
        self,
        plan: Plan,
        input_name: str,
        *,
        repeats: int = 5,
        min_time: float = 0.05,
        max_time: float | None = None,
        cut_off_ms: float = inf,
        pause: float = 0.0,
    ) -> Timing:
        """The time of the plan's kernels, after a run to warm up, which counts if it is long; it raises as `run`.

        The times are the device's own (profiling events), summed over the kernels: launches, transfers
        and the host are not in them.

        Parameters
        ----------
        repeats, min_time
            At least so many runs, and so many seconds in all.
        max_time
            No more runs are begun after so many seconds; by default half the time limit.
        cut_off_ms
            If the first run takes longer, it is the only one.
        pause
            Seconds to rest before each run. On a CPU that is busy with other work a process that rested goes first,
            and what takes a few milliseconds is then hardly interrupted.
        """
        most = self.left / 2 if max_time is None else min(max_time, self.left / 2)
        return self._request("measure", plan, input_name, repeats, min_time, most, cut_off_ms, pause)

    def in_turns(
        self, plans: Sequence[Plan], input_name: str, *, rounds: int, max_time: float
    ) -> list[tuple[float, ...]]:
        """The times of several plans, measured turn by turn: for each its milliseconds in every round.

        What disturbs the machine for longer than a turn so disturbs all alike. A time is the median of some runs, of
        a short kernel. It raises what `run` does.

        Parameters
        ----------
        rounds
            At the most.
        max_time
            No round but the first is begun after so many seconds.
        """
        for plan in plans:
            check_limits(plan, self.device)
        most = min(max_time, self.left / 2)
        arrays = {memory: a for plan in plans for memory, a in split_inputs(plan, self._inputs[input_name]).items()}
        request = "in_turns", [bare(plan) for plan in plans], input_name, rounds, most
        return [tuple(times) for times in self._asked(request, input_name, arrays)]

    def build(self, plans: Sequence[Plan]) -> None:
        """Build several plans as one program, for what is asked next; where that fails, each is built when it runs."""
        try:
            self._send("", {})
            self._server.request(("build", [bare(plan) for plan in plans]), self.left)
        except RunProblem:  # a compiler that crashed, or hangs
            self.close()

    def signal(self, number: int) -> None:
        """Send a signal to the worker from any thread: it may be stopped and continued."""
        self._server.signal(number)

    def cancel(self) -> None:
        """Kill the worker from any thread: what it works on fails, and so does all that is asked for afterwards."""
        self._is_cancelled = True
        self._server.signal(signal.SIGKILL)

    def _request(self, action: str, plan: Plan, input_name: str, *options: Any) -> Any:
        check_limits(plan, self.device)
        arrays = split_inputs(plan, self._inputs[input_name])
        return self._asked((action, bare(plan), input_name, *options), input_name, arrays)

    def _asked(self, request: tuple[Any, ...], input_name: str, arrays: dict[str, np.ndarray]) -> Any:
        was_used = self._is_used
        try:
            self._send(input_name, arrays)
            return self._server.request(request, self.left)
        except RunProblem as problem:
            # Memory of the worker may be spoilt, or the device's context be lost: the next plan needs a new one.
            self.close()
            crashed = isinstance(problem.__cause__, Ended) and problem.__cause__.end.kind == "crashed"
            if self._is_cancelled or not (was_used and crashed):
                raise
        # An earlier plan may have caused the crash by a write that nobody noticed: only a second one counts.
        self._send(input_name, arrays)
        return self._server.request(request, self.left)

    def _send(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Send the arrays that the worker lacks."""
        if self._is_cancelled:
            raise RunProblem("it was cancelled")
        if self._server.start():
            self._sent.clear()
        missing = {memory: array for memory, array in arrays.items() if (name, memory) not in self._sent}
        if missing:
            self._server.request(("load", name, missing), self.left)
            self._sent.update((name, memory) for memory in missing)
        self._is_used = True

    def close(self) -> None:
        """End the worker; another request would start a new one."""
        self._server.close()
        self._sent.clear()
        self._is_used = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def bare(plan: Plan) -> Plan:
    """A plan with all that it takes to run it, without what it was made from."""
    return replace(plan, kernels=tuple(replace(k, source="", body=()) for k in plan.kernels))


def run_directory(
    directory: Path | str,
    inputs: Mapping[str, Any],
    device: str | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    time_limit: float = 60.0,
) -> Value:
    """Run the kernels that were written to a directory.

    Parameters
    ----------
    inputs
        The program's inputs by name, arrays of the shapes in ``launch.json``.
    device
        Which one, as `find_device` takes it.
    sizes
        The open sizes, else what the shapes of the inputs tell.
    time_limit
        As for `Runner`.

    Raises
    ------
    SizeProblem
        If sizes are given to kernels without open ones.
    LiftError
        As `load_plan`, `find_device` and `Runner.run` do.
    """
    plan = read_plan(directory)
    if isinstance(plan, OpenPlan):
        plan = plan.at({**plan.sizes_of(inputs), **(sizes or {})})
    elif sizes:
        raise SizeProblem(f"{plan.name} has no open size: its sizes are constants in the kernels")
    split_inputs(plan, inputs)
    with Runner(find_device(device), time_limit=time_limit) as runner:
        runner.load_inputs("inputs", inputs)
        return runner.run(plan, "inputs")


def _facts() -> list[DeviceInfo]:
    return _worker().facts()


def _serve(index: str) -> Any:
    return _worker().serve(index)


def _worker() -> Any:
    """What works in a child; PoCL keeps its files in the child's own folder: those in the user's it never removes."""
    os.environ["POCL_CACHE_DIR"] = tempfile.gettempdir()
    from lift_egraph.codegen.running import worker

    return worker
