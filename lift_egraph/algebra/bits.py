"""Folds whose accumulator is a word of bits, each of them the exclusive or of some that were there before.

Checksums (CRC), shift registers, rotations and Gray codes are of this kind: ``f (s, x) = L s xor g x``, where L is a
matrix of bits. Shifts are linear over (xor, and) as well, though the matrix has as many columns as there are bits. No
matrix is carried here: powers of L are polynomials in L, modulo one whose value at L is 0 (that there is one is the
theorem of Cayley and Hamilton), and such a polynomial is a word. ``q (L) s`` is Horner's rule with steps of the fold.

Source: Lidl and Niederreiter, "Introduction to Finite Fields and Their Applications", 1994, §6.2; zlib, crc32_combine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lift_egraph.algebra.adjoined import any_value
from lift_egraph.algebra.expressions import Binary
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.algebra.linear_bits import Columns, columns_of, literal, size_of
from lift_egraph.algebra.polynomials import OF_BITS, horner, product
from lift_egraph.algebra.semirings import Semiring
from lift_egraph.algebra.trials import COUNT, atoms, drawn, evaluate
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Scalar


@dataclass(frozen=True)
class Word:
    """One component of an accumulator whose bits are exclusive ors of those before, and of some of the element.

    It has what `lift_egraph.algebra.matrices.Block` has: its entry is a polynomial in the matrix of a step.

    Attributes
    ----------
    accumulator, step
        What a step without an element makes of the component.
    modulus
        A polynomial whose value at the matrix is 0, without its first term, whose power is the number of bits.
    """

    type: Scalar
    group: tuple[int, ...]
    accumulator: ir.Var
    step: ir.Expr
    modulus: ir.Literal
    semiring: Semiring = OF_BITS

    @property
    def entries(self) -> tuple[ir.Expr, ...]:
        """The polynomial X."""
        return (ir.Literal(2, self.type),)

    @property
    def ones(self) -> tuple[ir.Expr, ...]:
        """The polynomial 1."""
        return (ir.Literal(1, self.type),)

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """The product of two polynomials."""
        return [product(self.type, self.modulus, first[0], second[0])]

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What a polynomial in the matrix makes of a value."""
        return [horner(self.type, data[0], self.accumulator, self.step, values[0])]


def word(op: Binary, group: Sequence[int]) -> Word:
    """The one component of a group as a word of bits.

    Raises
    ------
    NotLinear
        If there are several, or its bits are not known to be exclusive ors of those before, the same for all elements.
    """
    component, *others = group
    v, elements = op.first[component], ir.bound_variables(op.second)
    t, result = v.type, op.results[component]
    are_scalars = all(isinstance(x.type, Scalar) for x in elements)
    if others or not isinstance(t, Scalar) or not t.is_integer or not are_scalars:
        raise NotLinear("it is no word of bits")
    columns = columns_of(result, v, t)
    at_rest: dict[ir.Var, ir.Expr] = dict(
        zip(elements, (any_value(x.type) for x in elements if isinstance(x.type, Scalar)), strict=True)
    )
    none = substitute(result, {**at_rest, v: OF_BITS.zero(t)})
    rest = none if any(True for _ in atoms(none)) else ir.Literal(evaluate(none, {}).item(), t)
    step = OF_BITS.sum(substitute(result, at_rest), rest, t)
    found = Word(t, (component,), v, step, literal(_annihilating(columns), t))
    if not _is_so(found, result, columns):
        raise NotLinear("what was found of its bits is wrong on random values")
    return found


def _annihilating(columns: Columns) -> int:
    """A polynomial, of as many bits as there are and without its first term, whose value at a matrix is 0."""
    size = len(columns)
    power = tuple(1 << i for i in range(size))
    basis: list[tuple[int, int]] = []  # sums of powers that differ in their highest bits, and which powers these are
    for degree in range(size + 1):
        whole, which = sum(c << (size * i) for i, c in enumerate(power)), 1 << degree
        for other, used in basis:
            if whole ^ other < whole:
                whole, which = whole ^ other, which ^ used
        if not whole:
            return (which << (size - degree)) & ((1 << size) - 1)
        basis.append((whole, which))
        basis.sort(reverse=True)
        power = tuple(_times(columns, c) for c in power)
    raise AssertionError("a matrix has a polynomial of its own")


def _times(columns: Columns, word: int) -> int:
    made = 0
    for i, c in enumerate(columns):
        made ^= c if word >> i & 1 else 0
    return made


def _is_so(found: Word, result: ir.Expr, columns: Columns) -> bool:
    """Whether random words bear out what becomes of their bits, and that the polynomial gives 0 at the matrix."""
    v, t = found.accumulator, found.type
    generator = np.random.default_rng(0)
    words = np.frombuffer(generator.bytes(COUNT * size_of(t) // 8), np.dtype(NUMPY_TYPES[t.name]))
    none = np.zeros_like(words)
    scope = {a: drawn(type_of(a), generator, fractions=False) for a in atoms(result) if a != v}
    made, rest = (np.broadcast_to(evaluate(result, {**scope, v: w}), COUNT) for w in (words, none))
    wanted = none.copy()
    for i, c in enumerate(columns):
        wanted ^= np.where(
            np.bitwise_and(np.right_shift(words, i), 1), np.asarray(literal(c, t).value, words.dtype), none
        )
    (combined,) = found.applied([found.modulus], [ir.Var("$word", t)])
    scope[ir.Var("$word", t)] = powers = words
    for _ in range(size_of(t)):
        powers = evaluate(found.step, {**scope, v: powers})
    return np.array_equal(made ^ rest, wanted) and np.array_equal(powers, evaluate(combined, scope))
