"""Which nodes of an e-graph stand in scope: those whose variables are free wherever their class is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.members import TERMS

Names = frozenset[ClassId]
NONE: Names = frozenset()


class Site(NamedTuple):
    """A node with its class and those of its parts that are terms, functions or operators."""

    owner: ClassId
    node: ENode
    parts: tuple[ClassId, ...]


def users_of(sites: Iterable[Site]) -> dict[ClassId, list[int]]:
    """The numbers of the sites that each class is a part of."""
    users: dict[ClassId, list[int]] = {}
    for number, site in enumerate(sites):
        for part in set(site.parts):
            users.setdefault(part, []).append(number)
    return users


def closed_sites(graph: FrozenEGraph) -> list[Site]:
    """The nodes of terms whose free variables are all free in their class.

    A variable is free in a class if it is in every member; a member with more, such as the projection of a pair
    that mentions it, would let the variable escape its binder.
    """
    terms = ((c, nodes) for c, nodes in graph.nodes.items() if graph.sorts[c] in TERMS)
    sites = [Site(c, n, tuple(term_classes(graph, n))) for c, nodes in terms for n in nodes]
    users = users_of(sites)
    free: dict[ClassId, Names] = {}
    bound: dict[ClassId, Names] = {}
    kept: dict[Names, Names] = {}  # one object for equal sets, of which there are few

    def mentioned(site: Site) -> Names | None:
        if site.node.op == "Ex___init__":
            return frozenset(site.node.classes)
        names = NONE
        for part in site.parts:
            inside = free.get(part)
            if inside is None:
                return None
            names = names | inside if names else inside
        return names - _binders(graph, site.node.classes[0], bound) if names and site.node.op == "Fn_lam" else names

    waiting: Iterable[int] = range(len(sites))
    while waiting:
        later: dict[int, None] = {}
        for number in waiting:
            site = sites[number]
            names = mentioned(site)
            if names is None:
                continue
            before = free.get(site.owner)
            smaller = names if before is None else before & names
            if before != smaller:
                free[site.owner] = kept.setdefault(smaller, smaller)
                later.update(dict.fromkeys(users.get(site.owner, ())))
        waiting = list(later)
    return [site for site in sites if (names := mentioned(site)) is not None and names <= free[site.owner]]


def _binders(graph: FrozenEGraph, pattern: ClassId, known: dict[ClassId, Names]) -> Names:
    if pattern not in known:
        n = graph.nodes[pattern][0]
        inside: Iterator[Names] = (_binders(graph, c, known) for c in n.classes)
        known[pattern] = frozenset(n.classes) if n.op == "P_var" else NONE.union(*inside)
    return known[pattern]
