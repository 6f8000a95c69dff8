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

from lift_egraph.egraph.frozen import Choice, ClassId, ENode, FrozenEGraph, from_egg, read_part, term_classes
from lift_egraph.egraph.kbest import KBest, Rating
from lift_egraph.egraph.members import TERMS
from lift_egraph.egraph.pattern_nodes import CONSTANTS, name_in_language, pattern_node
from lift_egraph.errors import SketchProblem
from lift_egraph.guided.sketch import ANY, Contains, Named, OfType, OneOf, PatternSketch, Sketch, parts, subsketches
from lift_egraph.language import ir
from lift_egraph.language.types import Array

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

    Parameters
    ----------
    count
        How many members of a class to keep for each part of a sketch.
    """

    def __init__(self, graph: FrozenEGraph, weigh: Weigh = term_size, count: int = 1):
        self.graph, self.count = graph, count
        self._nodes = closed_nodes(graph)
        self._weights = {site: w for site in self._nodes if (w := weigh(graph, *site)) < math.inf}
        self._by_name: dict[str, list[tuple[ClassId, ENode, Reading]]] = {}
        for owner, node in self._weights:
            reading = read(graph, owner, node)
            if reading is not None:
                self._by_name.setdefault(reading.name, []).append((owner, node, reading))
        search = KBest(graph, self)
        self._users = search.users
        self._cheapest: dict[ClassId, Member] = {}
        for owner, (vertex,) in search.settled.items():
            edge = search.best_edge(vertex)
            inside = tuple(self._cheapest[v.class_id] for v in edge.parts)
            self._cheapest[owner] = Member(edge.rating.cost, owner, edge.node, inside)
        self._tables: dict[Sketch, Table] = {ANY: {c: [m] for c, m in self._cheapest.items()}}

    def matches(self, root: ClassId, sketch: Sketch) -> list[Match]:
        """The cheapest members of a class that satisfy a sketch."""
        found = []
        for member in self._table(sketch).get(root, ()):
            names = {name: read_part(self.graph, m.choice()) for name, m in member.names}
            found.append(Match(member.cost, from_egg(self.graph, member.choice()), names))
        return found

    def best(self, root: ClassId, sketch: Sketch) -> Choice | None:
        """The cheapest member of a class that satisfies a sketch, as nodes of the e-graph."""
        found = self._table(sketch).get(root, ())
        return found[0].choice() if found else None

    def require(self, root: ClassId, sketch: Sketch) -> Match:
        """The cheapest member of a class that satisfies a sketch.

        Raises
        ------
        SketchProblem
            If there is none, saying which part of the sketch is not satisfied.
        """
        found = self.matches(root, sketch)
        if not found:
            raise SketchProblem(self.why_not(sketch))
        return found[0]

    def why_not(self, sketch: Sketch) -> str:
        """Which part of a sketch no class satisfies."""
        for part in subsketches(sketch):
            if not self._table(part):
                text = f"no term in the e-graph satisfies {part}"
                inside = [p for p in parts(part) if p != ANY]
                if inside:
                    text += f"; its parts are satisfied: {', '.join(str(p) for p in inside)}"
                if isinstance(part, PatternSketch):
                    text += self._near(part)
                return text
        return f"{len(self._table(sketch))} terms in the e-graph satisfy {sketch}, but not the program"

    def _near(self, pattern: PatternSketch) -> str:
        there = [r for name in _names(pattern.name) for _, _, r in self._by_name.get(name, ())]
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
        for name in _names(pattern.name):
            for owner, node, reading in self._by_name.get(name, ()):
                if not _fits(pattern, reading):
                    continue
                inside = self._nodes[owner, node]
                if any(p not in (ANY,) and not isinstance(p, Named) for p in pattern.parts[len(inside) :]):
                    continue  # a function such as join has no argument that a sketch could describe
                tables = itertools.chain(wanted, itertools.repeat(self._tables[ANY]))
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
            for owner, node, inside in self._users.get(member.class_id, ()):
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


# --- what a node is in the language ----------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """A node as a pattern of the language: its name, numbers, and the length of the array that it works on."""

    name: str
    numbers: tuple[int, ...] = ()
    length: int | None = None


def read(graph: FrozenEGraph, owner: ClassId, node: ENode) -> Reading | None:
    """What a node is in the language; None for literals and what only the e-graph knows.

    Functions without a name for their argument, such as ``join``, are read as their body.
    """
    op, first = node.op, node.children[0] if node.children else None
    pattern = pattern_node(op)
    if pattern is not None:
        length = None
        if pattern.signature.loop is not None:
            array = graph.domain(owner) if op in CONSTANTS else graph.type_of(node.classes[pattern.signature.loop])
            length = array.size.constant if isinstance(array, Array) else None
        return Reading(name_in_language(pattern, node.children), pattern.sizes(node.children), length)
    if op == "Fn_vec":
        return Reading("vectorize", (int(node.children[0]),))
    if op == "Op_lift":
        return Reading("map")
    if op in ("call1", "call2", "call3", "Op_scalar"):
        return Reading(str(first))
    if op == "Ex___init__":
        return Reading("variable")
    return Reading(f"input {first}") if op == "Ex_input" else None


def _names(name: str) -> tuple[str, ...]:
    if name != "mapPar":
        return (name,)
    return tuple(ir.Level(kind, d).name for kind in ("glb", "wrg", "lcl") for d in (0, 1, 2))


def _fits(pattern: PatternSketch, reading: Reading) -> bool:
    wanted = (*pattern.numbers, *(None,) * len(reading.numbers))
    return pattern.length in (None, reading.length) and all(
        w in (None, n) for w, n in zip(wanted, reading.numbers, strict=False)
    )


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
