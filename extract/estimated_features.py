"""Features that say what the analytical estimate of a plan is made of, and how it stands beside what must be done.

Where estimates are wrong depends on what they are made of: a learned model corrects them by these. Ratios to the
program's own data and results mean the same for programs of any size; counts per work-item, which `PUBLISHED` and
`EXTENDED` have, do not.

Source: new. The bound is that of S. Williams, A. Waterman and D. Patterson, Roofline, 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

from lift_egraph.codegen.devices import Cpu, Device
from lift_egraph.codegen.plans.arrays import byte_size
from lift_egraph.codegen.plans.kernel import Kernel, Plan
from lift_egraph.extract.accesses import Region, analyse
from lift_egraph.extract.analytical import Prediction
from lift_egraph.extract.analytical_cpu import PARTS

ESTIMATED: tuple[str, ...] = (
    "of_bound", *(f"{part}_share" for part in PARTS), "memory_share", "launch_share", "reached_bandwidth",
    "access_share", "scalar_accesses", "shuffles", "index_work", "loop_steps", "operation_width", "chained_operations",
    "loop_trips", "statements", "longest_body", "temporaries", "operations_per_result", "touched_per_data",
    "fetched_l1", "fetched_l2", "fetched_last",
)  # fmt: skip
"""In this order:

of_bound
    The least time in which the device could do the arithmetic, and move the inputs and results once, over the estimate.
instructions_share, chains_share, spills_share, strided_share, streamed_share, groups_share, barriers_share
    The shares of the estimate that instructions take, waiting for chains of dependent operations (on a GPU, with too
    few warps to hide it), values that find no register, cache lines that no prefetcher foresees (on a GPU, the lines
    that warps load), lines that one does, starts of groups, and barriers. They overlap.
memory_share, launch_share, reached_bandwidth
    The shares of traffic to global memory and of launches; and the share of the bandwidth that the launch can ask for.
access_share, scalar_accesses
    Accesses among accesses and arithmetic operations, a vector one counted once; and those of single elements among
    accesses.
shuffles, index_work, loop_steps
    Lanes that are put together one by one, operations in indices, and steps of sequential loops, for each access or
    operation.
operation_width, chained_operations
    Lanes of an arithmetic operation; and the share of them in loops that update a place from its own old value.
loop_trips
    Steps of the loop around an operation, in the geometric mean.
statements, longest_body
    Accesses and operations in the text of all kernels, and in that of the loop with most: what caches for instructions
    hold.
temporaries
    Bytes of temporary buffers, for each byte of inputs and results.
operations_per_result
    Arithmetic on single elements, for each element of the results.
touched_per_data, fetched_l1, fetched_l2, fetched_last
    Bytes that the kernels touch, and that come from beyond each cache, for each byte of inputs and results.
"""


def estimated(
    plan: Plan,
    kernels: Sequence[Kernel],
    prediction: Prediction,
    device: Device,
    touched: float,
    beyond: Sequence[float],
) -> dict[str, float]:
    """The features of `ESTIMATED`.

    Parameters
    ----------
    kernels
        Those of the plan at its sizes.
    prediction
        Of the plan.
    touched, beyond
        Bytes that the kernels touch, and that come from beyond each cache.
    """
    found, ms = prediction.kernels, max(prediction.predicted_ms, 1e-9)
    data = max(sum(map(byte_size, (*plan.inputs, *plan.outputs))), 1)
    temporary = sum(byte_size(b) for b in plan.buffers if b.role == "temporary")
    flops = sum(k.flops for k in found)
    lanes = device.lanes if isinstance(device.throughput, Cpu) else device.throughput.lanes
    peak = 2e6 * device.compute_units * lanes * device.clock_mhz / 1000  # operations of a millisecond
    values = (
        max(data / (1e6 * device.bandwidth), flops / peak) / ms,
        *(sum(k.parts[part] for k in found) / ms for part in PARTS),
        sum(k.memory_ms for k in found) / ms,
        sum(k.launch_ms for k in found) / ms,
        min((k.reached for k in found), default=1.0),
        *_of_text(kernels, device),
        temporary / data,
        flops / max(sum(b.length for b in plan.outputs), 1),
        touched / data,
        *(moved / data for moved in beyond),
    )
    return dict(zip(ESTIMATED, values, strict=True))


def _of_text(kernels: Sequence[Kernel], device: Device) -> tuple[float, ...]:
    """The features from access_share to longest_body."""
    accesses = scalars = operations = lanes = shuffles = indices = steps = chained = trips = 0.0
    length, longest = 0, 0
    for kernel in kernels:
        for region, times in analyse(kernel).walk():
            done, accessed = region.operated, region.accessed
            accesses += times * accessed
            scalars += times * sum(len(access.starts) for access in region.accesses if access.width == 1)
            operations += times * done
            lanes += times * region.operated_lanes
            shuffles += times * region.shuffles
            indices += times * region.index_work
            chained += times * done if region.chains else 0
            trips += times * done * log(max(region.trips, 1))
            steps += times if _is_sequential(region) else 0
            length += done + accessed
            longest = max(longest, done + accessed)
    work = max(accesses + operations, 1)
    ratios = accesses / work, scalars / max(accesses, 1), shuffles / work, indices / work, steps / work
    some = max(operations, 1)
    return (*ratios, lanes / some, chained / some, exp(trips / some), float(length), float(longest))


def _is_sequential(region: Region) -> bool:
    return region.loop is not None and region.loop.kind == "seq"
