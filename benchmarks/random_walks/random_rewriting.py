"""Random rewriting: walks from a term, each step a random rule at a random place where it applies.

The way that compilers of this kind searched before e-graphs, and what to compare them with. Walks begin at the term
again and again; a walk ends where no rule applies, after a random number of steps, or at a term that has grown too
large. A rule is chosen first and then one of its places, so that a rule with many places is not preferred.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from random_walks.term_rewriting import Rewriting
from random_walks.typed_terms import Term, read_member

from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.saturate import ROOT, Phase
from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir


@dataclass(frozen=True)
class Visited:
    """The terms of some walks: an e-graph in which all are members of the term's class, and no more is known.

    Attributes
    ----------
    steps, walks
        How many rules were applied in this batch, and how many walks ended in it.
    terms
        How many different terms were visited in this batch.
    seconds
        Of walking in this batch.
    """

    graph: FrozenEGraph
    steps: int
    walks: int
    terms: int
    seconds: float

    @property
    def root(self) -> ClassId:
        """The class of all visited terms."""
        return self.graph.roots[ROOT]

    def term(self, number: int) -> ir.Expr:
        """A visited term by its number, in the order of the walks; number 0 is the start."""
        return read_member(self.graph, number)


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

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program, print_term
    >>> from lift_egraph.rules.fusion import map_fusion
    >>> from lift_egraph.rules.split_join import split_join
    >>> program = parse_program("program p(xs: [f32]8) = map(abs, map(sqrt, xs))")
    >>> phase = Phase("walk", (map_fusion, split_join), (), {8: (2,)})
    >>> visited = next(random_walks(program.body, phase, batch=100))
    >>> print(visited.terms, print_term(visited.term(1)))
    6 map(abs, join(map(map(sqrt), split(2, xs))))
    """
    rewriting = Rewriting(phase)
    choose = random.Random(seed)
    while True:
        began = time.perf_counter()
        rewriting.forget()
        start = rewriting.encode(term)
        seen: dict[Term, None] = {start: None}
        steps = walks = 0
        while steps < batch:
            now = start
            for _ in range(choose.randint(1, longest)):
                after = random_step(rewriting, now, choose)
                if after is None:
                    break
                steps += 1
                if after.size > largest or after.free:
                    break
                now = after
                seen[now] = None
            walks += 1
        seconds = time.perf_counter() - began
        yield Visited(rewriting.frozen(seen), steps, walks, len(seen), seconds)


def random_step(rewriting: Rewriting, term: Term, choose: random.Random) -> Term | None:
    """The term after one random rule at a random place, or None where none applies."""
    counts = dict(rewriting.counts(term))
    while counts:
        rule = choose.choice(sorted(counts))
        try:
            return rewriting.step(term, rule, choose.randrange(counts[rule]))
        except TypeProblem:  # the rule matches, but not at these sizes
            del counts[rule]
    return None
