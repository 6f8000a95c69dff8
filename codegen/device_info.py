"""What OpenCL says about a device, and the time it takes: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DeviceInfo:
    """The facts of one OpenCL device; sizes in bytes.

    Attributes
    ----------
    index
        ``platform:device``, as in the variable ``PYOPENCL_CTX``.
    local_memory_is_dedicated
        Whether OpenCL reports local memory as a memory of its own; on CPUs it is a part of global memory.
    clock_mhz
        0 where the driver does not say.
    cache
        The largest; of a CPU the host's, where the driver says less.
    """

    index: str
    platform: str
    platform_version: str
    name: str
    driver_version: str
    opencl_c_version: str
    kind: Literal["cpu", "gpu", "other"]
    compute_units: int
    clock_mhz: int
    max_work_group: int
    max_work_items: tuple[int, int, int]
    local_memory: int
    local_memory_is_dedicated: bool
    global_memory: int
    max_allocation: int
    cache: int
    vector_width: int
    supports_f64: bool
    address_alignment: int

    def __str__(self) -> str:
        return f"{self.index}  {self.platform} / {self.name}"


@dataclass(frozen=True)
class Timing:
    """Milliseconds that the device spent in the kernels of one run: median, least, and how many runs.

    Half of the runs lie in `spread_ms`, a quarter below it and a quarter above. `times_ms` has all of them.
    """

    median_ms: float
    min_ms: float
    runs: int
    spread_ms: tuple[float, float]
    times_ms: tuple[float, ...] = ()
