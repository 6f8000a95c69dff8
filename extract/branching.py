"""Branch and bound on reduced problems: proofs that a DAG is the best, or a better one."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lift_egraph.extract.choices import Options
from lift_egraph.extract.reduction import TOLERANCE, Reduced, reduced


class Proof(NamedTuple):
    """What is known in the end: what every DAG costs at least, or infinity if none is cheaper than the best."""

    lower_bound: float
    work: int  # the options of all problems that were reduced


def step_of(options: Options) -> float:
    """By how much the costs of two DAGs differ at least, if they differ: their common divisor, or nearly nothing."""
    costs = [o.cost for own in options for o in own]
    if all(cost == int(cost) and cost < 2**53 for cost in costs):
        return float(math.gcd(*map(int, costs)) or 1)
    return 0.0


def below(cost: float, step: float) -> float:
    """The most that a DAG may cost to be cheaper than another."""
    return cost - max(step * (1 - 1e-6), 2 * TOLERANCE * max(1.0, cost))


def branch(
    problem: Reduced,
    best: float,
    step: float,
    most: float,
    deadline: float,
    listen: Callable[[Mapping[int, int], Mapping[int, int]], float],
) -> Proof:
    """Look through all DAGs that are cheaper than the best known, those with the least bound first.

    A class that all DAGs contain and that has several options left is decided: each option makes a problem that
    is reduced again. When all are decided, a DAG is found.

    Parameters
    ----------
    best
        The cost of the best DAG known.
    step
        See `step_of`.
    most
        How many options the problems that it reduces may have together.
    listen
        Is told the nodes chosen for classes, and those of free classes; returns the cost of the DAG.
    """
    if problem.is_large:
        return Proof(problem.lower_bound, 0)
    tick = itertools.count()
    queue: list[tuple[float, int, Reduced]] = []
    work = 0

    def offer(options: Options, roots: tuple[int, ...], free: dict[int, int]) -> None:
        nonlocal work
        work += sum(map(len, options))
        smaller = reduced(options, roots, below(best, step))
        if smaller.lower_bound < math.inf:
            heapq.heappush(queue, (smaller.lower_bound, next(tick), smaller.after(free)))

    offer(problem.options, problem.roots, {})
    while queue:
        lower, _, current = queue[0]
        if lower > below(best, step):
            break
        undecided = [c for c in current.forced if len(current.options[c]) > 1]
        decided = min(undecided, key=lambda c: (len(current.options[c]), c), default=None)
        cost = current.size * (1 if decided is None else len(current.options[decided]))
        if work + cost > most or time.monotonic() > deadline:
            return Proof(lower, work)
        heapq.heappop(queue)
        if decided is None:
            chosen = {c: current.options[c][0].node for c in current.forced}
            best = min(best, listen(chosen, current.free))
            continue
        for option in current.options[decided]:
            options = [*current.options[:decided], [option], *current.options[decided + 1 :]]
            offer(options, current.roots, current.free)
    return Proof(math.inf, work)
