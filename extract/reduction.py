"""Making an extraction problem smaller without losing its best DAGs.

A DAG chooses one node for each class that it needs, and costs what these nodes cost, each counted once. Of every
reduction here it holds: among the DAGs that cost no more than a given bound, one of the cheapest is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lift_egraph.extract.choices import Choices, Option, Options

MOST_CLASSES = 20_000  # for sets of classes of each class; a larger problem is reduced by 1 and 2 alone
TOLERANCE = 1e-9  # the share of a cost by which sums of the same numbers may differ


@dataclass(frozen=True)
class Reduced:
    """A smaller problem.

    Attributes
    ----------
    options
        What is left of each class; `Option.needs` is without the classes that are free.
    roots
        The classes that are asked for, without those that are free.
    free
        For each class that has a term of cost 0, the node that it begins with.
    forced
        The classes that are in every DAG of what is left, of those within the bound.
    lower_bound
        What every DAG costs at least; infinite if there is none within the bound.
    is_large
        Whether it has more than `MOST_CLASSES`; then `forced` has the roots alone.
    """

    options: Options
    roots: tuple[int, ...]
    free: dict[int, int]
    forced: frozenset[int]
    lower_bound: float
    is_large: bool = False

    @property
    def size(self) -> int:
        """How many options are left."""
        return sum(map(len, self.options))

    def after(self, free: dict[int, int]) -> Reduced:
        """The same, if it was made from a problem in which these classes had been found free before."""
        return replace(self, free={**free, **self.free})


def reduced(options: Options, roots: Sequence[int], bound: float = math.inf) -> Reduced:
    """Reduce a problem until nothing changes.

    1. A node is dropped that has no finite term, or that no root reaches.
    2. A class with a term of cost 0 is free: nobody needs to pay for it, so nobody needs to name it. (A DAG that
       chose otherwise for it, or for what that term contains, can take that term instead; nothing in it leads out
       of it, so no cycle arises.)
    3. What every term of a class contains is the greatest solution of: itself, and what all its nodes have in common
       of what their children contain. A node whose children contain its own class is in no finite term.
    4. A node *dominates* another of its class if it costs no more and needs only what the other contains; or if it
       costs less together with the cheapest trees of the other classes that it needs. Classes that all DAGs contain
       count as contained, unless they could lead back: they are of the same strongly connected component. (With no
       less than less, such a tree might contain the dominated node itself.)
    5. A node is dropped if a DAG with it costs more than `bound`: all classes that it or every DAG contains count with
       their cheapest nodes, and where every DAG must decide for one of several nodes, with what that adds.
    """
    options, roots = [list(own) for own in options], tuple(roots)
    limit = bound + TOLERANCE * max(1.0, bound) if bound < math.inf else math.inf
    free: dict[int, int] = {}
    while True:
        size = sum(map(len, options))
        problem = Choices(options, roots)
        choice, costs = problem.cheapest(problem.costs)
        if any(costs[r] == math.inf for r in roots):
            return Reduced([[] for _ in options], roots, free, frozenset(), math.inf)
        new = {c for c, cost in enumerate(costs) if cost == 0}
        free.update({c: problem.nodes[choice[c]] for c in new})
        roots = tuple(r for r in roots if r not in new)
        options = [
            [Option(o.cost, _without(o.needs, new), o.node) for o in own if all(costs[c] < math.inf for c in o.needs)]
            if c not in new
            else []
            for c, own in enumerate(options)
        ]
        reached = _reached(options, roots)
        options = [own if c in reached else [] for c, own in enumerate(options)]
        if len(reached) > MOST_CLASSES:
            lower = math.fsum(min(o.cost for o in options[r]) for r in roots)
            return Reduced(options, roots, free, frozenset(roots), lower, is_large=True)
        contained = _contained(options, sorted(reached, key=lambda c: costs[c]))
        options, forced, lower = _pruned(options, roots, contained, costs, limit)
        if lower > limit:
            return Reduced([[] for _ in options], roots, free, forced, math.inf)
        if sum(map(len, options)) == size:
            return Reduced(options, roots, free, forced, lower)


def _without(needs: tuple[int, ...], free: set[int]) -> tuple[int, ...]:
    return tuple([c for c in needs if c not in free])


def _reached(options: Options, roots: Sequence[int]) -> set[int]:
    found, waiting = set(roots), list(roots)
    while waiting:
        for option in options[waiting.pop()]:
            for part in option.needs:
                if part not in found:
                    found.add(part)
                    waiting.append(part)
    return found


def _contained(options: Options, order: Sequence[int]) -> dict[int, int]:
    """For each class the classes that all its terms contain, as bits."""
    everything = sum(1 << c for c in order)
    found = dict.fromkeys(order, everything)
    changed = True
    while changed:
        changed = False
        for c in order:
            common = everything
            for option in options[c]:
                common &= _union(found, option.needs)
            common |= 1 << c
            if common != found[c]:
                found[c], changed = common, True
    return found


def _union(sets: dict[int, int], keys: Sequence[int]) -> int:
    union = 0
    for key in keys:
        union |= sets[key]
    return union


def _bits(number: int) -> list[int]:
    """Where a number has ones."""
    found = []
    while number:
        least = number & -number
        found.append(least.bit_length() - 1)
        number ^= least
    return found


class _Rated(NamedTuple):
    """An option with what it contains, and with the classes in it beyond those that all DAGs contain anyway."""

    option: Option
    inside: int
    beyond: int


def _pruned(
    options: Options, roots: Sequence[int], contained: dict[int, int], costs: Sequence[float], limit: float
) -> tuple[Options, frozenset[int], float]:
    """The options without those of 3, 4 and 5; the classes in all DAGs; and what they cost at least."""
    forced = _union(contained, roots)
    components = _components(options)
    least = {c: min(o.cost for o in own) for c, own in enumerate(options) if own}
    base = math.fsum(least[c] for c in _bits(forced))
    known: dict[int, float] = {}

    def price(classes: int) -> float:
        """What a set of classes costs at least."""
        if classes not in known:
            known[classes] = math.fsum([least[b] for b in _bits(classes)])
        return known[classes]

    rated: list[list[_Rated]] = []
    for c, own in enumerate(options):
        rated.append([])
        for option in own:
            inside = _union(contained, option.needs)
            if inside >> c & 1:
                continue
            beyond = (inside | contained[c]) & ~forced & ~(1 << c)
            at_least = base + option.cost - (least[c] if forced >> c & 1 else 0.0) + price(beyond)
            if at_least <= limit:
                rated[c].append(_Rated(option, inside, beyond))
    shares = _shares(rated, _bits(forced), least, price)
    lower = base + math.fsum(map(min, shares.values())) if all(shares.values()) else math.inf
    for c, own in shares.items():
        others = lower - min(own, default=0.0)
        rated[c] = [r for r, share in zip(rated[c], own, strict=True) if others + share <= limit]
    pruned = [_undominated(c, own, forced, components, costs) for c, own in enumerate(rated)]
    return pruned, frozenset(_bits(forced)), lower


def _shares(
    rated: list[list[_Rated]], forced: Sequence[int], least: dict[int, float], price: Callable[[int], float]
) -> dict[int, list[float]]:
    """What each option of the classes in all DAGs adds at least to the least that these cost.

    The adds of one option of each may be summed up: a class that several lead to counts for the first alone. Those
    that add most come first.
    """
    alone = {c: min((r.option.cost - least[c] + price(r.beyond) for r in rated[c]), default=math.inf) for c in forced}
    taken = 0
    shares: dict[int, list[float]] = {}
    for c in sorted(forced, key=lambda c: (-alone[c], c)):
        shares[c] = [r.option.cost - least[c] + price(r.beyond & ~taken) for r in rated[c]]
        for r in rated[c]:
            taken |= r.beyond
    return shares


def _undominated(
    owner: int, own: list[_Rated], forced: int, components: dict[int, int], costs: Sequence[float]
) -> list[Option]:
    own.sort(key=lambda r: (r.option.cost, len(r.option.needs), r.option.node))
    dropped: set[int] = set()
    for i, (better, _, _) in enumerate(own):
        if i in dropped:
            continue
        priced = [
            (1 << part, costs[part])
            for part in better.needs
            if not (forced >> part & 1 and components[part] != components[owner])
        ]
        for j, (other, inside, _) in enumerate(own):
            if j == i or j in dropped or other.cost < better.cost:
                continue
            missing = [cost for bit, cost in priced if not inside & bit]
            if not missing or better.cost + sum(missing) < other.cost:
                dropped.add(j)
    return [r.option for i, r in enumerate(own) if i not in dropped]


def _components(options: Options) -> dict[int, int]:
    """The number of the strongly connected component of each class."""
    import networkx as nx  # a tenth of what a search would import

    graph = nx.DiGraph()
    graph.add_nodes_from(c for c, own in enumerate(options) if own)
    graph.add_edges_from((c, part) for c, own in enumerate(options) for o in own for part in o.needs)
    return {c: i for i, found in enumerate(nx.strongly_connected_components(graph)) for c in found}
