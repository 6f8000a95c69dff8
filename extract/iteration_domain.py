"""Where a statement of a kernel runs: an index for each loop and work-item around it, under conditions.

Counting these points says how often it runs without running it.

Source: counting the integer points of an iteration domain is what polyhedral compilers do (Clauss, "Counting solutions
to linear and nonlinear constraints through Ehrhart polynomials", 1996). The domains here are boxes with few conditions,
so all indices but the longest are enumerated, and that one is solved for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lift_egraph.caching import cached_property, hashed_once
from lift_egraph.codegen.c_ast import Computed
from lift_egraph.language.nat import Monomial, Nat, NatVar, Operation

Values = Any
"""A number, or an array of them: one for each point."""

Terms = tuple[tuple[Monomial, int], ...]
"""The terms of an index expression, or some of them."""

MOST_POINTS = 1 << 20  # that are enumerated: of more, as many that lie evenly


class Axis(NamedTuple):
    """One index: of the steps of a loop, or of the workers of a level (`kind` and `dimension` as in `ir.Level`).

    A parallel loop runs its steps `workers` at a time; the worker's own index then goes by the name `own`.
    """

    name: str
    length: int
    kind: str = "seq"
    dimension: int = 0
    workers: int = 1
    own: str = ""


@hashed_once
@dataclass(frozen=True)
class Domain:
    """A box of indices, as far as conditions hold.

    Attributes
    ----------
    axes
        From the outermost on; of two with one name the inner one counts.
    conditions
        Index expressions that must be 0 or more, all of them.
    excluded
        Conjunctions of such conditions, none of which may hold.
    """

    axes: tuple[Axis, ...]
    conditions: tuple[Nat, ...] = ()
    excluded: tuple[tuple[Nat, ...], ...] = ()

    def inside(self, axis: Axis) -> Domain:
        """The domain in a loop: the axis takes the place of that of its level, if there is one.

        Work-items that share a loop without regard to their groups take that of their groups' levels.
        """
        others = self.axes
        if axis.kind != "seq":
            taken = ("glb", "wrg", "lcl") if axis.kind == "glb" else (axis.kind,)
            others = tuple(a for a in others if a.dimension != axis.dimension or a.kind not in taken)
        return Domain((*others, axis), self.conditions, self.excluded)

    def where(self, conditions: Sequence[Nat]) -> Domain:
        """The part in which all conditions hold."""
        return Domain(self.axes, tuple(dict.fromkeys((*self.conditions, *conditions))), self.excluded)

    def except_where(self, conditions: Sequence[Nat]) -> Domain:
        """The part in which one of the conditions does not hold."""
        return Domain(self.axes, self.conditions, (*self.excluded, tuple(conditions)))

    @property
    def guards(self) -> tuple[Nat, ...]:
        """All conditions, also of what is excluded."""
        return (*self.conditions, *(c for conjunction in self.excluded for c in conjunction))

    @cached_property
    def size(self) -> int:
        """How many points there are: exact where each condition is linear in the longest index that it names."""
        if not self.guards:
            return prod(axis.length for axis in self.axes)
        total = prod(_points(axes, conditions) for axes, conditions in _components(self))
        # what one conjunction leaves out: all, less where it holds as well
        for number, conjunction in enumerate(self.excluded):
            total -= Domain(self.axes, self.conditions, self.excluded[:number]).where(conjunction).size
        return total

    def holds(self, values: Mapping[str, Values]) -> Values:
        """Whether points satisfy the conditions."""
        inside: Values = np.True_
        for condition in self.conditions:
            inside = inside & (evaluate(condition, values) >= 0)
        for conjunction in self.excluded:
            outside: Values = np.True_
            for condition in conjunction:
                outside = outside & (evaluate(condition, values) >= 0)
            inside = inside & ~outside
        return inside


def evaluate(value: Nat, values: Mapping[str, Values]) -> Values:
    """An index expression at points; data that it reads counts as the middle of its range."""
    total: Values = 0
    for monomial, coefficient in value.terms:
        product: Values = coefficient
        for atom in monomial:
            product = product * _atom(atom, values)
        total = total + product
    return total


def _atom(atom: NatVar | Operation, values: Mapping[str, Values]) -> Values:
    if isinstance(atom, NatVar):
        return values[atom.name] if not isinstance(atom, Computed) else ((atom.low or 0) + (atom.high or 0)) // 2
    left, right = evaluate(atom.left, values), evaluate(atom.right, values)
    match atom.symbol:
        case "/":
            return left // right
        case "%":
            return left % right
        case "min":
            return np.minimum(left, right)
        case _:
            return np.maximum(left, right)


def names_in(value: Nat) -> frozenset[str]:
    """The names of the indices that an expression depends on."""
    return frozenset(v.name for v in value.variables if not isinstance(v, Computed))


def apart(terms: Terms) -> tuple[Terms, int]:
    """What of an index moves, and the number that is added to it, which stands last."""
    return (terms[:-1], terms[-1][1]) if terms and not terms[-1][0] else (terms, 0)


@lru_cache(1 << 12)
def names_of(product: Monomial) -> frozenset[str]:
    """The names of the indices that a product depends on."""
    return names_in(Nat(((product, 1),)))


def is_data(value: Nat) -> bool:
    """Whether an expression depends on what a kernel reads."""
    return any(isinstance(v, Computed) for v in value.variables)


def indices_of(axis: Axis, steps: Values) -> dict[str, Values]:
    """The values of what an axis gives a name."""
    return {axis.name: steps, **({axis.own: steps % axis.workers} if axis.own else {})}


def grid(axes: Sequence[Axis], most: int = MOST_POINTS, sample: int = MOST_POINTS) -> tuple[dict[str, Values], float]:
    """All points of a box, or an even sample of more than `most`; and for how many points each one stands."""
    lengths = [axis.length for axis in axes]
    kept = list(lengths)
    while prod(lengths) > most and prod(kept) > sample:
        longest = kept.index(max(kept))
        kept[longest] = max(min(kept[longest] // 2, sample * kept[longest] // prod(kept)), 1)
    steps = [
        np.arange(n) if k == n else (2 * np.arange(k) + 1) * n // (2 * k)  # the middles of as many parts
        for k, n in zip(kept, lengths, strict=True)
    ]
    values: dict[str, Values] = {}
    for axis, points in zip(axes, np.meshgrid(*steps, indexing="ij", sparse=True), strict=True):
        values |= indices_of(axis, points)
    return values, prod(lengths) / max(prod(kept), 1)


def _components(domain: Domain) -> Iterator[tuple[tuple[Axis, ...], tuple[Nat, ...]]]:
    """The axes, apart by which conditions of the domain connect them."""
    known = {name: axis for axis in domain.axes for name in (axis.name, axis.own) if name}
    groups: list[tuple[frozenset[Axis], list[Nat]]] = []
    for condition in domain.conditions:
        axes, conditions = frozenset(known[name] for name in names_in(condition)), [condition]
        apart: list[tuple[frozenset[Axis], list[Nat]]] = []
        for others, of_others in groups:
            if axes & others:
                axes, conditions = axes | others, of_others + conditions
            else:
                apart.append((others, of_others))
        groups = [*apart, (axes, conditions)]
    connected = {axis for axes, _ in groups for axis in axes}
    yield tuple(axis for axis in domain.axes if axis not in connected), ()
    for axes, conditions in groups:
        yield tuple(axis for axis in domain.axes if axis in axes), tuple(conditions)


@lru_cache(1 << 12)
def _points(axes: tuple[Axis, ...], conditions: tuple[Nat, ...]) -> int:
    """The points of a box at which conditions hold; what depends on data counts as holding."""
    conditions = tuple(c for c in conditions if not is_data(c))
    if not axes or not conditions:
        holds = all(evaluate(c, {}) >= 0 for c in conditions)
        return prod(axis.length for axis in axes) if holds else 0
    longest = max(axes, key=lambda axis: axis.length)
    by_worker = any(longest.own in names_in(c) for c in conditions)
    slopes = None if by_worker else [slope(c, longest.name) for c in conditions]
    if slopes is None or None in slopes:
        values, each = grid(axes)
        held = Domain(axes, conditions).holds(values)
        return round(np.count_nonzero(np.broadcast_to(held, _shape(values))) * each)
    values, each = grid([axis for axis in axes if axis is not longest])
    first: Values = 0
    last: Values = longest.length - 1
    for condition, rise in zip(conditions, slopes, strict=True):
        rest = evaluate(condition, {**values, longest.name: 0})
        if not rise:
            last = np.where(rest >= 0, last, -1)
        elif rise > 0:
            first = np.maximum(first, -(rest // rise))
        else:
            last = np.minimum(last, rest // -rise)
    found = np.maximum(last - first + 1, 0)
    return round(float(np.sum(np.broadcast_to(found, _shape(values)))) * each)


def _shape(values: Mapping[str, Values]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(v) for v in values.values()))


def slope(index: Nat, name: str) -> int | None:
    """By how much an expression grows with an index, if that is the same everywhere."""
    found = 0
    for product, coefficient in index.terms:
        if name in names_of(product):
            if len(product) > 1 or any(isinstance(atom, Operation) for atom in product):
                return None
            found += coefficient
    return found
