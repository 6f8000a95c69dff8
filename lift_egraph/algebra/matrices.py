"""Matrices over a semiring that are multiplied again and again, without the entries that need not be kept.

An affine form of k variables is a matrix of k rows and k + 1 columns; below it one thinks a row of zeros that ends in
one. What is zero or one in the matrices of all elements, in the identity and in all products is no data, and entries
that are equal in all of these are kept once.

Source: 003 §7.2.3 measures what dense matrices cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from lift_egraph.algebra.bounded import bounds
from lift_egraph.algebra.expressions import numbered
from lift_egraph.algebra.nonnegative import NonNegative
from lift_egraph.algebra.normal_forms import equal_over
from lift_egraph.algebra.semirings import Semiring
from lift_egraph.language import ir
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Scalar

Place = tuple[int, int]
Matrix = dict[Place, ir.Expr]


@dataclass(frozen=True)
class Block:
    """The matrices of some components of an accumulator.

    Attributes
    ----------
    group
        The components.
    constants
        The entries that are no data.
    kept
        For each other entry, which of the kept ones it is.
    entries, ones
        What is kept of the matrix of an element, and of the identity.
    """

    semiring: Semiring
    type: Scalar
    group: tuple[int, ...]
    constants: Mapping[Place, ir.Expr]
    kept: Mapping[Place, int]
    entries: tuple[ir.Expr, ...]
    ones: tuple[ir.Expr, ...]

    @property
    def types(self) -> tuple[Scalar, ...]:
        """Of the entries."""
        return (self.type,) * len(self.entries)

    @property
    def why(self) -> str:
        """How the components follow from those before."""
        return f"linear in the accumulator over {self.semiring}"

    @property
    def longest(self) -> int | None:
        """Of how many elements the products of factors are floats, that are larger than no sum of them; None of others,
        or if no factor is above 1.
        """
        if not isinstance(self.semiring, NonNegative):
            return None
        factors = [self.entries[kind] for (_, column), kind in self.kept.items() if column < len(self.group)]
        largest = max((bounds(e)[1] for e in factors), default=0.0)
        return None if largest <= 1 else int(log(np.finfo(NUMPY_TYPES[self.type.name]).max) / log(largest))

    def matrix(self, data: Sequence[ir.Expr]) -> Matrix:
        """All entries, by what is kept of them."""
        return {**self.constants, **{place: data[i] for place, i in self.kept.items()}}

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What is kept of the product that acts like `first` and then `second`."""
        made = _product(self.semiring, self.type, self.matrix(second), self.matrix(first))
        places = {i: place for place, i in reversed([*self.kept.items()])}
        return [made[places[i]] for i in range(len(self.entries))]

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """A matrix times a vector, and its last column."""
        whole, k = self.matrix(data), len(self.group)
        return [_row(self.semiring, self.type, [whole[i, j] for j in range(k + 1)], values) for i in range(k)]


def closed_block(semiring: Semiring, t: Scalar, group: tuple[int, ...], rows: Sequence[Sequence[ir.Expr]]) -> Block:
    """The block of the matrices that the elements of an array give, whose rows are these, and of all their products."""
    k = len(rows)
    given: Matrix = {(i, j): rows[i][j] for i in range(k) for j in range(k + 1)}
    identity: Matrix = {(i, j): semiring.one(t) if i == j else semiring.zero(t) for i, j in given}
    constants = {p: e for p, e in given.items() if e == identity[p]}
    classes = [[p for p in given if p not in constants]]
    classes = _split(classes, lambda p, q: given[p] == given[q] and identity[p] == identity[q])
    while True:
        kept = {p: i for i, members in enumerate(classes) for p in members}
        first, second = (numbered(name, [t] * len(classes)) for name in "pq")
        whole = [{**constants, **{p: data[i] for p, i in kept.items()}} for data in (first, second)]
        made = _product(semiring, t, whole[1], whole[0])
        lost = [p for p, e in constants.items() if made[p] != e]
        if lost:
            constants = {p: e for p, e in constants.items() if p not in lost}
            new = _split([lost], lambda p, q: given[p] == given[q] and identity[p] == identity[q])
            classes = [*classes, *new]
            continue
        finer = _split(classes, lambda p, q, made=made: equal_over(semiring, t, made[p], made[q]))
        if len(finer) == len(classes):
            break
        classes = finer
    heads = [members[0] for members in classes]
    return Block(
        semiring, t, group, constants, kept, tuple(given[p] for p in heads), tuple(identity[p] for p in heads)
    )  # fmt: skip


def _split(classes: Sequence[Sequence[Place]], alike: Callable[[Place, Place], bool]) -> list[list[Place]]:
    """The classes with only those together that are alike."""
    made: list[list[Place]] = []
    for members in classes:
        own: list[list[Place]] = []
        for p in members:
            home = next((c for c in own if alike(c[0], p)), None)
            if home is None:
                own.append([p])
            else:
                home.append(p)
        made += own
    return made


def _product(semiring: Semiring, t: Scalar, left: Matrix, right: Matrix) -> Matrix:
    k = 1 + max(i for i, _ in left)
    made: Matrix = {}
    for i, j in left:
        column = [right[m, j] for m in range(k)]
        rest = left[i, k] if j == k else semiring.zero(t)
        made[i, j] = _row(semiring, t, [*(left[i, m] for m in range(k)), rest], column)
    return made


def _row(semiring: Semiring, t: Scalar, row: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> ir.Expr:
    """The last entry of a row, and the others times values."""
    *factors, made = row
    for factor, value in reversed(list(zip(factors, values, strict=True))):
        made = semiring.sum(semiring.product(factor, value, t), made, t)
    return made
