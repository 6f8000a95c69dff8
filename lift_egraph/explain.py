"""Derivations: how a stage of a guided search got from its seed to the term that it reached, step by step.

The e-graph keeps no proofs, so the derivation is found again. The stage's rules are run one after the other, and
runs that are not needed to reach the term are left out, until a shortest such schedule is left. Then the term is
rewritten by one rule at one place at a time: a step is taken if the rest of the schedule still leads from its result
to the term. What is simplified between steps is a step as well. Each step is found by running its rule alone on the
term before it, so that it replays.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import egglog
from egglog import i64
from egglog.declarations import RewriteDecl

from lift_egraph import ir, sorts
from lift_egraph.analyses import analyses
from lift_egraph.binders import alpha_equal, fresh_name, substitute, unique_names
from lift_egraph.egg_terms import (
    Node,
    Path,
    choice_of,
    class_of,
    read_choice,
    read_only_member,
    renamed,
    to_expr,
    written,
)
from lift_egraph.encoding import operator_laws, to_egg
from lift_egraph.errors import LiftError, SearchProblem
from lift_egraph.frozen import ClassId, FrozenEGraph, freeze, from_egg, read_part
from lift_egraph.guided import Guided, Reached
from lift_egraph.members import embedding
from lift_egraph.rule import Rule
from lift_egraph.saturate import ROOT, Phase, run_phase
from lift_egraph.sketch_match import Matcher
from lift_egraph.syntax import print_term

REPEATS = 6  # how often a rule may be needed in one run of it
DEFINITIONS = ("eta",)  # what the e-graph knows of functions without a name for their argument: no step of its own


@dataclass(frozen=True)
class Step:
    """One application of one rule at one place.

    Attributes
    ----------
    before, after
        The whole terms.
    part, result
        What was rewritten, and into what; they may mention variables bound around them.
    backwards
        Whether the rule leads from the result to what was rewritten.
    nodes
        The two terms as the e-graph has them, the one that the rule was run on first.
    """

    rule: Rule
    path: Path
    before: ir.Expr
    after: ir.Expr
    part: str
    result: str
    nodes: tuple[Node, Node] = field(repr=False)
    backwards: bool = False

    def __str__(self) -> str:
        place = ".".join(map(str, self.path)) or "the whole"
        return f"{self.rule.name}{' (backwards)' if self.backwards else ''} at {place}: {self.rule.law}"


@dataclass(frozen=True)
class Derivation:
    """The steps of one stage, from its seed to the term that it reached."""

    stage: Reached
    seed: ir.Expr
    steps: tuple[Step, ...]
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [f"{self.stage.stage.phase.name}, until {self.stage.stage.sketch}:"]
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
    """The derivation of one stage from its seed."""
    began = time.perf_counter()
    phase = reached.stage.phase
    world = World(phase)
    start, target = world.encode(seed), _target(seed, reached)
    steps = list(_chain(world, start, target, len(reached.iterations)))
    return Derivation(reached, seed, tuple(steps), time.perf_counter() - began)


def _target(seed: ir.Expr, reached: Reached) -> Node:
    """The term that the stage reached, with the names of the e-graph: the stage is run again."""
    for state in run_phase(seed, reached.stage.phase):
        if len(state.iterations) == len(reached.iterations):
            found = Matcher(state.graph, reached.stage.weigh).best(state.root, reached.stage.sketch)
            if found is not None and alpha_equal(from_egg(state.graph, found), reached.term):
                return read_choice(state.graph, found)
    raise SearchProblem(f"the stage {reached.stage.phase.name} did not reach the same term again")


def applications(term: ir.Expr, rule: Rule, phase: Phase | None = None) -> list[Step]:
    """What one application of a rule makes of a term, at each place where it applies, outermost places first.

    Parameters
    ----------
    phase
        Whose tiles and vector widths to use; by default there are none.

    Examples
    --------
    >>> from lift_egraph.syntax import parse_program
    >>> from rules.simplification import join_of_split
    >>> program = parse_program("program p(xs: [f32]8) = map(abs, join(split(4, join(split(2, xs)))))")
    >>> for step in applications(program.body, join_of_split):
    ...     print(step.path, print_term(step.after))
    (1,) map(abs, join(split(2, xs)))
    (1, 0, 1) map(abs, join(split(4, xs)))
    """
    world = World(phase or Phase(rule.name, (rule,), ()))
    start = world.encode(term)
    found = world.apply(start, rule.ruleset, _makes_names(rule))
    return [world.step(rule, path, start, after) for path, after in found if world.is_closed(after)]


def replay(step: Step, phase: Phase) -> bool:
    """Whether running the step's rule alone on the term before it gives the term after it, at the step's place."""
    world = World(phase)
    start, end = step.nodes
    first, second = (step.after, step.before) if step.backwards else (step.before, step.after)
    return (
        (step.path, end) in world.apply(start, step.rule.ruleset, _makes_names(step.rule))
        and alpha_equal(world.decode(start), first)
        and alpha_equal(world.decode(end), second)
    )


def _chain(world: World, start: Node, target: Node, iterations: int) -> Iterator[Step]:
    schedule = _shortest(world, start, target, iterations)
    now = start
    for step in _simplified(world, now):
        yield step
        now = step.nodes[1]
    for number, rule in enumerate(schedule):
        rest = schedule[number + 1 :]
        found = _repeat(world, now, rule, rest, target, REPEATS)
        if found is None:
            raise SearchProblem(f"no single steps of {rule.name} lead on from {print_term(world.decode(now))}")
        for path, after in found:
            if not world.same(now, after):  # a function that takes a name for its argument is no step for people
                yield world.step(rule, path, now, after)
            now = after
        for step in _simplified(world, now):
            yield step
            now = step.nodes[1]
    if world.same(now, target):
        return
    back = list(_simplified(world, target))
    end = back[-1].nodes[1] if back else target
    if not world.same(now, end):
        raise SearchProblem("the last step differs from the term by more than simplification")
    for step in reversed(back):
        yield Step(step.rule, step.path, step.after, step.before, step.result, step.part, step.nodes, True)


def _shortest(world: World, start: Node, target: Node, iterations: int) -> list[Rule]:
    """A schedule of rules, one at a time, that reaches the target and of which no part can be left out."""
    schedule = [rule for _ in range(iterations) for rule in world.phase.rules]
    if not world.reaches(start, schedule, target):
        raise SearchProblem("the rules one after the other do not reach the term")
    for rule in dict.fromkeys(schedule):
        without = [r for r in schedule if r is not rule]
        if world.reaches(start, without, target):
            schedule = without
    width = max(1, len(schedule) // 2)
    while True:
        at = 0
        while at < len(schedule):
            without = schedule[:at] + schedule[at + width :]
            if world.reaches(start, without, target):
                schedule = without
            else:
                at += width
        if width == 1:
            return schedule
        width = max(1, width // 2)


def _repeat(
    world: World, now: Node, rule: Rule, rest: Sequence[Rule], target: Node, repeats: int
) -> list[tuple[Path, Node]] | None:
    """As few applications of a rule as possible, one at a time, from which the rest of the schedule leads on."""
    level: list[tuple[Node, list[tuple[Path, Node]]]] = [(now, [])]
    seen = {now}
    for _ in range(repeats):
        later: list[tuple[Node, list[tuple[Path, Node]]]] = []
        for term, steps in level:
            for path, after in world.apply(term, rule.ruleset, _makes_names(rule)):
                if after in seen:
                    continue
                seen.add(after)
                taken = [*steps, (path, after)]
                if world.reaches(after, rest, target) and world.is_closed(after):
                    return taken
                later.append((after, taken))
        level = later
    return None


def _simplified(world: World, term: Node) -> Iterator[Step]:
    """The steps that simplify a term, each making it smaller."""
    smaller = True
    while smaller:
        smaller = False
        if not world.apply(term, world.simplification, False):
            return
        for rule in world.phase.simplification:
            if rule.name in DEFINITIONS:
                continue
            for path, after in world.apply(term, rule.ruleset, _makes_names(rule)):
                if after.size < term.size and world.is_closed(after) and not world.same(term, after):
                    yield world.step(rule, path, term, after)
                    term, smaller = after, True
                    break
            if smaller:
                break


class World:
    """An e-graph with the facts of a phase, into which terms are put for a moment to run rules on them."""

    def __init__(self, phase: Phase):
        self.phase = phase
        self._empty = egglog.EGraph()
        self._empty.register(
            *operator_laws(),
            *(sorts.tile(i64(n), i64(c)) for n, chunks in phase.tiles.items() for c in chunks),
            *(sorts.lane_width(i64(w)) for w in phase.widths),
        )
        steps = (r.ruleset for r in phase.simplification if r.name not in DEFINITIONS)
        self.simplification = egglog.unstable_combine_rulesets(*steps)
        definitions = [r.ruleset for r in phase.simplification if r.name in DEFINITIONS]
        self._knowing = egglog.unstable_combine_rulesets(*analyses, *definitions).saturate()
        every = egglog.unstable_combine_rulesets(*analyses, *(r.ruleset for r in phase.simplification))
        self._cleaning = every.saturate()
        self._reached: dict[tuple[Node, tuple[str, ...], Node], bool] = {}
        self._decoded: dict[Node, ir.Expr] = {}
        for rule in (*phase.rules, *phase.simplification):
            self._empty.run(egglog.run(rule.ruleset))
        self._empty.run(self._cleaning)

    def encode(self, term: ir.Expr) -> Node:
        """A term with the names of its binders as they are."""
        with self._empty as graph:
            root = graph.let(ROOT, to_egg(term))
            frozen = freeze(graph, {ROOT: root})
            return read_only_member(frozen, frozen.roots[ROOT])

    def decode(self, term: Node) -> ir.Expr:
        """The meaning of a term of the e-graph."""
        known = self._decoded.get(term)
        if known is None:
            with self._empty as graph:
                root = graph.let(ROOT, to_expr(term))
                graph.run(self._knowing)
                frozen = freeze(graph, {ROOT: root})
                choice = choice_of(frozen, term)
                assert choice is not None
                known = self._decoded[term] = from_egg(frozen, choice)
        return known

    def reaches(self, start: Node, schedule: Sequence[Rule], target: Node) -> bool:
        """Whether rules, each run once and followed by simplification, make a term equal to another."""
        key = (start, tuple(r.name for r in schedule), target)
        known = self._reached.get(key)
        if known is None:
            with self._empty as graph:
                root = graph.let(ROOT, to_expr(start))
                graph.run(self._cleaning)
                for rule in schedule:
                    for _ in range(1 + _makes_names(rule)):
                        graph.run(egglog.run(rule.ruleset))
                        graph.run(self._cleaning)
                frozen = freeze(graph, {ROOT: root})
            choice = choice_of(frozen, target)
            known = choice is not None and choice.class_id == frozen.roots[ROOT]
            self._reached[key] = known
        return known

    def apply(self, term: Node, ruleset: Any, again: bool) -> list[tuple[Path, Node]]:
        """What one application of a rule makes of a term, with the place of each, outermost places first.

        `again` runs the rule twice, for rules that first make names.
        """
        with self._empty as graph:
            root = graph.let(ROOT, to_expr(term))
            graph.run(self._knowing)
            old = freeze(graph, {ROOT: root})
            for _ in range(1 + again):
                graph.run(egglog.run(ruleset))
                graph.run(self._knowing)
            new = freeze(graph, {ROOT: root})
        return list(_applied(term, old, new))

    def is_closed(self, term: Node) -> bool:
        """Whether a term has no free variables: a class may be closed while a member is not."""
        try:
            self.decode(term)
        except LiftError:
            return False
        return True

    def same(self, left: Node, right: Node) -> bool:
        """Whether two closed terms mean the same up to the names of binders."""
        return alpha_equal(self.decode(left), self.decode(right))

    def show(self, part: Node) -> str:
        """A part of a term as text; the names of its free variables are those of the e-graph."""
        with self._empty as graph:
            expr = to_expr(part)
            graph.register(expr)
            graph.run(self._knowing)
            frozen = freeze(graph, {})
        choice = choice_of(frozen, part)
        assert choice is not None
        try:
            found = read_part(frozen, choice)
        except LiftError:  # an operator: only the reduction around it has a form
            return part.op
        return " ".join(print_term(_plainly_named(found)).split())

    def step(self, rule: Rule, path: Path, before: Node, after: Node) -> Step:
        """The step for people."""
        return Step(
            rule,
            path,
            self.decode(before),
            self.decode(after),
            self.show(before.at(path)),
            self.show(after.at(path)),
            (before, after),
        )


def _plainly_named(part: ir.Part) -> ir.Expr:
    """A part, or the body of a function, with the numbers of classes taken off the names of its variables."""
    term = part if isinstance(part, ir.Expr) else ir.function_body(part).body  # pyright: ignore[reportArgumentType]
    taken = {p.name for p in ir.subterms(term) if isinstance(p, ir.Input)}
    free = sorted(ir.free_variables(term), key=lambda v: v.name)
    named = {v: ir.Var(fresh_name(_stem(v.name), taken), v.type) for v in free}
    return unique_names(substitute(term, dict(named)), taken, _stem)


def _stem(name: str) -> str:
    return re.sub(r"(_\d+)+$", "", name)


def _makes_names(rule: Rule) -> bool:
    """Whether a rule first makes the names that its conditions mention, so that it rewrites in its second run."""
    return any(not isinstance(r, RewriteDecl) for r in rule.ruleset.__egg_ruleset__.rules)


def _applied(term: Node, old: FrozenEGraph, new: FrozenEGraph) -> Iterator[tuple[Path, Node]]:
    """What a rule made of a term: the new nodes at each place, and the parts that it says are equal."""
    image = embedding(old, new)
    known: set[tuple[ClassId, str, tuple[Any, ...]]] = {
        (image[c], *renamed(n, image))
        for c, nodes in old.nodes.items()
        for n in nodes
        if c in image and all(k in image for k in n.classes)
    }
    places = [(path, part, class_of(old, part)) for path, part in term.places()]
    own = {image[c]: part for _, part, c in reversed(places) if c in image}
    for path, _, owner in places:
        if owner not in image:
            continue
        target = image[owner]
        for node in new.nodes[target]:
            if (target, node.op, node.children) not in known:
                made = written(new, node, own)
                if made is not None:
                    yield path, term.replaced(path, made)
        reached: list[Path] = []  # what is deeper in a part that is equal takes another step
        for place, other, c in places:
            if c == owner or image.get(c) != target or path[: len(place)] == place:  # pyright: ignore
                continue
            if not any(place[: len(p)] == p for p in reached):
                reached.append(place)
                yield path, term.replaced(path, other)
