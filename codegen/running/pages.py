"""Memory of a CPU's kernels in large pages, as NumPy's arrays are.

Where the host gives large pages only to who asks for them, which is usual, OpenCL's own buffers have small ones: what
reads much memory looks up many more addresses (the dot product of two arrays of 64 MB took 1.07 times as long).
"""

from __future__ import annotations

import mmap

import numpy as np
import pyopencl as cl

PAGE = 1 << 21  # bytes of a large one
LEAST = 2 * PAGE  # bytes of a buffer that has some: as NumPy asks


def new_buffer(context: cl.Context, size: int) -> cl.Buffer:
    """A buffer of so many bytes, to read and to write, in large pages if the device is the host's CPU."""
    flags = cl.mem_flags
    if size >= LEAST and all(device.type & cl.device_type.CPU for device in context.devices):
        pages = _pages(size)
        if pages is not None:
            return cl.Buffer(context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=pages)
    return cl.Buffer(context, flags.READ_WRITE, size)


def _pages(size: int) -> np.ndarray | None:
    """Memory that begins with a large page; None where the host has none, or none left."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:
        return None
    try:
        memory = mmap.mmap(-1, size + PAGE)
        memory.madvise(advice)
    except OSError:
        return None
    whole = np.frombuffer(memory, np.uint8)
    start = -whole.ctypes.data % PAGE
    return whole[start : start + size]
