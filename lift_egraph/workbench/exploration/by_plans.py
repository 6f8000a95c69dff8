"""What is found for a term by plans for its loops: each is followed step by step, and its numbers may be parameters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from lift_egraph.egraph.rule_files import rule_of
from lift_egraph.errors import LiftError
from lift_egraph.guided.stages import Stage, search_stage
from lift_egraph.language import ir
from lift_egraph.workbench.additions import Additions, taking_part
from lift_egraph.workbench.exploration.by_rules import ByRules
from lift_egraph.workbench.exploration.tuned import Tunable, tunables
from lift_egraph.workbench.exploration.why_not import why_not_reached
from lift_egraph.workbench.phases import Found, Leg, PhaseSummary, Start, extended, summarise
from lift_egraph.workbench.planning.plan import Plan, Recipe, planned_phase
from lift_egraph.workbench.planning.plans import plans
from lift_egraph.workbench.planning.stencil_steps import stencil_steps

PLAN_NODES = 15_000  # a plan that needs more is no plan for the term


@dataclass(frozen=True)
class ByPlans(ByRules):
    """What plans lead to as well, also those of the user's `additions`.

    Attributes
    ----------
    source
        The program with open sizes, if there is one: with it, terms of plans are found that have parameters.
    sizes
        The values of these.
    """

    additions: Additions = Additions()  # noqa: RUF009
    source: ir.Program | None = None
    sizes: tuple[tuple[str, int], ...] = ()

    def plans(self, term: ir.Expr) -> Iterator[tuple[Plan, bool]]:
        """The plans for a stage, the user's first, and whether they are the user's."""
        yield from ((plan, True) for plan in self.additions.own_plans(term, self.device))
        yield from ((plan, False) for plan in plans(term, self.device))

    def planned(
        self,
        start: Start,
        end: float = inf,
        chosen: Sequence[tuple[Plan, bool]] | None = None,
        followed: list[tuple[Recipe, list[Found]]] | None = None,
    ) -> Iterator[PhaseSummary | Found]:
        """What the plans for the loops of a term, or those that are chosen, lead to; none is begun after the end.

        Also by the recipe of each plan, in `followed`.
        """
        for plan, is_own in list(self.plans(start[0])) if chosen is None else chosen:
            if time.perf_counter() > end:
                return
            found: list[Found] = []
            for item in self.followed(plan, start, is_own):
                if isinstance(item, Found):
                    found.append(item)
                yield item
            if plan.recipe and found and followed is not None and not is_own:
                followed.append((plan.recipe, found))

    def followed(self, plan: Plan, start: Start, is_own: bool = False) -> Iterator[PhaseSummary | Found]:
        """What a plan leads to; the user's rules take part in that of theirs."""
        limits = replace(self.budget.phase_limits, iterations=self.budget.plan_iterations, nodes=PLAN_NODES)
        term, way = start
        rules = taking_part(self.rules, "algorithmic" if is_own else None)
        for step in plan.steps:
            began = time.perf_counter()
            planned = planned_phase(step.name, step.tiling, step.widths, limits)
            phase = self.taking(extended(planned, map(rule_of, rules)))
            *_, (reached, saturation) = search_stage(term, Stage(phase, step.sketch, step.weigh))
            summary = summarise(saturation, time.perf_counter() - began)
            why_not = why_not_reached(reached, saturation, nearby=is_own) if reached.term is None else ""
            yield replace(summary, why_not=why_not)
            if reached.term is None:
                return
            term = reached.term
            kind, steps = self.device.mapping, len(reached.iterations)
            way = (*way, Leg(step.name, term, steps, kind, step.tiling, step.widths, rules=rules))
        if plan.lowered_by is None:
            yield Found(float(sum(1 for _ in ir.subterms(term))), term, way)
        else:
            yield from self.lowered(term, way, plan.widths, plan.lowered_by == "sharing")

    def in_steps(self, start: Start) -> Iterator[PhaseSummary | Found]:
        """What the plans for several steps of a stencil in one kernel lead to."""
        for plan in stencil_steps(start[0], self.device):
            yield from self.followed(plan, start)

    def with_parameters(self, followed: Sequence[tuple[Recipe, list[Found]]]) -> Iterator[Tunable]:
        """The terms that plans led to, with the numbers of the plans as parameters; of plans of a kind, the first that
        has any.
        """
        if self.source is None or not self.sizes:
            return
        kinds: dict[object, list[tuple[Recipe, list[Found]]]] = {}
        for recipe, found in followed:
            kinds.setdefault(recipe.kind, []).append((recipe, found))
        look = replace(self, budget=replace(self.budget, stage_terms=self.budget.lowered))
        known: dict[object, list[Found]] = {}  # plans of a kind stand at the same other sizes

        def follow(program: ir.Program, plan: Plan) -> list[Found]:
            key = program.sizes, plan.recipe
            if key not in known:
                known[key] = [item for item in look.followed(plan, (program.body, ())) if isinstance(item, Found)]
            return known[key]

        end = time.perf_counter() + self.budget.search_seconds * self.budget.tuning_share
        for alike in kinds.values():
            for recipe, found in alike:
                if time.perf_counter() > end:
                    return
                with suppress(LiftError):  # numbers that coincide can make a term that is not found at other sizes
                    yield from tunables(self.source, dict(self.sizes), recipe, found, follow, self.device)
                    break
