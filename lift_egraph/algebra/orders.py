"""Equality of scalar expressions that compare and choose, but do not compute: by trying all orders.

What such an expression gives depends on the order of its variables alone, not on how far they are apart, so it is
enough to try one set of values for each order, also beside the literals. Truth values are tried both. Of expressions
by ``min`` and ``max`` alone, those are equal that are equal for the least and the greatest value there is: the laws of
distributive lattices hold in all of them if they hold in that of two elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from math import inf, isfinite, prod

import numpy as np

from lift_egraph.algebra.trials import atoms, evaluate
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import BOOL, Scalar

MOST_ORDERS = 300_000


def equal_in_all_orders(left: Sequence[ir.Expr], right: Sequence[ir.Expr]) -> bool | None:
    """Whether expressions are equal one by one; None if they do more than compare and choose, or are too large."""
    if not all(_chooses(e) for e in (*left, *right)):
        return None
    found = [_equal_in_all_orders(*zip(*pairs, strict=True)) for pairs in _apart(zip(left, right, strict=True))]
    return None if None in found else all(found)


def _apart(pairs: Iterable[tuple[ir.Expr, ir.Expr]]) -> list[list[tuple[ir.Expr, ir.Expr]]]:
    """Pairs of expressions in groups that have no variables in common."""
    groups: list[tuple[frozenset[ir.Expr], list[tuple[ir.Expr, ir.Expr]]]] = []
    for pair in pairs:
        own = frozenset(a for e in pair for a in atoms(e))
        met = [g for g in groups if g[0] & own]
        groups = [g for g in groups if not g[0] & own]
        groups.append((own.union(*(names for names, _ in met)), [*(p for _, ps in met for p in ps), pair]))
    return [ps for _, ps in groups]


def _equal_in_all_orders(left: Sequence[ir.Expr], right: Sequence[ir.Expr]) -> bool | None:
    groups = _Groups()
    for a, b in zip(left, right, strict=True):
        groups.visit(a)
        groups.visit(b)
        groups.join([*_values(a), *_values(b)])
    names, choices = groups.choices()
    if prod(map(len, choices)) > MOST_ORDERS:
        return None
    drawn = np.array([[*row] for row in product(*choices)]) if names else np.zeros((1, 0))
    scope = {
        v: drawn[:, i].astype(bool if type_of(v) == BOOL else np.float64) for i, v in enumerate(names)
    }  # fmt: skip
    return all(bool(np.all(evaluate(a, scope) == evaluate(b, scope))) for a, b in zip(left, right, strict=True))


def _chooses(term: ir.Expr) -> bool:
    if isinstance(term, ir.Call):
        kind = OPERATIONS[term.op].kind
        known = kind in ("comparison", "logic", "select") or term.op in ("min", "max")
        return known and all(map(_chooses, term.arguments))
    if isinstance(term, ir.Literal):
        return term.value == term.value
    return isinstance(term, ir.Var | ir.Input) and isinstance(term.type, Scalar)


def _values(term: ir.Expr) -> Iterator[ir.Expr]:
    """The variables and literals of which an expression gives one."""
    match term:
        case ir.Call(op="select", arguments=(_, yes, no)):
            yield from _values(yes)
            yield from _values(no)
        case ir.Call(op="min" | "max", arguments=(a, b)):
            yield from _values(a)
            yield from _values(b)
        case ir.Call():
            pass
        case _:
            yield term


class _Groups:
    """Variables and literals that are compared with each other."""

    def __init__(self) -> None:
        self.owner: dict[ir.Expr, ir.Expr] = {}
        self.compared: set[ir.Expr] = set()

    def find(self, term: ir.Expr) -> ir.Expr:
        found = self.owner.setdefault(term, term)
        return term if found == term else self.find(found)

    def join(self, terms: Sequence[ir.Expr]) -> None:
        for t in terms[1:]:
            self.owner[self.find(terms[0])] = self.find(t)

    def visit(self, term: ir.Expr) -> None:
        if isinstance(term, ir.Call):
            for a in term.arguments:
                self.visit(a)
            if OPERATIONS[term.op].kind == "comparison" or term.op in ("min", "max"):
                values = [v for a in term.arguments for v in _values(a)]
                self.join(values)
                if term.op not in ("min", "max"):
                    self.compared.update(values)
        else:
            self.find(term)

    def choices(self) -> tuple[list[ir.Expr], list[list[float]]]:
        """The variables, and the values to try for each: several in every gap between literals, and these."""
        members: dict[ir.Expr, list[ir.Expr]] = {}
        for t in self.owner:
            members.setdefault(self.find(t), []).append(t)
        names: list[ir.Expr] = []
        choices: list[list[float]] = []
        for group in members.values():
            variables = [t for t in group if not isinstance(t, ir.Literal)]
            literals = sorted({float(t.value) for t in group if isinstance(t, ir.Literal)})
            is_lattice = self.compared.isdisjoint(group) and not any(map(isfinite, literals))
            for v in variables:
                names.append(v)
                if type_of(v) == BOOL:
                    choices.append([0.0, 1.0])
                else:
                    choices.append([-inf, inf] if is_lattice else _between(literals, len(variables), type_of(v)))
        return names, choices


def _between(literals: Sequence[float], count: int, t: object) -> list[float]:
    """The literals, and `count` other values of a type in each gap where it has some."""
    assert isinstance(t, Scalar)
    limits = np.iinfo(NUMPY_TYPES[t.name]) if t.is_integer else None
    low, high = (-inf, inf) if limits is None else (float(limits.min), float(limits.max))
    inside = [x for x in literals if low < x < high]
    bounds = [min([0.0, *inside]) - 2 * count - 2, *inside, max([0.0, *inside]) + 2 * count + 2]
    found = {x for x in literals if low <= x <= high}
    for a, b in pairwise(bounds):
        found |= {a + (b - a) * (i + 1) / (count + 1) for i in range(count)}
    assert all(isfinite(x) or x in literals for x in found)
    return sorted(found)
