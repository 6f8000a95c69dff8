"""One rule applied at one place of a term: steps that can be shown, and applied again.

A `World` is an e-graph with the facts of a phase, into which a term is put for a moment to run a rule alone on it;
what is new in the e-graph afterwards are the places where the rule applies, and what it makes of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import egglog
from egglog.declarations import RewriteDecl

from lift_egraph.caching import cached_property
from lift_egraph.derivation.parts import part_of, text_of
from lift_egraph.egraph.analyses import settled
from lift_egraph.egraph.encoding import to_egg
from lift_egraph.egraph.exact_terms import Node, Path, choice_of, class_of, place_of, read_only_member, to_expr, written
from lift_egraph.egraph.frozen import DROPPED, FrozenEGraph
from lift_egraph.egraph.locate import locate
from lift_egraph.egraph.members import embedding, known_nodes
from lift_egraph.egraph.read_back import from_egg
from lift_egraph.egraph.rule import Rule, together
from lift_egraph.egraph.saturate import MARKS, Phase
from lift_egraph.egraph.scratch import ROOT, Held, Schedule, Scratch
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal

DEFINITIONS = ("eta",)  # what the e-graph knows of functions without a name for their argument: no step of its own


@dataclass(frozen=True)
class Step:
    """One application of one rule at one place.

    Attributes
    ----------
    before, after
        The whole terms.
    parts
        What was rewritten, and into what; they may mention variables bound around them. An operator that
        stands alone has no form, and is text.
    backwards
        Whether the rule leads from the result to what was rewritten.
    nodes
        The two terms as the e-graph has them, the one that the rule was run on first.
    """

    rule: Rule
    path: Path
    before: ir.Expr
    after: ir.Expr
    parts: tuple[ir.Part | str, ir.Part | str]
    nodes: tuple[Node, Node] = field(repr=False)
    backwards: bool = False

    @property
    def part(self) -> str:
        """What was rewritten, on one line."""
        return text_of(self.parts[0])

    @property
    def result(self) -> str:
        """What became of it, on one line."""
        return text_of(self.parts[1])

    @property
    def place(self) -> str:
        """Where the rule was applied: the patterns from the outside to there, as in ``map.f/reduce.xs``."""
        return place_of(self.nodes[0], self.path)

    @property
    def turned(self) -> Step:
        """The same step from its result to what was rewritten."""
        return replace(
            self, before=self.after, after=self.before, parts=self.parts[::-1], backwards=not self.backwards
        )

    def __str__(self) -> str:
        return f"{self.rule.name}{' (backwards)' if self.backwards else ''} at {self.place}: {self.rule.law}"


def applications(term: ir.Expr, rule: Rule, phase: Phase | None = None) -> list[Step]:
    """What one application of a rule makes of a term, at each place where it applies, outermost places first.

    Parameters
    ----------
    phase
        Whose tiles and vector widths to use; by default there are none.

    Raises
    ------
    SizeProblem
        If a size of the term is open.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> from lift_egraph.rules.simplification import join_of_split
    >>> program = parse_program("program p(xs: [f32]8) = map(abs, join(split(4, join(split(2, xs)))))")
    >>> for step in applications(program.body, join_of_split):
    ...     print(step.path, print_term(step.after))
    (1,) map(abs, join(split(2, xs)))
    (1, 0, 1) map(abs, join(split(4, xs)))
    """
    world = World((phase or Phase(rule.name, (rule,), ())).about(term))
    return world.applications(world.encode(term), rule)


def replay(step: Step, phase: Phase) -> bool:
    """Whether running the step's rule alone on the term before it gives the term after it, at the step's place."""
    return world_of(phase.about(step.before)).replays(step)


_WORLDS: list[World] = []  # of the phases that were looked at last
MOST_WORLDS = 2  # each is an e-graph


def world_of(phase: Phase) -> World:
    """The world of a phase, which is kept for a while: to tell an e-graph the rules takes longer than to run one."""
    known = next((world for world in _WORLDS if world.phase is phase), None) or World(phase)
    _WORLDS[:] = [known, *(world for world in _WORLDS if world is not known)][:MOST_WORLDS]
    return known


@dataclass
class _Present:
    """The term that an e-graph holds."""

    term: Node
    held: Held

    @cached_property
    def graph(self) -> FrozenEGraph:
        """The e-graph with what is known of the term, before any rule."""
        return self.held.freeze()


@cache
def _blank() -> Scratch:
    return Scratch()


class World:
    """An e-graph with the facts of a phase, into which terms are put for a moment to run rules on them."""

    def __init__(self, phase: Phase):
        self.phase = phase
        self._scratch = Scratch(phase.facts)
        steps = (r.ruleset for r in phase.simplification if r.name not in DEFINITIONS)
        self.simplification = together(steps)
        definitions = [r.ruleset for r in phase.simplification if r.name in DEFINITIONS]
        self._knowing = self._scratch.compiled(settled(definitions))
        self._reached: dict[tuple[Node, tuple[str, ...], ir.Expr], list[bool] | None] = {}
        self._decoded: dict[Node, ir.Expr] = {}
        self._encoded: dict[ir.Expr, Node] = {}
        self._applied: tuple[FrozenEGraph | None, set[Node]] = (None, set())  # the last results, and where they are
        self._runs: dict[int, tuple[Any, Schedule]] = {}  # rulesets have no hash
        self._present: _Present | None = None

    @cached_property
    def _cleaning(self) -> Schedule:
        return self._compiled(settled(r.ruleset for r in self.phase.simplification))

    def learn(self, rules: Iterable[Rule]) -> None:
        """Tell the e-graph rules, of which it takes many at once sooner than one by one."""
        self._forget()
        new = (r.ruleset for r in rules if id(r.ruleset) not in self._runs)
        runs = {id(ruleset): (ruleset, egglog.run(ruleset)) for ruleset in new}
        if runs:
            compiled = self._scratch.compiled_apart([run for _, run in runs.values()])
            for (key, (ruleset, _)), schedule in zip(runs.items(), compiled, strict=True):
                self._runs[key] = ruleset, schedule

    def _run(self, ruleset: Any) -> Schedule:
        """One run of rules."""
        if id(ruleset) not in self._runs:
            self._runs[id(ruleset)] = ruleset, self._compiled(egglog.run(ruleset))
        return self._runs[id(ruleset)][1]

    def _compiled(self, schedule: egglog.Schedule) -> Schedule:
        self._forget()
        return self._scratch.compiled(schedule)

    def encode(self, term: ir.Expr) -> Node:
        """A term with the names of its binders as they are."""
        if term in self._encoded:
            return self._encoded[term]
        with _blank().holding(to_egg(term)) as held:  # facts name terms, which rules may have rewritten
            frozen = held.freeze()
        self._encoded[term] = read_only_member(frozen, frozen.roots[ROOT])
        return self._encoded[term]

    def decode(self, term: Node) -> ir.Expr:
        """The meaning of a term of the e-graph."""
        known = self._decoded.get(term)
        if known is None:
            graph, results = self._applied
            choice = choice_of(graph, term) if graph is not None and term in results else None
            if graph is None or choice is None:
                graph = self._about(term).graph
                choice = choice_of(graph, term)
                assert choice is not None
            known = self._decoded[term] = from_egg(graph, choice)
        return known

    def reaches(self, start: Node, schedule: Sequence[Rule], target: ir.Expr) -> bool:
        """Whether rules, each run once and followed by simplification, make a term equal to another.

        The names of the other's binders do not matter: an e-graph may have it with several.
        """
        return self.matching(start, schedule, target) is not None

    def matching(self, start: Node, schedule: Sequence[Rule], target: ir.Expr) -> list[bool] | None:
        """Which rules of a schedule match anything on the way from a term to another, None if it does not lead there.

        Without the rules that match nothing it leads there as well.
        """
        key = (start, tuple(r.name for r in schedule), target)
        if key not in self._reached:
            owners = [n for n, rule in enumerate(schedule) for _ in range(1 + makes_names(rule))]
            matched = self._matched(start, [[self._run(schedule[n].ruleset)] for n in owners], target)
            used = None if matched is None else {n for n, found in zip(owners, matched, strict=True) if found}
            self._reached[key] = None if used is None else [n in used for n in range(len(schedule))]
        return self._reached[key]

    def matching_together(
        self, start: Node, rules: Sequence[Rule], iterations: int, target: ir.Expr
    ) -> list[bool] | None:
        """Which rules match anything in iterations of them, in which one follows the other; None if they do not lead
        there.
        """
        runs = [self._run(r.ruleset) for r in rules]
        found = self._matched(start, [runs] * iterations, target)
        if found is None:
            return None
        return [any(d in matched for d in rule.ruleset.__egg_ruleset__.rules for matched in found) for rule in rules]

    def _matched(self, start: Node, runs: Sequence[Sequence[Schedule]], target: ir.Expr) -> list[set[Any]] | None:
        """The declarations that match in runs of rules, each followed by simplification, if these make a term equal to
        another.
        """
        cleaning = self._cleaning
        present = self._present
        with present.held.trial() if present and present.term == start else self._holding(start) as held:
            held.run(cleaning)
            ran = [[*held.runs(*run, cleaning)][:-1] for run in runs]
            frozen = held.freeze()
            if locate(frozen, frozen.roots[ROOT], target) is None:
                return None
            return [{declaration for matches in run for declaration, count in matches if count} for run in ran]

    def _holding(self, term: Node) -> AbstractContextManager[Held]:
        """A term in the e-graph, with the binders of its parallel maps marked as the phase has it."""
        self._forget()
        return self._scratch.holding(term, self._marks(term))

    def _marks(self, term: Node) -> Iterator[Any]:
        for binder in _staged_binders(term) if self.phase.staging else ():
            for space in self.phase.staging:
                yield MARKS[space](to_expr(binder))

    def begin(self, term: Node) -> None:
        """Keep a term in the e-graph for a while, as many schedules are going to begin with it."""
        _ = self._cleaning  # no rule can be told to an e-graph that holds a term
        self._about(term)

    def _about(self, term: Node) -> _Present:
        """The e-graph with a term and what is known of it, kept until another is asked for.

        To put a term into the e-graph and to find what is known of it takes longer than to run a rule.
        """
        if self._present is None or self._present.term != term:
            self._forget()
            held = self._scratch.hold(term, self._marks(term))
            held.run(self._knowing)
            self._present = _Present(term, held)
        return self._present

    def _forget(self) -> None:
        """Take the present term out of the e-graph."""
        if self._present is not None:
            self._scratch.forget()
            self._present = None

    def replays(self, step: Step) -> bool:
        """Whether running a step's rule alone on the term before it gives the term after it, at the step's place."""
        start, end = step.nodes
        first, second = (step.after, step.before) if step.backwards else (step.before, step.after)
        return (
            (step.path, end) in self.apply(start, step.rule.ruleset, makes_names(step.rule))
            and alpha_equal(self.decode(start), first)
            and alpha_equal(self.decode(end), second)
        )

    def apply(self, term: Node, ruleset: Any, again: bool) -> list[tuple[Path, Node]]:
        """What one application of a rule makes of a term, with the place of each, outermost places first.

        `again` runs the rule twice, for rules that first make names.
        """
        return self._applications(term, ruleset, again)[0]

    def simplifying(self, term: Node) -> list[Rule]:
        """The rules of simplification that match anything in a term; none if they change nothing."""
        found, matched = self._applications(term, self.simplification, False)
        rules = (rule for rule in self.phase.simplification if rule.name not in DEFINITIONS)
        return [rule for rule in rules if found and matched.intersection(rule.ruleset.__egg_ruleset__.rules)]

    def _applications(self, term: Node, ruleset: Any, again: bool) -> tuple[list[tuple[Path, Node]], set[Any]]:
        """What `apply` gives, and the declarations that match."""
        run = self._run(ruleset)
        present = self._about(term)
        old, held = present.graph, present.held
        with held.trial():
            matches = [match for _ in range(1 + again) for match in held.run(run, self._knowing)]
            new = held.freeze()
        found = list(_applied(term, old, new))
        self._applied = new, {after for _, after in found}
        return found, {declaration for declaration, count in matches if count}

    def applications(self, term: Node, rule: Rule) -> list[Step]:
        """What one application of a rule makes of a term, at each place where it applies, outermost places first."""
        found = self.apply(term, rule.ruleset, makes_names(rule))
        return [self.step(rule, path, term, after) for path, after in found if self.is_closed(after)]

    def look(self, term: Node) -> FrozenEGraph:
        """The e-graph of a term before any rule, with the facts that conditions ask for."""
        return self._about(term).held.freeze(facts=DROPPED)

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

    def means(self, term: Node, meaning: ir.Expr) -> bool:
        """Whether a closed term of the e-graph means another up to the names of binders."""
        return alpha_equal(self.decode(term), meaning)

    def part(self, part: Node) -> ir.Part | str:
        """A part of a term, with plain names; the name of the e-graph's node for an operator, which has no form."""
        graph, _ = self._applied  # most often it is part of what was looked at last
        if graph is not None and choice_of(graph, part) is not None:
            return part_of(graph, part)
        return part_of(self._about(part).graph, part)

    def step(self, rule: Rule, path: Path, before: Node, after: Node) -> Step:
        """The step for people."""
        first, second = before.at(path), after.at(path)
        while first.op == second.op == "Fn_lam" and first.children[0] == second.children[0]:
            first, second = first.at((1,)), second.at((1,))  # a rule says of bodies what holds of their functions
        parts = self.part(first), self.part(second)
        return Step(rule, path, self.decode(before), self.decode(after), parts, (before, after))


