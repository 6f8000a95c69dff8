"""Several DAGs of a priced e-graph that are cheap and differ."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lift_egraph.extract.choices import Choices
from lift_egraph.extract.dag import Extracted, Extraction, extract_dag, extraction_of, options_of
from lift_egraph.extract.gym import Allowed, PricedGraph
from lift_egraph.extract.local_search import completed, start

PENALTIES = (0.1, 0.5, 1.0, 4.0)  # by how much of its cost a node of a DAG that is kept becomes dearer
MOST_SEEN = 300_000  # DAGs: after that, no more are taken up
FOR_FIRST = 0.5  # the share of the time that the search for the best DAG may take
FOR_REST = 0.1  # and that of looking through the DAGs that were met, in the end


def best_dags(
    graph: PricedGraph,
    count: int,
    *,
    apart: float = 0.0,
    allowed: Allowed | None = None,
    seconds: float = 20.0,
    seed: int = 0,
    listen: Callable[[float], None] | None = None,
) -> Extracted:
    """Up to `count` DAGs, no two with the same nodes, cheapest first.

    The first is that of `extract_dag`. The others are met in the order of their costs, from it on: a neighbour of
    a DAG has another node for one class, and what that needs in addition, as cheaply as trees can be; neighbours of
    neighbours follow. As that may take long to lead away, there are also the cheapest trees for costs that are raised
    for the nodes of those kept. There may be cheaper ones; what `Extracted` says is proven concerns the first.

    Parameters
    ----------
    apart
        By how much each differs at least from each before, in shares of 1: see `Extraction.difference`.
    allowed, seconds, seed, listen
        See `extract_dag`.

    Raises
    ------
    SearchProblem
        If a root has no finite term.
    """
    began = time.monotonic()
    share = 1.0 if count == 1 else FOR_FIRST
    first = extract_dag(graph, allowed=allowed, seconds=share * seconds, seed=seed, listen=listen)
    ended, others = first.ended, list[Extraction]()
    if count > 1 and ended != "interrupted":
        try:
            _Around(graph, allowed, first.best[0], random.Random(seed)).collect(
                others, count - 1, apart, began, began + seconds
            )
        except KeyboardInterrupt:
            ended = "interrupted"
    best = sorted([first.best[0], *others], key=lambda e: e.dag_cost)
    return replace(first, best=tuple(best), ended=ended, seconds=time.monotonic() - began)


class _Around:
    """DAGs around those that are kept, the cheapest that is known first."""

    def __init__(self, graph: PricedGraph, allowed: Allowed | None, first: Extraction, order: random.Random) -> None:
        self.graph, self.order = graph, order
        self._problem = Choices(options_of(graph, allowed), graph.roots)
        numbers = {node: i for i, node in enumerate(self._problem.nodes)}
        self._kept = [frozenset(numbers[step.node] for step in first.steps)]
        self._queue: list[tuple[float, int, tuple[int, ...]]] = []
        self._seen: set[tuple[int, ...]] = set()

    def collect(self, others: list[Extraction], count: int, apart: float, began: float, deadline: float) -> None:
        """Add DAGs that differ enough until there are so many; in the rest of the time, look through those met."""
        until = deadline - FOR_REST * (deadline - began)
        self._expand(self._kept[0], until)
        self._far()
        while self._queue and time.monotonic() < deadline:
            _, _, nodes = heapq.heappop(self._queue)
            if all((d := _difference(kept, nodes)) > 0 and d >= apart for kept in self._kept):
                self._kept.append(frozenset(nodes))
                chosen = {self._problem.owners[i]: self._problem.nodes[i] for i in nodes}
                others.append(extraction_of(self.graph, chosen))
                if len(others) == count:
                    return
                self._far()
            if time.monotonic() < until:
                self._expand(nodes, until)
                self._far(self.order.choice(PENALTIES), noise=True)

    def _offer(self, choice: Sequence[int]) -> None:
        cover = self._problem.cover(choice)
        if cover is None or len(self._seen) == MOST_SEEN:
            return
        nodes = tuple(sorted([choice[c] for c in cover.classes]))
        if nodes not in self._seen and self._problem.is_acyclic(choice):
            self._seen.add(nodes)
            heapq.heappush(self._queue, (cover.cost, len(self._seen), nodes))

    def _expand(self, nodes: Iterable[int], until: float) -> None:
        """Offer the neighbours of a DAG."""
        problem = self._problem
        chosen = {problem.owners[i]: i for i in nodes}
        choice = completed(problem, chosen)
        for c in sorted(chosen):
            if time.monotonic() > until:
                return
            for option in problem.members[c]:
                if option != chosen[c] and all(choice[k] >= 0 for k in problem.needs[option]):
                    choice[c] = option
                    self._offer(choice)
            choice[c] = chosen[c]

    def _far(self, *penalties: float, noise: bool = False) -> None:
        """Offer the cheapest trees where the nodes of the DAGs kept are dearer."""
        used = frozenset[int]().union(*self._kept)
        for penalty in penalties or PENALTIES:
            weights = [
                cost * (1 + penalty * (i in used)) * (self.order.uniform(0.5, 1.5) if noise else 1.0)
                for i, cost in enumerate(self._problem.costs)
            ]
            self._offer(start(self._problem, weights).choice)


def _difference(kept: frozenset[int], nodes: tuple[int, ...]) -> float:
    """See `Extraction.difference`."""
    common = len(kept.intersection(nodes))
    return 1 - common / (len(kept) + len(nodes) - common)
