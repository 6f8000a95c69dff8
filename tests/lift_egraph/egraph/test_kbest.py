"""The lazy enumeration of members against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given, settings, strategies as st

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph
from lift_egraph.egraph.kbest import KBest, Rating
from lift_egraph.egraph.read_back import Choice


class Weights:
    """The sum of the numbers that are the nodes' first children; heavy and light members have different shapes."""

    def __init__(self, shapes: bool = False):
        self.shapes = shapes

    def rate(self, graph: FrozenEGraph, owner: ClassId, node: ENode, parts: tuple[Rating, ...]) -> Rating | None:
        cost = int(node.children[0]) + sum(p.cost for p in parts)
        heavy = any(p.shape for p in parts) or int(node.children[0]) > 4
        return Rating(cost, self.shapes and heavy)

    def accepts(self, shape: object) -> bool:
        return True


@st.composite
def small_graphs(draw) -> FrozenEGraph:
    count = draw(st.integers(1, 5))
    parts = st.lists(st.integers(0, count - 1), max_size=2)
    nodes: dict[ClassId, list[ENode]] = {c: [] for c in range(count)}
    for own in nodes.values():
        for i, kids in enumerate(draw(st.lists(parts, min_size=1, max_size=3))):
            own.append(ENode(f"f{i}", (draw(st.integers(1, 9)), *kids), tuple(kids)))
    nodes[count - 1].append(ENode("leaf", (draw(st.integers(1, 9)),), ()))
    return FrozenEGraph(nodes, dict.fromkeys(nodes, "Ex"), {}, {"root": 0}, sum(map(len, nodes.values())))


def members(
    graph: FrozenEGraph, owner: ClassId, above: frozenset[ClassId] = frozenset()
) -> Iterator[tuple[int, Choice]]:
    """All members of a class that do not contain themselves, with their weights."""
    if owner in above:
        return
    for node in graph.nodes[owner]:
        options = [list(members(graph, c, above | {owner})) for c in node.classes]
        for chosen in itertools.product(*options):
            yield int(node.children[0]) + sum(w for w, _ in chosen), Choice(owner, node, tuple(c for _, c in chosen))


def contains_itself(choice: Choice, above: frozenset[ClassId] = frozenset()) -> bool:
    inside = above | {choice.class_id}
    return choice.class_id in above or any(contains_itself(p, inside) for p in choice.parts)


@settings(max_examples=60)
@given(small_graphs())
def test_the_best_members_are_those_of_brute_force(graph):
    expected = sorted(w for w, _ in members(graph, 0))[:8]
    search = KBest(graph, Weights())
    found = [pair for v in search.vertices(0) for pair in itertools.islice(search.choices(v), 8)]
    choices = [c for _, c in found]
    assert len(set(choices)) == len(choices)
    assert not any(contains_itself(c) for c in choices)
    assert [cost for cost, _ in found] == expected


@settings(max_examples=60)
@given(small_graphs())
def test_every_shape_is_kept_apart(graph):
    """The best member is found whatever its shape; a member may contain its class in another shape."""
    expected = min((w for w, _ in members(graph, 0)), default=None)
    search = KBest(graph, Weights(shapes=True))
    best = [next(search.choices(v)) for v in search.vertices(0)]
    assert min((cost for cost, _ in best), default=None) == expected
    assert len({v.shape for v in search.vertices(0)}) == len(best)
