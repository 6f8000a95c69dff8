"""What runs in the worker process: OpenCL itself.

Every buffer lies between two guard zones with a pattern in them. Before a run a buffer that the kernels write
holds another pattern (for floats a NaN), so that a kernel that writes outside, or does not write everything, is
noticed: where the pattern is still there, the kernels run again over one more, as it may be a result. The guards of
inputs are huge numbers, so that what is read there shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl

from lift_egraph.codegen.device_info import DeviceInfo, Timing
from lift_egraph.codegen.plans.arrays import byte_size
from lift_egraph.codegen.plans.kernel import Kernel, Plan
from lift_egraph.codegen.running.batch import batch_source, name_in_batch, source_of, texts_of
from lift_egraph.codegen.running.facts import facts_of
from lift_egraph.codegen.running.opencl import build, kernel_of, memory_of, new_buffer, passed, set_arguments
from lift_egraph.errors import BuildProblem, DeviceProblem, RunProblem
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Scalar

GUARD = 4096
"""Bytes on either side of a buffer; a multiple of every device's address alignment."""

_GUARD_PATTERN, _FLOAT_PATTERN = 0xAB, 0xFF
_OTHER_PATTERN = 0x54
_INPUT_GUARD_PATTERN = 0x7F  # 3.4e38, 1.4e306, 2139062143, true
_FILLED, _PIECE = (
    1 << 32,
    1 << 26,
)  # bytes behind which NVIDIA's driver fills wrongly, or fails; that are copied at once
_KERNELS = 128  # that are kept
_MAX_RUNS = 10_000
_TURN_MS, _LONG_MS, _LEAST_MS = 2.0, 20.0, 0.02  # in turns: of one turn, of a run that is one, counted for a run
_AT_ONCE, _BATCH_MS = 16, 1.0  # short runs of a GPU that follow each other, and how long all of them take
_COUNTS_MS = 500.0  # of a first run, from which it counts: caches and new pages make little of it
_HOPELESS = 4  # times the time from which a kernel is run no more: one such run may be an accident
_TOO_LARGE = (
    cl.status_code.INVALID_WORK_GROUP_SIZE, cl.status_code.INVALID_WORK_ITEM_SIZE, cl.status_code.OUT_OF_RESOURCES,
)  # fmt: skip


def facts() -> list[DeviceInfo]:
    """Every OpenCL device that this process sees."""
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # PLATFORM_NOT_FOUND
        return []
    found: list[DeviceInfo] = []
    for p, platform in enumerate(platforms):
        try:
            devices = platform.get_devices()
        except cl.Error:  # a platform without a device
            continue
        found += [facts_of(f"{p}:{d}", platform, device) for d, device in enumerate(devices)]
    return found


def serve(index: str) -> Callable[[tuple[Any, ...]], Any]:
    """The worker of one device, as a function from requests to replies."""
    worker = _Worker(index)
    return lambda request: getattr(worker, request[0])(*request[1:])


_Key = tuple[str, str]  # what a kernel is built from, and by which options


class _Guarded:
    """Device memory between two guard zones."""

    def __init__(self, worker: _Worker, name: str, size: int, guard_pattern: int, guard: int) -> None:
        self._queue, self._name, self._guard, self._pattern = worker.queue, name, guard, guard_pattern
        self._whole = new_buffer(worker.context, size + 2 * self._guard)
        self.buffer = self._whole.get_sub_region(self._guard, size) if self._guard else self._whole
        for offset, _ in self._zones():
            self._fill(guard_pattern, offset, self._guard)

    def fill(self, byte: int) -> None:
        """Sets every byte between the guards."""
        self._fill(byte, self._guard, self._whole.size - 2 * self._guard)

    def _zones(self) -> list[tuple[int, str]]:
        return [(0, "before"), (self._whole.size - self._guard, "behind")] if self._guard else []

    def _fill(self, byte: int, offset: int, size: int) -> None:
        near = max(min(size, _FILLED - offset), 0)
        if near:
            _fill_near(self._queue, self._whole, byte, offset, near)
        if near == size:
            return
        piece = cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, min(size - near, _PIECE))
        _fill_near(self._queue, piece, byte, 0, piece.size)
        for start in range(offset + near, offset + size, piece.size):
            count = min(piece.size, offset + size - start)
            cl.enqueue_copy(self._queue, self._whole, piece, dst_offset=start, byte_count=count)

    def check(self) -> None:
        for offset, side in self._zones():
            zone = np.empty(self._guard, np.uint8)
            cl.enqueue_copy(self._queue, zone, self._whole, src_offset=offset)
            if (zone != self._pattern).any():
                raise RunProblem(f"wrote outside: the memory {side} the buffer {self._name} has changed")


