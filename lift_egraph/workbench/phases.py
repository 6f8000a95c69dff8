"""The phases of a search, and the way that a term took through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from lift_egraph import rules as book
from lift_egraph.codegen.devices import Device
from lift_egraph.egraph.exact_rules import exact_phase
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_files import OwnRule, rule_of
from lift_egraph.egraph.saturate import Limits, Phase, Saturation
from lift_egraph.extract.tiling import Tiling
from lift_egraph.language import ir
from lift_egraph.learned.strategies import Family, family_of
from lift_egraph.workbench.planning.plan import PLANNED, planned_phase

BACKWARDS = ("naming",)  # the phases that lead from what they reach to what they begin with
MOST_NODES, MOST_SECONDS = 10_000_000, 600.0  # limits of a phase that is run again for as long as it ran before


@dataclass(frozen=True)
class PhaseSummary:
    """The size of an e-graph when its phase ended, how long it took and why it ended.

    `why_not` says what the sketch of a plan's phase asked in vain, and which rules make such; empty where it was found.
    """

    name: str
    tuples: int
    classes: int
    nodes: int
    iterations: int
    seconds: float
    stop_reason: str
    why_not: str = ""

    def __str__(self) -> str:
        return f"{self.stop_reason}, {self.why_not}" if self.why_not else self.stop_reason


@dataclass(frozen=True)
class Leg:
    """A phase on the way from a program to a low-level term, and the term that was taken from it.

    Attributes
    ----------
    name
        ``alternatives``, ``stages``, ``invariants``, ``remainders``, one of a plan (`PLANNED`), ``algorithmic``,
        ``lowering``, ``sharing``, ``memory``, ``streams``, ``halves`` or ``turns``.
    term
        The seed of the next leg, or the low-level term.
    iterations
        How many iterations the phase ran.
    device_kind
        Of the device that was lowered for: it decides the levels of parallel maps.
    tiling, widths, spaces
        The facts that steered the phase.
    rules
        A user's rules that ran beside those of the phase.
    exact
        Whether rules that change results of floats took no part (`lift_egraph.egraph.exact_rules`).
    """

    name: str
    term: ir.Expr
    iterations: int
    device_kind: str
    tiling: Tiling = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    spaces: tuple[str, ...] = ()
    rules: tuple[OwnRule, ...] = ()
    exact: bool = False

    @property
    def is_backwards(self) -> bool:
        """Whether the phase leads from its term to the one before it: names come back by putting in what they name."""
        return self.name in BACKWARDS

    @property
    def phase(self) -> Phase:
        """The phase, with limits that let it run as far as it did. Files with rules of the user's are run for it.

        Raises
        ------
        RuleProblem
            If a rule of the user's is not to be found as it was.
        """
        phase = extended(self._phase_of_book, map(rule_of, self.rules))
        return exact_phase(phase) if self.exact else phase

    @property
    def _phase_of_book(self) -> Phase:
        limits = Limits(self.iterations, nodes=MOST_NODES, seconds=MOST_SECONDS)
        if self.name == "alternatives":
            return alternatives_phase(limits)
        if self.name == "stages":
            return stages_phase(limits)
        if self.name == "invariants":
            return invariants_phase(limits)
        if self.name == "remainders":
            return remainders_phase(self.tiling, self.widths, limits)
        if self.is_planned:
            return planned_phase(self.name, self.tiling, self.widths, limits)
        if self.name == "algorithmic":
            return algorithmic_phase(self.tiling, limits)
        if self.name == "lowering":
            return _lowering(self.device_kind, self.widths, limits)
        if self.name == "sharing":
            return sharing_phase(self.widths, limits)
        if self.name == "streams":
            return streams_phase(limits)
        if self.name == "halves":
            return halves_phase(limits)
        if self.name == "turns":
            return turns_phase(limits)
        return memory_phase(self.spaces, limits)

    @property
    def is_planned(self) -> bool:
        """Whether it is a phase of a plan."""
        return self.name in PLANNED

    def __str__(self) -> str:
        facts = [f"chunks of {', '.join(map(str, sizes))} of {n} elements" for n, sizes in self.tiling.items()]
        facts += [f"vectors of {' or '.join(map(str, self.widths))}"] if self.widths else []
        facts += [f"copies in {' or '.join(self.spaces)} memory"] if self.spaces else []
        facts += [rule.name for rule in self.rules] if self.name == "alternatives" else []
        return f"{'exact ' if self.exact else ''}{self.name} phase{': ' if facts else ''}{'; '.join(facts)}"


def family(way: Iterable[Leg]) -> Family:
    """What the kernels that a way leads to have in common with those of others."""
    return family_of((leg.name, leg.iterations) for leg in way)


@dataclass(frozen=True)
class Found:
    """A low-level term with its structural cost, and the phases that led to it."""

    cost: float
    term: ir.Expr
    way: tuple[Leg, ...]


Start = tuple[ir.Expr, tuple[Leg, ...]]  # a high-level term, and the phases that led to it


def keeping(items: Iterable[PhaseSummary | Found], found: list[Found]) -> Iterator[PhaseSummary]:
    """The ends of phases among what a search yields; what is found goes into a list."""
    for item in items:
        if isinstance(item, PhaseSummary):
            yield item
        else:
            found.append(item)


def extended(phase: Phase, rules: Iterable[Rule]) -> Phase:
    """A phase with other rules beside its own: those of the phase ``simplification`` simplify, too."""
    found = tuple(rules)
    if not found:
        return phase
    simplifying = tuple(r for r in found if r.phase == "simplification")
    exploring = tuple(r for r in found if r.phase != "simplification")
    return replace(phase, rules=phase.rules + exploring, simplification=phase.simplification + simplifying)


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


def alternatives_phase(limits: Limits) -> Phase:
    """The phase that puts alternatives in the place of functions: they are its rules."""
    return Phase("alternatives", (), (), limits=limits)


def stages_phase(limits: Limits) -> Phase:
    """The phase that decides what stands in memory between the stages of a program, and what is computed twice."""
    simplification = book.simplification + book.let_simplification + book.stencil_simplification
    return Phase("stages", book.stages, simplification, limits=limits)


def invariants_phase(limits: Limits) -> Phase:
    """The phase that computes what an outer loop does not change before it."""
    return Phase("invariants", book.invariants, book.simplification, limits=limits)


def remainders_phase(tiling: Tiling, widths: tuple[int, ...], limits: Limits) -> Phase:
    """The phase that takes lengths that nothing divides apart: chunks of these sizes, and a rest."""
    return Phase("remainders", book.remainders, book.simplification, tiling, widths, limits)


def algorithmic_phase(tiling: Tiling, limits: Limits) -> Phase:
    """The phase that restructures the high-level program."""
    return Phase("algorithmic", book.algorithmic, book.simplification, tiling, (), limits)


def lowering_phase(device: Device, widths: tuple[int, ...], limits: Limits) -> Phase:
    """The phase that maps a high-level term to the device."""
    return _lowering(device.mapping, widths, limits)


def _lowering(device_kind: str, widths: tuple[int, ...], limits: Limits) -> Phase:
    return _to_levels("lowering", book.global_rules + (book.gpu_rules if device_kind == "gpu" else ()), widths, limits)


def sharing_phase(widths: tuple[int, ...], limits: Limits) -> Phase:
    """The phase that gives each element to a work-group, whose items share the work and meet in local memory."""
    return _to_levels("sharing", book.sharing, widths, limits)


def _to_levels(name: str, levels: tuple[Rule, ...], widths: tuple[int, ...], limits: Limits) -> Phase:
    rules = book.generate_rules + book.loop_rules + book.vector_rules + levels
    return Phase(name, rules, book.simplification, {}, widths, limits)


def memory_phase(spaces: tuple[str, ...], limits: Limits) -> Phase:
    """The phase that stages the data of work-groups in local, and of work-items in private memory."""
    once = replace(limits, iterations=1)
    return Phase("memory", book.memory_rules, book.simplification, limits=once, staging=spaces)


def streams_phase(limits: Limits) -> Phase:
    """The phase that writes a result around the caches."""
    return Phase("streams", book.streams, (), limits=replace(limits, iterations=1))


def halves_phase(limits: Limits) -> Phase:
    """The phase that adds up the lanes of vectors half by half."""
    return Phase("halves", book.halves, (), limits=limits)


def turns_phase(limits: Limits) -> Phase:
    """The phase that says how tiles in local memory follow each other."""
    return Phase("turns", book.turns, (), limits=replace(limits, iterations=1))


def naive_leg(term: ir.Expr, device_kind: str) -> Leg:
    """The way to the naive low-level term, which no search makes: the rules of lowering alone."""
    return Leg("lowering", term, Limits().iterations, device_kind)
