"""Words of bits that are linear over (xor, and): each bit the exclusive or of some bits of a variable, and of others.

That is known of shifts and of masks, of ``or`` and ``+`` between words that have no bit in common, of products with a
single bit, and of choices by a bit whose two words differ by a number alone. Loops of a known length are gone through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

import numpy as np

from lift_egraph.algebra.linear import NotLinear
from lift_egraph.algebra.trials import Counted, counted
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import Scalar

Columns = tuple[int, ...]  # what becomes of each bit of the variable
MOST_PARTS = 20_000  # of an expression, those of loops in each step
SHIFTS = ("shift_left", "shift_right")


@dataclass(frozen=True)
class Bits:
    """A word: what becomes of each bit of the variable, exclusive or a number, exclusive or words without it."""

    columns: Columns
    number: int
    others: frozenset[ir.Expr]


Scope = Mapping[ir.Var, Union[Bits, ir.Expr]]


def columns_of(term: ir.Expr, variable: ir.Var, t: Scalar) -> Columns:
    """What becomes of each bit of a variable in an expression of its type.

    Raises
    ------
    NotLinear
        If that is not known, or depends on anything else.

    Examples
    --------
    >>> from lift_egraph.language.types import U8
    >>> s, x = ir.Var("s", U8), ir.Var("x", U8)
    >>> [f"{c:08b}" for c in columns_of(ir.Call("bit_xor", (ir.Call("shift_left", (s, ir.Literal(3, U8))), x)), s, U8)]
    ['00001000', '00010000', '00100000', '01000000', '10000000', '00000000', '00000000', '00000000']
    """
    words = _Words(t)
    return words(term, {variable: Bits(tuple(1 << i for i in range(words.size)), 0, frozenset())}).columns


class _Words:
    """Words of a type; numbers are those without a sign that have the same bits."""

    def __init__(self, t: Scalar) -> None:
        self.t, self.dtype = t, np.dtype(NUMPY_TYPES[t.name])
        self.size = size_of(t)
        self.all = (1 << self.size) - 1
        self.left = MOST_PARTS

    def __call__(self, term: ir.Expr, scope: Scope) -> Bits:
        self.left -= 1
        if self.left < 0:
            raise NotLinear("it is too large")
        if isinstance(term, ir.Var) and isinstance(known := scope.get(term), Bits):
            return known
        if type_of(term) != self.t:
            raise NotLinear("it has words of several types")
        if isinstance(term, ir.Literal):
            return Bits((0,) * self.size, int(term.value) & self.all, frozenset())
        if _is_free(term, scope):
            return Bits((0,) * self.size, 0, frozenset({_closed(term, scope)}))
        if (loop := counted(term)) is not None:
            return self.gone_through(loop, scope)
        match term:
            case ir.Call(op="bit_xor", arguments=(a, b)):
                return self.xor(self(a, scope), self(b, scope))
            case ir.Call(op="bit_or" | "add", arguments=(a, b)):
                one, other = self(a, scope), self(b, scope)
                if self.may_be(one) & self.may_be(other):
                    raise NotLinear("both words may have a bit in common")
                return self.xor(one, other)
            case ir.Call(op="bit_and", arguments=(a, ir.Literal() as b) | (ir.Literal() as b, a)):
                return self.each("bit_and", self(a, scope), b)
            case ir.Call(op="shift_left" | "shift_right" as op, arguments=(a, ir.Literal() as b)):
                return self.each(op, self(a, scope), b)
            case ir.Call(op="mul", arguments=(a, ir.Literal() as b) | (ir.Literal() as b, a)):
                return self.multiplied(self(a, scope), b)
            case ir.Call(op="neg", arguments=(a,)):
                return self.multiplied(self(a, scope), literal(self.all, self.t))
            case ir.Call(op="bit_not", arguments=(a,)):
                return self.xor(self(a, scope), self.constant(self.all))
            case ir.Call(op="select", arguments=(condition, a, b)):
                return self.chosen(condition, self(a, scope), self(b, scope), scope)
        raise NotLinear("its bits are no exclusive ors")

    def constant(self, bits: int) -> Bits:
        return Bits((0,) * self.size, bits, frozenset())

    def xor(self, a: Bits, b: Bits) -> Bits:
        columns = tuple(x ^ y for x, y in zip(a.columns, b.columns, strict=True))
        return Bits(columns, a.number ^ b.number, a.others ^ b.others)

    def each(self, op: str, word: Bits, by: ir.Literal) -> Bits:
        """An operation with a number that is linear, on all parts of a word."""

        def at(bits: int) -> int:
            return (
                int(
                    OPERATIONS[op].meaning(
                        np.array([literal(bits, self.t).value], self.dtype), self.dtype.type(by.value)
                    )[0]
                )
                & self.all
            )

        others = frozenset(ir.Call(op, (e, by)) for e in word.others)
        return Bits(tuple(map(at, word.columns)), at(word.number), others)

    def multiplied(self, word: Bits, by: ir.Literal) -> Bits:
        """A product with a number: of a single bit, or with a power of two."""
        bits = int(by.value) & self.all
        if self.may_be(word).bit_count() > 1 and bits.bit_count() != 1:
            raise NotLinear("a product of several bits")
        return self.each("mul", word, by)

    def gone_through(self, loop: Counted, scope: Scope) -> Bits:
        """What a loop makes of what it starts with."""
        made = self(loop.initial, scope)
        for i in range(loop.length):
            made = self(loop.body, {**scope, loop.accumulator: made, loop.element: loop.at(i)})
        return made

    def chosen(self, condition: ir.Expr, yes: Bits, no: Bits, scope: Scope) -> Bits:
        """A choice: by what is free of the variable, or by a bit, between words that differ by a number."""
        difference = self.xor(yes, no)
        if any(difference.columns):
            raise NotLinear("the words that are chosen from differ by more than a number")
        if _is_free(condition, scope):
            parts = (self.written(word) for word in (yes, no))
            word = ir.Call("select", (_closed(condition, scope), *parts))
            return Bits(yes.columns, 0, frozenset({word}))
        if difference.others:
            raise NotLinear("the words that are chosen from differ by more than a number")
        bit = self.truth(condition, scope)
        return self.xor(no, self.each("mul", bit, literal(difference.number, self.t)))

    def written(self, word: Bits) -> ir.Expr:
        """A word without its columns as an expression; in an order that does not change."""
        made: ir.Expr = literal(word.number, self.t)
        for e in sorted(word.others, key=repr):
            made = ir.Call("bit_xor", (made, e))
        return made

    def truth(self, condition: ir.Expr, scope: Scope) -> Bits:
        """A condition as the lowest bit of a word."""
        match condition:
            case ir.Call(op="not", arguments=(a,)):
                return self.xor(self.truth(a, scope), self.constant(1))
            case ir.Call(op="eq" | "ne" as op, arguments=(a, ir.Literal() as b) | (ir.Literal() as b, a)) if (
                type_of(a) == self.t
            ):
                word, wanted = self(a, scope), int(b.value) & self.all
                mask = self.may_be(word)
                if mask.bit_count() != 1 or wanted not in (0, mask):
                    raise NotLinear("it asks for several bits")
                bit = self.bit(word, mask.bit_length() - 1)
                return bit if (op == "ne") == (wanted == 0) else self.xor(bit, self.constant(1))
            case ir.Call(op="lt" | "ge" as op, arguments=(a, ir.Literal(value=0))) if (
                type_of(a) == self.t and self.dtype.kind == "i"
            ):
                bit = self.bit(self(a, scope), self.size - 1)
                return bit if op == "lt" else self.xor(bit, self.constant(1))
        raise NotLinear("it asks for more than a bit")

    def bit(self, word: Bits, place: int) -> Bits:
        """A bit of a word in the lowest place."""
        return self.each("bit_and", self.each("shift_right", word, literal(place, self.t)), literal(1, self.t))

    def may_be(self, word: Bits) -> int:
        """The bits that may be one."""
        made = word.number
        for c in word.columns:
            made |= c
        for e in word.others:
            made |= self.may_be_in(e)
        return made

    def may_be_in(self, term: ir.Expr) -> int:
        """The bits that may be one in any expression."""
        match term:
            case ir.Literal(value=value):
                return int(value) & self.all
            case ir.Call(op="bit_and", arguments=(a, b)):
                return self.may_be_in(a) & self.may_be_in(b)
            case ir.Call(op="bit_or" | "bit_xor", arguments=(a, b)) | ir.Call(op="select", arguments=(_, a, b)):
                return self.may_be_in(a) | self.may_be_in(b)
            case ir.Call(op="shift_left" | "shift_right" as op, arguments=(a, ir.Literal() as by)):
                return self.each(op, self.constant(self.may_be_in(a)), by).number
            case ir.Call(op="mul", arguments=(a, ir.Literal() as by)) if self.may_be_in(a) == 1:
                return int(by.value) & self.all
        return self.all


def _is_free(term: ir.Expr, scope: Scope) -> bool:
    return not any(isinstance(scope.get(v), Bits) for v in ir.free_variables(term))


def _closed(term: ir.Expr, scope: Scope) -> ir.Expr:
    return substitute(term, {v: e for v, e in scope.items() if not isinstance(e, Bits)})


def literal(bits: int, t: Scalar) -> ir.Literal:
    """A number of a type by its bits."""
    dtype = np.dtype(NUMPY_TYPES[t.name])
    return ir.Literal(np.array(bits, f"u{dtype.itemsize}").astype(dtype).item(), t)


def size_of(t: Scalar) -> int:
    """How many bits a number of a type has."""
    return 8 * np.dtype(NUMPY_TYPES[t.name]).itemsize
