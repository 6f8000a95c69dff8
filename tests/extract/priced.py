"""Priced e-graphs for tests: random ones, and all the DAGs in one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

from lift_egraph.extract.choices import ordered
from lift_egraph.extract.dag import Extraction
from lift_egraph.extract.gym import Allowed, PricedGraph, PricedNode


def graph_of(*classes: list[tuple[float, tuple[int, ...]]], roots: tuple[int, ...] = (0,)) -> PricedGraph:
    """A graph from the costs and children of the nodes of each class."""
    nodes = [
        PricedNode(f"{c}.{i}", f"f{i}", c, children, cost)
        for c, own in enumerate(classes)
        for i, (cost, children) in enumerate(own)
    ]
    return PricedGraph(tuple(nodes), tuple(map(str, range(len(classes)))), roots)


@st.composite
def priced_graphs(draw: st.DrawFn, costs: st.SearchStrategy[float] | None = None) -> PricedGraph:
    """Small graphs with cycles, several roots, free nodes; each class but some has a leaf."""
    count = draw(st.integers(1, 6))
    price = st.integers(0, 6).map(float) if costs is None else costs
    children = st.lists(st.integers(0, count - 1), max_size=3).map(tuple)
    classes = [draw(st.lists(st.tuples(price, children), min_size=1, max_size=3)) for _ in range(count)]
    classes[-1].append((draw(price), ()))
    roots = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=2, unique=True))
    return graph_of(*classes, roots=tuple(roots))


def all_dags(graph: PricedGraph, allowed: Allowed | None = None) -> Iterator[dict[int, int]]:
    """Every acyclic choice of a node for each class that the roots need."""
    seen = set()
    may = [[i for i in own if allowed is None or allowed(graph.nodes[i])] or [None] for own in graph.members]
    for chosen in itertools.product(*may):
        waiting, needed = list(graph.roots), set(graph.roots)
        while waiting:
            i = chosen[waiting.pop()]
            if i is None:
                break
            more = {*graph.nodes[i].children} - needed
            needed |= more
            waiting += more
        else:
            dag = {c: i for c in needed if (i := chosen[c]) is not None}
            key = frozenset(dag.values())
            if key not in seen and ordered(graph.roots, lambda c, dag=dag: graph.nodes[dag[c]].children) is not None:
                seen.add(key)
                yield dag


def cost_of(graph: PricedGraph, dag: dict[int, int]) -> float:
    return sum(graph.nodes[i].cost for i in dag.values())


def check(graph: PricedGraph, found: Extraction) -> None:
    """What holds of every extraction: it fits together, is acyclic, covers the roots, and its costs add up."""
    trees = []
    for place, step in enumerate(found.steps):
        node = graph.nodes[step.node]
        assert all(part < place for part in step.parts)
        assert tuple(graph.nodes[found.steps[part].node].owner for part in step.parts) == node.children
        trees.append(node.cost + sum(trees[part] for part in step.parts))
    assert tuple(graph.nodes[found.steps[place].node].owner for place in found.roots) == graph.roots
    assert len(set(found.steps)) == len(found.steps)
    assert abs(found.dag_cost - sum(graph.nodes[step.node].cost for step in found.steps)) < 1e-6
    assert abs(found.tree_cost - sum(trees[place] for place in found.roots)) < 1e-6
