"""The best terms of an e-graph of ours where what occurs several times counts once.

The first pass of `KBest` finds which nodes may stand where: vertices, the classes with one shape each, and edges, their
nodes with a vertex for each part. These are a priced e-graph, whose DAGs are all legal; so `best_dags` finds terms, and
none is thrown away afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.kbest import CostModel, Edge, KBest, Vertex
from lift_egraph.egraph.read_back import Choice, from_egg
from lift_egraph.errors import ModelProblem, SearchProblem, TypeProblem
from lift_egraph.extract.dag import Extraction
from lift_egraph.extract.diverse import best_dags
from lift_egraph.extract.gym import PricedGraph, PricedNode
from lift_egraph.extract.kbest import Extracted

ROUNDING = 1e-9  # the share of a cost by which parts may seem to cost more than the whole


class LegalGraph(NamedTuple):
    """What may stand where below a class, as a priced e-graph, with the vertex and the edge of each of its nodes.

    Its first class has a node of cost 0 for each legal shape of the root, without vertex and edge.
    """

    priced: PricedGraph
    origins: tuple[tuple[Vertex, Edge] | None, ...]

    def choice(self, extraction: Extraction) -> Choice:
        """The choice of nodes that an extraction stands for."""
        made: list[Choice] = []
        for step in extraction.steps[:-1]:
            origin = self.origins[step.node]
            assert origin is not None
            made.append(Choice(origin[0].class_id, origin[1].node, tuple([made[p] for p in step.parts])))
        return made[extraction.steps[-1].parts[0]]


def legal_graph(graph: FrozenEGraph, root: ClassId, model: CostModel) -> LegalGraph:
    """The vertices and edges below a class.

    A node costs what the model rates it above the sum of its parts, each at its best. So DAG costs are right for a
    model that adds a cost of its own to those of the parts, as the size of a term does; one that multiplies by trip
    counts, as `StructuralCost` does, has no costs of single nodes.

    Raises
    ------
    SearchProblem
        If the class has no legal term.
    ModelProblem
        If the model fails, or rates a node below the sum of its parts.
    """
    search = KBest(graph, model)
    roots = search.vertices(root)
    if not roots:
        raise SearchProblem("the class has no legal term")
    numbers: dict[Vertex, int] = {v: i for i, v in enumerate(roots, 1)}
    nodes = [PricedNode("root", "root", 0, (numbers[v],), 0.0) for v in roots]
    origins: list[tuple[Vertex, Edge] | None] = [None] * len(roots)
    waiting = list(roots)
    for vertex in waiting:
        for edge in vertex.edges:
            for part in edge.parts:
                if part not in numbers:
                    numbers[part] = len(numbers) + 1
                    waiting.append(part)
            below = sum([v.rating.cost for v in edge.parts if v.rating is not None])
            own = edge.rating.cost - below
            if own < -ROUNDING * max(1.0, below):
                raise ModelProblem(
                    f"the cost model {type(model).__name__} rates a node {edge.node.op} with {edge.rating.cost}, below "
                    f"the {below} of its parts together: what terms share has no cost of its own then"
                )
            parts = tuple([numbers[v] for v in edge.parts])
            nodes.append(PricedNode(str(len(nodes)), edge.node.op, numbers[vertex], parts, max(0.0, own)))
            origins.append((vertex, edge))
    names = ("root", *(str(v.class_id) for v in numbers))
    return LegalGraph(PricedGraph(tuple(nodes), names, (0,)), tuple(origins))


def best_shared_terms(
    graph: FrozenEGraph,
    root: ClassId,
    model: CostModel,
    count: int,
    *,
    apart: float = 0.0,
    seconds: float = 20.0,
    seed: int = 0,
) -> list[Extracted]:
    """Up to `count` legal terms of a class, cheapest first, where equal parts of a term count once.

    Open terms are left out, so there may be fewer. See `legal_graph` for the models that fit, and `best_dags` for the
    other parameters.

    Raises
    ------
    SearchProblem, ModelProblem
        See `legal_graph`.
    """
    legal = legal_graph(graph, root, model)
    found = []
    for extraction in best_dags(legal.priced, count, apart=apart, seconds=seconds, seed=seed).best:
        try:
            found.append(Extracted(extraction.dag_cost, from_egg(graph, legal.choice(extraction))))
        except TypeProblem:  # an open term
            continue
    return found
