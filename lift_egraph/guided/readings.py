"""What the nodes of an e-graph are in the language, and which classes have the form of a sketch."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from lift_egraph.caching import cached_property
from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.members import TERMS
from lift_egraph.egraph.pattern_nodes import CONSTANTS, name_in_language, pattern_node
from lift_egraph.guided.sketch import ANY, Contains, Hole, Named, OfType, OneOf, PatternSketch, Sketch
from lift_egraph.language import ir
from lift_egraph.language.types import Array


class Reading(NamedTuple):
    """A node as a pattern of the language: its name, numbers, and the length of the array that it works on."""

    name: str
    numbers: tuple[int, ...] = ()
    length: int | None = None


def called(node: ENode) -> str | None:
    """What the language calls a node; None for literals and what only the e-graph knows.

    Functions without a name for their argument, such as ``join``, are called as their body.
    """
    op = node.op
    pattern = pattern_node(op)
    if pattern is not None:
        return name_in_language(pattern, node.children)
    if op in NAMED_BY_CHILD:
        return str(node.children[0])
    return f"input {node.children[0]}" if op == "Ex_input" else _OTHER_NAMES.get(op)


def read(graph: FrozenEGraph, owner: ClassId, node: ENode) -> Reading | None:
    """What a node is in the language, if the language has a name for it."""
    name, pattern = called(node), pattern_node(node.op)
    if name is None:
        return None
    if pattern is None:
        return Reading(name, (int(node.children[0]),) if node.op == "Fn_vec" else ())
    length = None
    if pattern.signature.loop is not None:
        array = graph.domain(owner) if node.op in CONSTANTS else graph.type_of(node.classes[pattern.signature.loop])
        length = array.size.constant if isinstance(array, Array) else None
    return Reading(name, pattern.sizes(node.children), length)


NAMED_BY_CHILD = ("call1", "call2", "call3", "Op_scalar")
_OTHER_NAMES = {"Fn_vec": "vectorize", "Op_lift": "map", "Ex___init__": "variable"}
_SEVERAL_NAMES = (*NAMED_BY_CHILD, "Ex_input", "map_level", "to_memory")  # by what their children are


def names(name: str) -> tuple[str, ...]:
    """The names that a name in a sketch stands for."""
    if name != "mapPar":
        return (name,)
    return tuple(ir.Level(kind, d).name for kind in ("glb", "wrg", "lcl") for d in (0, 1, 2))


def fits(pattern: PatternSketch, reading: Reading) -> bool:
    """Whether a node has the numbers and the length that a sketch asks for."""
    wanted = (*pattern.numbers, *(None,) * len(reading.numbers))
    return pattern.length in (None, reading.length) and all(
        w in (None, n) for w, n in zip(wanted, reading.numbers, strict=False)
    )


def parts_described(pattern: PatternSketch) -> int:
    """How many parts a node has at least: a function such as ``join`` has no argument that a sketch could describe."""
    described = (i for i, p in enumerate(pattern.parts, 1) if p != ANY and not isinstance(p, Named))
    return max(described, default=0)


class Forms:
    """Which classes have a member of the form of a sketch, whatever the scopes of its variables.

    They are at least those that a member satisfies, and found in a fraction of the time that the cheapest members
    take: a search asks this after each iteration, and for members once there are any.
    """

    def __init__(self, graph: FrozenEGraph):
        self.graph = graph
        self._known: dict[Sketch, Set[ClassId]] = {}
        self._called: dict[str, list[tuple[ClassId, ENode]]] = {}

    def __call__(self, sketch: Sketch) -> Set[ClassId]:
        """The classes that have the form of a sketch."""
        known = self._known.get(sketch)
        if known is None:
            known = self._known[sketch] = self._compute(sketch)
        return known

    def called(self, name: str) -> list[tuple[ClassId, ENode]]:
        """The nodes that the language calls so, with their classes."""
        known = self._called.get(name)
        if known is None:
            known = self._called[name] = []
            for op, sites in self._by_op.items():
                if op in _SEVERAL_NAMES:
                    known += [site for site in sites if called(site[1]) == name]
                elif called(sites[0][1]) == name:
                    known += sites
        return known

    def fits(self, pattern: PatternSketch, owner: ClassId, node: ENode) -> bool:
        """Whether a node that is called so has the numbers and the length that a sketch asks for."""
        if pattern.length is None and not pattern.numbers:
            return True
        reading = read(self.graph, owner, node)
        return reading is not None and fits(pattern, reading)

    @cached_property
    def _by_op(self) -> dict[str, list[tuple[ClassId, ENode]]]:
        found: dict[str, list[tuple[ClassId, ENode]]] = {}
        for owner in self._terms:
            for node in self.graph.nodes[owner]:
                found.setdefault(node.op, []).append((owner, node))
        return found

    @cached_property
    def _terms(self) -> Set[ClassId]:
        return {c for c, sort in self.graph.sorts.items() if sort in TERMS}

    @cached_property
    def _users(self) -> dict[ClassId, list[ClassId]]:
        """The classes with a node that each class is a part of."""
        users: dict[ClassId, list[ClassId]] = {}
        for sites in self._by_op.values():
            for owner, node in sites:
                for part in term_classes(self.graph, node):
                    users.setdefault(part, []).append(owner)
        return users

    def _compute(self, sketch: Sketch) -> Set[ClassId]:
        if isinstance(sketch, Hole):
            return self._terms
        if isinstance(sketch, PatternSketch):
            return self._pattern(sketch)
        if isinstance(sketch, Contains):
            return self._above(self(sketch.inner))
        if isinstance(sketch, OneOf):
            return set[ClassId]().union(*map(self, sketch.alternatives))
        if isinstance(sketch, OfType):
            type_of, codomain = self.graph.type_of, self.graph.codomain
            return {c for c in self(sketch.inner) if sketch.type in (type_of(c), codomain(c))}
        assert isinstance(sketch, Named)
        return self(sketch.inner)

    def _pattern(self, pattern: PatternSketch) -> Set[ClassId]:
        wanted, least, found = list[Set[ClassId]](), parts_described(pattern), set[ClassId]()
        for number, part in enumerate(pattern.parts):
            wanted.append(self(part))
            if number < least and not wanted[-1]:
                return found
        for name in names(pattern.name):
            for owner, node in self.called(name):
                if owner in found:
                    continue
                inside = tuple(term_classes(self.graph, node))
                has_parts = len(inside) >= least and all(c in of for of, c in zip(wanted, inside, strict=False))
                if has_parts and self.fits(pattern, owner, node):
                    found.add(owner)
        for op in ("Fn_lam", "Op_fn"):  # functions with such a body, and operators that are such functions
            sites = self._by_op.get(op, ()) if found else ()
            found.update([owner for owner, node in sites if node.classes[-1] in found])
        return found

    def _above(self, seeds: Set[ClassId]) -> Set[ClassId]:
        """The classes with a part among these, and these."""
        found, waiting = set(seeds), list(seeds)
        while waiting:
            for owner in self._users.get(waiting.pop(), ()):
                if owner not in found:
                    found.add(owner)
                    waiting.append(owner)
        return found
