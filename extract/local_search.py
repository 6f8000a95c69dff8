"""Local search for cheap DAGs: exchange one node after another, and start again from a changed problem."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lift_egraph.extract.choices import Choices, Cover

EPSILON = 1e-12  # the share of a cost by which another must be less to be better
KEPT = (0.3, 0.6, 0.8, 0.9)  # how probably a node of the DAG at hand is made cheaper
DISCOUNTS = (0.0, 0.3, 0.7)  # what it then costs of its cost
NOISE = (0.05, 0.2, 0.5)  # by which share costs are changed at random


class Found(NamedTuple):
    """A choice that is acyclic for the roots, with what they need."""

    cover: Cover
    choice: list[int]

    @property
    def cost(self) -> float:
        return self.cover.cost


def start(problem: Choices, weights: Sequence[float] | None = None) -> Found:
    """The cheapest trees, for costs or other weights; what they share counts once."""
    choice, _ = problem.cheapest(problem.costs if weights is None else weights)
    cover = problem.cover(choice)
    assert cover is not None
    return Found(cover, choice)


def descend(problem: Choices, found: Found, order: random.Random, deadline: float) -> Found:
    """Exchange the node of one class at a time, as long as that makes the DAG cheaper.

    What the other node needs and the DAG does not contain is added by its cheapest trees, where all that the DAG
    contains is free. The classes are tried in a random order, and the best node of the first that helps is taken. The
    deadline is a time of `time.monotonic`.
    """
    while time.monotonic() < deadline:
        better = _better(problem, found, order, deadline)
        if better is None:
            return found
        found = better
    return found


def _better(problem: Choices, found: Found, order: random.Random, deadline: float) -> Found | None:
    choice = completed(problem, {c: found.choice[c] for c in found.cover.classes})
    classes = sorted(found.cover.classes)
    order.shuffle(classes)
    for c in classes:
        best, before = None, choice[c]
        limit = found.cost * (1 - EPSILON)
        if time.monotonic() > deadline:
            return None
        for option in problem.members[c]:
            if option == before:
                continue
            choice[c] = option
            cover = problem.cover(choice, limit)
            if cover is not None and problem.is_acyclic(choice):
                best, limit = (option, cover), cover.cost
        if best is not None:
            choice[c] = best[0]
            return Found(best[1], choice)
        choice[c] = before
    return None


def completed(problem: Choices, chosen: Mapping[int, int]) -> list[int]:
    """A choice for all classes: what a DAG does not contain is built from it as cheaply as trees can be."""
    choice, _ = problem.cheapest(problem.costs, chosen)
    for c, option in chosen.items():
        choice[c] = option
    return choice


def search(
    problem: Choices, seed: int, patience: int, deadline: float, listen: Callable[[Found], None], first: Found
) -> None:
    """Find cheaper and cheaper DAGs, from `first` on, and tell each to `listen`.

    Each round makes the nodes of the DAG at hand cheaper, by and large, and all costs a little wrong; takes the
    cheapest trees for that, and goes down from there by the true costs. The DAG at hand is replaced by one that
    costs no more, now and then by any. The search ends after `patience` rounds without a better one, or at
    the deadline, a time of `time.monotonic`.
    """
    order = random.Random(seed)
    best = at_hand = descend(problem, first, order, deadline)
    listen(best)
    idle = 0
    while idle < patience and time.monotonic() < deadline:
        idle += 1
        found = descend(problem, start(problem, _changed(problem, at_hand, order)), order, deadline)
        if found.cost < best.cost * (1 - EPSILON):
            best, idle = found, 0
            listen(best)
        if found.cost <= at_hand.cost or order.random() < 0.02:
            at_hand = found
        elif order.random() < 0.01:
            at_hand = best


def _changed(problem: Choices, found: Found, order: random.Random) -> list[float]:
    kept, discount, noise = order.choice(KEPT), order.choice(DISCOUNTS), order.choice(NOISE)
    weights = [cost * order.uniform(1 - noise, 1 + noise) for cost in problem.costs]
    for c in sorted(found.cover.classes):
        if order.random() < kept:
            weights[found.choice[c]] *= discount
    return weights
