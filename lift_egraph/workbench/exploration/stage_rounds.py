"""The search for the stages of a program, each a program of its own, in rounds: what is quick for all goes first."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import NamedTuple, Protocol

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.exploration.foreseen import ranked
from lift_egraph.workbench.exploration.stage_cut import Cut
from lift_egraph.workbench.exploration.stages import Names, in_general, joined, of_others, rests, twins
from lift_egraph.workbench.phases import Found, PhaseSummary, Start, keeping
from lift_egraph.workbench.planning.plan import PLANNED, Plan, nests
from lift_egraph.workbench.planning.products import product_of

ROUNDS = 4


def _is_in_blocks(plan: tuple[Plan, bool]) -> bool:
    return any(step.name == "blocking" for step in plan[0].steps)


class Known(NamedTuple):
    """What was found for a stage as a program of its own, with the arrays that it reads by their general names."""

    alone: ir.Program
    names: Names
    found: Sequence[Found]


class Look(Protocol):
    """How one stage is searched."""

    @property
    def known(self) -> dict[object, Known]:
        """What rounds found for stages: several versions of a program have them."""
        ...

    def as_if_at_once(self, alone: ir.Program, like: ir.Program) -> None:
        """Notes that what is found at once for a stage is known from one that is alike."""
        ...

    @property
    def device(self) -> Device:
        """What its kernels run on."""
        ...

    @property
    def budget(self) -> Budget:
        """How far to look."""
        ...

    @property
    def sparing(self) -> Look:
        """How one is searched that takes little time."""
        ...

    def plans(self, term: ir.Expr) -> Iterable[tuple[Plan, bool]]:
        """The plans for a stage, and whether they are the user's."""
        ...

    def alone(self, parts: Cut, stage: ir.Input, whole: ir.Program) -> tuple[Look, ir.Program]:
        """One stage as a program, and the search for it."""
        ...

    def naive(self, alone: ir.Program) -> Found:
        """What needs no search."""
        ...

    def at_once(self, alone: ir.Program, end: float) -> Iterator[PhaseSummary | Found]:
        """What is found by the first plan."""
        ...

    @property
    def asks(self) -> bool:
        """Whether the user has plans."""
        ...

    def asked(self, alone: ir.Program) -> Iterator[PhaseSummary | Found]:
        """What is found by others of the user's."""
        ...

    def shallow(self, alone: ir.Program, end: float) -> Iterator[PhaseSummary | Found]:
        """What is found by others."""
        ...

    def restructured_stage(self, alone: ir.Program, end: float) -> Iterator[PhaseSummary | Found]:
        """What is found by restructuring."""
        ...


