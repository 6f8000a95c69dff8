"""What is found for a term by phases of rules alone: it is restructured, lowered, and has data in faster memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from lift_egraph.codegen.devices import Device
from lift_egraph.egraph.exact_rules import exact_phase
from lift_egraph.egraph.kbest import CostModel
from lift_egraph.egraph.rule_files import OwnRule, rule_of
from lift_egraph.egraph.saturate import Phase, Saturation, run_phase
from lift_egraph.extract.baseline import is_sequential, naive_term
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import Extracted, best_terms, skeleton
from lift_egraph.extract.models import StructuralModel
from lift_egraph.extract.tiling import Tiling, tilings
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.workbench.additions import ROLES, taking_part
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.phases import (
    Found,
    Leg,
    PhaseSummary,
    Start,
    algorithmic_phase,
    extended,
    lowering_phase,
    memory_phase,
    naive_leg,
    sharing_phase,
    summarise,
)


@dataclass(frozen=True)
class ByRules:
    """What phases of rules lead to on a device, as far as a budget goes.

    Attributes
    ----------
    structural
        What to minimise: itself among high-level terms, what it is on the device among low-level ones.
    widths
        Those of vectors.
    rules
        The user's.
    exact
        Whether nothing takes part that changes results of floats.
    """

    device: Device
    budget: Budget
    structural: StructuralModel
    widths: tuple[int, ...]
    rules: tuple[OwnRule, ...] = ()
    exact: bool = False

    def own(self, phase: str) -> tuple[OwnRule, ...]:
        """The user's rules that take part in a phase."""
        return taking_part(self.rules, ROLES.get(phase))

    def with_own(self, phase: Phase) -> Phase:
        """A phase with the user's rules that take part in it."""
        return self.taking(extended(phase, map(rule_of, self.own(phase.name))))

    def taking(self, phase: Phase) -> Phase:
        """The phase with what takes part of it."""
        return exact_phase(phase) if self.exact else phase

    def naive(self, alone: ir.Program) -> Found:
        """The naive low-level term of a program."""
        kind, term = self.device.mapping, naive_term(alone).body
        return Found(inf, term, (Leg("algorithmic", alone.body, 0, kind), naive_leg(term, kind)))

    def tilings(self, program: ir.Program) -> list[Tiling]:
        """The tilings of a program, the most promising first."""
        budget = self.budget
        return tilings(
            program, self.device, budget.blocks(self.device.mapping), budget.long_array, budget.chunks_per_unit
        )

    def tiled(self, program: ir.Program, starts: Sequence[Start]) -> Iterator[PhaseSummary | Found]:
        """What is found by restructuring, tiling by tiling, for versions of a program."""
        made, first = self.tilings(program), self.budget.tiled_first
        for tiling in (*made[:first], {}, *made[first:]):
            for start in starts:
                yield from self.restructured(start, tiling, max(1, self.budget.seeds // len(starts)))

    def as_it_is(self, start: Start) -> Iterator[PhaseSummary | Found]:
        """What is found without restructuring."""
        term, before = start
        return self.lowered(term, (*before, Leg("algorithmic", term, 0, self.device.mapping)))

    def restructured(
        self, start: Start, tiling: Tiling, seeds: int, end: float = inf
    ) -> Iterator[PhaseSummary | Found]:
        """What is found with one tiling, from the best of the terms that it leads to; none is lowered after the end."""
        budget = self.budget
        began = time.perf_counter()
        saturation = last(run_phase(start[0], self.with_own(algorithmic_phase(tiling, budget.phase_limits))))
        yield summarise(saturation, time.perf_counter() - began)
        counts = seeds, budget.seed_tries, budget.seeds_per_shape
        found = terms_of(saturation, self.structural, *counts, budget.patience, budget.plainness)
        for seed in found:
            if seed.cost > budget.worst_seed * found[0].cost or time.perf_counter() > end:
                break
            if not alpha_equal(seed.term, start[0]):
                kind, steps, rules = self.device.mapping, len(saturation.iterations), self.own("algorithmic")
                leg = Leg("algorithmic", seed.term, steps, kind, tiling, rules=rules)
                yield from self.lowered(seed.term, (*start[1], leg))

    def lowered(
        self, seed: ir.Expr, before: tuple[Leg, ...], planned: tuple[int, ...] | None = None, shared: bool = False
    ) -> Iterator[PhaseSummary | Found]:
        """The low-level terms of one high-level term, and the best of them with data staged in faster memory.

        What is `planned`, with vectors of these widths, has its data where the plan wants it; the work of each element
        may be `shared` by a group.
        """
        device, budget, model = self.device, self.budget, self.structural.on(self.device)
        if isinstance(model, StructuralCost) and is_sequential(seed):
            model = replace(model, alone=True)
        widths = self.widths if planned is None else planned
        began = time.perf_counter()
        limits = budget.phase_limits
        phase = self.with_own(sharing_phase(widths, limits) if shared else lowering_phase(device, widths, limits))
        rules = self.own(phase.name)
        lowered = last(run_phase(seed, phase))
        count = budget.lowered if planned is None else budget.stage_terms
        counts = count, budget.lowered_tries, budget.lowered_per_shape
        terms = terms_of(lowered, model, *counts, budget.patience)
        yield summarise(lowered, time.perf_counter() - began)
        steps = len(lowered.iterations)
        ways = [(*before, Leg(phase.name, t.term, steps, device.mapping, widths=widths, rules=rules)) for t in terms]
        for found, way in zip(terms, ways, strict=True):
            yield Found(found.cost, found.term, way)
        spaces = ("local", "private") if device.local_memory_is_cheap else ("private",)
        staged = budget.staged if planned is None else 0
        for found, way in zip(terms[:staged], ways[:staged], strict=True):
            reached = last(run_phase(found.term, self.with_own(memory_phase(spaces, budget.phase_limits))))
            counts = budget.copies, budget.copy_tries, budget.copies_per_shape
            for copy in terms_of(reached, model, *counts, budget.patience):
                steps = len(reached.iterations)
                leg = Leg("memory", copy.term, steps, device.mapping, spaces=spaces, rules=self.own("memory"))
                yield Found(copy.cost, copy.term, (*way, leg))


def terms_of(
    reached: Saturation, model: CostModel, count: int, tries: int, per_shape: int, patience: int, plainness: float = 0.0
) -> list[Extracted]:
    """The best terms of what a phase reached, at most `per_shape` of each shape.

    Parameters
    ----------
    count
        How many terms.
    tries, patience, plainness
        As for `lift_egraph.extract.kbest.best_terms`.
    """
    options = {"tries": tries, "per_shape": per_shape, "plainness": plainness, "patience": patience}
    return best_terms(reached.graph, reached.root, model, count, key=skeleton, **options)


def last(saturations: Iterator[Saturation]) -> Saturation:
    """The state in which a phase ended."""
    *_, end = saturations
    return end
