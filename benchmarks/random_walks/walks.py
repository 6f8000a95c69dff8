"""Random rewriting: walks from a term, each step a random rule at a random place where it applies.

The way that compilers of this kind searched before e-graphs, and what to compare them with. Walks begin at the term
again and again; a walk ends where no rule applies, after a random number of steps, or at a term that has grown too
large. A rule is chosen first and then one of its places, so that a rule with many places is not preferred.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lift_egraph.api import LiftError, Phase
from lift_egraph.derivation.fits import Values
from lift_egraph.derivation.steps import DEFINITIONS
from lift_egraph.egraph.encoding import operator_laws
from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Form, Node, forms
from lift_egraph.egraph.scratch import ROOT
from lift_egraph.language import ir

from .terms import Terms

MOST_NODES = 600  # of a simplified term

Match = tuple[int, Form, Values]  # the number of the rule, which of its rewrites, and the values of variables


class Rewriting(Terms):
    """Terms, and the rules of a phase on them.

    Parameters
    ----------
    phase
        Its rules, tiles and vector widths; its simplification is applied after each step, as often as it can be.
    """

    def __init__(self, phase: Phase) -> None:
        definitions = [r for r in phase.simplification if r.name in DEFINITIONS]
        super().__init__((*operator_laws(), *phase.facts), definitions)
        self._rules = _by_operator(phase.rules)
        self._simplification = _by_operator(r for r in phase.simplification if r not in definitions)
        self._matches: dict[ClassId, list[Match]] = {}
        self._counts: dict[ClassId, Counter[int]] = {}
        self._normal: dict[ClassId, ClassId] = {}

    def start(self, term: ir.Expr) -> ClassId:
        """A term of concrete sizes, simplified."""
        return self.normal(self.encode(term))

    def counts(self, term: ClassId) -> Counter[int]:
        """In how many places each rule of the phase matches, by the number of the rule."""
        found = self._counts.get(term)
        if found is None:
            found = self._counts[term] = Counter(number for number, _, _ in self.matches(term))
            for part in self.parts(term):
                found.update(self.counts(part))
        return found

    def matches(self, term: ClassId) -> list[Match]:
        """Where rules match a term itself."""
        found = self._matches.get(term)
        if found is None:
            found = self._matches[term] = [
                (number, form, values)
                for node in self.graph.nodes[term]
                for number, form in self._rules.get(node.op, ())
                for values in self.solutions(form, term)
            ]
        return found

    def step(self, term: ClassId, rule: int, place: int) -> ClassId:
        """The term after one rule at one of the places where it matches, counted from the outermost, simplified.

        Raises
        ------
        LiftError
            If the result is ill-typed.
        """
        return self.normal(self._step(term, rule, place))

    def _step(self, term: ClassId, rule: int, place: int) -> ClassId:
        for number, form, values in self.matches(term):
            if number == rule:
                if place == 0:
                    return self.value(form.right, values)
                place -= 1
        parts = self.parts(term)
        for i, part in enumerate(parts):
            here = self.counts(part).get(rule, 0)
            if place < here:
                return self.rebuilt(term, (*parts[:i], self._step(part, rule, place), *parts[i + 1 :]))
            place -= here
        raise IndexError(f"rule {rule} has no such place")

    def normal(self, term: ClassId) -> ClassId:
        """The term simplified: from the inside to the outside, as often as a rule matches."""
        if term not in self._normal:
            inside = self.rebuilt(term, tuple(map(self.normal, self.parts(term))))
            if inside not in self._normal:
                self._normal[inside] = self._simplified(inside)
            self._normal[term] = self._normal[inside]
        return self._normal[term]

    def _simplified(self, term: ClassId) -> ClassId:
        if self.sizes[term] <= MOST_NODES:
            for _, form in self._simplification.get(self.graph.nodes[term][0].op, ()):
                for values in self.solutions(form, term):
                    changed = self.value(form.right, values)
                    return term if changed == term else self.normal(changed)
        return term


def _by_operator(rules: Iterable[Rule]) -> dict[str, list[tuple[int, Form]]]:
    """The rewrites of rules, with the number of the rule, by the operator that they match."""
    found: dict[str, list[tuple[int, Form]]] = {}
    for number, rule in enumerate(rules):
        for form in forms(rule):
            assert isinstance(form.left, Node)
            found.setdefault(form.left.op, []).append((number, form))
    return found


@dataclass(frozen=True)
class Visited:
    """The terms of some walks, as the members of one class of an e-graph.

    Attributes
    ----------
    steps, walks
        How many rules were applied in this batch, and how many walks ended in it.
    terms
        The different terms that were visited in this batch, in the order of the walks; the first is the start.
    seconds
        Of walking in this batch.
    """

    graph: FrozenEGraph
    steps: int
    walks: int
    terms: tuple[ClassId, ...]
    seconds: float

    @property
    def root(self) -> ClassId:
        """The class of all visited terms."""
        return self.graph.roots[ROOT]


def random_walks(
    term: ir.Expr, phase: Phase, *, seed: int = 0, longest: int = 60, largest: int = 300, batch: int = 4000
) -> Iterator[Visited]:
    """Walk at random, without end; yields what was visited after each batch of steps.

    Parameters
    ----------
    phase
        Its rules, tiles and widths; its simplification is applied after each step. Its limits do not count: take
        as many batches as wanted.
    seed
        Equal seeds give equal walks.
    longest
        The number of steps of a walk is uniform up to this.
    largest
        How many nodes a term may have.
    batch
        Steps after which what was visited is yielded and forgotten.
    """
    choose = random.Random(seed)
    while True:
        began = time.perf_counter()
        rewriting = Rewriting(phase)
        start = rewriting.start(term)
        seen = {start: None}
        steps = walks = 0
        while steps < batch:
            now = start
            for _ in range(choose.randint(1, longest)):
                after = random_step(rewriting, now, choose)
                if after is None:
                    break
                steps += 1
                if rewriting.sizes[after] > largest or rewriting.free(after):
                    break
                now = after
                seen[now] = None
            walks += 1
        seconds = time.perf_counter() - began
        terms = tuple(seen)
        yield Visited(rewriting.showing(terms), steps, walks, terms, seconds)


def random_step(rewriting: Rewriting, term: ClassId, choose: random.Random) -> ClassId | None:
    """The term after one random rule at a random place, or None where none applies."""
    counts = dict(rewriting.counts(term))
    while counts:
        rule = choose.choice(sorted(counts))
        try:
            return rewriting.step(term, rule, choose.randrange(counts[rule]))
        except LiftError:  # the rule matches, but not at these sizes
            del counts[rule]
    return None
