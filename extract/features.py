"""The features of a plan on which learned models of performance stand, computed before anything is built.

Counts are those of the kernels' text, over all work-items of all kernels and divided by their number; what the device's
own compiler makes of the text is not known. The sizes of a launch are those of the kernel that accesses memory most.

Source: 000 Table 6.1 and §6.3; 002 §4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lift_egraph.codegen.c_walk import substitute
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Kernel, Launch, Plan
from lift_egraph.errors import InputProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.cache_lines import Together, lines_of, warp_and_line
from lift_egraph.extract.estimated_features import ESTIMATED, estimated
from lift_egraph.extract.events import Events, events_of
from lift_egraph.extract.extended_features import EXTENDED, extended
from lift_egraph.extract.iteration_domain import Domain
from lift_egraph.garbage import no_search_for_garbage
from lift_egraph.language.nat import nat

PUBLISHED: tuple[str, ...] = (
    "global_size_0", "global_size_1", "global_size_2", "local_size_0", "local_size_1", "local_size_2", "local_memory",
    "global_stores", "global_loads", "local_stores", "local_loads", "lines_per_access", "barriers", "ifs", "for_bodies",
)  # fmt: skip
"""Table 6.1: sizes in work-items (a local size that is left to the device is 0), local memory in bytes of a group,
lines of a cache in global memory for each access of a warp, and all else per work-item. A vector is one access."""

NAMES: tuple[str, ...] = (*PUBLISHED, *EXTENDED, *ESTIMATED)
"""All features, in their order."""


@no_search_for_garbage()
def features(plan: Plan, device: Device) -> dict[str, float]:
    """The features of a plan, by name: those of `NAMES`, in this order.

    Counts are exact where nothing that the kernels read decides what they do, each condition on more than a million
    points is linear in its longest index, and each branch by whole numbers that indices decide is by a conjunction of
    comparisons, or by none. Lines, and idle lanes, are counted in a sample of the warps and steps where
    there are many unlike each other.

    Parameters
    ----------
    plan
        Straight from the compiler: a plan that was read from ``launch.json`` has no trees to count in.

    Raises
    ------
    InputProblem
        If no kernel has a tree.
    """
    if not any(kernel.body for kernel in plan.kernels):
        raise InputProblem(
            f"{plan.name} has no statements to take features of: it was read from a file, or computes nothing; "
            "take the features of a plan that compile_program made"
        )
    sizes = {size.name: size.value for size in plan.sizes}
    events = [events_of(kernel, sizes) for kernel in plan.kernels]
    lines = [line_counts(e, k.launch, device) for k, e in zip(plan.kernels, events, strict=True)]
    known = {name: nat(value) for name, value in sizes.items()}
    kernels = [replace(k, body=substitute(k.body, known)) if known else k for k in plan.kernels]
    beside, touched, beyond = extended(kernels, events, lines, device)
    found = estimated(plan, kernels, predict(plan, device), device, touched, beyond)
    return _published(kernels, events, lines) | beside | found


@no_search_for_garbage()
def feature_table(plans: Iterable[Plan], device: Device) -> np.ndarray:
    """The features of many plans, as a matrix with a row for each and a column for each of `NAMES`.

    For the points of a plan with parameters let a generator compile the term of each ``with_text=False``: its numbers
    decide what is unrolled, padded and mapped, so nearly each point of a tiled kernel has a tree of its own, and few
    features are expressions of the parameters (`benchmarks/features.py` counts them). For a product of matrices on a
    GPU, 250, 500, 1,000 and 1,500 points of 12,247 have 233, 452, 817 and 1,123 kinds of trees, numbers aside; as they
    are lowered, before anything is unrolled, 177, 283, 424 and 527. What is found out about a whole kernel serves few
    points, then; its innermost loops alone are of few kinds: of those of 250, 500 and 1,000 points, 152, 168 and 187 as
    lowered.

    Raises
    ------
    InputProblem
        If no kernel of a plan has a tree.
    """
    rows = [tuple(features(plan, device).values()) for plan in plans]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(NAMES))


def _published(
    kernels: Sequence[Kernel], events: Sequence[Events], lines: Sequence[dict[str, Together]]
) -> dict[str, float]:
    totals = dict.fromkeys(PUBLISHED[7:], 0.0)
    busiest, most = kernels[0].launch, -1
    for kernel, found in zip(kernels, events, strict=True):
        accesses = 0
        for access, times in found.accesses.items():
            accesses += times * access.domain.size
            totals[f"{access.space}_{access.kind}s"] += times * access.domain.size
        totals["barriers"] += _runs(found.barriers)
        totals["ifs"] += _runs(found.ifs)
        totals["for_bodies"] += _runs(found.for_bodies)
        if accesses > most:
            busiest, most = kernel.launch, accesses
    items = sum(e.items for e in events)
    per_item = {name: total / items for name, total in totals.items()}
    together = Together.sum(t for of_kernel in lines for t in of_kernel.values())
    per_item["lines_per_access"] = together.lines_per_access
    sizes = (*busiest.global_size, *(busiest.local_size or (0, 0, 0)), max(k.local_bytes for k in kernels))
    return dict(zip(PUBLISHED[:7], map(float, sizes), strict=True)) | per_item


def line_counts(events: Events, launch: Launch, device: Device) -> dict[str, Together]:
    """What warps do together in global memory, in each ``load`` and ``store``."""
    found: dict[str, list[Together]] = {"load": [], "store": []}
    for access, times in events.accesses.items():
        if access.space == "global":
            found[access.kind].append(lines_of(access, launch, *warp_and_line(device)).times(times))
    return {kind: Together.sum(parts) for kind, parts in found.items()}


def _runs(domains: Mapping[Domain, int]) -> int:
    return sum(times * domain.size for domain, times in domains.items())
