"""The k best members of a class of a frozen e-graph.

First a best-first pass (Knuth's generalisation of Dijkstra's algorithm) finds the best member of every
class for every shape; then better and worse alternatives are enumerated lazily from the root, each class
on demand (Huang and Chiang, "Better k-best parsing", 2005, algorithm 3). Shapes carry legality, so no
illegal member is built.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from extract.cost import CostModel, Rating, element_count
from lift_egraph import ir
from lift_egraph.binders import canonical
from lift_egraph.check import type_of
from lift_egraph.errors import LiftError
from lift_egraph.frozen import Choice, ClassId, ENode, FrozenEGraph, from_egg, term_classes
from lift_egraph.types import Array

PATIENCE = 200  # members of a class that contain the class itself: how many to discard before giving up

Vertex = tuple[ClassId, Hashable]


class Edge(NamedTuple):
    """A node with the vertices chosen for its parts."""

    node: ENode
    parts: tuple[Vertex, ...]


class Derivation(NamedTuple):
    """An edge with the rank of the member chosen for each part."""

    rating: Rating
    edge: Edge
    ranks: tuple[int, ...]
    inside: frozenset[int]  # all vertices in it, its own included: a member that contains itself is of no use


@dataclass
class _State:
    members: list[Derivation] = field(default_factory=list)
    queue: list[tuple[float, int, Derivation, bool]] = field(default_factory=list)
    seen: set[tuple[Edge, tuple[int, ...]]] = field(default_factory=set)
    blocked: list[tuple[Derivation, int]] = field(default_factory=list)
    expanded: int = 0
    started: bool = False
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

    Examples
    --------
    See `best_terms`.
    """

    def __init__(self, graph: FrozenEGraph, model: CostModel):
        self.graph = graph
        self.model = model
        self._tick = itertools.count()
        self._edges: dict[Vertex, list[tuple[Rating, Edge]]] = {}
        self._states: dict[Vertex, _State] = {}
        self._best: dict[Vertex, Derivation] = {}
        self._shapes: dict[ClassId, list[Hashable]] = {}
        self._ids: dict[Vertex, int] = {}
        self._first_pass()

    def _id(self, vertex: Vertex) -> int:
        return self._ids.setdefault(vertex, len(self._ids))

    def _first_pass(self) -> None:
        graph, model = self.graph, self.model
        parts_of: dict[int, tuple[ClassId, ...]] = {}
        users: dict[ClassId, list[tuple[ClassId, ENode, tuple[ClassId, ...]]]] = {}
        queue: list[tuple[float, int, Vertex, Derivation]] = []

        def offer(owner: ClassId, node: ENode, chosen: tuple[Vertex, ...]) -> None:
            rating = model.rate(graph, owner, node, tuple(self._best[v].rating for v in chosen))
            if rating is None:
                return
            vertex, edge = (owner, rating.shape), Edge(node, chosen)
            self._edges.setdefault(vertex, []).append((rating, edge))
            if vertex not in self._best:
                inside = frozenset((self._id(vertex),)).union(*(self._best[v].inside for v in chosen))
                d = Derivation(rating, edge, (0,) * len(chosen), inside)
                heapq.heappush(queue, (rating.cost, next(self._tick), vertex, d))

        for owner, members in graph.nodes.items():
            if graph.sorts[owner] not in ("Ex", "Fn", "Op"):
                continue
            for node in members:
                parts = tuple(term_classes(graph, node))
                parts_of[id(node)] = parts
                if not parts:
                    offer(owner, node, ())
                for part in set(parts):
                    users.setdefault(part, []).append((owner, node, parts))
        while queue:
            _, _, vertex, derivation = heapq.heappop(queue)
            if vertex in self._best:
                continue
            self._best[vertex] = derivation
            self._shapes.setdefault(vertex[0], []).append(vertex[1])
            for owner, node, parts in users.get(vertex[0], ()):
                options = [
                    [(p, s) for s in self._shapes.get(p, ())] for p in parts
                ]  # fmt: skip
                for chosen in itertools.product(*options):
                    if vertex in chosen:
                        offer(owner, node, chosen)

    def vertices(self, root: ClassId) -> list[Vertex]:
        """The legal shapes of a class."""
        return [(root, s) for s in self._shapes.get(root, ()) if self.model.accepts(s)]

    def _member(self, vertex: Vertex, rank: int) -> Derivation | None:
        state = self._states.setdefault(vertex, _State())
        if not state.started:
            state.started = True
            for rating, edge in self._edges.get(vertex, ()):
                self._push(vertex, state, rating, edge, [self._best[v] for v in edge.parts], (0,) * len(edge.parts))
        if state.busy:
            return state.members[rank] if rank < len(state.members) else None
        state.busy = True
        while len(state.members) <= rank:
            self._expand(vertex, state)
            if not state.queue or state.wasted > PATIENCE:
                break
            _, _, d, useful = heapq.heappop(state.queue)
            if useful:
                state.members.append(d)
            else:
                state.wasted += 1
                part = next(i for i, v in enumerate(d.edge.parts) if self._id(vertex) in self._chosen(v, d.ranks[i]).inside)
                state.blocked.append((d, part))
        state.busy = False
        return state.members[rank] if rank < len(state.members) else None

    def _chosen(self, vertex: Vertex, rank: int) -> Derivation:
        state = self._states.get(vertex)
        return state.members[rank] if state is not None and rank < len(state.members) else self._best[vertex]

    def _push(
        self, vertex: Vertex, state: _State, rating: Rating, edge: Edge, parts: list[Derivation], ranks: tuple[int, ...]
    ) -> None:
        key = (edge, ranks)
        if key in state.seen:
            return
        state.seen.add(key)
        inside = frozenset[int]().union(*(p.inside for p in parts))
        useful = self._id(vertex) not in inside
        d = Derivation(rating, edge, ranks, inside | {self._id(vertex)})
        heapq.heappush(state.queue, (rating.cost, next(self._tick), d, useful))

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
                if self._states[d.edge.parts[i]].busy:
                    state.blocked.append((d, i))
                continue
            parts = [m for p, r in zip(d.edge.parts, ranks, strict=True) if (m := self._member(p, r)) is not None]
            if len(parts) < len(ranks):
                continue
            rating = self.model.rate(self.graph, vertex[0], d.edge.node, tuple(p.rating for p in parts))
            if rating is not None:
                self._push(vertex, state, rating, d.edge, parts, ranks)

    def choices(self, vertex: Vertex) -> Iterator[tuple[float, Choice]]:
        """The members of a class with one shape, cheapest first."""
        for rank in itertools.count():
            member = self._member(vertex, rank)
            if member is None:
                return
            yield member.rating.cost, self._choice(vertex, rank)

    def _choice(self, vertex: Vertex, rank: int) -> Choice:
        d = self._member(vertex, rank)
        assert d is not None
        parts = tuple(self._choice(v, r) for v, r in zip(d.edge.parts, d.ranks, strict=True))
        return Choice(vertex[0], d.edge.node, parts)


