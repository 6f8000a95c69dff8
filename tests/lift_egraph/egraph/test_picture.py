"""Pictures of e-graphs."""

from __future__ import annotations

import io
import itertools

import networkx as nx
import pytest

from lift_egraph.api import Limits, Phase, Program, parse_program, rules as book, run_phase, specialise
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.picture import LIMIT, draw, reachable, to_networkx
from lift_egraph.errors import SearchProblem
from lift_egraph.programs import load


def explored(name: str, sizes: dict[str, int], iterations: int, tiles=None) -> tuple[FrozenEGraph, int]:
    return last_of(specialise(load(name), sizes), iterations, tiles)


def last_of(program: Program, iterations: int, tiles=None) -> tuple[FrozenEGraph, int]:
    phase = Phase("test", book.algorithmic, book.simplification, tiles or {}, (), Limits(iterations=iterations))
    *_, last = run_phase(program.body, phase)
    return last.graph, last.root


def labels(net: nx.DiGraph, c: int) -> list[str]:
    return [net.nodes[n]["label"] for n in net.successors(c)]


def test_a_program_before_any_rule():
    graph, root = explored("dot", {"N": 16}, 0)
    net = to_networkx(graph, root)
    assert net.nodes[root] == {"kind": "class", "label": str(root), "sort": "Ex", "root": True}
    assert labels(net, root) == ["reduce"]
    operator, initial, array = sorted(net.successors((root, 0)), key=lambda c: net.edges[(root, 0), c]["positions"])
    assert labels(net, operator) == ["add"]
    assert labels(net, initial) == ["0.0"]
    assert labels(net, array) == ["map"]
    every = {data["label"] for _, data in net.nodes(data=True) if data["kind"] == "node"}
    assert every == {"reduce", "add", "0.0", "map", "λ a, b", "mul", "a", "b", "zip", "x", "y"}


def test_members_of_a_class_stand_beside_each_other_and_primitive_arguments_are_shown():
    graph, root = explored("dot", {"N": 16}, 1, {16: (4,)})
    net = to_networkx(graph, root)
    assert labels(net, root) == ["reduce", "reduce", "reduce"]
    assert "split 4" in {data["label"] for _, data in net.nodes(data=True)}


def test_the_same_argument_twice_is_one_edge_with_both_positions():
    squares = parse_program("program squares(xs: [f32]4) = map(fun x => x * x, xs)")
    graph, root = last_of(squares, 0)
    net = to_networkx(graph, root)
    (mul,) = [n for n, data in net.nodes(data=True) if data["label"] == "mul"]
    assert [data["positions"] for _, _, data in net.edges(mul, data=True)] == [(0, 1)]


def test_sizes_boundaries_and_literals_are_in_the_labels():
    net = to_networkx(*explored("j2d5pt", {"M": 4, "N": 4}, 0))
    assert {data["label"] for _, data in net.nodes(data=True)} >= {"slide 3 1", "pad 1 1 clamp", "at 2", "0.2"}


def test_every_class_reached_is_in_the_graph_and_no_other():
    graph, root = explored("mm", {"M": 4, "K": 4, "N": 4}, 2)
    net = to_networkx(graph, root)
    assert [c for c in net if net.nodes[c]["kind"] == "class"] == reachable(graph, root)
    assert {net.nodes[c]["sort"] for c in net if net.nodes[c]["kind"] == "class"} <= {"Ex", "Fn", "Op"}
    assert nx.descendants(net, root) | {root} == set(net)


def test_draw_shows_every_node_in_its_class_without_overlaps():
    pytest.importorskip("matplotlib")
    graph, root = explored("mm", {"M": 4, "K": 4, "N": 4}, 1)
    figure = draw(graph, root, highlight={(root, graph.nodes[root][0])})
    (axes,) = figure.axes
    net = to_networkx(graph, root)
    written = sorted(t.get_text() for t in axes.texts)
    assert written == sorted(data["label"] for _, data in net.nodes(data=True))
    boxes = [p for p in axes.patches if type(p).__name__ == "FancyBboxPatch" and p.get_linestyle() != "solid"]
    assert len(boxes) == len(reachable(graph, root))
    extents = sorted((b.get_y(), b.get_x(), b.get_x() + b.get_width()) for b in boxes)
    for (row, _, right), (next_row, left, _) in itertools.pairwise(extents):
        assert row != next_row or right < left
    figure.savefig(io.BytesIO(), format="svg")


def test_a_cyclic_e_graph_can_be_drawn():
    pytest.importorskip("matplotlib")
    graph, root = explored("mm", {"M": 4, "K": 4, "N": 4}, 2)
    assert not nx.is_directed_acyclic_graph(to_networkx(graph, root))
    assert draw(graph, root).axes


def test_too_large_an_e_graph_is_refused_with_advice():
    graph, root = explored("mm", {"M": 4, "K": 4, "N": 4}, 3)
    count = len(reachable(graph, root))
    assert count > LIMIT
    with pytest.raises(SearchProblem, match=rf"{count} classes.*smaller program or fewer iterations"):
        draw(graph, root)
    with pytest.raises(SearchProblem, match="at most 5"):
        draw(*explored("dot", {"N": 16}, 0), limit=5)
