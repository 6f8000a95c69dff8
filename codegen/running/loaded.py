"""A written kernel as a function in the user's own program, on the user's own context and queue.

Unlike in `lift_egraph.codegen.running.run` nothing runs in a process of its own: a kernel is right for every input of
its shapes and ranges, as it was validated when it was written. The ranges of what lies on the device are not checked.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from lift_egraph.codegen.plans import arrays
from lift_egraph.codegen.plans.kernel import LINE, NON_TEMPORAL, BufferInfo, Plan, ScalarInfo
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.codegen.running.opencl import build, kernel_of, new_buffer, passed, set_arguments
from lift_egraph.errors import InputProblem, RunProblem, SizeProblem
from lift_egraph.language.scalar import NUMPY_TYPES

_PLANS = 64  # sizes that are kept ready
_PARAMETERS = {"out", "queue", "wait_for", "sizes"}  # of a call, beside the inputs
_in_use: list[tuple[cl.Event, Mapping[str, Any]]] = []  # by calls that have not ended
_lock = threading.Lock()


def load(directory: Path | str, queue: cl.CommandQueue) -> LoadedKernel:
    """The kernels in a directory that `optimize` or `compile` wrote, built for the context of a queue.

    They are native code: load only those that you, or people whom you trust, have made.

    Raises
    ------
    InputProblem
        If a file is missing or is no launch description, or there is no queue.
    BuildProblem
        If the device's compiler refuses the kernels.
    """
    return LoadedKernel(arrays.read_plan(directory), queue)


class LoadedKernel:
    """The kernels of a plan as a function of the program's inputs, by their names.

    An input is a NumPy array, a `pyopencl.array.Array`, or a `pyopencl.Buffer` with its elements, row-major; for a
    tuple a tuple of two; for a scalar a number. Open sizes are those that the shapes of arrays tell.

    Examples
    --------
    ``axpy = load("axpy", queue)``, then ``z = axpy(a=2.5, x=x, y=y)``, or on the device
    ``event = axpy.enqueue(a=2.5, x=x_dev, y=y_dev, out=z_dev, wait_for=[ready])``.
    """

    def __init__(self, plan: Plan | OpenPlan, queue: cl.CommandQueue) -> None:
        if not isinstance(queue, cl.CommandQueue):
            raise InputProblem(f"load takes a pyopencl.CommandQueue(context), got {queue!r}")
        try:
            self.plan, self.queue, self._context = plan, queue, queue.context
        except cl.Error:  # not every device's queue keeps it
            raise InputProblem("the context of the queue is gone: keep it in a variable as long as the queue") from None
        self._program = build(self._context, plan)
        self._lock = threading.Lock()
        self._names = {p.value for p in (*plan.inputs, *plan.scalars)}
        self._prepared: dict[tuple[tuple[str, int], ...], _Prepared] = {}

    def __call__(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        out: Any = None,
        queue: cl.CommandQueue | None = None,
        wait_for: Sequence[cl.Event] = (),
        sizes: Mapping[str, int] | None = None,
        **named: Any,
    ) -> Any:
        """The result: in `out` where that is given, else in new memory.

        Parameters
        ----------
        inputs, named
            The inputs, in a mapping where their names are those of other parameters.
        out
            NumPy arrays, arrays on the device or buffers to write to; for a tuple a tuple of two. On the device they
            are no input's memory.
        queue
            In the same context; that of `load` if none is given.
        wait_for
            Events before which no input is read.
        sizes
            Open sizes that no shape tells.

        Returns
        -------
        array or tuple
            `out`; else NumPy arrays if an input is one or none is an array, and the call waits for them; else
            `pyopencl.array.Array`, whose `events` it does not wait for.

        Raises
        ------
        InputProblem, SizeProblem
            If inputs or `out` do not fit the program.
        RunProblem
            If OpenCL refuses to run it.
        """
        values, queue = self._given(inputs, named), queue or self.queue
        prepared = self._prepared_for(values, sizes)
        if out is None:
            is_on_host = not any(_is_on_device(leaf.of(values)) for leaf in prepared.inputs)
            out = prepared.new_results(None if is_on_host else queue)
        done, written = self._launch(prepared, values, out, queue, wait_for)
        for to, buffer in written:
            if isinstance(to, np.ndarray) and to.size:
                cl.enqueue_copy(queue, to, buffer, wait_for=[done])
        _keep_until()
        return out

    def enqueue(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        out: Any,
        queue: cl.CommandQueue | None = None,
        wait_for: Sequence[cl.Event] = (),
        sizes: Mapping[str, int] | None = None,
        **named: Any,
    ) -> cl.Event:
        """The same, with the result on the device: it waits for nothing, and returns the event of the end.

        Raises
        ------
        InputProblem
            If an input is missing or of another form, or the result is not to lie on the device.
        """
        values, queue = self._given(inputs, named), queue or self.queue
        prepared = self._prepared_for(values, sizes)
        for leaf in prepared.outputs:
            if not _is_on_device(to := leaf.part(out)):
                raise InputProblem(f"{arrays.shown(leaf.place)} must lie on the device, not in a {type(to).__name__}")
        return self._launch(prepared, values, out, queue, wait_for)[0]

    def _given(self, inputs: Mapping[str, Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
        """All inputs by their names."""
        if not isinstance(inputs, Mapping | None):
            name = next(iter(self._names), "x")
            raise InputProblem(f"{self.plan.name} takes its inputs by name, as {name}=…, or in a mapping")
        return {**(inputs or {}), **named}

    def _prepared_for(self, values: Mapping[str, Any], sizes: Mapping[str, int] | None) -> _Prepared:
        """The kernels at the sizes that the inputs have."""
        if values.keys() != self._names:
            if other := (self._names - values.keys()) & _PARAMETERS:
                given = ", ".join(f"{name!r}: …" for name in sorted(other))
                raise InputProblem(
                    f"inputs of {self.plan.name} have names of other parameters: give them in a mapping, {{{given}}}"
                )
            arrays.require_names(self.plan, values)
        plan = self.plan
        if isinstance(plan, Plan):
            if sizes:
                raise SizeProblem(f"{plan.name} has no open size: its sizes are constants in the kernels")
            key = ()
        else:
            known = {**plan.sizes_of(values), **(sizes or {})}
            key = tuple(sorted(known.items()))
        with self._lock:
            if key not in self._prepared:
                if len(self._prepared) == _PLANS:
                    del self._prepared[next(iter(self._prepared))]
                fixed = plan if isinstance(plan, Plan) else plan.at(dict(key))
                self._prepared[key] = _Prepared(fixed, self._program, self._context)
            return self._prepared[key]

    def _launch(
        self,
        prepared: _Prepared,
        values: Mapping[str, Any],
        out: Any,
        queue: cl.CommandQueue,
        wait_for: Sequence[cl.Event],
    ) -> tuple[cl.Event, list[tuple[Any, Any]]]:
        """The event of the end, and each part of the result with the buffer that it is written to."""
        places = [(leaf.part(out), leaf) for leaf in prepared.outputs]
        memory = {leaf.name: leaf.written(queue, to) for to, leaf in places}
        if prepared.streams:
            for _, leaf in places:
                leaf.require_lines(memory[leaf.name])
        events = list(wait_for)
        for leaf in prepared.inputs:
            value = leaf.of(values)
            memory[leaf.name] = leaf.read(queue, value)
            if isinstance(value, cl_array.Array):
                events += value.events
        for leaf in prepared.scalars:
            memory[leaf.name] = leaf.number(leaf.of(values))
        _require_apart(prepared, memory)
        with self._lock:
            done = prepared.launch(queue, memory, events)
        _keep_until(done, memory)
        for to, _ in places:
            if isinstance(to, cl_array.Array):
                to.add_event(done)
        return done, [(to, memory[leaf.name]) for to, leaf in places]


class _Leaf:
    """A leaf of an input or of the result: what does not change between calls."""

    def __init__(self, place: BufferInfo | ScalarInfo) -> None:
        self.place, self.name, self.value, self.components = place, place.name, place.value, place.components
        self.dtype, self.shape = np.dtype(NUMPY_TYPES[place.element]), arrays.shape_of(place)
        self.size = arrays.byte_size(place) if isinstance(place, BufferInfo) else 0

    def of(self, values: Mapping[str, Any]) -> Any:
        """Its part of the inputs."""
        return self.part(values[self.value])

    def part(self, value: Any) -> Any:
        """Its part of a value."""
        return arrays.component_of(self.place, value) if self.components else value

    def number(self, value: Any) -> Any:
        """The argument for a scalar."""
        is_fine = type(value) is self.dtype.type and self.place.low is None
        return passed(value if is_fine else arrays.array_of(self.place, value)[()])

    def read(self, queue: cl.CommandQueue, value: Any) -> Any:
        """The buffer of an input; what is not on the device is copied there."""
        if _is_on_device(value):
            return self._on_device(value)
        array = arrays.array_of(self.place, value)
        if not array.size:
            return self._new(queue)
        return new_buffer(queue.context, array.nbytes, array)

    def written(self, queue: cl.CommandQueue, value: Any) -> Any:
        """The buffer for a result; from a new one the result is copied to an array of NumPy."""
        if _is_on_device(value):
            return self._on_device(value)
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous or not value.flags.writeable:
            what = arrays.shown(self.place)
            raise InputProblem(f"{what} must go to a writeable array of NumPy, row by row, or to the device")
        arrays.require_form(self.place, value.dtype, value.shape)
        return self._new(queue)

    def require_lines(self, buffer: cl.Buffer) -> None:
        """Refuse memory of the host's that begins amid a line of the caches: streams are written line by line."""
        if buffer.flags & cl.mem_flags.USE_HOST_PTR:
            rest = buffer.get_host_array((self.size,), np.dtype(np.uint8)).ctypes.data % LINE
            if rest:
                what = arrays.shown(self.place)
                raise InputProblem(
                    f"{what} is written around the caches, so its memory must begin at a multiple of {LINE} bytes; "
                    f"this begins {rest} after one: let OpenCL allocate the buffer, or align the array"
                )

    def _new(self, queue: cl.CommandQueue) -> cl.Buffer:
        return new_buffer(queue.context, self.size)

    def _on_device(self, value: Any) -> Any:
        if not isinstance(value, cl_array.Array):
            if value.size < self.size:
                raise InputProblem(
                    f"{arrays.shown(self.place)} needs a buffer of {self.size} bytes, got one of {value.size}"
                )
            return value
        if value.dtype != self.dtype or value.shape != self.shape:
            arrays.require_form(self.place, value.dtype, value.shape)
        if value.offset or not value.flags.c_contiguous:
            raise InputProblem(f"{arrays.shown(self.place)} must be a whole array, row by row: copy it")
        return value.base_data


