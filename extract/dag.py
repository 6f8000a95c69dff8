"""Extraction of whole terms from a priced e-graph: the cheapest trees, and the cheapest DAGs.

The tree cost of a term counts a node as often as it occurs, its DAG cost once for each class. The best tree is found
exactly and quickly; the best DAG is NP-hard (Stepp 2011), so its search has a time limit and says what it proved.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph
from lift_egraph.egraph.kbest import KBest, Rating
from lift_egraph.egraph.read_back import Choice
from lift_egraph.errors import SearchProblem
from lift_egraph.extract import local_search
from lift_egraph.extract.branching import below, branch, step_of
from lift_egraph.extract.choices import MOST, Choices, Option, Options, ordered
from lift_egraph.extract.gym import Allowed, PricedGraph, extractable
from lift_egraph.extract.reduction import Reduced, reduced

PATIENCE = 400  # rounds of local search without a better DAG, after which it ends
WORK = 30_000  # options of all problems that a proof may reduce: a few seconds
FIRST = 20  # rounds of local search before the first proof is tried


class Step(NamedTuple):
    """A node of an extracted term, and at which places of the list its parts stand."""

    node: int
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Extraction:
    """The terms extracted for the roots of a graph, as one DAG.

    Attributes
    ----------
    steps
        Each after its parts; none twice.
    roots
        The places of the graph's roots in `steps`.
    tree_cost
        What the terms cost if each occurrence of a node counts; infinite beyond the numbers.
    dag_cost
        What they cost if each step counts once.
    """

    steps: tuple[Step, ...]
    roots: tuple[int, ...]
    tree_cost: float
    dag_cost: float

    @property
    def nodes(self) -> frozenset[int]:
        """The numbers of its nodes."""
        return frozenset(step.node for step in self.steps)

    def difference(self, other: Extraction) -> float:
        """The Jaccard distance of two extractions: of all the nodes in them, the share that is not in both."""
        mine, theirs = self.nodes, other.nodes
        return 1 - len(mine & theirs) / len(mine | theirs)


@dataclass(frozen=True)
class Extracted:
    """What an extractor found.

    Attributes
    ----------
    best
        The extractions, cheapest first.
    lower_bound
        What every extraction costs at least; equal to the cost of the first if that is proven to be the best.
    is_proven
        Whether it is.
    ended
        ``proven``, ``no better found`` (for a number of rounds), ``out of time`` or ``interrupted``.
    seconds
        How long it took.
    """

    best: tuple[Extraction, ...]
    lower_bound: float
    is_proven: bool
    ended: str
    seconds: float


# --- DAGs -------------------------------------------------------------------------------------------------


def options_of(graph: PricedGraph, allowed: Allowed | None = None) -> Options:
    """The nodes of each class that may be extracted, but those that are applied to their own class."""
    found: Options = [[] for _ in graph.classes]
    for i, (node, may) in enumerate(zip(graph.nodes, extractable(graph, allowed), strict=True)):
        if may and node.owner not in node.children:
            found[node.owner].append(Option(node.cost, tuple(sorted({*node.children})), i))
    return found


def require_terms(graph: PricedGraph, problem: Choices) -> None:
    """Check that each root has a finite term.

    Raises
    ------
    SearchProblem
        If one has none.
    """
    _, costs = problem.cheapest(problem.costs)
    bad = next((r for r in graph.roots if costs[r] == math.inf), None)
    if bad is not None:
        raise SearchProblem(
            f"the class {graph.classes[bad]} has no finite term: each of its nodes leads back to it, or to one that "
            "may not be extracted"
        )


def extraction_of(graph: PricedGraph, chosen: Mapping[int, int]) -> Extraction:
    """The terms of the roots, with one node for each class that they need.

    Raises
    ------
    KeyError
        If a class is needed for which no node is chosen.
    ValueError
        If a class needs itself.
    """
    order = ordered(graph.roots, lambda c: graph.nodes[chosen[c]].children)
    if order is None:
        raise ValueError("a class needs itself")
    places = {c: i for i, c in enumerate(order)}
    steps = [Step(chosen[c], tuple([places[k] for k in graph.nodes[chosen[c]].children])) for c in order]
    return _priced(graph, steps, [places[r] for r in graph.roots])


def _priced(graph: PricedGraph, steps: Sequence[Step], roots: Sequence[int]) -> Extraction:
    trees: list[float] = []
    for step in steps:
        trees.append(graph.nodes[step.node].cost + sum([trees[p] for p in step.parts]))
    dag = math.fsum(graph.nodes[step.node].cost for step in steps)
    return Extraction(tuple(steps), tuple(roots), sum([trees[r] for r in roots]), dag)


class _Search:
    """The best DAG so far, and what is proven: all that an interrupted search needs to keep."""

    def __init__(self, graph: PricedGraph, allowed: Allowed | None, listen: Callable[[float], None] | None) -> None:
        self.graph = graph
        self.options = options_of(graph, allowed)
        self.problem = Choices(self.options, graph.roots)
        require_terms(graph, self.problem)
        self.step = step_of(self.options)
        self.lower_bound = 0.0
        self._listen = listen
        tree = local_search.start(self.problem)
        self.chosen = {c: self.problem.nodes[tree.choice[c]] for c in tree.cover.classes}
        self.cost = tree.cost

    @property
    def is_proven(self) -> bool:
        return self.lower_bound > below(self.cost, self.step)

    def offer(self, chosen: Mapping[int, int], free: Mapping[int, int]) -> float:
        """Take a DAG of a reduced problem if it is better; returns its cost."""
        found = extraction_of(self.graph, {**free, **chosen})
        if found.dag_cost < self.cost:
            self.chosen = {self.graph.nodes[s.node].owner: s.node for s in found.steps}
            self.cost = found.dag_cost
            if self._listen is not None:
                self._listen(self.cost)
        return found.dag_cost

    def run(self, seed: int, patience: int, deadline: float) -> None:
        """Reduce; search a little, and try a proof; search on, and try once more if that was of use."""
        problem = reduced(self.options, self.graph.roots, self.cost)
        self._prove(problem.lower_bound)
        for rounds in (FIRST, patience):
            before = self.cost
            self._search(problem, seed, min(rounds, patience), deadline)
            if self.is_proven or time.monotonic() > deadline:
                return
            if rounds == FIRST or self.cost < before:
                problem = self._branch(self._again(problem), deadline)

    def _branch(self, problem: Reduced, deadline: float) -> Reduced:
        """Look through the DAGs of a problem, as far as the work allows; returns what is left of it."""

        def tell(chosen: Mapping[int, int], free: Mapping[int, int]) -> float:
            return self.offer(chosen, {**problem.free, **free})

        self._prove(branch(problem, self.cost, self.step, WORK, deadline, tell).lower_bound)
        return problem if self.is_proven else self._again(problem)

    def _again(self, problem: Reduced) -> Reduced:
        """A problem reduced by the best cost known now."""
        smaller = reduced(problem.options, problem.roots, self.cost).after(problem.free)
        self._prove(smaller.lower_bound)
        return smaller

    def _prove(self, lower_bound: float) -> None:
        self.lower_bound = max(self.lower_bound, min(lower_bound, self.cost))

    def _search(self, problem: Reduced, seed: int, patience: int, deadline: float) -> None:
        if self.is_proven:
            return
        choices = Choices(problem.options, problem.roots)

        def tell(found: local_search.Found) -> None:
            self.offer({c: choices.nodes[found.choice[c]] for c in found.cover.classes}, problem.free)

        first = local_search.start(choices)
        local_search.search(choices, seed, patience, deadline, tell, first)


def extract_dag(
    graph: PricedGraph,
    *,
    allowed: Allowed | None = None,
    seconds: float = 20.0,
    seed: int = 0,
    patience: int = PATIENCE,
    listen: Callable[[float], None] | None = None,
) -> Extracted:
    """The cheapest DAG for all roots together that is found in a time.

    The cheapest trees are the first DAG. The problem is reduced (`lift_egraph.extract.reduction`), searched locally,
    and, if that is not too much, looked through by branch and bound. After Ctrl-C the best so far is returned. Equal
    seeds give equal results, unless the time ends the search.

    Parameters
    ----------
    allowed
        Which nodes may be extracted; the others are not there for the search.
    seconds
        When to stop.
    seed
        Of the local search.
    patience
        How many rounds of local search in a row may bring nothing.
    listen
        Is told the cost of each better DAG.

    Raises
    ------
    SearchProblem
        If a root has no finite term.

    Examples
    --------
    >>> from lift_egraph.extract.gym import PricedNode
    >>> six = (PricedNode("a", "*", 0, (1, 2), 2.0), PricedNode("b", "+", 0, (2, 2), 2.0))
    >>> graph = PricedGraph((*six, PricedNode("c", "2", 1, (), 1.0), PricedNode("d", "3", 2, (), 2.0)), "623", (0,))
    >>> found = extract_dag(graph)
    >>> found.best[0].dag_cost, found.best[0].tree_cost, found.is_proven
    (4.0, 6.0, True)
    >>> extract_dag(graph, allowed=lambda node: node.op != "+").best[0].dag_cost
    5.0
    """
    began = time.monotonic()
    search = _Search(graph, allowed, listen)
    ended = ""
    try:
        search.run(seed, patience, began + seconds)
    except KeyboardInterrupt:
        ended = "interrupted"
    took = time.monotonic() - began
    if search.is_proven:
        ended = "proven"
    best = extraction_of(graph, search.chosen)
    lower = best.dag_cost if search.is_proven else search.lower_bound
    ended = ended or ("out of time" if took >= seconds else "no better found")
    return Extracted((best,), lower, search.is_proven, ended, took)


# --- trees ------------------------------------------------------------------------------------------------


class _TreeCost:
    """The sum of the nodes' costs, as a model of our own k-best search (see `lift_egraph.egraph.kbest.CostModel`)."""

    def __init__(self, costs: Sequence[float]) -> None:
        self.costs = costs

    def rate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        return Rating(min(self.costs[int(node.children[0])] + sum([p.cost for p in parts]), MOST), None)

    def accepts(self, shape: object) -> bool:
        return True