def _fill_near(queue: cl.CommandQueue, buffer: cl.Buffer, byte: int, offset: int, size: int) -> None:
    # PoCL fills 60 times faster by words than by bytes.
    pattern = np.full(1 if size % 4 or offset % 4 else 4, byte, np.uint8)
    cl.enqueue_fill_buffer(queue, buffer, pattern, offset, size)


def _pattern(element: str) -> int:
    return _FLOAT_PATTERN if Scalar(element).is_float else _GUARD_PATTERN


class _Buffers:
    """The device memory of one plan on one input set; keeps it alive while kernels run."""

    def __init__(self, worker: _Worker, plan: Plan, inputs: dict[str, _Guarded]) -> None:
        self._queue = worker.queue
        self._written = {b.name: b for b in plan.buffers if b.role != "input"}
        self._outputs = [b.name for b in plan.outputs]
        self._memory = dict(inputs)
        for name, buffer in self._written.items():
            size = memory_of(byte_size(buffer))
            self._memory[name] = _Guarded(worker, name, size, _GUARD_PATTERN, worker.guard)
        self.fill()
        self.parts = {name: made.buffer for name, made in self._memory.items()}

    def fill(self, pattern: int | None = None) -> None:
        """Sets every byte of what the kernels write; by default to the pattern of its elements."""
        for name, buffer in self._written.items():
            self._memory[name].fill(_pattern(buffer.element) if pattern is None else pattern)

    def check_guards(self) -> None:
        for made in self._memory.values():
            made.check()

    def outputs(self) -> dict[str, np.ndarray]:
        results: dict[str, np.ndarray] = {}
        for name in self._outputs:
            result = np.empty(self._written[name].length, NUMPY_TYPES[self._written[name].element])
            if not result.size:
                results[name] = result
                continue
            cl.enqueue_copy(self._queue, result, self.parts[name])
            results[name] = result
        return results

    def untouched(self, results: dict[str, np.ndarray], pattern: int | None = None) -> dict[str, np.ndarray]:
        """Which elements hold what `fill` put there."""
        return {
            name: result.view(f"u{result.itemsize}")
            == _repeated(_pattern(self._written[name].element) if pattern is None else pattern, result)
            for name, result in results.items()
        }


def _repeated(pattern: int, result: np.ndarray) -> int:
    """The bits of an element all of whose bytes are a pattern."""
    return int(f"{pattern:02x}" * result.itemsize, 16)


