"""How `optimize` spends its time: every knob of the search, of compiling and of measuring."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from numbers import Integral, Real
from typing import Annotated, Any, get_type_hints

from lift_egraph.egraph.saturate import Limits
from lift_egraph.errors import BudgetProblem


def _number(value: Any, least: float, most: float = inf) -> bool:
    return isinstance(value, Real) and least <= float(value) <= most


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


Positive = Annotated[float, lambda v: _number(v, 0) and v > 0, "a number above 0"]
Share = Annotated[float, lambda v: _number(v, 0, 1), "a number from 0 to 1"]
Ratio = Annotated[float, lambda v: _number(v, 1), "a number of at least 1"]
Count = Annotated[int, lambda v: _whole(v, 1), "a whole number of at least 1"]
CountOrZero = Annotated[int, lambda v: _whole(v, 0), "a whole number of at least 0"]
Blocks = Annotated[
    tuple[int, ...],
    lambda v: isinstance(v, tuple) and all(_whole(n, 2) for n in v),
    "a tuple of whole numbers of at least 2",
]
Bounds = Annotated[Limits, lambda v: isinstance(v, Limits), "lift_egraph.egraph.saturate.Limits"]
DEFAULT = 90.0  # seconds for everything
MOST_CROWDED = 16.0  # times as long as on an idle machine: an endless kernel beside more work than that ends, too


@dataclass(frozen=True)
class Budget:
    """How long `optimize` takes, and how far it looks.

    Shares are of `seconds`. The structural cost chooses terms in the e-graphs; the performance model decides
    which kernels are measured first.

    Attributes
    ----------
    seconds
        For everything.
    reference_share, least_reference
        The part for interpreting the program, and the seconds that it may take where that is less: a result that would
        take longer is sampled.
    numpy_share
        The part for the program in NumPy, which kernels are compared with; where it would take longer, it is not run.
    roofline_share
        The part for measuring what the device reaches, where that is not known; where it would take longer, it is
        not measured.
    checks_share
        The part for trying declared laws, and again for comparing alternatives with their functions: then no more
        examples are tried.
    search_share
        The part after which the search ends, if anything that it found waits to be measured. Kernels are generated,
        validated and timed while it goes on.
    lanes
        How many kernels are built and validated side by side, at most; each is timed alone. Here there are never more
        than processors; an executor is given so many at a time.
    kernel_share, least_kernel, most_kernel
        The part after which one kernel's build and run count as hanging, with its bounds in seconds. The upper bound
        counts for one that is the only hope, as none is right yet.
    copy_rate
        Bytes a second, at the least, that move between the processes and the device; added to the former.
    limits
        Bounds of each phase; its memory is that of the process which runs them all.
    cpu_blocks, gpu_blocks
        Chunk sizes for short arrays, one for each tiling that is tried.
    long_array, chunks_per_unit
        The length from which arrays are first cut into chunks, and how many for each compute unit.
    tiled_first
        How many tilings are tried before the program without one.
    widths
        How many vector widths are tried.
    stage_iterations, variants
        Iterations that decide what stands in memory between the stages of a program, and how many programs that
        they lead to are searched beside it.
    versions
        How many versions of the program by alternatives of its functions are searched.
    plan_iterations
        Iterations of each phase of a plan.
    tuning_share
        The part of the search for plans with parameters, and of all for measuring other points of plans.
    points
        How many other points of a plan are drawn, beside the neighbours of what was measured; more in more than the
        default time.
    stages_share
        The part of the search for plans of stages alone, and again for restructuring them.
    stage_seeds, stage_terms
        High-level terms that are lowered for each stage alone, and how many of its low-level terms are tried among
        the best of the others.
    seeds, seed_tries, seeds_per_shape
        High-level terms that are lowered, for each tiling; how many members of each shape of the e-graph are
        looked at for them, and taken from it, at most.
    worst_seed
        How many times the cost of the best of them a seed may have.
    plainness
        What a pattern that only rearranges data counts when seeds are chosen, as a share of the least cost.
    lowered, lowered_tries, lowered_per_shape
        The same for the low-level terms that are taken from each seed.
    staged
        Of those, how many are tried with data staged in local or private memory.
    copies, copy_tries, copies_per_shape
        The same for the terms that are taken from each of these.
    patience
        How many members that contain their own class a class may have before no more are looked for.
    measured, measured_per_rank
        After how many kernels, validated and timed, none follow when the search has ended but those that are expected
        to take half the time of the best, and how many for each that is to be reported, if more; after more of both in
        more than the default time.
    long_source
        Characters of one kernel from which a device compiler may take many seconds: these are measured last.
    repeats, timing_seconds
        How often, and for how many seconds in all, a kernel is run for its time, at least.
    timing_share
        The part after which a kernel is run no more for its time.
    turns_share
        The part for timing the best kernels again, in turns.
    cut_off
        How many times the time of the best kernel another may take in its first run to be run again.

    Raises
    ------
    BudgetProblem
        If a value is of the wrong kind or out of range.

    Examples
    --------
    >>> Budget(seconds=60, seeds=8).search_seconds
    48.0
    >>> Budget(search_share=30)
    Traceback (most recent call last):
    lift_egraph.errors.BudgetProblem: the budget's search_share must be a number from 0 to 1, got 30
    """

    seconds: Positive = DEFAULT
    reference_share: Share = 0.15
    least_reference: Positive = 2.0
    numpy_share: Share = 0.03
    roofline_share: Share = 0.1
    checks_share: Share = 0.1
    search_share: Share = 0.8
    lanes: Count = 2
    kernel_share: Share = 0.25
    least_kernel: Positive = 5.0
    most_kernel: Positive = 20.0
    copy_rate: Positive = 50e6
    limits: Bounds = field(default=Limits(iterations=6, nodes=60_000, seconds=30.0, memory_mb=1024))
    cpu_blocks: Blocks = (4, 8, 16)
    gpu_blocks: Blocks = (8, 4, 16)
    long_array: Count = 1 << 16
    chunks_per_unit: Count = 32
    tiled_first: CountOrZero = 2
    widths: CountOrZero = 2
    stage_iterations: Count = 8
    variants: Count = 3
    versions: CountOrZero = 6
    plan_iterations: Count = 20
    tuning_share: Share = 0.2
    points: CountOrZero = 32
    stages_share: Share = 0.3
    stage_seeds: Count = 4
    stage_terms: Count = 4
    seeds: Count = 16
    seed_tries: Count = 150
    seeds_per_shape: Count = 8
    worst_seed: Ratio = 4.0
    plainness: Share = 0.001
    lowered: Count = 12
    lowered_tries: Count = 60
    lowered_per_shape: Count = 3
    staged: CountOrZero = 2
    copies: Count = 3
    copy_tries: Count = 30
    copies_per_shape: Count = 1
    patience: CountOrZero = 200
    measured: CountOrZero = 24
    measured_per_rank: CountOrZero = 3
    long_source: CountOrZero = 24_000
    repeats: Count = 5
    timing_seconds: Positive = 0.05
    timing_share: Share = 0.03
    turns_share: Share = 0.05
    cut_off: Ratio = 4.0

    def __post_init__(self) -> None:
        for name, (fits, right) in _ranges().items():
            value = getattr(self, name)
            if not fits(value):
                raise BudgetProblem(f"the budget's {name} must be {right}, got {value!r}")

    @property
    def longer(self) -> float:
        """How many times the default time it has, if more: for so many times as many kernels."""
        return max(self.seconds / DEFAULT, 1.0)

    @property
    def reference_seconds(self) -> float:
        """How long the interpreter may take for what kernels are held against."""
        return max(self.seconds * self.reference_share, self.least_reference)

    @property
    def numpy_seconds(self) -> float:
        """How long the program may run in NumPy."""
        return self.seconds * self.numpy_share

    @property
    def roofline_seconds(self) -> float:
        """How long it may take to measure the device's roofline."""
        return self.seconds * self.roofline_share

    @property
    def checks_seconds(self) -> float:
        """How long declared laws may be tried, and alternatives be compared with their functions."""
        return self.seconds * self.checks_share

    @property
    def search_seconds(self) -> float:
        """How long the search may take; one of which nothing waits to be measured goes on."""
        return self.seconds * self.search_share

    @property
    def turns_seconds(self) -> float:
        """How long the best kernels may be timed in turns."""
        return self.seconds * self.turns_share

    @property
    def phase_limits(self) -> Limits:
        """The limits of one phase: the first must leave time for others."""
        return replace(self.limits, seconds=min(self.limits.seconds, self.search_seconds / 3))

    def kernel_seconds(self, data: int) -> float:
        """How long the build and run of a kernel may take whose inputs and result have so many bytes: longer where
        others wait for processors, too (`crowding`).
        """
        alone = min(self.most_kernel, max(self.seconds * self.kernel_share, self.least_kernel)) + data / self.copy_rate
        return alone * crowding()

    def blocks(self, device_kind: str) -> tuple[int, ...]:
        """The chunk sizes for short arrays on a kind of device."""
        return self.gpu_blocks if device_kind == "gpu" else self.cpu_blocks


def crowding() -> float:
    """How many times as long as on an idle machine work takes about: others wait for its processors, too."""
    try:
        return min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), MOST_CROWDED)
    except (AttributeError, OSError):  # not known here
        return 1.0


@cache
def _ranges() -> dict[str, tuple[Callable[[Any], bool], str]]:
    """What each knob must be: a test, and the same in words."""
    return {name: hint.__metadata__ for name, hint in get_type_hints(Budget, include_extras=True).items()}
