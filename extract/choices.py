"""Choosing a node for each class: the arrays that extractors search, and what a choice costs."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST = sys.float_info.max / 4  # tree costs grow exponentially; what is larger counts as this


class Option(NamedTuple):
    """A node that may be chosen for a class: its cost, the classes that it needs (each once), and its number."""

    cost: float
    needs: tuple[int, ...]
    node: int


Options = list[list[Option]]  # of each class; none of a class that no term of interest needs


class Cover(NamedTuple):
    """What the roots need under a choice: its cost with each class counted once, and the classes."""

    cost: float
    classes: set[int]


class Choices:
    """The options of a graph, numbered anew in a row. A choice is a list with such a number for each class, or -1."""

    def __init__(self, options: Options, roots: Sequence[int]) -> None:
        self.roots = tuple(roots)
        self.class_count = len(options)
        self.costs: list[float] = []
        self.needs: list[tuple[int, ...]] = []
        self.nodes: list[int] = []
        self.owners: list[int] = []
        self.members: list[list[int]] = []
        self._users: list[list[int]] = [[] for _ in options]
        for owner, own in enumerate(options):
            self.members.append(list(range(len(self.costs), len(self.costs) + len(own))))
            for option in own:
                for part in option.needs:
                    self._users[part].append(len(self.costs))
                self.costs.append(option.cost)
                self.needs.append(option.needs)
                self.nodes.append(option.node)
                self.owners.append(owner)
        self._need_counts = [len(n) for n in self.needs]
        self._leaves = [i for i, n in enumerate(self.needs) if not n]

    def cheapest(self, weights: Sequence[float], given: Iterable[int] = ()) -> tuple[list[int], list[float]]:
        """For each class the option of least tree cost, and that cost (Knuth 1977); classes `given` are free.

        Returns
        -------
        choice, costs
            -1 and infinity for a class without a finite term; also -1 for those given.
        """
        choice, costs = [-1] * self.class_count, [math.inf] * self.class_count
        sums, missing = list(weights), self._need_counts[:]
        owners, users, push, pop = self.owners, self._users, heapq.heappush, heapq.heappop
        queue = [(0.0, c, -1) for c in given] + [(sums[i], owners[i], i) for i in self._leaves]
        heapq.heapify(queue)
        while queue:
            cost, owner, i = pop(queue)
            if costs[owner] < math.inf:
                continue
            costs[owner], choice[owner] = cost, i
            for user in users[owner]:
                sums[user] += cost
                missing[user] -= 1
                if not missing[user] and costs[owners[user]] == math.inf:
                    push(queue, (min(sums[user], MOST), owners[user], user))
        return choice, costs

    def cover(self, choice: Sequence[int], limit: float = math.inf) -> Cover | None:
        """What the roots need, or None if it costs `limit` or more; it may be cyclic."""
        needs, costs = self.needs, self.costs
        classes, waiting, cost = set(self.roots), list(self.roots), 0.0
        while waiting:
            option = choice[waiting.pop()]
            cost += costs[option]
            if cost >= limit:
                return None
            for part in needs[option]:
                if part not in classes:
                    classes.add(part)
                    waiting.append(part)
        return Cover(cost, classes)

    def is_acyclic(self, choice: Sequence[int]) -> bool:
        """Whether no class needs itself, of those that the roots need."""
        return self.ordered(choice) is not None

    def ordered(self, choice: Sequence[int]) -> list[int] | None:
        """The classes that the roots need, each after those that it needs; None if there is a cycle."""
        return ordered(self.roots, lambda c: self.needs[choice[c]])


def ordered(roots: Iterable[int], needs) -> list[int] | None:
    """What the roots need, each after what it needs itself (depth first); None if there is a cycle."""
    done: dict[int, bool] = {}
    found: list[int] = []
    for root in roots:
        if root in done:
            continue
        done[root] = False
        path = [(root, iter(needs(root)))]
        while path:
            current, parts = path[-1]
            for part in parts:
                known = done.get(part)
                if known is None:
                    done[part] = False
                    path.append((part, iter(needs(part))))
                    break
                if not known:
                    return None
            else:
                done[current] = True
                found.append(current)
                path.pop()
    return found