ROOTS = -1  # the class of the node that is applied to all roots


def extract_trees(graph: PricedGraph, count: int = 1, *, allowed: Allowed | None = None) -> Extracted:
    """The `count` best terms by tree cost, exactly; `lift_egraph.egraph.kbest.KBest` finds them.

    A term may use two nodes of one class in two places, so its DAG may too.

    Raises
    ------
    SearchProblem
        If a root has no finite term, or if other terms than the best are too deep.
    """
    began = time.monotonic()
    require_terms(graph, Choices(options_of(graph, allowed), graph.roots))
    nodes: dict[ClassId, list[ENode]] = {c: [] for c in range(len(graph.classes))}
    for i, (node, may) in enumerate(zip(graph.nodes, extractable(graph, allowed), strict=True)):
        if may:
            nodes[node.owner].append(ENode(node.op, (i, *node.children), node.children))
    nodes[ROOTS] = [ENode("roots", (len(graph.nodes), *graph.roots), graph.roots)]
    frozen = FrozenEGraph(nodes, dict.fromkeys(nodes, "Ex"), {}, {"root": ROOTS}, len(graph.nodes))
    search = KBest(frozen, _TreeCost([*(n.cost for n in graph.nodes), 0.0]))
    (root,) = search.vertices(ROOTS)
    if count == 1:
        chosen = {c: int(search.best_edge(vertices[0]).node.children[0]) for c, vertices in search.settled.items()}
        found = [extraction_of(graph, chosen)]
    else:
        try:
            found = [_shared(graph, choice) for _, choice in itertools.islice(search.choices(root), count)]
        except RecursionError:
            raise SearchProblem("the terms are too deep to look for more than the best") from None
    return Extracted(tuple(found), found[0].tree_cost, True, "proven", time.monotonic() - began)


def _shared(graph: PricedGraph, choice: Choice) -> Extraction:
    """A term, with what is equal in it once."""
    places: dict[Step, int] = {}
    known: dict[int, int] = {}
    waiting: list[tuple[Choice, bool]] = [(choice, False)]
    while waiting:
        current, ready = waiting.pop()
        if id(current) in known:
            continue
        if not ready:
            waiting.append((current, True))
            waiting += [(part, False) for part in current.parts]
            continue
        parts = tuple([known[id(part)] for part in current.parts])
        if current is choice:
            return _priced(graph, tuple(places), parts)
        step = Step(int(current.node.children[0]), parts)
        known[id(current)] = places.setdefault(step, len(places))
    raise AssertionError("a term ends with its root")
