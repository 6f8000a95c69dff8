"""The cheapest members of a class of a frozen e-graph that satisfy a sketch.

For each part of the sketch, innermost first, a table gives the cheapest satisfying members of every class that
has one (`lift_egraph.egraph.kbest` finds those of the hole); `Contains` spreads from its seeds to the classes above in
order of cost, so that cycles do no harm. Nodes whose variables are not all free in their class are left out: the
members found are closed wherever their class is.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from lift_egraph.egraph.frozen import Choice, ClassId, ENode, FrozenEGraph, from_egg, read_part, term_classes
from lift_egraph.egraph.kbest import KBest, Rating
from lift_egraph.egraph.members import TERMS
from lift_egraph.errors import SketchProblem
from lift_egraph.guided.readings import Forms, fits, names
from lift_egraph.guided.sketch import (
    ANY,
    Contains,
    Hole,
    Named,
    OfType,
    OneOf,
    PatternSketch,
    Sketch,
    parts,
    subsketches,
)
from lift_egraph.language import ir

Weigh = Callable[[FrozenEGraph, ClassId, ENode], float]
WEIGHTS = {"app": 20.0, "combine": 50.0, "component": 5.0, "make_pair": 2.0, "Fn_lam": 0.1, "Ex___init__": 0.5}


def term_size(graph: FrozenEGraph, owner: ClassId, node: ENode) -> float:
    """The default weight of a node: short terms come first, with few applications and unfolded operators."""
    return WEIGHTS.get(node.op, 1.0)


@dataclass(eq=False, slots=True)
class Member:
    """A member of a class: a node, and a member for each of its parts; what stands for names in the sketch."""

    cost: float
    class_id: ClassId
    node: ENode
    parts: tuple[Member, ...]
    names: tuple[tuple[str, Member], ...] = ()

    def choice(self) -> Choice:
        """The same as a choice of nodes."""
        return Choice(self.class_id, self.node, tuple(p.choice() for p in self.parts))


@dataclass(frozen=True)
class Match:
    """A term that satisfies a sketch.

    `names` holds, for each named part of the sketch, the term or function that stands for it; it may mention
    variables bound around it.
    """

    cost: float
    term: ir.Expr
    names: dict[str, ir.Part]


Table = dict[ClassId, list[Member]]


def satisfying(
    graph: FrozenEGraph, root: ClassId, sketch: Sketch, *, count: int = 1, weigh: Weigh = term_size
) -> list[Match]:
    """The `count` cheapest members of a class that satisfy a sketch, cheapest first; maybe fewer, or none.

    Parameters
    ----------
    graph, root
        A frozen e-graph and one of its classes.
    weigh
        What a node counts; the cost of a term is the sum over its nodes. Not negative; infinity rules a node out.
    """
    return Matcher(graph, weigh, count).matches(root, sketch)


class Matcher:
    """Sketches on one e-graph, of which the cheapest members and scopes are computed once.

    They are computed when a class has the form of a sketch: most e-graphs of a search have no such class.

    Parameters
    ----------
    count
        How many members of a class to keep for each part of a sketch.
    """

    def __init__(self, graph: FrozenEGraph, weigh: Weigh = term_size, count: int = 1):
        self.graph, self.count = graph, count
        self._weigh = weigh
        self._forms = Forms(graph)
        self._tables: dict[Sketch, Table] = {}

    @cached_property
    def _nodes(self) -> dict[tuple[ClassId, ENode], tuple[ClassId, ...]]:
        return closed_nodes(self.graph)

    @cached_property
    def _weights(self) -> dict[tuple[ClassId, ENode], float]:
        return {site: w for site in self._nodes if (w := self._weigh(self.graph, *site)) < math.inf}

    @cached_property
    def _search(self) -> KBest:
        return KBest(self.graph, self)

    @cached_property
    def _cheapest(self) -> dict[ClassId, Member]:
        found: dict[ClassId, Member] = {}
        for owner, (vertex,) in self._search.settled.items():
            edge = self._search.best_edge(vertex)
            inside = tuple(found[v.class_id] for v in edge.parts)
            found[owner] = Member(edge.rating.cost, owner, edge.node, inside)
        return found

    def matches(self, root: ClassId, sketch: Sketch) -> list[Match]:
        """The cheapest members of a class that satisfy a sketch."""
        found = []
        for member in self._members(root, sketch):
            names = {name: read_part(self.graph, m.choice()) for name, m in member.names}
            found.append(Match(member.cost, from_egg(self.graph, member.choice()), names))
        return found

    def best(self, root: ClassId, sketch: Sketch) -> Choice | None:
        """The cheapest member of a class that satisfies a sketch, as nodes of the e-graph."""
        found = self._members(root, sketch)
        return found[0].choice() if found else None

    def _members(self, root: ClassId, sketch: Sketch) -> list[Member]:
        return self._table(sketch).get(root, []) if root in self._forms(sketch) else []

    def require(self, root: ClassId, sketch: Sketch) -> Match:
        """The cheapest member of a class that satisfies a sketch.

        Raises
        ------
        SketchProblem
            If there is none, saying which part of the sketch is not satisfied.
        """
        found = self.matches(root, sketch)
        if not found:
            raise SketchProblem(self.why_not(root, sketch))
        return found[0]

    def why_not(self, root: ClassId, sketch: Sketch) -> str:
        """Which part of a sketch no class satisfies, if a class does not."""
        is_formed = root in self._forms(sketch)
        for part in subsketches(sketch):
            if not self._forms(part) or (is_formed and not self._table(part)):
                text = f"no term in the e-graph satisfies {part}"
                inside = [p for p in parts(part) if p != ANY]
                if inside:
                    text += f"; its parts are satisfied: {', '.join(str(p) for p in inside)}"
                if isinstance(part, PatternSketch):
                    text += self._near(part)
                return text
        count, what = (
            (len(self._table(sketch)), "satisfy") if is_formed else (len(self._forms(sketch)), "have the form")
        )
        return f"{count} terms in the e-graph {what} {sketch}, but not the program"

    def _near(self, pattern: PatternSketch) -> str:
        there = [r for name in names(pattern.name) for _, _, r in self._forms.called(name)]
        if not there:
            return f"; there is no {pattern.name} at all"
        lengths = sorted({r.length for r in there if r.length is not None})
        if pattern.length is not None and pattern.length not in lengths:
            return f"; {pattern.name} works on lengths {', '.join(map(str, lengths))} there"
        return ""

    def _table(self, sketch: Sketch) -> Table:
        known = self._tables.get(sketch)
        if known is None:
            known = self._tables[sketch] = self._compute(sketch)
        return known

    def _compute(self, sketch: Sketch) -> Table:
        if isinstance(sketch, Hole):
            return {c: [m] for c, m in self._cheapest.items()}
        if isinstance(sketch, PatternSketch):
            return self._pattern(sketch)
        if isinstance(sketch, Contains):
            return self._contains(self._table(sketch.inner))
        if isinstance(sketch, OneOf):
            both: Table = {}
            for table in map(self._table, sketch.alternatives):
                for c, members in table.items():
                    both[c] = _cheapest([*both.get(c, ()), *members], self.count)
            return both
        if isinstance(sketch, OfType):
            inner = self._table(sketch.inner)
            return {c: m for c, m in inner.items() if sketch.type in (self.graph.type_of(c), self.graph.codomain(c))}
        assert isinstance(sketch, Named)
        return {
            c: [Member(m.cost, c, m.node, m.parts, ((sketch.name, m), *m.names)) for m in members]
            for c, members in self._table(sketch.inner).items()
        }

    def rate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        """The weight of a node and of its parts, as a cost model; members are not told apart."""
        weight = self._weights.get((owner, node))
        return None if weight is None else Rating(weight + sum(p.cost for p in parts), None)

    def accepts(self, shape: object) -> bool:
        """Whether a whole term of this shape is legal: all are."""
        return True

    def _member(self, owner: ClassId, node: ENode, inside: tuple[Member, ...]) -> Member:
        cost = self._weights[owner, node] + sum(m.cost for m in inside)
        names = tuple(name for m in inside for name in m.names) if any(m.names for m in inside) else ()
        return Member(cost, owner, node, inside, names)

    def _pattern(self, pattern: PatternSketch) -> Table:
        table: Table = {}
        wanted = [self._table(p) for p in pattern.parts]
        for name in names(pattern.name):
            for owner, node, reading in self._forms.called(name):
                if (owner, node) not in self._weights:
                    continue
                inside = self._nodes[owner, node]
                if not fits(pattern, reading, len(inside)):
                    continue
                tables = itertools.chain(wanted, itertools.repeat(self._table(ANY)))
                options = [t.get(p) for t, p in zip(tables, inside, strict=False)]
                if all(options):
                    made = [self._member(owner, node, chosen) for chosen in itertools.product(*options)]  # pyright: ignore
                    table[owner] = _cheapest([*table.get(owner, ()), *made], self.count)
        for sort in ("Fn", "Op"):  # functions with such a body, and operators that are such functions
            for owner, node in self._weights:
                if self.graph.sorts[owner] == sort and node.op in ("Fn_lam", "Op_fn"):
                    bodies = table.get(self._nodes[owner, node][0])
                    if bodies:
                        made = [self._member(owner, node, (b,)) for b in bodies]
                        table[owner] = _cheapest([*table.get(owner, ()), *made], self.count)
        return table

    def _contains(self, seeds: Table) -> Table:
        tick = itertools.count()
        queue = [(m.cost, next(tick), m) for members in seeds.values() for m in members]
        heapq.heapify(queue)
        table: Table = {}
        while queue:
            _, _, member = heapq.heappop(queue)
            known = table.setdefault(member.class_id, [])
            if len(known) >= self.count:
                continue
            known.append(member)
            for owner, node, inside in self._search.users.get(member.class_id, ()):
                if len(table.get(owner, ())) >= self.count or (owner, node) not in self._weights:
                    continue
                for i, part in enumerate(inside):
                    if part != member.class_id or any(p not in self._cheapest for p in inside):
                        continue
                    chosen = tuple(member if i == j else self._cheapest[p] for j, p in enumerate(inside))
                    made = self._member(owner, node, chosen)
                    heapq.heappush(queue, (made.cost, next(tick), made))
        return table


def _cheapest(members: list[Member], count: int) -> list[Member]:
    return sorted(members, key=lambda m: m.cost)[:count]


# --- scopes ----------------------------------------------------------------------------------------------


def closed_nodes(graph: FrozenEGraph) -> dict[tuple[ClassId, ENode], tuple[ClassId, ...]]:
    """The nodes of terms whose free variables are all free in their class, with their parts.

    A variable is free in a class if it is in every member; a member with more, such as the projection of a pair
    that mentions it, would let the variable escape its binder.
    """
    sites = {
        (c, n): tuple(term_classes(graph, n)) for c, ns in graph.nodes.items() if graph.sorts[c] in TERMS for n in ns
    }
    users: dict[ClassId, list[tuple[ClassId, ENode]]] = {}
    for site, inside in sites.items():
        for part in set(inside):
            users.setdefault(part, []).append(site)
    free: dict[ClassId, frozenset[ClassId]] = {}
    bound: dict[ClassId, frozenset[ClassId]] = {}

    def mentioned(node: ENode, inside: tuple[ClassId, ...]) -> frozenset[ClassId] | None:
        if node.op == "Ex___init__":
            return frozenset(node.classes)
        if any(p not in free for p in inside):
            return None
        names = frozenset[ClassId]().union(*(free[p] for p in inside))
        return names - _binders(graph, node.classes[0], bound) if node.op == "Fn_lam" else names

    waiting = list(sites)
    while waiting:
        later: set[tuple[ClassId, ENode]] = set()
        for site in waiting:
            owner, node = site
            names = mentioned(node, sites[site])
            if names is None:
                continue
            smaller = names if owner not in free else free[owner] & names
            if free.get(owner) != smaller:
                free[owner] = smaller
                later.update(users.get(owner, ()))
        waiting = list(later)
    kept = {}
    for site, inside in sites.items():
        names = mentioned(site[1], inside)
        if names is not None and names <= free[site[0]]:
            kept[site] = inside
    return kept


def _binders(graph: FrozenEGraph, pattern: ClassId, known: dict[ClassId, frozenset[ClassId]]) -> frozenset[ClassId]:
    if pattern not in known:
        n = graph.nodes[pattern][0]
        inside: Iterator[frozenset[ClassId]] = (_binders(graph, c, known) for c in n.classes)
        known[pattern] = frozenset(n.classes) if n.op == "P_var" else frozenset[ClassId]().union(*inside)
    return known[pattern]
