"""Searching low-level terms for a program: phases of rules, extraction, lowering. Runs in a child process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from lift_egraph import rules as book
from lift_egraph.codegen.devices import Device
from lift_egraph.egraph.kbest import CostModel
from lift_egraph.egraph.saturate import Limits, Phase, Saturation, run_phase
from lift_egraph.extract.kbest import Extracted, best_terms, skeleton
from lift_egraph.extract.models import StructuralModel
from lift_egraph.extract.tiling import Tiling, tilings, vector_widths
from lift_egraph.language import ir
from lift_egraph.workbench.budget import Budget

MOST_NODES, MOST_SECONDS = 10_000_000, 600.0  # limits of a phase that is run again for as long as it ran before


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
class Leg:
    """A phase on the way from a program to a low-level term, and the term that was taken from it.

    Attributes
    ----------
    name
        ``algorithmic``, ``lowering`` or ``memory``.
    term
        The seed of the next leg, or the low-level term.
    iterations
        How many iterations the phase ran.
    device_kind
        Of the device that was lowered for: it decides the levels of parallel maps.
    tiling, widths, spaces
        The facts that steered the phase.
    """

    name: str
    term: ir.Expr
    iterations: int
    device_kind: str
    tiling: Tiling = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    spaces: tuple[str, ...] = ()

    @property
    def phase(self) -> Phase:
        """The phase, with limits that let it run as far as it did."""
        limits = Limits(self.iterations, nodes=MOST_NODES, seconds=MOST_SECONDS)
        if self.name == "algorithmic":
            return algorithmic_phase(self.tiling, limits)
        if self.name == "lowering":
            return _lowering(self.device_kind, self.widths, limits)
        return memory_phase(self.spaces, limits)

    def __str__(self) -> str:
        facts = [f"chunks of {', '.join(map(str, sizes))} of {n} elements" for n, sizes in self.tiling.items()]
        facts += [f"vectors of {' or '.join(map(str, self.widths))}"] if self.widths else []
        facts += [f"copies in {' or '.join(self.spaces)} memory"] if self.spaces else []
        return f"{self.name} phase{': ' if facts else ''}{'; '.join(facts)}"


@dataclass(frozen=True)
class Found:
    """A low-level term with its structural cost, and the phases that led to it."""

    cost: float
    term: ir.Expr
    way: tuple[Leg, ...]


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
    return _lowering(device.kind, widths, limits)


def _lowering(device_kind: str, widths: tuple[int, ...], limits: Limits) -> Phase:
    levels = book.global_rules + (book.group_rules if device_kind == "gpu" else ())
    return Phase("lowering", book.loop_rules + book.vector_rules + levels, book.simplification, {}, widths, limits)


def memory_phase(spaces: tuple[str, ...], limits: Limits) -> Phase:
    """The phase that stages the data of work-groups in local, and of work-items in private memory."""
    once = replace(limits, iterations=1)
    return Phase("memory", book.memory_rules, book.simplification, limits=once, staging=spaces)


def naive_leg(term: ir.Expr, device_kind: str) -> Leg:
    """The way to the naive low-level term, which no search makes: the rules of lowering alone."""
    return Leg("lowering", term, Limits().iterations, device_kind)


def search(
    program: ir.Program, device: Device, budget: Budget, structural: StructuralModel
) -> Iterator[PhaseSummary | Found]:
    """Low-level terms for a program at concrete sizes, tiling by tiling, in this process.

    Parameters
    ----------
    budget
        How far to look; its seconds are not kept here.
    structural
        What to minimise: itself among high-level terms, what it is on the device among low-level ones.

    Yields
    ------
    PhaseSummary or Found
        The end of each phase, and each term as it is found.
    """
    limits, lowered_cost = budget.limits, structural.on(device)
    widths = vector_widths(program, device, budget.widths)
    made = tilings(program, device, budget.blocks(device.kind), budget.long_array, budget.chunks_per_unit)
    for tiling in (*made[: budget.tiled_first], {}, *made[budget.tiled_first :]):
        began = time.perf_counter()
        saturation = _last(run_phase(program.body, algorithmic_phase(tiling, limits)))
        yield summarise(saturation, time.perf_counter() - began)
        counts = budget.seeds, budget.seed_tries, budget.seeds_per_shape
        seeds = _terms(saturation, structural, *counts, budget.patience, budget.plainness)
        for seed in seeds:
            if seed.cost > budget.worst_seed * seeds[0].cost:
                break
            restructured = Leg("algorithmic", seed.term, len(saturation.iterations), device.kind, tiling)
            began = time.perf_counter()
            lowered = _last(run_phase(seed.term, lowering_phase(device, widths, limits)))
            counts = budget.lowered, budget.lowered_tries, budget.lowered_per_shape
            terms = _terms(lowered, lowered_cost, *counts, budget.patience)
            yield summarise(lowered, time.perf_counter() - began)
            ways = [
                (restructured, Leg("lowering", t.term, len(lowered.iterations), device.kind, widths=widths))
                for t in terms
            ]
            for found, way in zip(terms, ways, strict=True):
                yield Found(found.cost, found.term, way)
            spaces = ("local", "private") if device.local_memory_is_cheap else ("private",)
            for found, way in zip(terms[: budget.staged], ways[: budget.staged], strict=True):
                staged = _last(run_phase(found.term, memory_phase(spaces, limits)))
                counts = budget.copies, budget.copy_tries, budget.copies_per_shape
                for copy in _terms(staged, lowered_cost, *counts, budget.patience):
                    leg = Leg("memory", copy.term, len(staged.iterations), device.kind, spaces=spaces)
                    yield Found(copy.cost, copy.term, (*way, leg))


def _terms(
    reached: Saturation, model: CostModel, count: int, tries: int, per_shape: int, patience: int, plainness: float = 0.0
) -> list[Extracted]:
    options = {"tries": tries, "per_shape": per_shape, "plainness": plainness, "patience": patience}
    return best_terms(reached.graph, reached.root, model, count, key=skeleton, **options)


def _last(saturations: Iterator[Saturation]) -> Saturation:
    *_, last = saturations
    return last
