"""Searching low-level terms for a program: phases of rules, extraction, lowering. Runs in a child process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import rules as book
from extract.cost import StructuralCost
from extract.devices import Device
from extract.search import best_terms, skeleton
from extract.tiling import Tiling, tilings, vector_widths
from lift_egraph import ir
from lift_egraph.saturate import Limits, Phase, Saturation, run_phase

SEEDS = 16  # high-level terms that are lowered, for each tiling
STAGED = 2  # of those, how many are tried with data staged in local or private memory
LOWERED = 12  # low-level terms taken from each of them
WORSE = 4.0  # how much worse than the best high-level term a seed may be rated
PLAINNESS = 0.001  # what a layout pattern counts when seeds are chosen


@dataclass(frozen=True)
class PhaseSummary:
    """The size of an e-graph when its phase ended, how long it took and why it ended."""

    name: str
    tuples: int
    classes: int
    nodes: int
    iterations: int
    seconds: float
    stop_reason: str


@dataclass(frozen=True)
class Found:
    """A low-level term with its structural cost."""

    cost: float
    term: ir.Expr


def summarise(saturation: Saturation, seconds: float) -> PhaseSummary:
    """The figures of a phase that a report shows."""
    graph = saturation.graph
    return PhaseSummary(
        saturation.phase,
        graph.tuples,
        graph.class_count,
        graph.node_count,
        len(saturation.iterations),
        seconds,
        saturation.stop_reason.value,
    )


def algorithmic_phase(tiling: Tiling, limits: Limits) -> Phase:
    """The phase that restructures the high-level program."""
    return Phase("algorithmic", book.algorithmic, book.simplification, tiling, (), limits)


def lowering_phase(device: Device, widths: tuple[int, ...], limits: Limits) -> Phase:
    """The phase that maps a high-level term to the device."""
    levels = book.global_rules + (book.group_rules if device.kind == "gpu" else ())
    return Phase("lowering", book.loop_rules + book.vector_rules + levels, book.simplification, {}, widths, limits)


def memory_phase(spaces: tuple[str, ...], limits: Limits) -> Phase:
    """The phase that stages the data of work-groups in local, and of work-items in private memory."""
    once = replace(limits, iterations=1)
    return Phase("memory", book.memory_rules, book.simplification, limits=once, staging=spaces)


def search(program: ir.Program, device: Device, limits: Limits) -> Iterator[PhaseSummary | Found]:
    """Low-level terms for a program at concrete sizes, tiling by tiling, in this process.

    Yields
    ------
    PhaseSummary or Found
        The end of each phase, and each term as it is found.
    """
    widths = vector_widths(program, device)
    parallel = device.compute_units if device.kind == "cpu" else device.compute_units * 64
    made = tilings(program, device)
    for tiling in (*made[:2], {}, *made[2:]):
        began = time.perf_counter()
        saturation = _last(run_phase(program.body, algorithmic_phase(tiling, limits)))
        yield summarise(saturation, time.perf_counter() - began)
        seeds = best_terms(
            saturation.graph,
            saturation.root,
            StructuralCost(),
            SEEDS,
            tries=150,
            per_shape=8,
            key=skeleton,
            plainness=PLAINNESS,
        )
        for seed in seeds:
            if seed.cost > WORSE * seeds[0].cost:
                break
            began = time.perf_counter()
            lowered = _last(run_phase(seed.term, lowering_phase(device, widths, limits)))
            model = StructuralCost(units=parallel, lowered=True)
            terms = best_terms(lowered.graph, lowered.root, model, LOWERED, tries=60, per_shape=3, key=skeleton)
            yield summarise(lowered, time.perf_counter() - began)
            for found in terms:
                yield Found(found.cost, found.term)
            spaces = ("local", "private") if device.local_memory_is_cheap else ("private",)
            for found in terms[:STAGED]:
                staged = _last(run_phase(found.term, memory_phase(spaces, limits)))
                for copy in best_terms(staged.graph, staged.root, model, 3, per_shape=1, key=skeleton):
                    yield Found(copy.cost, copy.term)


def _last(saturations: Iterator[Saturation]) -> Saturation:
    *_, last = saturations
    return last
