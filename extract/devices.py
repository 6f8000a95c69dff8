"""What a device is for a cost model: limits from OpenCL, throughput figures from measurements.

OpenCL reports limits but no throughput. The figures here are per family of devices, measured on one machine
of each (PoCL 3.0 and the Intel CPU runtime 2026.2 on two AVX-512 cores, an NVIDIA H100); they are meant for
ranking candidates, not for predicting times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lift_egraph.codegen.device_info import DeviceInfo


@dataclass(frozen=True)
class Device:
    """A device as the cost models see it; memory sizes in bytes.

    Attributes
    ----------
    kind
        A ``cpu`` runs a work-group as a loop on one core, a ``gpu`` in lock-step warps.
    warp
        Work-items that run in lock-step and whose neighbouring accesses are merged; 1 on a CPU.
    vector_width
        Lanes of ``f32`` in one hardware vector register; 1 where work-items are the lanes.
    flops_per_cycle
        Of one compute unit, for ``f32``; a fused multiply-add counts as two.
    bandwidth
        GB/s between global memory and all compute units, estimated.
    cache
        Bytes of the largest cache that OpenCL reports.
    local_memory_is_cheap
        Whether staging data in local memory can pay off. On PoCL a barrier splits the work-item loop.
    prefers_vectors
        Whether explicit vector types are needed to reach the peak.
    prefers_contiguous_chunks
        Whether a work-item should read a contiguous chunk (CPU), or neighbours neighbouring elements (GPU).
    launch_overhead
        Microseconds for one kernel launch.
    dialect
        The name of the emission dialect in which kernels are printed for it.
    """

    name: str
    platform: str
    kind: Literal["cpu", "gpu"]
    compute_units: int
    max_work_group: int
    local_memory: int
    global_memory: int
    max_allocation: int
    clock_mhz: int
    warp: int
    vector_width: int
    flops_per_cycle: int
    bandwidth: float
    cache: int
    local_memory_is_cheap: bool
    prefers_vectors: bool
    prefers_contiguous_chunks: bool
    launch_overhead: float
    dialect: str

    @property
    def peak(self) -> float:
        """GFLOP/s of ``f32`` on all compute units.

        Examples
        --------
        >>> POCL.peak
        422.4
        """
        return self.compute_units * self.flops_per_cycle * self.clock_mhz / 1000


POCL = Device(
    name="two AVX-512 cores",
    platform="Portable Computing Language",
    kind="cpu",
    compute_units=2,
    max_work_group=4096,
    local_memory=2 << 20,
    global_memory=8 << 30,
    max_allocation=2 << 30,
    clock_mhz=3300,
    warp=1,
    vector_width=16,
    flops_per_cycle=64,
    bandwidth=31.0,
    cache=32 << 20,
    local_memory_is_cheap=False,
    prefers_vectors=True,
    prefers_contiguous_chunks=True,
    launch_overhead=30.0,
    dialect="pocl",
)
"""PoCL: local memory and barriers cost 5 to 60 times, built-in functions are real calls."""

INTEL_CPU = Device(
    name="two AVX-512 cores",
    platform="Intel(R) OpenCL",
    kind="cpu",
    compute_units=2,
    max_work_group=8192,
    local_memory=256 << 10,
    global_memory=8 << 30,
    max_allocation=2 << 30,
    clock_mhz=3300,
    warp=1,
    vector_width=16,
    flops_per_cycle=64,
    bandwidth=31.0,
    cache=32 << 20,
    local_memory_is_cheap=True,
    prefers_vectors=True,
    prefers_contiguous_chunks=True,
    launch_overhead=20.0,
    dialect="intel",
)
"""The Intel CPU runtime: tolerates local tiles, vectorises across work-items by itself."""

NVIDIA = Device(
    name="NVIDIA H100",
    platform="NVIDIA CUDA",
    kind="gpu",
    compute_units=132,
    max_work_group=1024,
    local_memory=48 << 10,
    global_memory=80 << 30,
    max_allocation=20 << 30,
    clock_mhz=1980,
    warp=32,
    vector_width=1,
    flops_per_cycle=256,
    bandwidth=3000.0,
    cache=50 << 20,
    local_memory_is_cheap=True,
    prefers_vectors=False,
    prefers_contiguous_chunks=False,
    launch_overhead=6.0,
    dialect="nvidia",
)
"""An NVIDIA H100: OpenCL C 1.2, warps of 32."""

_NVIDIA_BANDWIDTH = {"H200": 4000.0, "H100": 3000.0, "A100": 1600.0, "V100": 800.0, "T4": 250.0}
_OTHER_NVIDIA_BANDWIDTH = 500.0
_CPU_BANDWIDTH_OF_A_UNIT, _CPU_BANDWIDTH = 15.5, 200.0
_CPU_CLOCK_MHZ, _GPU_CLOCK_MHZ = 3000, 1500


def family(info: DeviceInfo) -> Device:
    """The described device whose throughput figures stand for this one.

    An unknown CPU runtime counts as the Intel one, any other unknown device as the GPU.
    """
    if info.platform == POCL.platform and info.kind == "cpu":
        return POCL
    return INTEL_CPU if info.kind == "cpu" else NVIDIA


def describe(info: DeviceInfo) -> Device:
    """The cost model's view of a device: its limits and counts from OpenCL, the rest from its family."""
    base = family(info)
    is_cpu = base.kind == "cpu"
    if is_cpu:
        bandwidth = min(_CPU_BANDWIDTH_OF_A_UNIT * info.compute_units, _CPU_BANDWIDTH)
    else:
        known = (value for key, value in _NVIDIA_BANDWIDTH.items() if key in info.name)
        bandwidth = next(known, _OTHER_NVIDIA_BANDWIDTH)
    width = info.vector_width if is_cpu else 1
    return Device(
        name=info.name,
        platform=info.platform,
        kind=base.kind,
        compute_units=info.compute_units,
        max_work_group=info.max_work_group,
        local_memory=info.local_memory,
        global_memory=info.global_memory,
        max_allocation=info.max_allocation,
        clock_mhz=info.clock_mhz or (_CPU_CLOCK_MHZ if is_cpu else _GPU_CLOCK_MHZ),
        warp=base.warp,
        vector_width=width,
        flops_per_cycle=4 * width if is_cpu else base.flops_per_cycle,
        bandwidth=bandwidth,
        cache=info.cache or base.cache,
        local_memory_is_cheap=base.local_memory_is_cheap,
        prefers_vectors=base.prefers_vectors,
        prefers_contiguous_chunks=base.prefers_contiguous_chunks,
        launch_overhead=base.launch_overhead,
        dialect=base.dialect if info.platform == base.platform else "generic",
    )