class _Worker:
    def __init__(self, index: str) -> None:
        platform, device = (int(i) for i in index.split(":"))
        self.device = cl.get_platforms()[platform].get_devices()[device]
        self.context = cl.Context([self.device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.guard = max(GUARD, self.device.mem_base_addr_align // 8)
        # Oclgrind notices by itself what is read outside of a whole buffer
        self.input_guard = 0 if self.device.platform.name == "Oclgrind" else self.guard
        self._kernels: dict[_Key, tuple[cl.Program, str]] = {}  # and its name there
        self._inputs: dict[str, dict[str, np.ndarray]] = {}
        self._on_device: dict[str, dict[str, _Guarded]] = {}

    def load(self, name: str, inputs: dict[str, np.ndarray]) -> None:
        self._inputs.setdefault(name, {}).update(inputs)
        self._on_device.setdefault(name, {})

    def forget(self, name: str) -> None:
        self._inputs.pop(name, None)
        self._on_device.pop(name, None)

    def build(self, plans: list[Plan]) -> None:
        new = {plan.source: plan for plan in plans if not self._kernels.keys() >= {*_keys(plan).values()}}
        options = {plan.options for plan in new.values()}
        if len(new) < 2 or len(options) > 1:
            return
        whole = replace(plans[0], source=batch_source(list(new.values())), options=options.pop())
        with suppress(BuildProblem):  # each is built alone then, and says what is wrong with it
            program = build(self.context, whole)
            for number, plan in enumerate(new.values()):
                self._keep({key: (program, name_in_batch(name, number)) for name, key in _keys(plan).items()})

    def run(self, plan: Plan, name: str) -> dict[str, np.ndarray]:
        kernels, buffers = self._prepare(plan, name)
        self._launch(kernels)
        self.queue.finish()
        buffers.check_guards()
        self._check_inputs(plan, name)
        results = buffers.outputs()
        untouched = buffers.untouched(results)
        if any(places.any() for places in untouched.values()):
            buffers.fill(_OTHER_PATTERN)
            self._launch(kernels)
            self.queue.finish()
            for output, still in buffers.untouched(buffers.outputs(), _OTHER_PATTERN).items():
                if count := int((untouched[output] & still).sum()):
                    raise RunProblem(f"left {count} of {still.size} elements of the output {output} unwritten")
        return results

    def measure(
        self, plan: Plan, name: str, repeats: int, min_time: float, max_time: float, cut_off_ms: float, pause: float
    ) -> Timing:
        kernels, buffers = self._prepare(plan, name)
        first = self._timed(kernels, [])  # warm up: PoCL compiles for the work-group size, pages are touched
        times = [ms for ms in first if ms >= _COUNTS_MS]
        started = time.perf_counter() - 1e-3 * sum(times)

        def is_done() -> bool:
            spent = time.perf_counter() - started
            enough = len(times) >= repeats and spent >= min_time
            slow = times[0] > _HOPELESS * cut_off_ms or (len(times) > 1 and min(times) > cut_off_ms)
            return enough or spent >= max_time or slow or len(times) >= _MAX_RUNS

        while not times or not is_done():
            time.sleep(pause)
            times += self._timed(kernels, times)
        buffers.check_guards()
        low, median, high = (float(t) for t in np.quantile(times, (0.25, 0.5, 0.75)))
        return Timing(median, min(times), len(times), (low, high), tuple(times))

    def in_turns(self, plans: list[Plan], name: str, rounds: int, max_time: float) -> list[list[float]]:
        prepared = [self._prepare(plan, name) for plan in plans]
        times: list[list[float]] = [[] for _ in plans]
        for kernels, _ in prepared:
            self._launch(kernels)
        self.queue.finish()
        started = time.perf_counter()
        while len(times[0]) < rounds and (not times[0] or time.perf_counter() - started < max_time):
            for own, (kernels, _) in zip(times, prepared, strict=True):
                own.append(self._turn(kernels))
        for _, buffers in prepared:
            buffers.check_guards()
        return times

    def _timed(self, kernels: list[tuple[cl.Kernel, Kernel]], known: list[float]) -> list[float]:
        """The milliseconds of a run, or of as many short ones in a row as a GPU needs for its clock to rise.

        `known` are those of the same kernels before: the first run is alone.
        """
        count = 1
        if known and self.device.type & cl.device_type.GPU:
            count = max(1, min(_AT_ONCE, int(_BATCH_MS / max(min(known), _LEAST_MS))))
        runs = [self._launch(kernels) for _ in range(count)]
        self.queue.finish()
        return [sum(e.profile.end - e.profile.start for e in events) * 1e-6 for events in runs]

    def _turn(self, kernels: list[tuple[cl.Kernel, Kernel]]) -> float:
        """The median milliseconds of some runs, of which the first, that finds caches as others left them, may count
        where it is long.
        """
        found, spent = list[float](), 0.0
        while spent < _TURN_MS or (len(found) < 2 and spent < _LONG_MS):
            runs = self._timed(kernels, found)
            found += runs
            spent += sum(max(ms, _LEAST_MS) for ms in runs)
        return float(np.median(found[1:] or found))

    def _prepare(self, plan: Plan, name: str) -> tuple[list[tuple[cl.Kernel, Kernel]], _Buffers]:
        """The kernels with their arguments set, and the buffers, which must outlive the kernels' runs."""
        built = self._built(plan)
        scalars = {s.name: self._inputs[name][s.name][()] for s in plan.scalars}
        scalars = {n: passed(v) for n, v in scalars.items()}
        scalars |= {s.name: np.int32(s.value) for s in plan.sizes}
        buffers = _Buffers(self, plan, self._input_buffers(plan, name))
        prepared: list[tuple[cl.Kernel, Kernel]] = []
        for launch in plan.kernels:
            program, name = built[launch.name]
            kernel = kernel_of(program, replace(launch, name=name))
            set_arguments(kernel, launch, {**buffers.parts, **scalars})
            self._check_kernel(kernel, launch)
            prepared.append((kernel, launch))
        return prepared, buffers

    def _built(self, plan: Plan) -> dict[str, tuple[cl.Program, str]]:
        """The kernels of a plan by their names; those that other plans have, too, are built once."""
        keys = _keys(plan)
        known = {name: self._kernels[key] for name, key in keys.items() if key in self._kernels}
        new = keys.keys() - known.keys()
        if known and new and new <= texts_of(plan).keys():
            with suppress(BuildProblem):  # the whole says what is wrong
                program = build(self.context, replace(plan, source=source_of(plan, new)))
                known |= {name: (program, name) for name in new}
        if len(known) < len(keys):
            program, options = build(self.context, plan), " ".join(plan.options)
            self._keep({(text, options): (program, name) for name, text in texts_of(plan).items()})
            known = {name: (program, name) for name in keys}
        self._keep({keys[name]: found for name, found in known.items()})
        return known

    def _keep(self, found: dict[_Key, tuple[cl.Program, str]]) -> None:
        """Keep kernels, for which those that were not used for the longest time may go."""
        self._kernels = {key: made for key, made in self._kernels.items() if key not in found} | found
        for key in list(self._kernels)[: max(0, len(self._kernels) - _KERNELS)]:
            del self._kernels[key]

    def _input_buffers(self, plan: Plan, name: str) -> dict[str, _Guarded]:
        ready = self._on_device.setdefault(name, {})  # of a program without inputs nothing is loaded
        for buffer in plan.inputs:
            if buffer.name not in ready:
                size = memory_of(byte_size(buffer))
                made = _Guarded(self, buffer.name, size, _INPUT_GUARD_PATTERN, self.input_guard)
                if buffer.length:
                    cl.enqueue_copy(self.queue, made.buffer, self._inputs[name][buffer.name])
                ready[buffer.name] = made
        return {b.name: ready[b.name] for b in plan.inputs}

    def _check_inputs(self, plan: Plan, name: str) -> None:
        for buffer, made in self._input_buffers(plan, name).items():
            expected = self._inputs[name][buffer]
            if not expected.size:
                continue
            found = np.empty_like(expected)
            cl.enqueue_copy(self.queue, found, made.buffer)
            if not np.array_equal(_bits(found), _bits(expected)):
                raise RunProblem(f"wrote outside: the input {buffer} has changed")

    def _check_kernel(self, kernel: cl.Kernel, launch: Kernel) -> None:
        """The limits that are known only after the build."""
        of_kernel = cl.kernel_work_group_info
        used = kernel.get_work_group_info(of_kernel.LOCAL_MEM_SIZE, self.device)
        if used > self.device.local_mem_size >= launch.local_bytes:  # where a plan asks for more, it may have more
            raise DeviceProblem(
                f"the kernel {launch.name} needs {used} bytes of local memory, "
                f"the device has {self.device.local_mem_size}"
            )
        local = launch.launch.local_size
        if local is None or tuple(kernel.get_work_group_info(of_kernel.COMPILE_WORK_GROUP_SIZE, self.device)) == local:
            return  # NVIDIA's driver says 256 also of kernels that require, and run in, larger groups
        largest = kernel.get_work_group_info(of_kernel.WORK_GROUP_SIZE, self.device)
        if prod(local) > largest:
            raise DeviceProblem(
                f"the kernel {launch.name} is launched in work-groups of {prod(local)}, "
                f"built it allows {largest} on this device"
            )

    def _launch(self, prepared: list[tuple[cl.Kernel, Kernel]]) -> list[cl.Event]:
        return [self._enqueue(kernel, launch) for kernel, launch in prepared]

    def _enqueue(self, kernel: cl.Kernel, launch: Kernel) -> cl.Event:
        try:
            return cl.enqueue_nd_range_kernel(self.queue, kernel, launch.launch.global_size, launch.launch.local_size)
        except cl.Error as error:
            if error.code not in _TOO_LARGE:
                raise
            local = launch.launch.local_size
            groups = f"work-groups of {prod(local)}" if local else "groups of any size"
            raise DeviceProblem(f"the device cannot run the kernel {launch.name} in {groups}: {error}") from None


def _keys(plan: Plan) -> dict[str, _Key]:
    """What the kernels of a plan have in common with those that are alike, by their names."""
    texts, options = texts_of(plan), " ".join(plan.options)
    return {k.name: (texts.get(k.name, f"{k.name} of {plan.source}"), options) for k in plan.kernels}


def _bits(array: np.ndarray) -> np.ndarray:
    """The bits of an array's elements without a copy, so that NaNs compare equal to themselves."""
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
