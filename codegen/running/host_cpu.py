"""The CPU that PoCL compiles for, where its LLVM does not know the host's. Bundles take this module along.

The LLVM 14 in PoCL 3.0, which pip brings, calls CPUs that came after it `generic` (so AMD's of family 26, Zen 5), and
its Clang refuses that name: no kernel builds. PoCL has no setting for it, but reads the name at each build from its
record of the device, where it stands behind the target triple. Another name in its place must be that of the CPU for
which PoCL's own library of functions was compiled: else vectors are passed in other registers, and calls crash.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any, BinaryIO

_LIBRARIES = {
    "skylake-avx512": {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"},
    "haswell": {"avx2", "fma", "bmi1", "bmi2", "f16c"},
}
"""CPUs of PoCL's libraries of functions, the most able first, with the flags by which PoCL takes one."""

_POCL = "Portable Computing Language"
_UNKNOWN, _TRIPLE = b"generic\0", b"x86_64-"
_RECORD = 2048  # bytes of the record of a device in which the name is looked for: it stands at 640 in PoCL 3.0
_WORD = struct.calcsize("P")


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
    if device.platform.name.strip() != _POCL:
        return None
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            place = _unknown_name(memory, device.int_ptr)
        flags = _cpu_flags() if place is not None else set[str]()
    except OSError:  # no Linux, or a sandbox: the build then says what is wrong
        return None
    chosen = next((cpu for cpu, needed in _LIBRARIES.items() if needed <= flags), None)
    if place is None or chosen is None:
        return None
    ctypes.c_void_p.from_address(place).value = ctypes.addressof(_NAMES[chosen])
    return chosen


_NAMES = {cpu: ctypes.create_string_buffer(cpu.encode()) for cpu in _LIBRARIES}
"""As C reads them; they live as long as the process."""


def _cpu_flags() -> set[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())


def _unknown_name(memory: BinaryIO, record: int) -> int | None:
    """Where the record of a device points to the name of an unknown CPU, if it does."""
    words = [word for (word,) in struct.iter_unpack("P", _read(memory, record, _RECORD))]
    for at in range(1, len(words)):
        if _read(memory, words[at], len(_UNKNOWN)) == _UNKNOWN:
            return record + at * _WORD if _read(memory, words[at - 1], len(_TRIPLE)) == _TRIPLE else None
    return None


def _read(memory: BinaryIO, address: int, size: int) -> bytes:
    """So many bytes, or none where there is no memory."""
    try:
        memory.seek(address)
        return memory.read(size)
    except (OSError, OverflowError, ValueError):
        return b""
