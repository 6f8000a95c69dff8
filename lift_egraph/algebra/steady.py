"""Folds whose accumulator is multiplied by the same matrix at each step: recurrences with constant coefficients.

If ``f (s, x) = L s ⊕ g x`` over a semiring, and no element has a part in L, then n elements take s to ``Lⁿ s ⊕ q``,
where q is what the same fold gives of them from zero. So chunks need no products of matrices, only the fold itself, and
Lⁿ is computed once. Exponential smoothing, digital filters, polynomials at one point and hashes of texts are of this
kind.

Source: 003 §4.5, for forms whose coefficients do not depend on the element; Blelloch, "Prefix sums and their
applications", 1990, §1.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from lift_egraph.algebra.actions import linear_rows
from lift_egraph.algebra.bits import Word, word
from lift_egraph.algebra.compensated import compensates
from lift_egraph.algebra.declared import believed
from lift_egraph.algebra.expressions import (
    Binary,
    binder_of,
    fold_step,
    leaves,
    numbered,
    opened,
    packed,
    right_nested,
    shaped_binder,
)
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.algebra.matrices import Block, closed_block
from lift_egraph.algebra.trials import counterexample
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import DataType


@dataclass(frozen=True)
class Steady:
    """A fold's operator f whose elements leave its matrix as it is.

    Attributes
    ----------
    zero
        An accumulator with ``f (s, x) = onward (power, (s, f (zero, x)))``.
    power, operator, one
        The matrix of one step, the product of matrices, and the matrix of none: with the product of n of the first, the
        same holds of n elements.
    onward
        A matrix times an accumulator, and another added.
    """

    zero: ir.Expr
    power: ir.Expr
    operator: ir.Lambda
    one: ir.Expr
    onward: ir.Lambda

    @property
    def why(self) -> str:
        """How the accumulator follows from the one before, in words."""
        return "its bits are linear in those before, and powers of their matrix are polynomials in it"

    @property
    def takes_long(self) -> bool:
        """Whether to go on is a loop, or divides, so that it is not for each element."""
        return any(
            isinstance(t, ir.ReduceSeq) or (isinstance(t, ir.Call) and t.op == "mod") for t in ir.subterms(self.onward)
        )


def steady_of(function: ir.Function) -> Steady | None:
    """How a fold goes on from the result of one that began at zero, if its elements do not change the matrix.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.types import F32
    >>> s, x, k = ir.Var("s", F32), ir.Var("x", F32), ir.Var("k", F32)
    >>> found = steady_of(ir.Lambda(ir.PairBinder(s, x), s * k + x))
    >>> print(print_term(found.power), "and", print_term(found.onward))
    k and fun (p0, s0, t0) => p0 * s0 + t0
    >>> steady_of(ir.Lambda(ir.PairBinder(s, x), s * x + k)) is None
    True
    """
    return _steady_of(function, believed())


@lru_cache(maxsize=1024)
def _steady_of(function: ir.Function, _: int) -> Steady | None:
    op = fold_step(function)
    if op is None or compensates(function):
        return None
    elements = ir.bound_variables(op.second)
    blocks: list[Block | Word] = []
    for group in op.independent():
        found = linear_rows(op, group)
        if not isinstance(found, tuple):
            with suppress(NotLinear):
                blocks.append(word(op, group))
                continue
            return None
        semiring, t, rows = found
        if any(not ir.free_variables(c).isdisjoint(elements) for *row, _ in rows for c in row):
            return None
        blocks.append(closed_block(semiring, t, tuple(group), [[*row, semiring.zero(t)] for *row, _ in rows]))
    if not any(b.entries for b in blocks):
        return None  # sums, which are reductions as they stand
    if any(isinstance(b, Word) for b in blocks) and sum(len(b.entries) for b in blocks) > 1:
        return None  # only of one word alone the laws of products are known
    made = _made(op, blocks, type_of(ir.function_body(function).body))
    return made if _goes_on(op, made) else None


def _made(op: Binary, blocks: Sequence[Block | Word], t: DataType) -> Steady:
    types = [b.type for b in blocks for _ in b.entries]
    first, second = (numbered(name, types) for name in "pq")
    state, begun = (numbered(name, [v.type for v in op.first]) for name in ("s", "t"))
    products: list[ir.Expr] = []
    results: dict[int, ir.Expr] = {}
    zeros: dict[int, ir.Expr] = {}
    start = 0
    for b in blocks:
        own = slice(start, start := start + len(b.entries))
        products += b.product(first[own], second[own])
        moved = b.applied(first[own], [state[i] for i in b.group])
        results |= {i: b.semiring.sum(m, begun[i], b.type) for i, m in zip(b.group, moved, strict=True)}
        zeros |= {i: b.semiring.zero(b.type) for i in b.group}
    places = range(len(state))
    both = ir.PairBinder(shaped_binder(state, t), shaped_binder(begun, t))
    return Steady(
        packed([zeros[i] for i in places], t),
        right_nested([e for b in blocks for e in b.entries]),
        ir.Lambda(ir.PairBinder(binder_of(first), binder_of(second)), right_nested(products)),
        right_nested([one for b in blocks for one in b.ones]),
        ir.Lambda(ir.PairBinder(binder_of(first), both), packed([results[i] for i in places], t)),
    )


def _goes_on(op: Binary, made: Steady) -> bool:
    """Whether random values bear out what two steps do."""
    times, onward = opened(made.operator, both=True), opened(made.onward, both=True)
    if times is None or onward is None:
        return False
    elements = ir.bound_variables(op.second)
    others = [ir.Var(f"{v.name}'", v.type) for v in elements]

    def two_steps(start: Sequence[ir.Expr]) -> tuple[ir.Expr, ...]:
        return op.at(op.at(start, elements), others)

    given, zero = [*leaves(made.power)], [*leaves(made.zero)]
    went = onward.at(times.at(given, given), (*op.first, *two_steps(zero)))
    return counterexample(two_steps(op.first), went) is None