class _Prepared:
    """The kernels of a plan, and its memory between them."""

    def __init__(self, plan: Plan, program: cl.Program, context: cl.Context) -> None:
        self.plan = plan
        self.inputs, self.outputs, self.scalars = (
            tuple(map(_Leaf, places)) for places in (plan.inputs, plan.outputs, plan.scalars)
        )
        self._kernels = [(kernel_of(program, k), k.launch.global_size, k.launch.local_size, k) for k in plan.kernels]
        temporaries = [b for b in plan.buffers if b.role == "temporary"]
        self.streams = NON_TEMPORAL in plan.source
        self._own: dict[str, Any] = {s.name: np.int32(s.value) for s in plan.sizes}
        for b in temporaries:
            self._own[b.name] = new_buffer(context, arrays.byte_size(b))
        self._is_shared = bool(temporaries)
        self._last: list[cl.Event] = []  # of the call before, which uses the same memory

    def launch(self, queue: cl.CommandQueue, memory: dict[str, Any], events: list[cl.Event]) -> cl.Event:
        memory |= self._own
        events += self._last
        for kernel, items, group, launch in self._kernels:
            set_arguments(kernel, launch, memory)
            try:
                events = [cl.enqueue_nd_range_kernel(queue, kernel, items, group, wait_for=events)]
            except cl.Error as error:
                raise RunProblem(f"OpenCL does not run the kernel {launch.name}: {error}") from None
        if self._is_shared:
            self._last = events
        return events[0]

    def new_results(self, queue: cl.CommandQueue | None) -> Any:
        """New memory for the result: on the device of a queue, or for NumPy."""

        def made(leaf: _Leaf) -> Any:
            return np.empty(leaf.shape, leaf.dtype) if queue is None else cl_array.Array(queue, leaf.shape, leaf.dtype)

        return arrays.join_outputs(self.plan, {leaf.name: made(leaf) for leaf in self.outputs})


def _keep_until(done: cl.Event | None = None, memory: Mapping[str, Any] | None = None) -> None:
    """Hold a call's memory until it ends, as OpenCL does not what is the host's; let go of that of others that have."""
    with _lock:
        ended = cl.command_execution_status.COMPLETE  # what failed is less
        _in_use[:] = [call for call in _in_use if call[0].command_execution_status > ended]
        if done is not None and memory is not None:
            _in_use.append((done, memory))


def _require_apart(prepared: _Prepared, memory: Mapping[str, Any]) -> None:
    """Refuse results in the memory of an input, or of each other: kernels may write a result before all is read."""
    first = {memory[leaf.name].int_ptr: leaf for leaf in prepared.inputs}
    for leaf in prepared.outputs:
        other = first.setdefault(memory[leaf.name].int_ptr, leaf)
        if other is not leaf:
            what, whose = arrays.shown(leaf.place), arrays.shown(other.place)
            raise InputProblem(f"{what} needs memory of its own: it was given that of {whose}")


def _is_on_device(value: Any) -> bool:
    return isinstance(value, cl_array.Array | cl.MemoryObject)
