"""Random members of a class of a frozen e-graph, and what one e-graph has that an earlier one had not."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lift_egraph.egraph.exact_terms import renamed
from lift_egraph.egraph.frozen import Child, ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.read_back import Choice

UNREACHABLE = 10**6  # the depth of a node without a finite member
SLACK = 10  # how much deeper than the shallowest member of the root a sampled member may be
TERMS = ("Ex", "Fn", "Op")

Site = tuple[ClassId, ENode]


def embedding(old: FrozenEGraph, new: FrozenEGraph) -> dict[ClassId, ClassId]:
    """The class in the later e-graph of each class of the earlier one; e-graphs only grow and merge."""
    owners = {(n.op, n.children): c for c, nodes in new.nodes.items() for n in nodes}
    image: dict[ClassId, ClassId] = {}
    waiting = [(c, n) for c, nodes in old.nodes.items() for n in nodes]
    grown = True
    while grown:
        left = []
        for owner, node in waiting:
            if owner in image:
                continue
            if all(c in image for c in node.classes):
                found = owners.get(renamed(node, image))
                if found is not None:
                    image[owner] = found
            else:
                left.append((owner, node))
        grown, waiting = len(left) < len(waiting), left
    return image


def known_nodes(old: FrozenEGraph, image: dict[ClassId, ClassId]) -> set[tuple[ClassId, str, tuple[Child, ...]]]:
    """The nodes of an e-graph, with their classes, as a later one has them."""
    return {
        (image[c], *renamed(n, image))
        for c, nodes in old.nodes.items()
        for n in nodes
        if c in image and all(k in image for k in n.classes)
    }


def changes(old: FrozenEGraph, new: FrozenEGraph) -> set[Site]:
    """The nodes of terms in the later e-graph that are new, or stand in a class that was several."""
    image = embedding(old, new)
    known = known_nodes(old, image)
    sources = Counter(image.values())
    return {
        (c, n)
        for c, nodes in new.nodes.items()
        if new.sorts[c] in TERMS
        for n in nodes
        if sources[c] > 1 or (c, n.op, n.children) not in known
    }


def uses(choice: Choice, sites: set[Site]) -> bool:
    """Whether a member contains one of some nodes."""
    return (choice.class_id, choice.node) in sites or any(uses(part, sites) for part in choice.parts)


class _Known(NamedTuple):
    """A node that is part of a term: how deep it is, whether it is wanted, and how near a wanted one is below it."""

    node: ENode
    parts: tuple[ClassId, ...]
    depth: int
    wanted: bool
    near: int


class MemberSampler:
    """Draws members of classes at random.

    Parameters
    ----------
    graph
        The e-graph.
    wanted
        Nodes of which each member drawn contains one, where its depth allows; all nodes by default.
    """

    def __init__(self, graph: FrozenEGraph, wanted: Iterable[Site] | None = None):
        self.graph = graph
        self._parts = {
            (c, n): tuple(term_classes(graph, n))
            for c, nodes in graph.nodes.items()
            if graph.sorts[c] in TERMS
            for n in nodes
        }
        self._nodes: dict[ClassId, list[ENode]] = {}
        for c, n in self._parts:
            self._nodes.setdefault(c, []).append(n)
        self._depth = self._depths()
        self._wanted = set(self._parts if wanted is None else wanted)
        self._distance = self._distances()
        self._known: dict[ClassId, list[_Known]] = {}
        self._single: dict[ClassId, Choice | None] = {}

    def _depths(self) -> dict[ClassId, int]:
        """The depth of the shallowest member of each class."""
        users: dict[ClassId, list[Site]] = {}
        missing: dict[Site, int] = {}
        ready: deque[tuple[ClassId, int]] = deque()
        for site, parts in self._parts.items():
            missing[site] = len(set(parts))
            for part in set(parts):
                users.setdefault(part, []).append(site)
            if not parts:
                ready.append((site[0], 1))
        depth: dict[ClassId, int] = {}
        while ready:
            owner, d = ready.popleft()  # in order of depth
            if owner in depth:
                continue
            depth[owner] = d
            for site in users.get(owner, ()):
                missing[site] -= 1
                if not missing[site]:
                    ready.append((site[0], d + 1))
        return depth

    def _distances(self) -> dict[ClassId, int]:
        """How many steps down each class is from a wanted node."""
        above: dict[ClassId, list[ClassId]] = {}
        for (owner, _), parts in self._parts.items():
            for part in parts:
                above.setdefault(part, []).append(owner)
        distance = {c: 0 for c, _ in self._wanted}
        queue = deque(distance)
        while queue:
            owner = queue.popleft()
            for user in above.get(owner, ()):
                if user not in distance:
                    distance[user] = distance[owner] + 1
                    queue.append(user)
        return distance

    def reaches(self, root: ClassId) -> bool:
        """Whether a wanted node is in any member of a class."""
        return root in self._distance and root in self._depth

    def sample(self, root: ClassId, rng: random.Random, slack: int = SLACK) -> Choice | None:
        """A member of a class, or None if no wanted node is in any.

        Parameters
        ----------
        slack
            How much deeper than the shallowest member it may be.
        """
        if not self.reaches(root):
            return None
        return self._build(root, rng, self._depth[root] + slack, True)

    def classes(self) -> list[ClassId]:
        """The classes that have a member, the shallowest first."""
        return sorted(self._depth, key=lambda c: (self._depth[c], c))

    def size(self, owner: ClassId) -> int:
        """How many nodes of a class are part of a term."""
        return sum(self._depth_of(owner, node) < UNREACHABLE for node in self._nodes[owner])

    def spread(self, owner: ClassId, rng: random.Random, count: int | None, slack: int = SLACK) -> Iterator[Choice]:
        """Members of a class that begin with different nodes of it, the shallowest member first; one for each if no
        count is given. A node around its own class is put around the shallowest member.
        """
        nodes = sorted(self._nodes[owner], key=lambda n: self._depth_of(owner, n))
        rest = [n for n in nodes[1:] if self._depth_of(owner, n) < UNREACHABLE]
        rng.shuffle(rest)
        for node in (nodes[0], *rest)[:count]:
            fuel = self._depth_of(owner, node) - 1 + (0 if node is nodes[0] else slack)
            own = self._depth[owner]
            parts = ((p, own if p == owner else fuel) for p in self._parts[owner, node])
            yield Choice(owner, node, tuple(self._build(p, rng, depth, False) for p, depth in parts))

    def _build(self, owner: ClassId, rng: random.Random, fuel: int, seek: bool) -> Choice:
        if (only := self._only(owner)) is not None:
            return only
        known = self._known.get(owner) or self._nodes_of(owner)
        fitting = [n for n in known if n.depth <= fuel] or [min(known, key=lambda n: n.depth)]
        seek = seek and owner in self._distance
        towards = [n for n in fitting if n.near < UNREACHABLE] if seek else []
        here = [n for n in fitting if n.wanted] if seek else []
        if here and (not towards or rng.random() < 0.7):
            node = rng.choice(here)
            seek = rng.random() < 0.3
        elif towards:
            near = min(n.near for n in towards)
            node = rng.choice([n for n in towards if n.near == near] if rng.random() < 0.7 else towards)
        else:
            node = rng.choice(fitting)
        leading = [i for i, p in enumerate(node.parts) if p in self._distance] if seek else ()
        chosen = rng.choice(leading) if leading else -1
        return Choice(
            owner,
            node.node,
            tuple([self._build(p, rng, fuel - 1, seek and i == chosen) for i, p in enumerate(node.parts)]),
        )

    def _only(self, owner: ClassId) -> Choice | None:
        """The only member of a class, one object for all that it is part of; None if there are several."""
        if owner not in self._single:
            self._single[owner] = None  # also if it is asked again on the way down: a part of itself
            first, *others = self._nodes[owner]
            if not others:
                parts = [self._only(p) for p in self._parts[owner, first]]
                whole = tuple(p for p in parts if p is not None)
                self._single[owner] = Choice(owner, first, whole) if len(whole) == len(parts) else None
        return self._single[owner]

    def _nodes_of(self, owner: ClassId) -> list[_Known]:
        """What is known of the nodes of a class, found once."""
        found: list[_Known] = []
        for node in self._nodes[owner]:
            parts = self._parts[owner, node]
            near = min((self._distance.get(p, UNREACHABLE) for p in parts), default=UNREACHABLE)
            found.append(_Known(node, parts, self._depth_of(owner, node), (owner, node) in self._wanted, near))
        self._known[owner] = found
        return found

    def _depth_of(self, owner: ClassId, node: ENode) -> int:
        return 1 + max((self._depth.get(p, UNREACHABLE) for p in self._parts[owner, node]), default=0)
