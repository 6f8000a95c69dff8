"""Decision diagrams of points: one layer a parameter, with one node for all prefixes that ask the same of the rest.

What a condition still asks is what is left of its form when the values so far stand in it, as far as that matters: of a
quotient only the divisor, of a bound only which products of the parameters to come stay within it.

Source: ordered diagrams with shared nodes: Bryant, "Graph-based algorithms for Boolean function manipulation", 1986.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import inf, lcm, prod
from typing import Any

import numpy as np

from lift_egraph.errors import SearchProblem
from lift_egraph.tuning.conditions import Condition

Array = np.ndarray[Any, Any]

LARGEST = 1 << 62  # of what is left of a form
MOST_PRODUCTS = 1 << 16  # of parameters to come, with which a bound is compared
MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


class Diagram:
    """All points over some domains that satisfy conditions.

    Parameters
    ----------
    domains
        The values of each parameter, in order.
    conditions
        Over these parameters.

    Attributes
    ----------
    order
        The parameters from the first layer to the last.
    count
        How many points there are.

    Raises
    ------
    SearchProblem
        If the numbers in it are too large.
    """

    def __init__(self, domains: Mapping[str, tuple[int, ...]], conditions: Sequence[Condition]) -> None:
        self.order = _ordered(domains, conditions)
        self.domains = domains
        self._edges: list[_Edges] = []
        left = [_Left(c, self.order, domains) for c in conditions]
        nodes = 1
        for depth, name in enumerate(self.order):
            values = np.array(domains[name], np.int64)
            parents = np.repeat(np.arange(nodes), len(values))
            chosen = np.tile(np.arange(len(values)), nodes)
            for condition in left:
                condition.begin(parents)
            for condition in left:
                kept = condition.step(depth, name, values, parents, chosen)
                if kept is not None:
                    parents, chosen = parents[kept], chosen[kept]
                    for other in left:
                        other.keep(kept)
            children, first = _distinct([column for condition in left for column in condition.made()], len(parents))
            for condition in left:
                condition.settle(first)
            starts = np.searchsorted(parents, np.arange(nodes + 1))
            self._edges.append(_Edges(starts, values[chosen], children))
            nodes = len(first)
        is_large = prod(max(len(d), 1) for d in domains.values()) >= LARGEST
        below: Array = np.ones(nodes, object if is_large else np.int64)
        for edges in reversed(self._edges):
            below = edges.counted(below)
        self.count = int(below[0])

    def point(self, index: int) -> dict[str, int]:
        """The point with a number from 0 to ``count - 1``."""
        node, found = 0, {}
        for name, edges in zip(self.order, self._edges, strict=True):
            found[name], node, index = edges.follow(node, index)
        return found

    @property
    def nodes(self) -> tuple[int, ...]:
        """How many nodes there are in each layer."""
        return tuple(len(edges.starts) - 1 for edges in self._edges)


class _Edges:
    """The edges of a layer, those of a node next to each other."""

    def __init__(self, starts: Array, values: Array, children: Array) -> None:
        self.starts, self.values, self.children = starts, values, children
        self._ends = np.zeros(1)

    def counted(self, below: Array) -> Array:
        """The points below each node, from those below its children."""
        self._ends = np.concatenate((np.zeros(1, below.dtype), np.cumsum(below[self.children])))
        return self._ends[self.starts[1:]] - self._ends[self.starts[:-1]]

    def follow(self, node: int, index: int) -> tuple[int, int, int]:
        """The value and the child of a node to which a point belongs, and the number of the point below that."""
        first, end = int(self.starts[node]), int(self.starts[node + 1])
        passed = self._ends[first]
        edge = first + int(np.searchsorted(self._ends[first + 1 : end + 1], passed + index, side="right"))
        return int(self.values[edge]), int(self.children[edge]), int(index - (self._ends[edge] - passed))


class _Left:
    """What is left of a condition at each node: the numerators over one denominator of its terms.

    Terms that the same parameters will be multiplied with are one. Where it holds whatever follows, all are 0.
    """

    def __init__(self, condition: Condition, order: Sequence[str], domains: Mapping[str, tuple[int, ...]]) -> None:
        self.condition, self.domains = condition, domains
        self.is_whole = condition.whole and not condition.is_integral  # whether it must be asked for
        self.powers = [dict(powers) for _, powers in condition.form.terms]
        self.bottom = reduce(lcm, (c.denominator for c, _ in condition.form.terms), 1)
        tops = [int(c * self.bottom) for c, _ in condition.form.terms]
        self.tops: list[Array] = [np.array([t], np.int64) for t in tops]
        self.below: list[Array] = [np.array([self.bottom], np.int64) for _ in tops]
        self.order = order
        self.is_done = False
        self._next: tuple[list[Array], list[Array]] | None = None
        self._parents: Array = np.zeros(1, np.int64)

    def begin(self, parents: Array) -> None:
        """Begin a layer, whose edges come from these nodes."""
        self._next, self._parents = None, parents

    def step(self, depth: int, name: str, values: Array, parents: Array, chosen: Array) -> Array | None:
        """Take one more parameter in; returns which of the edges are left, None for all."""
        if self.is_done or not any(name in p for p in self.powers):
            return None
        tops, below = [], []
        for powers, top, bottom in zip(self.powers, self.tops, self.below, strict=True):
            e = powers.get(name, 0)
            factors = values ** abs(e) if e else np.ones_like(values)
            largest = max(int(top.max(initial=0)), int(bottom.max(initial=0))) * int(factors.max(initial=1))
            if largest >= LARGEST:
                raise SearchProblem(f"the numbers of {self.condition.form} are too large")
            of_top, of_bottom = top[parents], bottom[parents]
            of_top, of_bottom = (
                (of_top * factors[chosen], of_bottom) if e >= 0 else (of_top, of_bottom * factors[chosen])
            )
            common = np.gcd(of_top, of_bottom)
            common[common == 0] = 1
            tops.append(of_top // common)
            below.append(of_bottom // common)
        later = self.order[depth + 1 :]
        self.powers = [{n: e for n, e in p.items() if n in later} for p in self.powers]
        tops, below = self._merged(tops, below)
        kept = self._decided(tops, below) if not any(self.powers) else self._narrowed(tops, below)
        if not any(self.powers):
            self.is_done, tops, below, self.powers = True, [], [], []
        self._next = tops, below
        return None if kept.all() else np.flatnonzero(kept)

    def _merged(self, tops: list[Array], below: list[Array]) -> tuple[list[Array], list[Array]]:
        """Terms with the same parameters to come as one."""
        made: dict[tuple[tuple[str, int], ...], tuple[Array, Array]] = {}
        for powers, top, bottom in zip(self.powers, tops, below, strict=True):
            key = tuple(sorted(powers.items()))
            if key in made:
                other_top, other_bottom = made[key]
                top, bottom = top * other_bottom + other_top * bottom, bottom * other_bottom
                common = np.gcd(top, bottom)
                top, bottom = top // common, bottom // common
            made[key] = top, bottom
        self.powers = [dict(key) for key in made]
        return [t for t, _ in made.values()], [b for _, b in made.values()]

    def _decided(self, tops: list[Array], below: list[Array]) -> Array:
        """Where it holds, when nothing follows."""
        c, (top,), (bottom,) = self.condition, tops, below
        kept = (bottom == 1) if self.is_whole else np.ones(len(top), bool)
        kept &= top >= c.low * bottom
        if c.high < inf:
            kept &= top <= np.floor(c.high * bottom.astype(float) + 1e-9)
        return kept & (bottom == 1) & np.isin(top, c.among) if c.among is not None else kept

    def _narrowed(self, tops: list[Array], below: list[Array]) -> Array:
        """Where it may still hold; what is left is simplified as far as what follows allows."""
        c = self.condition
        kept = np.ones(len(tops[0]), bool)
        if not c.is_bounded:
            if all(e > 0 for e in self.powers[0].values()):
                tops[0] = np.ones_like(tops[0])
            elif all(e < 0 for e in self.powers[0].values()):
                kept = below[0] == 1
            return kept
        least, most = np.zeros(len(kept)), np.zeros(len(kept))
        for powers, top, bottom in zip(self.powers, tops, below, strict=True):
            low, high = self._reach(powers)
            part = top / bottom
            least += np.minimum(part * low, part * high)
            most += np.maximum(part * low, part * high)
        kept = (most >= c.low * (1 - 1e-9)) & (least <= c.high * (1 + 1e-9))
        (powers, *others) = self.powers
        is_bound = c.high < inf and c.low <= 1 and c.among is None and not self.is_whole
        if is_bound and not others and all(e > 0 for e in powers.values()):
            products = self._products(powers)
            if products is not None:  # the greatest product that stays within the bound says it all
                place = np.searchsorted(
                    products * (1 - 1e-12), c.high * below[0] / np.maximum(tops[0], 1), side="right"
                )
                tops[0] = np.full(len(kept), int(c.high), np.int64)
                below[0] = products[np.maximum(place, 1) - 1]
        return kept

    def _reach(self, powers: Mapping[str, int]) -> tuple[float, float]:
        """The least and the greatest product of powers of parameters."""
        ends = [sorted(float(v) ** e for v in (self.domains[n][0], self.domains[n][-1])) for n, e in powers.items()]
        return prod(e[0] for e in ends), prod(e[1] for e in ends)

    def _products(self, powers: Mapping[str, int]) -> Array | None:
        """All products of powers of parameters, in order; None if they are too many."""
        made: Array = np.ones(1, np.int64)
        for name, e in powers.items():
            values = np.array(self.domains[name], np.int64) ** e
            if len(made) * len(values) > MOST_PRODUCTS or int(made[-1]) * int(values[-1]) >= LARGEST:
                return None
            made = np.unique(np.outer(made, values))
        return made

    def keep(self, kept: Array) -> None:
        """Forget the edges that a condition excludes."""
        if self._next is not None:
            tops, below = self._next
            self._next = [t[kept] for t in tops], [b[kept] for b in below]
        self._parents = self._parents[kept]

    def made(self) -> list[Array]:
        """What is left at the end of each edge, in columns."""
        if self.is_done:
            return []
        if self._next is None:
            self._next = [t[self._parents] for t in self.tops], [b[self._parents] for b in self.below]
        return [*self._next[0], *self._next[1]]

    def settle(self, first: Array) -> None:
        """Go on with one edge for each node."""
        if not self.is_done:
            assert self._next is not None
            self.tops, self.below = [t[first] for t in self._next[0]], [b[first] for b in self._next[1]]


def _distinct(columns: Sequence[Array], length: int) -> tuple[Array, Array]:
    """For each row the number of its kind, and the first row of each kind."""
    if not length:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    columns = [c for c in columns if (c != c[0]).any()]
    if not columns:
        return np.zeros(length, np.int64), np.zeros(1, np.int64)
    mixed = np.zeros(length, np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(MIX[0])
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(MIX[1])
    _, first, kinds = np.unique(mixed, return_index=True, return_inverse=True)
    if all((column == column[first[kinds]]).all() for column in columns):
        return kinds, first
    _, first, kinds = np.unique(np.stack(columns, 1), axis=0, return_index=True, return_inverse=True)
    return kinds.reshape(-1), first


def _ordered(domains: Mapping[str, tuple[int, ...]], conditions: Sequence[Condition]) -> list[str]:
    """The parameters in an order in which few conditions are open at a time."""
    order: list[str] = []
    left = list(domains)

    def open_after(name: str) -> tuple[int, int]:
        known = {*order, name}
        still = [c for c in conditions if c.form.names & known and not c.form.names <= known]
        return len(still), len(domains[name])

    while left:
        best = min(left, key=open_after)
        left.remove(best)
        order.append(best)
    return order
