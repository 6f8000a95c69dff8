"""An analytical estimate of a plan's run time, for ranking candidates before any of them is built.

The estimate walks the lowered loops: arithmetic and memory instructions by throughput, chains of dependent
accumulation by latency, spilled registers, cache lines by the level that holds them and by whether a prefetcher
foresees them, and the work-items, groups and barriers of the launch. What can be looked up or measured of a device
stands in its description (`lift_egraph.codegen.devices`). The models' own constants, costs of instructions and how far
waiting is hidden, were fitted to PoCL 3.0 and Intel's runtime on two AMD cores; those for GPUs follow the H100's
documentation. Which loops a CPU's compiler makes vectors of is what the log of Intel's says: those whose addresses move
evenly, that call no function, and whose values do not depend on the last step's, but for sums where it reorders them.
`benchmarks/rank_correlation.py` says how well the estimates rank kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from lift_egraph.caching import kept_with
from lift_egraph.codegen.devices import Cpu, Device
from lift_egraph.codegen.plans.kernel import Kernel, Launch, Plan
from lift_egraph.errors import InputProblem
from lift_egraph.extract.accesses import Access, Region, analyse, neighbour_stride
from lift_egraph.extract.analytical_cpu import cpu_time
from lift_egraph.extract.analytical_gpu import gpu_time
from lift_egraph.extract.footprint import footprint_of
from lift_egraph.garbage import no_search_for_garbage


@dataclass(frozen=True)
class KernelPrediction:
    """The estimate for one kernel, and what it is made of; counts are for the whole launch.

    Attributes
    ----------
    ms
        Milliseconds on the device, without the launch.
    compute_ms, memory_ms
        Arithmetic with accesses that hit the cache, and traffic to global memory; they overlap.
    flops
        Arithmetic operations on single elements, heavy ones counted once.
    loads, stores
        Elements by kind of access: ``contiguous``, ``strided``, ``uniform`` (the same address for
        neighbours), ``irregular`` (depends on data), ``local`` and ``private`` (arrays not in registers).
    bytes_moved
        Traffic to global memory, estimated.
    instructions
        Arithmetic and memory instructions, a vector one counted once.
    parallelism
        Compute units that have work.
    barriers
        Barriers that groups pass.
    launch_ms
        Milliseconds of overhead for the launch.
    parts
        Milliseconds of each of `lift_egraph.extract.analytical_cpu.PARTS`, which overlap.
    reached
        The share of the bandwidth of global memory that the launch can ask for.
    """

    name: str
    ms: float
    compute_ms: float
    memory_ms: float
    flops: float
    loads: Mapping[str, float]
    stores: Mapping[str, float]
    bytes_moved: float
    instructions: float
    parallelism: int
    barriers: float
    launch_ms: float
    parts: Mapping[str, float]
    reached: float


@dataclass(frozen=True)
class Prediction:
    """The estimate for a plan, kernel by kernel."""

    kernels: tuple[KernelPrediction, ...] = field(default=())

    @property
    def device_ms(self) -> float:
        """Milliseconds in the kernels, as profiling events show them."""
        return sum(k.ms for k in self.kernels)

    @property
    def predicted_ms(self) -> float:
        """Milliseconds in all, launches included."""
        return sum(k.ms + k.launch_ms for k in self.kernels)

    def __float__(self) -> float:
        """The same, for `lift_egraph.extract.models.PerformanceModel`."""
        return self.predicted_ms


@no_search_for_garbage()
def predict(plan: Plan, device: Device) -> Prediction:
    """Estimate how long a plan takes on a device.

    Parameters
    ----------
    plan
        Straight from the compiler: a plan that was read from ``launch.json`` has no trees to count in.

    Raises
    ------
    InputProblem
        If a kernel has no statements.
    """
    known: dict[tuple[int, Launch], KernelPrediction] = {}  # of bodies, which the steps of an iterate run again
    for kernel in plan.kernels:
        key = id(kernel.body), kernel.launch
        known[key] = known.get(key) or _kernel(kernel, device)
    return Prediction(tuple(known[id(kernel.body), kernel.launch] for kernel in plan.kernels))


@kept_with
def _predicted(kernel: Kernel) -> dict[Device, KernelPrediction]:
    return {}


def _kernel(kernel: Kernel, device: Device) -> KernelPrediction:
    """The estimate for a kernel, found once: features are made of it, too."""
    known = _predicted(kernel)
    if device not in known:
        known[device] = _predict_kernel(kernel, device)
    return known[device]


def _predict_kernel(kernel: Kernel, device: Device) -> KernelPrediction:
    if not kernel.body:
        raise InputProblem(
            f"the kernel {kernel.name} has no statements to predict the time of: it was read from a file, or computes "
            "nothing; predict plans that compile_program made"
        )
    root = analyse(kernel)
    if isinstance(device.throughput, Cpu):
        estimate = cpu_time(kernel, root, device, device.throughput)
    else:
        estimate = gpu_time(kernel, root, footprint_of(kernel), device, device.throughput)
    flops = instructions = barriers = 0.0
    loads: Counter[str] = Counter()
    stores: Counter[str] = Counter()
    for region, times in root.walk():
        flops += times * region.operated_lanes
        instructions += times * (region.operated + region.accessed + region.shuffles)
        barriers += times * region.barriers
        for access in region.accesses:
            elements = times * access.width * len(access.starts)
            (loads if access.kind == "load" else stores)[_kind(access, region, device)] += elements
    return KernelPrediction(
        name=kernel.name,
        ms=estimate.ms,
        compute_ms=estimate.compute_ms,
        memory_ms=estimate.memory_ms,
        flops=flops,
        loads=dict(loads),
        stores=dict(stores),
        bytes_moved=estimate.bytes_moved,
        instructions=instructions,
        parallelism=estimate.parallelism,
        barriers=barriers,
        launch_ms=device.launch_overhead / 1000,
        parts=estimate.parts,
        reached=estimate.reached,
    )


def _kind(access: Access, region: Region, device: Device) -> str:
    """How neighbours in time (on a CPU) or neighbouring work-items (on a GPU) access memory."""
    if access.space != "global":
        return access.space
    if access.irregular:
        return "irregular"
    if device.kind == "gpu":
        stride = neighbour_stride(access, region.path)
    else:
        stride = next((s for s in reversed(access.strides) if s), 0)
    if stride == 0:
        return "uniform" if access.width == 1 else "contiguous"
    return "contiguous" if abs(stride) <= max(access.width, 1) else "strided"
