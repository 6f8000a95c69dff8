"""The cheapest members of a class of a frozen e-graph that satisfy a sketch.

For each part of the sketch, innermost first, a table gives the cheapest satisfying members of every class that
has one; `Contains` spreads from its seeds to the classes above in order of cost, so that cycles do no harm. Nodes
whose variables are not all free in their class are left out: the members found are closed wherever their class is.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from lift_egraph.caching import cached_property
from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.read_back import Choice, from_egg, read_part
from lift_egraph.errors import SketchProblem
from lift_egraph.guided.readings import Forms, names, parts_described, read
from lift_egraph.guided.scopes import Site, closed_sites, users_of
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
    sketch
        What to look for (`lift_egraph.guided.sketch`).
    weigh
        What a node counts; the cost of a term is the sum over its nodes. Not negative; infinity rules a node out.
    """
    return Matcher(graph, weigh, count).matches(root, sketch)


class Matcher:
    """Sketches on one e-graph, of which the cheapest members and scopes are computed once.

    They are computed when a class has the form of a sketch: most e-graphs of a search have no such class.

    Parameters
    ----------
    weigh
        What a node counts: see `satisfying`.
    count
        How many members of a class to keep for each part of a sketch.
    """

    def __init__(self, graph: FrozenEGraph, weigh: Weigh = term_size, count: int = 1):
        self.graph, self.count = graph, count
        self._weigh = weigh
        self._forms = Forms(graph)
        self._tables: dict[Sketch, Table] = {}

    @cached_property
    def _closed(self) -> list[Site]:
        return closed_sites(self.graph)

    @cached_property
    def _weights(self) -> dict[int, float]:
        """What each node that may be in a member counts, by the node's identity: it is in one class only."""
        weights = ((id(site.node), self._weigh(self.graph, site.owner, site.node)) for site in self._closed)
        return {node: weight for node, weight in weights if weight < math.inf}

    @cached_property
    def _sites(self) -> list[Site]:
        """The nodes that may be in a member."""
        return [site for site in self._closed if id(site.node) in self._weights]

    @cached_property
    def _users(self) -> dict[ClassId, list[int]]:
        return users_of(self._sites)

    @cached_property
    def _cheapest(self) -> dict[ClassId, Member]:
        """The cheapest member of each class, by Knuth's generalisation of Dijkstra's algorithm."""
        found: dict[ClassId, Member] = {}
        least: dict[ClassId, float] = {}
        queue: list[tuple[float, int, Site]] = []
        missing = [len(set(site.parts)) for site in self._sites]
        tick = itertools.count()

        def offer(site: Site) -> None:
            cost = self._weights[id(site.node)] + sum(found[p].cost for p in site.parts)
            if site.owner not in found and cost < least.get(site.owner, math.inf):
                least[site.owner] = cost
                heapq.heappush(queue, (cost, next(tick), site))

        for site in self._sites:
            if not site.parts:
                offer(site)
        while queue:
            cost, _, (owner, node, parts) = heapq.heappop(queue)
            if owner in found:
                continue
            found[owner] = Member(cost, owner, node, tuple(found[p] for p in parts))
            for number in self._users.get(owner, ()):
                missing[number] -= 1
                if not missing[number]:
                    offer(self._sites[number])
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

    def unmet(self, root: ClassId, sketch: Sketch) -> Sketch | None:
        """The part of a sketch that no class satisfies while its own parts are satisfied, if there is one."""
        is_formed = root in self._forms(sketch)
        return next(
            (
                part
                for part in subsketches(sketch)
                if not self._forms(part) or (is_formed and not self._table(part))
            ),
            None,
        )

    def why_not(self, root: ClassId, sketch: Sketch) -> str:
        """Which part of a sketch no class satisfies, if a class does not."""
        part = self.unmet(root, sketch)
        if part is not None:
            text = f"no term in the e-graph satisfies {part}"
            inside = [p for p in parts(part) if p != ANY]
            if inside:
                text += f"; its parts are satisfied: {', '.join(str(p) for p in inside)}"
            return text + (self._near(part) if isinstance(part, PatternSketch) else "")
        is_formed = root in self._forms(sketch)
        count, what = (
            (len(self._table(sketch)), "satisfy") if is_formed else (len(self._forms(sketch)), "have the form")
        )
        return f"{count} terms in the e-graph {what} {sketch}, but not the program"

    def _near(self, pattern: PatternSketch) -> str:
        sites = (site for name in names(pattern.name) for site in self._forms.called(name))
        there = [r for site in sites if (r := read(self.graph, *site)) is not None]
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

    def _member(self, owner: ClassId, node: ENode, inside: tuple[Member, ...]) -> Member:
        cost = self._weights[id(node)] + sum(m.cost for m in inside)
        names = tuple(name for m in inside for name in m.names) if any(m.names for m in inside) else ()
        return Member(cost, owner, node, inside, names)

    def _pattern(self, pattern: PatternSketch) -> Table:
        table: Table = {}
        wanted, least, formed = [self._table(p) for p in pattern.parts], parts_described(pattern), self._forms(pattern)
        for name in names(pattern.name):
            for owner, node in self._forms.called(name):
                if owner not in formed or id(node) not in self._weights or not self._forms.fits(pattern, owner, node):
                    continue
                inside = tuple(term_classes(self.graph, node))
                if len(inside) < least:
                    continue
                tables = itertools.chain(wanted, itertools.repeat(self._table(ANY)))
                options = [t.get(p) for t, p in zip(tables, inside, strict=False)]
                if all(options):
                    made = [self._member(owner, node, chosen) for chosen in itertools.product(*options)]  # pyright: ignore
                    table[owner] = _cheapest([*table.get(owner, ()), *made], self.count)
        for op in ("Fn_lam", "Op_fn"):  # functions with such a body, and operators that are such functions
            for owner, node, inside in self._sites if table else ():
                if node.op == op:
                    bodies = table.get(inside[0])
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
            for number in self._users.get(member.class_id, ()):
                owner, node, inside = self._sites[number]
                if len(table.get(owner, ())) >= self.count:
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
