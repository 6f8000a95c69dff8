"""Searching low-level terms for a program: for versions of it and for its stages. Runs in a child process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from lift_egraph.algebra.declared import believe
from lift_egraph.codegen.devices import Device
from lift_egraph.egraph.saturate import Saturation, run_phase
from lift_egraph.egraph.scratch import learn_analyses
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.extract.kbest import skeleton
from lift_egraph.extract.models import StructuralModel
from lift_egraph.extract.tiling import vector_widths
from lift_egraph.language import ir
from lift_egraph.language.lane_ranges import has_shared_ranges
from lift_egraph.workbench.additions import Additions
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.changes.chunks import Rows
from lift_egraph.workbench.changes.folded_scans import with_folded_scans
from lift_egraph.workbench.changes.remainders import WithRests, chunk_for, vector_of
from lift_egraph.workbench.changes.steps import MOST_STEPS, Changes, reached_by
from lift_egraph.workbench.exploration.by_plans import ByPlans
from lift_egraph.workbench.exploration.by_rules import last, terms_of
from lift_egraph.workbench.exploration.foreseen import best_versions, ranked
from lift_egraph.workbench.exploration.stage_cut import Cut, cut
from lift_egraph.workbench.exploration.stage_rounds import Known, StageRounds
from lift_egraph.workbench.exploration.stages import has_invariants, has_stages, joined, kept_bytes, rests
from lift_egraph.workbench.exploration.tuned import Tunable
from lift_egraph.workbench.phases import (
    Found,
    Leg,
    PhaseSummary,
    Start,
    alternatives_phase,
    extended,
    invariants_phase,
    keeping,
    remainders_phase,
    stages_phase,
    summarise,
)
from lift_egraph.workbench.planning.plan import Plan, Recipe
from lift_egraph.workbench.planning.plans import further_plans
from lift_egraph.workbench.planning.short_rows import has_rows_of_lanes
from lift_egraph.workbench.planning.tiles import has_tiles_of_views

VERSIONS_SHARE = 0.05  # of the seconds of the search, for choosing among the versions by alternatives
REST_SHARE = 0.02  # of the seconds of the search, for the plans of one rest
VERSIONS = ("stages", "invariants")  # the phases that make others of the program as it was written
PRODUCTS = ("products_apart", "padding")  # the phases after which there are plans for products that had none


def get_ready() -> None:
    """What the process of a search may do before it knows the program and the device."""
    learn_analyses()


def search(
    program: ir.Program,
    device: Device,
    budget: Budget,
    structural: StructuralModel,
    additions: Additions = Additions(),  # noqa: B008
    source: ir.Program | None = None,
    exact: bool = False,
) -> Iterator[PhaseSummary | Found | Tunable]:
    """Low-level terms for a program at concrete sizes, tiling by tiling, in this process.

    Parameters
    ----------
    budget
        How far to look; its seconds are not kept here.
    structural
        What to minimise: itself among high-level terms, what it is on the device among low-level ones.
    additions
        Rules and plans of the user's. Files with rules are run in this process.
    source
        The program with open sizes, if there is one: with it, terms of plans are found that have parameters.
    exact
        Whether nothing takes part that changes results of floats.

    Yields
    ------
    PhaseSummary, Found or Tunable
        The end of each phase, each term as it is found, and those that have parameters.
    """
    believe(program.laws)
    rules, widths = additions.own_rules(), vector_widths(program, device, budget.widths)
    if isinstance(structural, StructuralCost):
        structural = replace(structural, shared_ranges=has_shared_ranges(program.body))
    look = _Search(device, budget, structural, widths, rules, exact, additions, source, program.sizes)
    starts: list[Start] = [(program.body, ())]
    folded = with_folded_scans(program.body, Rows(device))  # the array between a scan and its fold is no stage
    is_staged = has_stages(program.body if folded is None else folded) or bool(look.own("stages"))
    copies_late = is_staged and not device.has_groups  # kernels for all stages are more important then
    # there is something to measure at once
    yield from (look.without_copies if copies_late else look).as_it_is(starts[0])
    changes = Changes(device, replace(budget.phase_limits, iterations=MOST_STEPS), look.taking)
    changed: dict[ir.Expr, Start] = {}
    rested: dict[ir.Expr, tuple[PhaseSummary, Start] | None] = {}
    changes_first = is_staged and (folded is not None or changes.of_products(program.body))
    begun = look.begun(program, starts[0]) if is_staged and not changes_first else None
    no_width = begun is not None and not device.has_groups and not begun.has_plans
    if no_width and (taken := look.with_rests(starts[0])):
        rested[program.body] = taken
        yield taken[0]
        begun = look.begun(program, taken[1]) or begun
    soon: list[Start] = []  # what is worth looking at before all plans
    if is_staged and begun is None:
        yield from look.changed(starts[0], changes, changed)
        start = changed[program.body]
        if _has(start, "tables"):
            soon.append(start)
            yield from look.as_it_is(start)
        if _has(start, *PRODUCTS):
            taken = rested[start[0]] = look.with_rests(start)
            yield from (taken[0],) if taken else ()
            begun = look.begun(program, taken[1] if taken else start)
        elif changes_first:
            begun = look.begun(program, start if folded is not None else starts[0])
    yield from begun.round(0) if begun else ()  # the phase takes seconds where there are many stages
    yield from begun.round(1) if begun and begun.start[1] else ()  # it adds little to products that are apart
    if is_staged or has_invariants(program.body):
        began = time.perf_counter()
        limits = replace(budget.phase_limits, iterations=budget.stage_iterations)
        phase = look.with_own(stages_phase(limits) if is_staged else invariants_phase(limits))
        reached = last(run_phase(program.body, phase))
        starts = look.starts(program.body, reached)
        yield summarise(reached, time.perf_counter() - began)
    if starts[0][1] and look.own("stages"):  # the user waits for it
        soon.append(starts[0])
        yield from look.as_it_is(starts[0])
    yield from look.spectrum(program)
    if is_staged:
        yield from look.in_steps((program.body, ()))
    several: list[Start] = []
    later: list[tuple[Cut, Start]] = []
    written = [start for start in starts if cut(start[0]) is None]
    for start in starts:
        if start[0] not in changed:
            yield from look.changed(start, changes, changed)
    starts = sorted((changed[start[0]] for start in starts), key=lambda start: not _has(start, *PRODUCTS))
    if _has(starts[0], "tables") and starts[0] not in soon:
        soon.append(starts[0])
        yield from look.as_it_is(starts[0])
    parallel = replace(program, body=starts[0][0])  # it may have lengths for vectors that the program has not
    look = replace(look, widths=vector_widths(parallel, device, budget.widths))
    for start in starts:
        taken = rested[start[0]] if (is_known := start[0] in rested) else look.with_rests(start)
        if taken is not None:
            phase, apart = taken
            yield from () if is_known else (phase,)
            parts = cut(apart[0])
            if parts is None or len(parts.stages) - len(rests(parts, device)) > 1:
                several.append(apart)
            elif several:
                later.append((parts, apart))
            else:
                yield from look.by_parts(program, parts, apart)
        elif _has(start, *PRODUCTS):  # its lengths are no longer what nothing divides
            several.append(start)
    yield from look.by_stages(program, several or starts, begun)
    for parts, apart in later:
        yield from look.by_parts(program, parts, apart)
    for start in written:
        if not any(start is other for other in starts):  # a change of it has other plans
            yield from look.planned(start)
    for start in starts:
        if start not in soon and (start[1] or copies_late):
            yield from look.as_it_is(start)
    yield from look.tiled(program, starts)
    if budget.longer > 1:
        for start in starts:
            yield from look.further(start)


@dataclass(frozen=True)
class _Search(ByPlans):
    """What is found for versions of a program and for its stages as well, in the order of `search`.

    Of stages that are not done with, `left` has the plans; `known` is what was found for stages.
    """

    left: dict[ir.Expr, list[tuple[Plan, bool]]] = field(default_factory=dict, compare=False)
    known: dict[object, Known] = field(default_factory=dict, compare=False)

    def starts(self, body: ir.Expr, reached: Saturation) -> list[Start]:
        """The program as it stands, and the best of those that keep other things in memory; cheapest first."""
        budget, kind, own = self.budget, self.device.mapping, skeleton(body)
        counts = budget.variants, budget.seed_tries, budget.seeds_per_shape
        found = terms_of(reached, self.structural, *counts, budget.patience, budget.plainness)
        made: list[Start] = [
            (t.term, (Leg(reached.phase, t.term, len(reached.iterations), kind, rules=self.own(reached.phase)),))
            for t in found
            if t.cost <= budget.worst_seed * found[0].cost and skeleton(t.term) != own
        ]
        is_best = bool(found) and skeleton(found[0].term) == own
        return [(body, ()), *made] if is_best else [*made, (body, ())]

    def spectrum(self, program: ir.Program) -> Iterator[PhaseSummary | Found]:
        """What is found for the versions of the program by alternatives: as they stand, and by plans."""
        for start in self.by_alternatives(program):
            if isinstance(start, PhaseSummary):
                yield start
                continue
            version = replace(program, body=start[0])
            naive = self.naive(version)
            yield replace(naive, way=(*start[1], *naive.way))
            parts = cut(start[0])
            yield from self.planned(start) if parts is None else StageRounds(self, version, parts, start).rounds()

    def by_alternatives(self, program: ir.Program) -> Iterator[PhaseSummary | Start]:
        """The versions whose naive kernels are predicted to be the best, of each kind one before the second of any."""
        device, budget = self.device, self.budget
        end = time.perf_counter() + budget.search_seconds * VERSIONS_SHARE
        fitting = [a for a in self.additions.alternatives if a.device in (None, device.mapping)]
        for term, rules in best_versions(program, device, fitting, end)[: budget.versions]:
            phase = extended(alternatives_phase(replace(budget.phase_limits, iterations=len(rules))), rules)
            leg = Leg("alternatives", term, 0, device.mapping, rules=rules)
            yield from reached_by(phase, (program.body, ()), leg) or ()

    def changed(self, start: Start, changes: Changes, made: dict[ir.Expr, Start]) -> Iterator[PhaseSummary]:
        """Makes what a start is best begun with."""
        made[start[0]] = start
        for phase, then in changes.of(start):
            made[start[0]] = then
            yield phase

    def with_rests(self, start: Start) -> tuple[PhaseSummary, Start] | None:
        """The start with the lengths that nothing divides in parts, where there are any."""
        budget, width = self.budget, vector_of(self.device)
        chunk = chunk_for(self.device, budget.long_array, budget.chunks_per_unit)
        shares = 1 if self.device.has_groups else self.device.groups
        plan = WithRests(chunk, width, not self.device.has_groups, shares, self.fits)
        term = plan.term(start[0])
        if not plan.tiling:
            return None
        limits = replace(budget.phase_limits, iterations=MOST_STEPS)
        phase = self.with_own(remainders_phase(plan.tiling, (width,), limits))
        kind, rules = self.device.mapping, self.own("remainders")
        return reached_by(phase, start, Leg("remainders", term, 0, kind, plan.tiling, (width,), rules=rules))

    def fits(self, term: ir.Expr) -> bool:
        """Whether a map has plans for groups, whatever its length."""
        return has_tiles_of_views(term, self.device) or has_rows_of_lanes(term, self.device)

    def by_parts(self, program: ir.Program, parts: Cut, start: Start) -> Iterator[PhaseSummary | Found]:
        """What is found for the one part that is no rest, with the best of all rests beside it."""
        budget, small = self.budget, rests(parts, self.device)
        (main,) = parts.stages.keys() - small
        beside: dict[ir.Input, Found] = {}
        for stage in small:
            look, alone = self.alone(parts, stage, program)
            look = look.sparing
            found = [look.naive(alone)]  # a loop is so at best: it ends the kernel that reads the others
            end = time.perf_counter() + budget.search_seconds * REST_SHARE
            if not isinstance(alone.body, ir.FOLDS):
                yield from keeping(look.without_restructuring(alone, end), found)
            beside[stage] = ranked(alone, found, self.device)[0]
        look, alone = self.alone(parts, main, program)
        itself: Start = (alone.body, ())
        for item in chain(look.as_it_is(itself), look.planned(itself), look.tiled(alone, [itself])):
            yield joined(parts, {**beside, main: item}, start) if isinstance(item, Found) else item

    def begun(self, program: ir.Program, start: Start) -> StageRounds | None:
        """The search for the stages of the program as it was written, if it has several."""
        parts = cut(start[0])
        return None if parts is None else StageRounds(self, program, parts, start)

    def by_stages(
        self, program: ir.Program, starts: Sequence[Start], begun: StageRounds | None = None
    ) -> Iterator[PhaseSummary | Found | Tunable]:
        """What is found for the stages of the program as it was written, then of another; by plans for what has none.

        What has no stages as it was written goes first. With rules of the user's the cheapest come first. What was
        `begun` is gone on with.
        """
        cuts = [(cut(start[0]), start) for start in starts]
        with_parts = [(parts, start) for parts, start in cuts if parts is not None]
        whole = [start for parts, start in cuts if parts is None]
        is_whole = not all(_has(start, *VERSIONS) for start in whole)
        if is_whole:
            yield from self.as_whole(whole)
        if not self.own("stages"):
            with_parts.sort(key=lambda found: len(found[1][1]))
        for parts, start in with_parts[:2]:
            same = begun is not None and (begun.parts, begun.start) == (parts, start)
            yield from (begun if begun and same else StageRounds(self, program, parts, start)).rounds()
        if whole and not with_parts and not is_whole:
            yield from self.as_whole(whole)

    def as_whole(self, starts: Sequence[Start]) -> Iterator[PhaseSummary | Found | Tunable]:
        """What plans lead to, for the cheapest version of the program and for the one that was written.

        Groups keep what they compute once for each: a version that computes again what is too much for that is cheaper.
        """
        if self.device.has_groups:
            starts = sorted(starts, key=lambda start: kept_bytes(start[0]) > self.device.local_memory)
        written = next((s for s in starts if not any(leg.name == "stages" for leg in s[1])), starts[0])
        followed: list[tuple[Recipe, list[Found]]] = []
        for start in (starts[0], written) if written is not starts[0] else (written,):
            yield from self.planned(start, followed=followed if not start[1] else None)
        yield from self.with_parameters(followed)

    def further(self, start: Start) -> Iterator[PhaseSummary | Found]:
        """What the plans lead to that are left out where the time is short, for a version without stages."""
        if cut(start[0]) is None:
            yield from self.planned(start, chosen=[(plan, False) for plan in further_plans(start[0], self.device)])

    @property
    def sparing(self) -> _Search:
        """The search for what takes little time: few terms will do."""
        return replace(self, budget=replace(self.budget, staged=0, lowered=self.budget.stage_terms))

    @property
    def without_copies(self) -> _Search:
        """The search in which nothing is staged in faster memory."""
        return replace(self, budget=replace(self.budget, staged=0))

    def alone(self, parts: Cut, stage: ir.Input, whole: ir.Program) -> tuple[_Search, ir.Program]:
        """One stage as a program, and the search for it."""
        program = parts.program(stage, whole)
        widths = vector_widths(program, self.device, self.budget.widths)
        return replace(self, widths=widths, source=None), program

    def at_once(self, alone: ir.Program, end: float) -> Iterator[PhaseSummary | Found]:
        """What the first plan that leads anywhere finds for one stage as a program of its own; without such a plan, or
        where none was found in time, the stage as it is.
        """
        itself: Start = (alone.body, ())
        yield self.naive(alone)
        others = list(self.plans(alone.body))
        self.left[alone.body] = others
        while others and time.perf_counter() < end:
            leads = False
            for item in self.planned(itself, end, [others.pop(0)]):
                leads |= isinstance(item, Found)
                yield item
            if leads:
                return
        if not others:
            self.left.pop(alone.body)
        yield from self.as_it_is(itself)

    def as_if_at_once(self, alone: ir.Program, like: ir.Program) -> None:
        """Leaves of the plans for a stage what was left for one that is alike."""
        if like.body in self.left and alone.body not in self.left:
            plans = list(self.plans(alone.body))
            self.left[alone.body] = plans[len(plans) - len(self.left[like.body]) :]

    @property
    def asks(self) -> bool:
        """Whether the user has plans."""
        return self.additions.plans is not None

    def asked(self, alone: ir.Program) -> Iterator[PhaseSummary | Found]:
        """What the user's plans lead to that were left at once, for one stage: however long that takes."""
        left = self.left.get(alone.body, [])
        own = [plan for plan in left if plan[1]]
        left[:] = [plan for plan in left if not plan[1]]
        return self.planned((alone.body, ()), chosen=own)

    def shallow(self, alone: ir.Program, end: float) -> Iterator[PhaseSummary | Found]:
        """What is found without restructuring, and by the plans that were left at once, for one stage where not all was
        tried then.
        """
        if alone.body in self.left:
            itself: Start = (alone.body, ())
            yield from self.as_it_is(itself)
            yield from self.planned(itself, end, self.left[alone.body])

    def without_restructuring(self, alone: ir.Program, end: float) -> Iterator[PhaseSummary | Found]:
        """What is found for one stage as a program of its own by all plans, and as it is."""
        return chain(self.at_once(alone, end), self.shallow(alone, end))

    def restructured_stage(self, alone: ir.Program, end: float) -> Iterator[PhaseSummary | Found]:
        """What restructuring with the first tiling finds for one stage as a program of its own."""
        for tiling in self.tilings(alone)[:1]:
            yield from self.restructured((alone.body, ()), tiling, self.budget.stage_seeds, end)


def _has(start: Start, *phases: str) -> bool:
    """Whether one of these phases is on the way to a start."""
    return any(leg.name in phases for leg in start[1])
