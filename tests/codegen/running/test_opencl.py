"""Device memory: where large buffers of CPUs lie, and what they hold."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

from lift_egraph.codegen.running.opencl import new_buffer
from tests.codegen.opencl import needs_opencl

HUGE_PAGE = 1 << 21


@needs_opencl
@pytest.mark.parametrize(("count", "is_large"), [(1 << 10, False), ((1 << 20) + 3, True)])
def test_large_buffers_of_cpus_begin_at_huge_pages(count: int, is_large: bool):
    devices = [d for p in cl.get_platforms() for d in p.get_devices() if d.type & cl.device_type.CPU]
    context = cl.Context(devices[:1])
    queue = cl.CommandQueue(context)
    values, found = np.arange(2 * count, dtype=np.float32)[::2], np.empty(count, np.float32)
    buffer = new_buffer(context, values.nbytes, np.ascontiguousarray(values))
    assert bool(buffer.flags & cl.mem_flags.USE_HOST_PTR) == is_large
    if is_large:
        address = buffer.get_host_array((values.nbytes,), np.dtype(np.uint8)).ctypes.data
        assert address % HUGE_PAGE == 0
    cl.enqueue_copy(queue, found, buffer)
    assert np.array_equal(found, values)
    result = new_buffer(context, values.nbytes)
    cl.enqueue_copy(queue, result, values.copy())
    cl.enqueue_copy(queue, found, result)
    assert np.array_equal(found, values)
