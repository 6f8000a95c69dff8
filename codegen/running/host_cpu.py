"""What runtimes do not say of the host's CPU, or say wrongly. Bundles take this module along.

The LLVM 14 in PoCL 3.0, which pip brings, calls CPUs that came after it `generic` (so AMD's of family 26, Zen 5), and
its Clang refuses that name: no kernel builds. PoCL has no setting for it, but reads the name at each build from its
record of the device, where it stands behind the target triple. Another name in its place must be that of the CPU for
which PoCL's own library of functions was compiled: else vectors are passed in other registers, and calls crash.
"""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

_LIBRARIES = {
    "skylake-avx512": {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"},
    "haswell": {"avx2", "fma", "bmi1", "bmi2", "f16c"},
}
"""CPUs of PoCL's libraries of functions, the most able first, with the flags by which PoCL takes one."""

_POCL = "Portable Computing Language"
_PINS = "POCL_AFFINITY"
_UNKNOWN, _TRIPLE = b"generic", b"x86_64-"
_AVX2 = b"znver"  # what LLVM 14 calls AMD's CPUs that it knows, with or without AVX-512
_LONGEST = 32  # bytes of a name
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_RECORD = 2048  # bytes of the record of a device in which the name is looked for: it stands at 640 in PoCL 3.0
_WORD = struct.calcsize("P")


def pinned() -> dict[str, str]:
    """The environment in which PoCL's threads stay on cores of their own, as far as this process may use them all.

    Else two may begin on one core: products of two matrices of 512 x 512 then took twice as long in every second run.
    What the user's own environment says counts.
    """
    cores = set(range(os.cpu_count() or 1))
    if _PINS in os.environ or not hasattr(os, "sched_getaffinity") or os.sched_getaffinity(0) != cores:
        return {}
    return {_PINS: "1"}


def name_host_cpu(device: Any) -> str | None:
    """Have PoCL compile for a CPU that its LLVM knows, if it does not know the host's.

    Parameters
    ----------
    device
        Any `pyopencl.Device`.

    Returns
    -------
    str or None
        The CPU that it compiles for from now on, as LLVM names it; nothing if there was nothing to change.
    """
    place, name = _compiled_for(device)
    if place is None or name != _UNKNOWN:
        return None
    try:
        flags = _cpu_flags()
    except OSError:
        return None
    chosen = next((cpu for cpu, needed in _LIBRARIES.items() if needed <= flags), None)
    if chosen is not None:
        ctypes.c_void_p.from_address(place).value = ctypes.addressof(_NAMES[chosen])
    return chosen


def most_lanes(device: Any, lanes: int) -> int:
    """The lanes of ``f32`` in the vectors that PoCL makes code with, where a device says that it has so many.

    It says what the host has: for AMD's CPUs that its LLVM takes for older ones it makes AVX2 code all the same.
    """
    _, name = _compiled_for(device)
    return min(lanes, 8) if name.startswith(_AVX2) else lanes


def largest_cache(reported: int) -> int:
    """The bytes of the host's largest cache, where a runtime for CPUs reports so many.

    Intel's reports a core's own, 2 MiB of Xeons: what does not fit there need not come from memory.
    """
    sizes = [reported]
    for file in _CACHES.glob("index*/size"):  # none outside of Linux, or in a sandbox
        with suppress(OSError, ValueError):
            sizes.append(int(file.read_text(encoding="ascii").strip().removesuffix("K")) << 10)
    return max(sizes)


def _compiled_for(device: Any) -> tuple[int | None, bytes]:
    """Where the record of a device points to the name of the CPU that PoCL compiles for, and the name, if it does."""
    if device.platform.name.strip() != _POCL:
        return None, b""
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            return _named(memory, device.int_ptr)
    except OSError:  # no Linux, or a sandbox: a build then says what is wrong
        return None, b""


_NAMES = {cpu: ctypes.create_string_buffer(cpu.encode()) for cpu in _LIBRARIES}
"""As C reads them; they live as long as the process."""


def _cpu_flags() -> set[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())


def _named(memory: BinaryIO, record: int) -> tuple[int | None, bytes]:
    """The name behind the target triple in the record of a device, and where it is pointed to."""
    words = [word for (word,) in struct.iter_unpack("P", _read(memory, record, _RECORD))]
    for at in range(1, len(words)):
        if _read(memory, words[at - 1], len(_TRIPLE)) == _TRIPLE:
            return record + at * _WORD, _read(memory, words[at], _LONGEST).partition(b"\0")[0]
    return None, b""


def _read(memory: BinaryIO, address: int, size: int) -> bytes:
    """So many bytes, or none where there is no memory."""
    try:
        memory.seek(address)
        return memory.read(size)
    except (OSError, OverflowError, ValueError):
        return b""
