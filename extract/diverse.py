"""Several DAGs of a priced e-graph that are cheap and differ."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from lift_egraph.extract.choices import Choices
from lift_egraph.extract.dag import Extracted, Extraction, extract_dag, extraction_of, options_of
from lift_egraph.extract.gym import Allowed, PricedGraph
from lift_egraph.extract.local_search import completed, start

PENALTIES = (0.1, 0.5, 1.0, 4.0)  # by how much of its cost a node of a DAG that is kept becomes dearer
MOST_SEEN = 300_000  # DAGs: after that, no more are taken up
SHARE = 0.5  # of the time, which the search for the best DAG may take


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
    neighbours follow. Where that would take long to lead away, there are the cheapest trees for costs that are
    raised for the nodes of those kept. There may be cheaper ones; what `Extracted` says is proven concerns the first.

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
    share = 1.0 if count == 1 else SHARE
    first = extract_dag(graph, allowed=allowed, seconds=share * seconds, seed=seed, listen=listen)
    kept = list(first.best)
    ended = first.ended
    if count > 1 and ended != "interrupted":
        try:
            for extraction in _neighbours(graph, allowed, kept, began + seconds):
                if _is_apart(extraction, kept, apart):
                    kept.append(extraction)
                    if len(kept) == count:
                        break
        except KeyboardInterrupt:
            ended = "interrupted"
    kept.sort(key=lambda e: e.dag_cost)
    return replace(first, best=tuple(kept), ended=ended, seconds=time.monotonic() - began)


def _is_apart(extraction: Extraction, kept: list[Extraction], apart: float) -> bool:
    return all(d > 0 and d >= apart for d in map(extraction.difference, kept))


def _neighbours(
    graph: PricedGraph, allowed: Allowed | None, kept: list[Extraction], deadline: float
) -> Iterator[Extraction]:
    """DAGs around those that are kept, which may become more meanwhile; the cheapest that is known comes next."""
    problem = Choices(options_of(graph, allowed), graph.roots)
    numbers = {node: i for i, node in enumerate(problem.nodes)}
    queue: list[tuple[float, int, tuple[int, ...]]] = []
    seen: set[tuple[int, ...]] = set()

    def offer(choice: list[int]) -> None:
        cover = problem.cover(choice)
        if cover is None or len(seen) == MOST_SEEN:
            return
        nodes = tuple(sorted([choice[c] for c in cover.classes]))
        if nodes not in seen and problem.is_acyclic(choice):
            seen.add(nodes)
            heapq.heappush(queue, (cover.cost, len(seen), nodes))

    def around(extraction: Extraction) -> None:
        choice = [-1] * problem.class_count
        for step in extraction.steps:
            choice[graph.nodes[step.node].owner] = numbers[step.node]
        offer(choice)
        used = {numbers[step.node] for e in kept for step in e.steps}
        for penalty in PENALTIES:
            weights = [cost * (1 + penalty * (i in used)) for i, cost in enumerate(problem.costs)]
            offer(start(problem, weights).choice)

    started = 0
    while True:
        while started < len(kept):
            around(kept[started])
            started += 1
        if not queue or time.monotonic() > deadline:
            return
        _, _, nodes = heapq.heappop(queue)
        chosen = {problem.owners[i]: i for i in nodes}
        yield extraction_of(graph, {c: problem.nodes[i] for c, i in chosen.items()})
        choice = completed(problem, chosen)
        for c in sorted(chosen):
            if time.monotonic() > deadline:
                return
            for option in problem.members[c]:
                if option != chosen[c] and all(choice[k] >= 0 for k in problem.needs[option]):
                    choice[c] = option
                    offer(choice)
            choice[c] = chosen[c]
