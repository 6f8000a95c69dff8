"""Extraction of trees and DAGs from priced e-graphs, against brute force."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import example, given, strategies as st

from lift_egraph.errors import InputProblem, SearchProblem
from lift_egraph.extract import dag, reduction
from lift_egraph.extract.branching import below, branch, step_of
from lift_egraph.extract.dag import extract_dag, extract_trees, extraction_of, options_of
from lift_egraph.extract.diverse import best_dags
from lift_egraph.extract.gym import PricedGraph, PricedNode
from lift_egraph.extract.reduction import reduced
from tests.depth import in_turn
from tests.extract.priced import all_dags, check, cost_of, graph_of, priced_graphs

FLOATS = st.floats(0, 1e3) | st.sampled_from([0.0, 0.1, 0.2, 0.3])
BAD = pytest.mark.parametrize("extract", [extract_dag, extract_trees])


def best_cost(graph: PricedGraph, allowed=None) -> float:
    return min((cost_of(graph, found) for found in all_dags(graph, allowed)), default=math.inf)


@given(priced_graphs() | priced_graphs(FLOATS), st.sampled_from([0, 5]))
def test_the_best_dag_is_that_of_brute_force(graph, patience):
    expected = best_cost(graph)
    if expected == math.inf:
        with pytest.raises(SearchProblem, match=r"^the class \d has no finite term: "):
            extract_dag(graph)
        return
    found = extract_dag(graph, patience=patience)
    check(graph, found.best[0])
    assert found.best[0].dag_cost == pytest.approx(expected)
    assert found.is_proven
    assert found.ended == "proven"
    assert found.lower_bound == found.best[0].dag_cost


@given(priced_graphs())
def test_nodes_that_are_not_allowed_are_not_there(graph):
    def allowed(node: PricedNode) -> bool:
        return node.op != "f0" or not node.children

    expected = best_cost(graph, allowed)
    if expected == math.inf:
        for extract in extract_dag, extract_trees:
            with pytest.raises(SearchProblem):
                extract(graph, allowed=allowed)
        return
    several = best_dags(graph, 3, allowed=allowed).best
    assert several[0].dag_cost == expected
    for found in (*several, *extract_trees(graph, 3, allowed=allowed).best):
        assert all(allowed(graph.nodes[i]) for i in found.nodes)


def keeps_a_best_dag(graph: PricedGraph, bound: float) -> bool:
    """Whether the nodes of one of the cheapest DAGs are all left in the reduced problem, or its classes free."""
    problem = reduced(options_of(graph), graph.roots, bound)
    nodes = {o.node for own in problem.options for o in own}
    most = best_cost(graph) * (1 + 1e-9)
    assert problem.lower_bound <= most
    left = [d for d in all_dags(graph) if all(i in nodes for c, i in d.items() if c not in problem.free)]
    assert all(problem.forced <= found.keys() for found in left if cost_of(graph, found) <= bound)
    return any(cost_of(graph, found) <= most for found in left)


@given(priced_graphs() | priced_graphs(FLOATS), st.floats(1, 2))
@example(graph_of([(0, (1,)), (3, ())], [(0, (0,)), (2, ())]), 2.0)  # the node of cost 3 is left out, not too dear
def test_a_reduced_problem_keeps_a_best_dag(graph, slack):
    best = best_cost(graph)
    assert best == math.inf or keeps_a_best_dag(graph, best * slack)


@pytest.mark.parametrize(
    "graph",
    [
        # The tree that a node of class 0 needs goes through the leaf of class 0, which it would dominate.
        graph_of([(0, (1,)), (5, ())], [(0, (0,)), (6, ())]),
        # All DAGs contain class 1 and class 2; a node of class 2 that needs class 1 may not be taken as having it.
        graph_of([(1, (1, 2))], [(1, (2,)), (9, ())], [(0, (1,)), (3, ())]),
    ],
)
def test_what_circles_make_cheaper_in_appearance(graph):
    assert keeps_a_best_dag(graph, math.inf)


@given(priced_graphs())
def test_branch_and_bound_finds_the_best_by_itself_and_its_bounds_hold(graph):
    best = best_cost(graph)
    if best == math.inf:
        return
    step = step_of(options_of(graph))
    for most in (0, 20, math.inf):
        problem = reduced(options_of(graph), graph.roots)
        met = [best + 2 * step]

        def tell(chosen, free, problem=problem, met=met):
            met.append(extraction_of(graph, {**problem.free, **free, **chosen}).dag_cost)
            return met[-1]

        proof = branch(problem, met[0], step, most, math.inf, tell)
        if proof.lower_bound == math.inf:
            assert min(met) == best
        else:
            assert proof.lower_bound <= best
            assert most < math.inf


def test_the_least_step_between_costs():
    assert step_of(options_of(graph_of([(6, ()), (4, ())]))) == 2
    assert step_of(options_of(graph_of([(6, ()), (4.5, ())]))) == 0
    assert step_of(options_of(graph_of([(0, ())]))) == 1
    assert 7 < below(9, 2) < 7.1
    assert below(9, 0) < 9


def test_sharing_counts_once_over_all_roots():
    shared = graph_of([(1, (2,)), (3, ())], [(1, (2,)), (3, ())], [(3, ())], roots=(0, 1))
    found = extract_dag(shared)
    assert (found.best[0].dag_cost, found.best[0].tree_cost) == (5, 8)
    trees = extract_trees(shared)
    assert (trees.best[0].dag_cost, trees.best[0].tree_cost) == (6, 6)


@given(priced_graphs())
def test_graphs_that_are_too_large_for_sets_of_classes(graph):
    best = best_cost(graph)
    if best == math.inf:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduction, "MOST_CLASSES", 0)
        found = extract_dag(graph, patience=3)
    check(graph, found.best[0])
    assert found.lower_bound <= best <= found.best[0].dag_cost
    assert found.best[0].dag_cost <= extract_trees(graph).best[0].dag_cost
    if found.is_proven:
        assert found.best[0].dag_cost == best


@given(priced_graphs(st.integers(1, 6).map(float)), st.integers(1, 4))
def test_the_best_trees_are_those_of_the_k_best_search(graph, count):
    if best_cost(graph) == math.inf:
        return
    found = extract_trees(graph, count)
    for extraction in found.best:
        check(graph, extraction)
    costs = [extraction.tree_cost for extraction in found.best]
    assert costs == sorted(costs)
    trees = min(extraction_of(graph, chosen).tree_cost for chosen in all_dags(graph))
    assert costs[0] == trees == extract_trees(graph).best[0].tree_cost
    assert len({extraction.steps for extraction in found.best}) == len(found.best)


@given(priced_graphs(), st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.8]))
def test_several_dags_differ(graph, count, apart):
    dags = list(all_dags(graph))
    if not dags:
        return
    found = best_dags(graph, count, apart=apart).best
    assert 1 <= len(found) <= min(count, len(dags))
    assert found[0].dag_cost == best_cost(graph)
    assert [e.dag_cost for e in found] == sorted(e.dag_cost for e in found)
    for extraction in found:
        check(graph, extraction)
    for one, other in itertools.combinations(found, 2):
        assert one.difference(other) == other.difference(one) >= max(apart, 1e-9)


def test_alternatives_that_reductions_drop_are_found_as_others():
    graph = graph_of([(1, (1,)), (2, (1,)), (9, ())], [(1, ()), (4, ())])
    assert [e.dag_cost for e in best_dags(graph, 9).best] == [2, 3, 5, 6, 9]
    assert [e.dag_cost for e in best_dags(graph, 9, apart=1.0).best] == [2, 6, 9]


def test_equal_seeds_give_equal_dags():
    """Thirty classes with three nodes that lead around in circles, and a dear leaf each."""
    classes = [[(float(1 + (i * k) % 7), ((i * k + 1) % 30, (i + k) % 30)) for k in (3, 5, 7)] for i in range(30)]
    graph = graph_of(*[[*own, (40.0, ())] for own in classes])
    one, other = (extract_dag(graph, seed=3, patience=5) for _ in range(2))
    assert one.best == other.best
    check(graph, one.best[0])
    assert one.lower_bound <= one.best[0].dag_cost <= extract_trees(graph).best[0].dag_cost


@in_turn(2)
def test_trees_beyond_all_numbers_and_deep_terms():
    """Each class is the one after it twice: 2 to the power of 3000 leaves, and a chain of 3000 nodes."""
    deep = graph_of(*[[(1.0, (c + 1, c + 1))] for c in range(3000)], [(1.0, ())])
    for found in extract_dag(deep), extract_trees(deep):
        assert found.best[0].dag_cost == 3001
        assert found.best[0].tree_cost == math.inf
    long = graph_of(*[[(1.0, (c + 1,)), (2.0, (c + 1,))] for c in range(21_000)], [(1.0, ())])
    assert extract_trees(long).best[0].tree_cost == 21_001
    assert extract_dag(long, seconds=0.1).best[0].dag_cost == 21_001
    with pytest.raises(SearchProblem, match="too deep"):
        extract_trees(long, 2)


def test_the_best_so_far_stays_after_an_interrupt(monkeypatch):
    graph = graph_of([(1, (1,)), (9, ())], [(1, ())])

    def interrupted(*_: object):
        raise KeyboardInterrupt

    monkeypatch.setattr(dag, "reduced", interrupted)
    found = extract_dag(graph)
    assert (found.best[0].dag_cost, found.ended, found.is_proven) == (2, "interrupted", False)
    assert best_dags(graph, 3).best == found.best


@BAD
def test_what_has_no_finite_term(extract):
    for graph in (
        graph_of([(1, (1,))], [(1, (0,))]),
        graph_of([(1, (0,))]),
        graph_of([(math.inf, ())]),
        graph_of([(1, ())], [(1, (1,))], roots=(0, 1)),
    ):
        with pytest.raises(SearchProblem, match=r"^the class [01] has no finite term"):
            extract(graph)


def test_graphs_that_are_none():
    for cost in (-1.0, math.nan):
        with pytest.raises(InputProblem, match=r"^the node 0.0 costs (-1.0|nan); a cost is a number of at least 0$"):
            graph_of([(cost, ())])
    with pytest.raises(InputProblem, match=r"^the node 0.0 names a class that is not among the 1 classes$"):
        graph_of([(1, (1,))])
    with pytest.raises(InputProblem, match="no root"):
        graph_of([(1, ())], roots=())
    with pytest.raises(InputProblem, match="a root is not among the 1 classes"):
        graph_of([(1, ())], roots=(1,))