@dataclass(frozen=True)
class Extracted:
    """A term with the cost it was extracted for."""

    cost: float
    term: ir.Expr


def best_terms(
    graph: FrozenEGraph,
    root: ClassId,
    model: CostModel,
    count: int,
    *,
    tries: int | None = None,
    per_shape: int | None = None,
    key: Callable[[ir.Expr], Hashable] = canonical,
) -> list[Extracted]:
    """The `count` best distinct legal terms of a class, cheapest first.

    Open terms (a class may be closed while a member mentions a variable) are left out.

    Parameters
    ----------
    tries
        How many members of each shape to look at (default: ten times `count`).
    per_shape
        How many terms of one shape to keep at most (default: `count`).
    key
        Terms with the same key count once. The default tells terms apart that differ in more than the
        names of binders; `skeleton` tells only computations apart.
    """
    search = KBest(graph, model)
    found: dict[Hashable, Extracted] = {}
    for vertex in search.vertices(root):
        kept = 0
        for cost, choice in itertools.islice(search.choices(vertex), tries or 10 * count):
            try:
                term = from_egg(graph, choice)
            except LiftError:  # an open member, or one without a type: another member of the class will do
                continue
            name = key(term)
            if name not in found or found[name].cost > cost:
                kept += name not in found
                found[name] = Extracted(cost, term)
            if kept >= (per_shape or count):
                break
    return sorted(found.values(), key=lambda e: e.cost)[:count]


def skeleton(term: ir.Part) -> Hashable:
    """The loops and operations of a term without its layout patterns: what it computes, in which order.

    Two terms with one skeleton differ at most in how indices are written.
    """
    inside = tuple(s for s in (skeleton(p) for p in ir.parts(term)) if s != ())
    if isinstance(term, ir.Map | ir.MapLevel) and computes(term.function):
        level = term.level if isinstance(term, ir.MapLevel) else None
        over = tuple(t.name for t in ir.subterms(term.array) if isinstance(t, ir.Input))
        return ("map", level, _length(term.array), over, isinstance(term.function, ir.Vectorize), *inside)
    if isinstance(term, ir.Reduce | ir.ReduceSeq):
        return (type(term).__name__, _length(term.array), element_count(type_of(term.initial)), *inside)
    if isinstance(term, ir.Call):
        return (term.op, *inside)
    if isinstance(term, ir.ToMemory | ir.Iterate | ir.Generate | ir.Lookup):
        return (type(term).__name__, *inside)
    return inside[0] if len(inside) == 1 else inside


def computes(term: ir.Part) -> bool:
    """Whether a term does more than rearrange data."""
    return any(isinstance(t, ir.Call | ir.Reduce | ir.ReduceSeq | ir.ToMemory) for t in ir.subterms(term))


def _length(array: ir.Expr) -> int | None:
    t = type_of(array)
    return t.size.constant if isinstance(t, Array) else None
