"""The k best members of the classes of a frozen e-graph, for any cost that is found bottom-up.

First a best-first pass (Knuth's generalisation of Dijkstra's algorithm) finds the best member of every
class for every shape; then better and worse alternatives are enumerated lazily from the root, each class
on demand (Huang and Chiang, "Better k-best parsing", 2005, algorithm 3). Shapes carry legality, so no
illegal member is built.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.members import TERMS
from lift_egraph.egraph.read_back import Choice
from lift_egraph.errors import ModelProblem
from lift_egraph.garbage import no_search_for_garbage


class Rating(NamedTuple):
    """The cost of a member of a class, and the summary that decides where it may stand.

    `layout` counts the patterns in it that only rearrange data. They are free when it runs, but of two
    members that compute the same the plainer one should come first, and the others long after.
    """

    cost: float
    shape: Hashable
    layout: int = 0


class CostModel(Protocol):
    """What to minimise: rates one node from the ratings of its parts.

    It must never rate a node below a part, so that best-first search is exact. Two members of a class with different
    shapes are kept apart.
    """

    def rate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        """The rating of a node, or None if it may not be extracted with these parts."""
        ...

    def accepts(self, shape: Hashable) -> bool:
        """Whether a whole term of this shape is legal."""
        ...


@dataclass(eq=False, slots=True)
class Vertex:
    """The members of a class that have one shape."""

    class_id: ClassId
    shape: Hashable
    least: float = math.inf  # the order of the best member met so far
    candidate: Rating | None = None  # its rating
    rating: Rating | None = None  # of the best member, once it is known
    edges: list[Edge] = field(default_factory=list)
    best: Derivation | None = None
    state: _State | None = None


@dataclass(eq=False, slots=True)
class Edge:
    """A node with the vertices chosen for its parts, rated with the best member of each."""

    rating: Rating
    node: ENode
    parts: tuple[Vertex, ...]


class Derivation(NamedTuple):
    """An edge with the rank of the member chosen for each part."""

    rating: Rating
    edge: Edge
    ranks: tuple[int, ...]
    inside: frozenset[Vertex]  # all vertices in it, its own included: a member that contains itself is of no use


@dataclass(eq=False, slots=True)
class _State:
    members: list[Derivation] = field(default_factory=list)
    queue: list[tuple[float, int, Derivation, bool]] = field(default_factory=list)
    seen: set[tuple[Edge, tuple[int, ...]]] = field(default_factory=set)
    blocked: list[tuple[Derivation, int]] = field(default_factory=list)
    expanded: int = 0
    busy: bool = False
    wasted: int = 0


class KBest:
    """Lazy enumeration of the members of classes in order of cost.

    Parameters
    ----------
    graph
        The e-graph.
    model
        What to minimise.
    layout_weight
        What a pattern that only rearranges data counts in the order of members.
    patience
        How many members of a class that contain the class itself to discard before giving up.

    Attributes
    ----------
    settled
        The vertices of each class that has a legal member, those with cheaper members first.
    users
        The nodes that each class is a part of, with their classes and all their parts.
    """

    def __init__(self, graph: FrozenEGraph, model: CostModel, layout_weight: float = 1.0, patience: int = 200):
        self.graph = graph
        self.model = model
        self._tick = itertools.count()
        self._choices: dict[tuple[Vertex, int], Choice] = {}
        self.layout_weight, self.patience = layout_weight, patience
        self.settled: dict[ClassId, list[Vertex]] = {}
        self.users: dict[ClassId, list[tuple[ClassId, ENode, tuple[ClassId, ...]]]] = {}
        with no_search_for_garbage():
            self._first_pass()

    def _order(self, rating: Rating) -> float:
        return rating.cost + self.layout_weight * rating.layout

    def _rate(self, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        try:
            rating = self.model.rate(self.graph, owner, node, parts)
            if rating is None or rating.cost <= math.inf:
                return rating
        except Exception as problem:  # anything at all: it may be a user's model
            raise self._failed(f"a node {node.op}", problem) from problem
        name = type(self.model).__name__
        raise ModelProblem(f"the cost model {name} rates a node {node.op} with {rating.cost}; a cost is a number")

    def _failed(self, what: str, problem: Exception) -> ModelProblem:
        name = type(self.model).__name__
        return ModelProblem(f"the cost model {name} failed on {what}: {type(problem).__name__}: {problem}")

    def _first_pass(self) -> None:
        """Settle the vertices in the order of their best members' cost, collecting the edges of each."""
        graph, rate, settled, users = self.graph, self._rate, self.settled, self.users
        vertices: dict[tuple[ClassId, Hashable], Vertex] = {}
        queue: list[tuple[float, int, Vertex]] = []

        def offer(owner: ClassId, node: ENode, chosen: tuple[Vertex, ...], ratings: tuple[Rating, ...]) -> None:
            rating = rate(owner, node, ratings)
            if rating is None:
                return
            key = (owner, rating.shape)
            vertex = vertices.get(key)
            if vertex is None:
                vertex = vertices[key] = Vertex(owner, rating.shape)
            vertex.edges.append(Edge(rating, node, chosen))
            order = self._order(rating)
            if vertex.rating is None and order < vertex.least:
                vertex.least, vertex.candidate = order, rating
                heapq.heappush(queue, (order, next(self._tick), vertex))

        for owner, members in graph.nodes.items():
            if graph.sorts[owner] not in TERMS:
                continue
            for node in members:
                parts = tuple(term_classes(graph, node))
                if not parts:
                    offer(owner, node, (), ())
                for part in set(parts):
                    users.setdefault(part, []).append((owner, node, parts))
        while queue:
            _, _, vertex = heapq.heappop(queue)
            if vertex.rating is not None:
                continue
            vertex.rating = vertex.candidate
            settled.setdefault(vertex.class_id, []).append(vertex)
            for owner, node, parts in users.get(vertex.class_id, ()):
                for chosen in _with(vertex, parts, settled):
                    offer(owner, node, chosen, tuple([v.rating for v in chosen]))  # pyright: ignore[reportArgumentType]

    def vertices(self, root: ClassId) -> list[Vertex]:
        """The legal shapes of a class."""
        try:
            return [v for v in self.settled.get(root, ()) if self.model.accepts(v.shape)]
        except Exception as problem:  # see `_rate`
            raise self._failed("a shape", problem) from problem

    def best_edge(self, vertex: Vertex) -> Edge:
        """The node that the best member begins with, with the vertices of its parts."""
        return next(e for e in vertex.edges if self._order(e.rating) == vertex.least)

    def _best(self, vertex: Vertex) -> Derivation:
        if vertex.best is None:
            edge = self.best_edge(vertex)
            inside = frozenset((vertex,)).union(*(self._best(v).inside for v in edge.parts))
            vertex.best = Derivation(edge.rating, edge, (0,) * len(edge.parts), inside)
        return vertex.best

    def _member(self, vertex: Vertex, rank: int) -> Derivation | None:
        state = vertex.state
        if state is None:
            state = vertex.state = _State()
            for edge in vertex.edges:
                self._push(vertex, edge.rating, edge, [self._best(v) for v in edge.parts], (0,) * len(edge.parts))
        if state.busy:
            return state.members[rank] if rank < len(state.members) else None
        state.busy = True
        while len(state.members) <= rank:
            self._expand(vertex, state)
            if not state.queue or state.wasted > self.patience:
                break
            _, _, d, useful = heapq.heappop(state.queue)
            if useful:
                state.members.append(d)
            else:
                state.wasted += 1
                chosen = (self._chosen(v, r) for v, r in zip(d.edge.parts, d.ranks, strict=True))
                state.blocked.append((d, next(i for i, c in enumerate(chosen) if vertex in c.inside)))
        state.busy = False
        return state.members[rank] if rank < len(state.members) else None

    def _chosen(self, vertex: Vertex, rank: int) -> Derivation:
        state = vertex.state
        return state.members[rank] if state is not None and rank < len(state.members) else self._best(vertex)

    def _push(
        self, vertex: Vertex, rating: Rating, edge: Edge, parts: list[Derivation], ranks: tuple[int, ...]
    ) -> None:
        state = vertex.state
        assert state is not None
        key = (edge, ranks)
        if key in state.seen:
            return
        state.seen.add(key)
        inside = frozenset[Vertex]().union(*[p.inside for p in parts])
        useful = vertex not in inside
        d = Derivation(rating, edge, ranks, inside | {vertex})
        heapq.heappush(state.queue, (self._order(rating), next(self._tick), d, useful))

    def _expand(self, vertex: Vertex, state: _State) -> None:
        """Offer the successors of members not expanded yet: one part exchanged for its next member."""
        waiting, state.blocked = state.blocked, []
        while state.expanded < len(state.members):
            last = state.members[state.expanded]
            state.expanded += 1
            waiting += [(last, i) for i in range(len(last.ranks))]
        for d, i in waiting:
            ranks = (*d.ranks[:i], d.ranks[i] + 1, *d.ranks[i + 1 :])
            if self._member(d.edge.parts[i], ranks[i]) is None:
                exchanged = d.edge.parts[i].state
                if exchanged is not None and exchanged.busy:
                    state.blocked.append((d, i))
                continue
            parts = [m for p, r in zip(d.edge.parts, ranks, strict=True) if (m := self._member(p, r)) is not None]
            if len(parts) < len(ranks):
                continue
            rating = self._rate(vertex.class_id, d.edge.node, tuple([p.rating for p in parts]))
            if rating is not None:
                self._push(vertex, rating, d.edge, parts, ranks)

    def choices(self, vertex: Vertex) -> Iterator[tuple[float, Choice]]:
        """The members of a class with one shape, cheapest first."""
        for rank in itertools.count():
            member = self._member(vertex, rank)
            if member is None:
                return
            yield member.rating.cost, self._choice(vertex, rank)

    def _choice(self, vertex: Vertex, rank: int) -> Choice:
        known = self._choices.get((vertex, rank))
        if known is None:
            d = self._member(vertex, rank)
            assert d is not None
            parts = tuple(self._choice(v, r) for v, r in zip(d.edge.parts, d.ranks, strict=True))
            known = self._choices[vertex, rank] = Choice(vertex.class_id, d.edge.node, parts)
        return known


def _with(
    vertex: Vertex, parts: tuple[ClassId, ...], settled: dict[ClassId, list[Vertex]]
) -> Iterable[tuple[Vertex, ...]]:
    """Every choice of settled vertices for the parts of a node in which one vertex occurs."""
    owner = vertex.class_id
    if len(parts) == 1:
        return ((vertex,),)
    if parts.count(owner) == 1:
        return itertools.product(*[(vertex,) if p == owner else settled.get(p, ()) for p in parts])
    return (c for c in itertools.product(*[settled.get(p, ()) for p in parts]) if vertex in c)