@dataclass
class StageRounds:
    """What is found for each stage alone, put together: the best of each, others of one among the best, and what
    plans lead to for all: where a kind of plan is predicted wrongly, it is so in every stage.

    In the first of four rounds each stage has its first plan, but those that take little time: they have theirs in the
    second. The user's plans are all followed right after the first, however long that takes. Then the others have all
    plans, then the first tiling. Those that are alike are searched once. Stages that take little time have other terms
    in the last round.
    """

    look: Look
    program: ir.Program
    parts: Cut
    start: Start
    done: int = 0
    options: dict[ir.Input, list[Found]] = field(default_factory=dict)
    by_plans: dict[ir.Input, dict[tuple[str, ...], Found]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.twins = twins(self.parts)
        self.stages = [stage for stage in self.parts.stages if stage not in self.twins]

    @property
    def has_plans(self) -> bool:
        """Whether there is a plan for a stage that takes more than little time, and one in blocks for each product of
        matrices.
        """
        little = rests(self.parts, self.look.device)
        main = [self.parts.stages[stage] for stage in self.stages if stage not in little]
        products = (body for body in main if any(map(product_of, nests(body))))
        is_any = any(next(iter(self.look.plans(body)), None) for body in main)
        return is_any and all(any(map(_is_in_blocks, self.look.plans(body))) for body in products)

    def rounds(self) -> Iterator[PhaseSummary | Found]:
        """What the rounds find that are left."""
        for depth in range(self.done, ROUNDS):
            yield from self.round(depth)

    def round(self, depth: int) -> Iterator[PhaseSummary | Found]:
        """What one round finds."""
        self.done, parts, budget = depth + 1, self.parts, self.look.budget
        little = rests(parts, self.look.device)
        small = [stage for stage in self.stages if stage in little]
        main = [stage for stage in self.stages if stage not in small]
        share = budget.search_seconds * budget.stages_share / len(main)
        if depth == 1 and not small:
            return
        for stage in (self.stages, small, main, main)[depth]:
            look, alone = self.look.alone(parts, stage, self.program)
            found: list[Found] = []
            yield from keeping(self._found(look, alone, depth, share, stage in small), found)
            self._keep(stage, alone, found)
        best = {stage: found[0] for stage, found in self.options.items()}
        varied = main if depth < ROUNDS - 1 else self.stages  # small ones matter little, and each is compiled
        others = ({**best, stage: f} for stage in varied for f in self.options[stage][1:])
        for chosen in (best, *others) if depth > 1 else (best,):
            yield self.joined(chosen)
        if depth == 0 and self.look.asks:
            yield from self._asked(main)
        if depth == 2:
            yield from self._each_by_each([(*self.by_plans.get(stage, {}).values(),) for stage in self.stages])

    def _asked(self, main: Iterable[ir.Input]) -> Iterator[PhaseSummary | Found]:
        """What all plans of the user's lead to, for each of the main stages by each; the best of others beside them."""
        for stage in main:
            look, alone = self.look.alone(self.parts, stage, self.program)
            found: list[Found] = []
            yield from keeping(look.asked(alone), found)
            self._keep(stage, alone, found)
        by_plans = ((*self.by_plans.get(stage, {}).values(),) for stage in self.stages)
        yield from self._each_by_each(
            [kinds or self.options[stage][:1] for stage, kinds in zip(self.stages, by_plans, strict=True)]
        )

    def _keep(self, stage: ir.Input, alone: ir.Program, found: list[Found]) -> None:
        """Keeps the best of what was found for a stage, and of each kind of plan."""
        device, known = self.look.device, [*self.options.get(stage, ()), *found]
        for item in ranked(alone, found, device):
            if any(leg.name in PLANNED for leg in item.way):
                self.by_plans.setdefault(stage, {}).setdefault(tuple(leg.name for leg in item.way), item)
        self.options[stage] = ranked(alone, known, device)[: self.look.budget.stage_terms] if found else known

    def _each_by_each(self, kinds: Iterable[Sequence[Found]]) -> Iterator[Found]:
        """What was found for the stages, of each some, as wholes: the first of all that there are."""
        for terms in islice(product(*kinds), self.look.budget.stage_terms**2):
            yield self.joined(dict(zip(self.stages, terms, strict=True)))

    def _found(
        self, look: Look, alone: ir.Program, depth: int, share: float, is_small: bool
    ) -> Iterator[PhaseSummary | Found]:
        """What one round finds for a stage, in a share of the time, or has found for the same in another version."""
        general, names = in_general(alone.body)
        key = general, depth, is_small
        if key in look.known and not look.asks:  # what the user's plans lead to is found beside the rounds
            like, others, known = look.known[key]
            look.as_if_at_once(alone, like)
            yield from (of_others(item, {others[name]: array for name, array in names.items()}) for item in known)
            return
        found: list[Found] = []
        for item in self._looked_for(look, alone, depth, time.perf_counter() + share, is_small):
            yield item
            if isinstance(item, Found):
                found.append(item)
        look.known[key] = Known(alone, names, found)

    @staticmethod
    def _looked_for(
        look: Look, alone: ir.Program, depth: int, end: float, is_small: bool
    ) -> Iterable[PhaseSummary | Found]:
        """What one round finds for a stage."""
        if is_small:
            look = look.sparing
            return chain(look.at_once(alone, end), look.shallow(alone, 0.0)) if depth else [look.naive(alone)]
        return (look.at_once, look.at_once, look.shallow, look.restructured_stage)[depth](alone, end)

    def joined(self, chosen: dict[ir.Input, Found]) -> Found:
        """What was found for the stages, also for those that are alike, as one."""
        others = {stage: of_others(chosen[first], names) for stage, (first, names) in self.twins.items()}
        every = {**chosen, **others}
        return joined(self.parts, {stage: every[stage] for stage in self.parts.stages}, self.start)