def _staged_binders(term: Node) -> Iterator[Node]:
    """The names that the functions of parallel maps, and of loops around them, bind: as `saturate.marks` has them."""
    for _, part in term.places():
        if _is_parallel(part):
            function = part.children[2]
        elif part.op == "reduce_seq" and isinstance(part.children[0], Node):
            function = part.children[0]
            if not any(map(_is_parallel, function.parts())):
                continue
        else:
            continue
        if isinstance(function, Node) and function.op == "Fn_lam":
            yield from _names(function.children[0])


def _is_parallel(part: Node) -> bool:
    return part.op == "map_level" and part.children[0] != ir.SEQ.kind


def _names(pattern: Node | int | str) -> Iterator[Node]:
    assert isinstance(pattern, Node)
    if pattern.op == "P_var":
        name = pattern.children[0]
        assert isinstance(name, Node)
        yield name
    else:
        for part in pattern.children:
            yield from _names(part)


def makes_names(rule: Rule) -> bool:
    """Whether a rule first makes the names that its conditions mention, so that it rewrites in its second run."""
    return any(not isinstance(r, RewriteDecl) for r in rule.ruleset.__egg_ruleset__.rules)


def _applied(term: Node, old: FrozenEGraph, new: FrozenEGraph) -> Iterator[tuple[Path, Node]]:
    """What a rule made of a term: the new nodes at each place, and the parts that it says are equal."""
    image = embedding(old, new)
    known = known_nodes(old, image)
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
