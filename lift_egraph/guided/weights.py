"""Weights for sketches: which of the terms that satisfy one is taken."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.pattern_nodes import CONSTANTS, PATTERN_NODES
from lift_egraph.guided.matcher import Weigh, term_size
from lift_egraph.language import ir
from lift_egraph.language.types import Array, DataType, Pair

COPY = 5.0  # what a lowered map that only moves data counts: nothing needs it but a copy that a sketch asks for
_KNOWN = {**PATTERN_NODES, **CONSTANTS}
_LOWERED = ("look_back", "reduce_sub")  # low-level patterns with operators
HIGH_LEVEL = frozenset(
    op for op, node in _KNOWN.items() if op not in _LOWERED and any(p.is_operator for p in node.signature.functions)
)
LAYOUT = frozenset(op for op, node in _KNOWN.items() if not node.signature.functions and op != "to_memory") | {
    "Ex___init__", "Ex_input", "Ex_literal", "component", "app", "map_", "Fn_lam", "Fn_vec", "Fn_map"
}  # fmt: skip
CALLS = frozenset({"call1", "call2", "call3"})


def lowered(graph: FrozenEGraph, owner: ClassId, node: ENode) -> float:
    """Short terms in which everything that computes is lowered: no ``map`` that computes, no ``reduce``.

    What only moves data stays as it is: no code is generated for it, but for its copy by a lowered map there is.
    """
    moves = _classes_that_move(graph)
    if node.op in HIGH_LEVEL:
        return math.inf
    if node.op in ("map_", "Fn_map") and node.classes[0] not in moves:
        return math.inf
    if node.op == "combine" and any(n.op == "Op_lift" for n in graph.nodes[node.classes[0]]):
        return math.inf
    size = term_size(graph, owner, node)
    return size + COPY if node.op == "map_level" and node.classes[0] in moves else size


def fused_ranges(graph: FrozenEGraph, owner: ClassId, node: ENode) -> float:
    """Short lowered terms in which loops over ranges compute what they combine, and no map before them."""
    if node.op == "reduce_range_seq" and _is_computed(graph, node.classes[4]):
        return math.inf
    return lowered(graph, owner, node)


def in_lanes(
    lengths: Collection[int], width: int, chunks: Collection[int] = (), *, chains: int = 0, lets: bool = True
) -> Weigh:
    """Short terms in which no ``reduce`` takes an array of one of these lengths in one piece, and no ``map`` chunks of
    a width: what was split so was transposed, and what neighbouring lanes read in a step lies side by side. Nor are
    there sub-groups of so many.

    Parameters
    ----------
    chunks
        What is split into chunks of these lengths is not computed before, nor what a ``map`` takes so many of.
    chains
        Nor does a ``map`` take chunks of so many, and no chunks are of rows: what each lane reduces was split so again.
    lets
        Whether there may be lets: the fusion of two maps makes one where the function inside is no pattern.
    """
    apart = {width, chains} if chains else {width}

    def weigh(graph: FrozenEGraph, owner: ClassId, node: ENode) -> float:
        if node.op == "app" and not lets:
            return math.inf
        if node.op == "map_" and any(
            n.op == "split" and not apart.isdisjoint(n.children) for n in graph.nodes[node.classes[1]]
        ):
            return math.inf
        if node.op == "reduce_sub" and width in node.children:
            return math.inf
        if node.op == "split" and not set(chunks).isdisjoint(node.children) and _is_computed(graph, node.classes[0]):
            return math.inf
        if node.op == "map_" and _is_computed(graph, node.classes[1]):
            array = graph.type_of(node.classes[1])
            if isinstance(array, Array) and array.size.constant in chunks:
                return math.inf
        if node.op == "split" and chains in node.children and _has_rows(graph.type_of(node.classes[0])):
            return math.inf
        if node.op in ("reduce_", "Fn_reduce"):
            array = graph.type_of(node.classes[2]) if node.op == "reduce_" else graph.domain(owner)
            if isinstance(array, Array) and array.size.constant in lengths:
                return math.inf
        return term_size(graph, owner, node)

    return weigh


def by_sub_group(width: int) -> Weigh:
    """Short terms in which sub-groups reduce what their items make of a row each, and nothing else."""

    def weigh(graph: FrozenEGraph, owner: ClassId, node: ENode) -> float:
        if node.op in ("reduce_", "reduce_sub"):
            found = node.classes[2]
            array = graph.type_of(found)
            maps = (graph.type_of(n.classes[1]) for n in graph.nodes[found] if n.op == "map_")
            of_items = any(isinstance(t, Array) and set(_lengths(t.element)) != {None} for t in maps)
            fits = isinstance(array, Array) and array.size.constant == width and of_items
            if fits == (node.op == "reduce_"):
                return math.inf
        return term_size(graph, owner, node)

    return weigh


def at_levels(levels: Mapping[tuple[int | None, int | None], ir.Level]) -> Weigh:
    """Short lowered terms in which the maps over arrays of a length, whose elements have so many in turn, are at these
    levels, all others in sequence, and every array with a name is private. Elements that are no arrays have None.
    """

    def weigh(graph: FrozenEGraph, owner: ClassId, node: ENode) -> float:
        array = graph.type_of(node.classes[1]) if node.op in ("app", "map_level") else None
        if not isinstance(array, Array):
            return lowered(graph, owner, node)
        if node.op == "app" and all(n.op != "to_memory" for n in graph.nodes[node.classes[1]]):
            return math.inf
        pairs = ((array.size.constant, inner) for inner in _lengths(array.element))
        level = next((levels[pair] for pair in pairs if pair in levels), ir.SEQ)
        if node.op == "map_level" and node.children[:2] != (level.kind, level.dimension):
            return math.inf
        return lowered(graph, owner, node)

    return weigh


def _is_computed(graph: FrozenEGraph, array: ClassId) -> bool:
    """Whether an array is what a map computes."""
    moves = _classes_that_move(graph)
    return any(n.op in ("map_", "map_level") and n.classes[-2] not in moves for n in graph.nodes[array])


def _lengths(t: DataType) -> Iterator[int | None]:
    if isinstance(t, Pair):
        yield from _lengths(t.first)
        yield from _lengths(t.second)
    else:
        yield t.size.constant if isinstance(t, Array) else None


def _has_rows(t: DataType | None) -> bool:
    return isinstance(t, Array) and isinstance(t.element, Array)


def _classes_that_move(graph: FrozenEGraph) -> frozenset[ClassId]:
    """The classes of terms and functions with a member that only moves data; what is generated may be computed."""
    known: frozenset[ClassId] | None = graph.__dict__.get("_classes_that_move")
    if known is None:
        generates = any(n.op == "generate" for nodes in graph.nodes.values() for n in nodes)
        places = _closed(graph, LAYOUT | CALLS, frozenset()) if generates else frozenset[ClassId]()
        known = graph.__dict__["_classes_that_move"] = _closed(graph, LAYOUT, places)
    return known


def _closed(graph: FrozenEGraph, ops: Collection[str], places: frozenset[ClassId]) -> frozenset[ClassId]:
    """The classes with a member of these operations on such classes alone, or that generates elements of `places`."""
    found: set[ClassId] = set()
    sites = list[tuple[ClassId, tuple[ClassId, ...]]]()
    for c, nodes in graph.nodes.items():
        for n in nodes:
            inside = tuple(term_classes(graph, n))
            if n.op == "generate" and places.issuperset(inside):
                found.add(c)
            elif n.op in ops:
                sites.append((c, inside[n.op == "lookup" :]))  # where to look may be computed
    while sites:
        left = [(c, inside) for c, inside in sites if c not in found and not found.issuperset(inside)]
        found.update(c for c, inside in sites if found.issuperset(inside))
        if len(left) == len(sites):
            break
        sites = left
    return frozenset(found)
