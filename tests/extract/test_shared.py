"""DAGs of our own e-graphs: legal by their shapes, and equal in meaning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from lift_egraph.api import (
    Limits,
    Phase,
    evaluate,
    programs as bundled,
    random_inputs,
    run_phase,
    specialise,
)  # fmt: skip
from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph
from lift_egraph.egraph.kbest import KBest, Rating
from lift_egraph.egraph.read_back import Choice
from lift_egraph.errors import ModelProblem, SearchProblem
from lift_egraph.extract.dag import extract_dag
from lift_egraph.extract.kbest import best_terms
from lift_egraph.extract.shared import best_shared_terms, legal_graph
from lift_egraph.rules import algorithmic, simplification
from tests.extract.priced import all_dags, cost_of
from tests.lift_egraph.egraph.test_kbest import Weights, contains_itself, small_graphs


class Light(Weights):
    """Members without a heavy node are legal."""

    def accepts(self, shape: object) -> bool:
        return not shape


class Size:
    """How many nodes a term has."""

    def rate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        return Rating(1 + sum(p.cost for p in parts), None)

    def accepts(self, shape: object) -> bool:
        return True


def nodes_of(choice: Choice) -> set[tuple[ClassId, ENode]]:
    return {(choice.class_id, choice.node)}.union(*map(nodes_of, choice.parts))


@given(small_graphs())
def test_only_legal_nodes_are_in_a_dag(graph):
    model = Light(shapes=True)
    if not KBest(graph, model).vertices(0):
        with pytest.raises(SearchProblem):
            legal_graph(graph, 0, model)
        return
    legal = legal_graph(graph, 0, model)
    found = extract_dag(legal.priced)
    choice = legal.choice(found.best[0])
    assert choice.class_id == 0
    assert not contains_itself(choice)
    nodes = nodes_of(choice)
    assert all(int(node.children[0]) <= 4 for _, node in nodes)
    assert sum(int(node.children[0]) for _, node in nodes) == found.best[0].dag_cost
    assert found.best[0].dag_cost == min(cost_of(legal.priced, dag) for dag in all_dags(legal.priced))
    best_tree = min(next(KBest(graph, model).choices(v))[0] for v in KBest(graph, model).vertices(0) if not v.shape)
    assert found.best[0].dag_cost <= best_tree


def test_terms_mean_the_same_and_share():
    program = specialise(bundled.load("mm"), {"M": 4, "K": 4, "N": 4})
    phase = Phase("test", algorithmic[:6], simplification, tiles={4: (2,)}, limits=Limits(iterations=3))
    *_, last = run_phase(program.body, phase)
    found = best_shared_terms(last.graph, last.graph.roots["root"], Size(), 3, seconds=5)
    assert [e.cost for e in found] == sorted(e.cost for e in found)
    assert found[0].cost <= best_terms(last.graph, last.graph.roots["root"], Size(), 1)[0].cost
    inputs = random_inputs(program, 0)
    expected = evaluate(program.body, inputs)
    for extracted in found:
        np.testing.assert_allclose(evaluate(extracted.term, inputs), expected, rtol=1e-5)


def test_a_model_without_costs_of_single_nodes():
    class Deepest(Size):
        def rate(self, graph, owner, node, parts):
            return Rating(1 + max((p.cost for p in parts), default=0), None)

    leaf, both = ENode("leaf", (1,), ()), ENode("f", (1, 1, 1), (1, 1))
    graph = FrozenEGraph({0: [both], 1: [leaf]}, {0: "Ex", 1: "Ex"}, {}, {"root": 0}, 2)
    assert extract_dag(legal_graph(graph, 0, Size()).priced).best[0].dag_cost == 2
    thrice = FrozenEGraph({0: [ENode("f", (1, 1, 1, 1), (1, 1, 1))], 1: [leaf]}, graph.sorts, {}, {"root": 0}, 2)
    with pytest.raises(ModelProblem, match=r"Deepest rates a node f with 2, below the 3 of its parts together"):
        legal_graph(thrice, 0, Deepest())
