"""Derivations: how a phase got from its seed to a term that it reached, step by step.

The e-graph keeps no proofs, so the derivation is found again. First the rules are found that the term needs, then a
shortest schedule of them, one rule at a time. Then the term is rewritten by one rule at one place at a time: a step is
taken if the rest of the schedule still leads from its result to the term. What is simplified between steps is a step
as well. Each step is found by running its rule alone on the term before it, so that it replays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lift_egraph.derivation.steps import Step, World, applications, makes_names, replay, world_of
from lift_egraph.egraph.exact_terms import Node, Path, alike
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.saturate import Phase, run_phase
from lift_egraph.errors import SearchProblem
from lift_egraph.guided.stages import Guided, Reached
from lift_egraph.language import ir
from lift_egraph.language.syntax import print_term

__all__ = ["Derivation", "Step", "World", "applications", "derive", "explain", "explain_stage", "replay", "turned"]

REPEATS = 24  # how often a rule may be needed in one run of it
ROUNDS = 3  # how often a schedule is run to find another order of it

Taken = list[tuple[Path, Node]]  # the place of each application of a rule, and the term after it

T = TypeVar("T")


@dataclass(frozen=True)
class Derivation:
    """The steps of one phase, from its seed to the term that it reached.

    Attributes
    ----------
    until
        The sketch that the phase was to satisfy; empty where there was none.
    """

    phase: Phase
    until: str
    seed: ir.Expr
    term: ir.Expr
    steps: tuple[Step, ...]
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [f"{self.phase.name}, until {self.until}:" if self.until else f"{self.phase.name}:"]
        for n, step in enumerate(self.steps, 1):
            lines += [f"  {n}. {step}", f"       {step.part}", f"     = {step.result}"]
        return "\n".join(lines)


def explain(found: Guided) -> Iterator[Derivation]:
    """The derivation of each stage of a guided search that reached its sketch.

    Raises
    ------
    SearchProblem
        If no chain of single steps is found for a stage.
    """
    seed = found.program
    for stage in found.stages:
        if stage.term is None:
            return
        yield explain_stage(seed, stage)
        seed = stage.term


def explain_stage(seed: ir.Expr, reached: Reached) -> Derivation:
    """The derivation of one stage from its seed.

    Raises
    ------
    SearchProblem
        If the stage reached no term, or no chain of single steps is found.
    """
    if reached.term is None:
        raise SearchProblem(f"the stage {reached.stage.phase.name} reached no term")
    began, phase = time.perf_counter(), reached.stage.phase
    found = derive(seed, reached.term, phase, len(reached.iterations))
    steps = tuple(item for item in found if isinstance(item, Step))
    until = str(reached.stage.sketch)
    return Derivation(phase, until, seed, reached.term, steps, time.perf_counter() - began)


def derive(
    seed: ir.Expr, term: ir.Expr, phase: Phase, iterations: int | None = None, world: World | None = None
) -> Iterator[str | Step]:
    """The steps by which a phase gets from its seed to a term, as they are found.

    Parameters
    ----------
    iterations
        After how many iterations the phase has the term; by default the phase's own limits hold.
    world
        Where to run the rules of the phase, if there is one already.

    Yields
    ------
    str or Step
        What is being done, for people who wait, and each step.

    Raises
    ------
    SearchProblem
        If the phase does not reach the term, or no chain of single steps is found.
    """
    yield "saturating"
    matches = _matches(seed, term, phase, iterations)
    world = world or world_of(phase.about(seed))
    fired = [rule for rule in phase.rules if any(found.get(rule.name) for found in matches)]
    world.learn(fired)
    yield from _chain(world, world.encode(seed), term, fired, len(matches))


def turned(found: Iterable[str | Step]) -> Iterator[str | Step]:
    """The steps from the term that a derivation leads to, to that with which it begins."""
    steps: list[Step] = []
    for item in found:
        if isinstance(item, Step):
            steps.append(item.turned)
        else:
            yield item
    yield from reversed(steps)


def _matches(seed: ir.Expr, term: ir.Expr, phase: Phase, iterations: int | None) -> list[Mapping[str, int]]:
    """The matches of rules in the iterations after which a phase has a term."""
    for state in run_phase(seed, phase):
        if locate(state.graph, state.root, term) is not None:
            return [i.matches for i in state.iterations]
        if len(state.iterations) == iterations:
            break
    raise SearchProblem(f"the phase {phase.name} does not reach the term from its seed")


def _chain(world: World, start: Node, target: ir.Expr, rules: Sequence[Rule], iterations: int) -> Iterator[str | Step]:
    def together(rules: Sequence[Rule]) -> list[bool] | None:
        return world.matching_together(start, rules, iterations, target)

    world.begin(start)
    if together(rules) is None:
        raise SearchProblem(f"the phase {world.phase.name} did not reach the same term again")
    rules = yield from _smallest(rules, together, "looking for the rules that are needed")
    schedule = [rule for _ in range(iterations) for rule in rules]
    schedule = yield from _smallest(schedule, lambda s: world.matching(start, s, target), "ordering the rules")
    # what the target is simplified to may take fewer steps: rules may have made another spelling of a part by a detour
    back = [*_smaller(world, world.encode(target))]
    ends = [target, *(step.after for step in back)]
    simple = ends[-1]
    if back and schedule and world.reaches(start, schedule, simple):
        world.begin(start)
        shorter = yield from _smallest(schedule, lambda s: world.matching(start, s, simple), "ordering the rules")
        if len(shorter) < len(schedule):
            schedule, target = shorter, simple
    now = yield from _simplified(world, start, schedule, target)
    seen = {start}
    while schedule and not world.means(now, target):
        yield f"rewriting: at least {len(schedule)} steps left"
        found = _next(world, now, schedule, target)
        if found is None:
            found = yield from _reordered(world, now, schedule, target, seen)
        rule, taken, schedule = found
        for path, after in taken:
            if not world.same(now, after):  # a function that takes a name for its argument is no step for people
                yield world.step(rule, path, now, after)
            now = after
            seen.add(now)
        now = yield from _simplified(world, now, schedule, target)
        seen.add(now)
    left = next((n for n, end in enumerate(ends) if world.means(now, end)), None)
    if left is None:
        raise SearchProblem("the last step differs from the term by more than simplification")
    for step in reversed(back[:left]):
        yield step.turned


def _smallest(
    items: Sequence[T], matching: Callable[[Sequence[T]], list[bool] | None], doing: str
) -> Generator[str, None, list[T]]:
    """As few items as are enough: none of them can be left out.

    `matching` says which of some items match anything, None if they are not enough. Those that match nothing are not
    needed, and often there are many once another has been left out.
    """
    kept = list(items)
    width = max(1, len(kept) // 2)
    while kept:
        at = 0
        while at < len(kept):
            yield f"{doing}: {len(kept)} left"
            without = kept[:at] + kept[at + width :]
            used = matching(without)
            if used is not None:
                kept = [item for item, match in zip(without, used, strict=True) if match]
                at = sum(used[:at])
            else:
                at += width
        if width == 1:
            break
        width = max(1, min(width, len(kept)) // 2)
    return kept


def _next(world: World, now: Node, schedule: list[Rule], target: ir.Expr) -> tuple[Rule, Taken, list[Rule]] | None:
    """Applications of one rule of a schedule from which the others lead on, and those others.

    Applications beside each other are tried first, which takes few tries. Else it is one application if there is such a
    rule: what a rule does in many places at once may be easier after others.
    """
    rests = {rule: schedule[:n] + schedule[n + 1 :] for n, rule in reversed([*enumerate(schedule)])}
    for rule in dict.fromkeys(schedule):
        taken = _beside(world, now, _towards(world, now, rule, target), rests[rule], target)
        if taken:
            return rule, taken, rests[rule]
    for most in (1, REPEATS):
        for rule in dict.fromkeys(schedule):
            taken = _repeat(world, now, rule, rests[rule], target, most)
            if taken is not None:
                return rule, taken, rests[rule]
    return None


def _beside(world: World, now: Node, found: Taken, rest: Sequence[Rule], target: ir.Expr) -> Taken:
    """The first application of a rule or several beside each other, if the rest of a schedule leads on from them, and
    needs each of them.
    """

    def leads_on(parts: Mapping[Path, Node]) -> bool:
        return world.reaches(_replaced(now, parts), rest, target)

    if found and world.reaches(found[0][1], rest, target):
        return found[:1]
    parts: dict[Path, Node] = {}
    for path, after in found:
        if not any(path[: len(p)] == p or p[: len(path)] == path for p in parts):
            parts[path] = after.at(path)
    if len(parts) < 2 or not leads_on(parts):
        return []
    for path in reversed([*parts]):
        fewer = {p: part for p, part in parts.items() if p != path}
        if fewer and leads_on(fewer):
            parts = fewer
    paths = [*parts]
    return [(path, _replaced(now, {p: parts[p] for p in paths[: n + 1]})) for n, path in enumerate(paths)]


def _replaced(term: Node, parts: Mapping[Path, Node]) -> Node:
    for path, part in parts.items():
        term = term.replaced(path, part)
    return term


def _repeat(world: World, now: Node, rule: Rule, rest: Sequence[Rule], target: ir.Expr, most: int) -> Taken | None:
    """At the most so many applications of a rule, one at a time, from which the rest of the schedule leads on.

    What makes the term less complex is tried first: a rule that leaves out a let may also put one in wherever there is
    a name that the e-graph knows to be equal, and each of these would have to be left out again.
    """
    seen = {now}
    again = [rule, *rest]

    def from_here(term: Node, left: int) -> Taken | None:
        found = [step for step in _towards(world, term, rule, target) if step[1] not in seen]
        found.sort(key=lambda step: not step[1].complexity < term.complexity)
        for step in found:
            if world.reaches(step[1], rest, target):
                return [step]
        for step in found:
            if left and step[1] not in seen:
                seen.add(step[1])
                if world.reaches(step[1], again, target):
                    further = from_here(step[1], left - 1)
                    if further is not None:
                        return [step, *further]
        return None

    return from_here(now, most - 1)


def _applied_once(world: World, term: Node, rule: Rule) -> Taken:
    """The closed terms that one application of a rule makes of a term, with their places."""
    found = world.apply(term, rule.ruleset, makes_names(rule))
    return [(path, after) for path, after in found if world.is_closed(after)]


def _towards(world: World, term: Node, rule: Rule, target: ir.Expr) -> Taken:
    """The same, with those last that change what is as in the target.

    Where a part stands twice, an e-graph may do the same to both, so that a step leads on from either place. Where the
    target has it in one place only, the step at the other can't be taken back.
    """
    goal = world.encode(target)
    now = alike(term, goal)
    return sorted(_applied_once(world, term, rule), key=lambda step: alike(step[1], goal) < now)


def _reordered(
    world: World, now: Node, schedule: Sequence[Rule], target: ir.Expr, seen: set[Node]
) -> Generator[str, None, tuple[Rule, Taken, list[Rule]]]:
    """One application from which the rules lead on in another order, and that order, the shortest there is.

    An e-graph keeps what was there before a rule, so that the next rule may still use it; a term does not.
    """
    for rounds in range(2, ROUNDS + 1):
        best: tuple[Rule, Taken, list[Rule]] | None = None
        for rule in dict.fromkeys(schedule):
            for path, after in _applied_once(world, now, rule):
                if after not in seen and world.reaches(after, [*schedule] * rounds, target):
                    world.begin(after)
                    order = yield from _smallest(
                        [*schedule] * rounds, lambda s, after=after: world.matching(after, s, target), "reordering"
                    )
                    if best is None or len(order) < len(best[2]):
                        best = rule, [(path, after)], order
        if best is not None:
            return best
    names = ", ".join(rule.name for rule in schedule)
    raise SearchProblem(f"no single step of {names} leads on from {print_term(world.decode(now))}")


def _simplified(world: World, now: Node, rest: Sequence[Rule], target: ir.Expr) -> Generator[Step, None, Node]:
    """The steps that simplify a term as far as the rest of the schedule still leads to the target."""
    if rest or not world.means(now, target):
        for step in _smaller(world, now, lambda after: world.reaches(after, rest, target)):
            yield step
            now = step.nodes[1]
            if not rest and world.means(now, target):
                break
    return now


def _smaller(world: World, term: Node, allowed: Callable[[Node], bool] = lambda after: True) -> Iterator[Step]:
    """Steps of simplification, each making a term less complex, until there is none."""
    smaller = True
    while smaller:
        smaller = False
        for rule in world.simplifying(term):
            for path, after in world.apply(term, rule.ruleset, makes_names(rule)):
                simpler = after.complexity < term.complexity and world.is_closed(after)
                if simpler and not world.same(term, after) and allowed(after):
                    yield world.step(rule, path, term, after)
                    term, smaller = after, True
                    break
            if smaller:
                break
