"""Index expressions as C text.

`Nat` divides toward minus infinity, C toward zero: the two agree for operands that ranges prove
non-negative, and only then is the plain operator printed. An index that remembers how it was put
together (see `plain_index`) is printed so.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lift_egraph.codegen.c_ast import CExpr, Computed
from lift_egraph.codegen.lowering.plain_index import binds_tighter, parts
from lift_egraph.language.nat import Atom, Nat, NatVar, Operation, is_at_least

_INT_MAX = 2**31 - 1
_SHORT = 4  # terms of an index that is written twice
_ONE_WORD = re.compile(r"(\(long\))?\w+")


def _fits(value: Nat) -> bool:
    """Whether a value, and each part of it that is computed on the way, is a 32-bit number."""
    written = parts(value)
    if written:
        return _in_range(value) and _fits(written[1]) and _fits(written[2])
    sums = [value]
    if any(c < 0 for _, c in value.terms):  # printed after the others, so both sums occur
        sums.append(Nat(tuple((m, c) for m, c in value.terms if c > 0)))
    operations = [atom for monomial, _ in value.terms for atom in monomial if isinstance(atom, Operation)]
    for atom in operations:
        if atom.symbol in ("/", "%") and not is_at_least(atom.left, 0):
            # the rest of a number that may be negative is made positive by adding the divisor
            rest = atom.left % atom.right
            sums += [rest + atom.right, atom.left - rest]
    return all(map(_in_range, sums)) and all(_fits(atom.left) and _fits(atom.right) for atom in operations)


def _in_range(value: Nat) -> bool:
    low, high = value.range  # without bounds for open sizes: see `index_range`
    return (high is None or high <= _INT_MAX) and (low is None or low >= -_INT_MAX)


def _goes_round_once(left: Nat, right: Nat) -> bool:
    """Whether a rest is the number, or that less the divisor; and the number is short enough to be written twice."""
    is_short = len(left.terms) <= _SHORT and all(isinstance(a, NatVar) for m, _ in left.terms for a in m)
    return is_short and is_at_least(left, 0) and is_at_least(2 * right - 1 - left, 0)


class IndexText:
    """Prints index expressions; `data` prints the values that an index reads from memory."""

    def __init__(self, data: Callable[[CExpr], str], *, few_divisions: bool = False) -> None:
        self.data = data
        self.few_divisions = few_divisions  # the rest of what is less than twice its divisor is a choice
        self.helpers: set[str] = set()
        self.wide = False

    def __call__(self, value: Nat) -> str:
        """The text of an expression, computed in 64 bits where its range, or that of a part, leaves 32."""
        outer, self.wide = self.wide, not _fits(value)
        text = self.sum(value)
        self.wide = outer
        return text

    def fits(self, value: Nat) -> bool:
        """Whether an ``int`` holds the value."""
        return _in_range(value)

    def atomic(self, value: Nat) -> str:
        """The text, in parentheses unless it is one name or number."""
        text = self(value)
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def condition(self, value: Nat) -> str:
        """The text of ``value >= 0`` with all terms positive: ``i < n`` rather than ``n - i - 1 >= 0``."""
        if parts(value):
            return f"{self(value)} >= 0"
        left = Nat(tuple((m, c) for m, c in value.terms if c > 0))
        right = Nat(tuple((m, -c) for m, c in value.terms if c < 0))
        if left.constant is not None and right.constant is None:
            return f"{self(right)} < {self(left + 1)}"
        return f"{self(left)} >= {self(right)}"

    def sum(self, value: Nat) -> str:
        written = parts(value)
        if written:
            return self.written(*written)
        if not value.terms:
            return "0"
        if len(value.terms) == 1 and value.terms[0][1] == 1 and len(value.terms[0][0]) == 1:
            return self.atom(value.terms[0][0][0], tight=False, alone=True)
        text = ""
        ordered = sorted(value.terms, key=lambda term: term[1] < 0)  # a leading minus reads badly
        for monomial, coefficient in ordered:
            factors = [self.atom(a, tight=len(monomial) > 1 or abs(coefficient) != 1) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                is_long = abs(coefficient) > _INT_MAX or (self.wide and not factors)
                factors.insert(0, f"{abs(coefficient)}" + "L" * is_long)
            product = " * ".join(factors)
            if not text:
                text = f"-{product}" if coefficient < 0 else product
            else:
                text += (" - " if coefficient < 0 else " + ") + product
        return text

    def atom(self, atom: Atom, tight: bool, alone: bool = False) -> str:
        if isinstance(atom, Computed):
            text = self.data(atom.value)
            low, high = atom.low, atom.high
            if high is None or atom.is_known:
                return self.cast(self.closed(text))
            return self.cast(f"{self.helper('min')}({self.helper('max')}({text}, {low}), {high})")
        if not isinstance(atom, Operation):
            return self.cast(atom.name)
        if atom.symbol in ("min", "max"):
            return f"{self.helper(atom.symbol)}({self.sum(atom.left)}, {self.sum(atom.right)})"
        if self.few_divisions and atom.symbol == "%" and _goes_round_once(atom.left, atom.right):
            less = atom.left - atom.right
            return f"({self.condition(less)} ? {self.sum(less)} : {self.sum(atom.left)})"
        left, right = self.operand(atom.left), self.operand(atom.right)
        if is_at_least(atom.left, 0):
            text = f"{left} {atom.symbol} {right}"
            return f"({text})" if tight or (atom.symbol == "%" and not alone) else text
        rest = f"({left} % {right} + {right}) % {right}"
        if atom.symbol == "%":
            return rest if alone else f"({rest})"
        return f"(({self.sum(atom.left)} - ({rest})) / {right})"

    def written(self, symbol: str, left: Nat, right: Nat) -> str:
        """An operation as it was written."""
        floor = {"/": "floor_div", "%": "floor_mod"}.get(symbol, symbol)
        if symbol in ("min", "max") or (floor != symbol and not is_at_least(left, 0)):
            return f"{self.helper(floor)}({self.sum(left)}, {self.sum(right)})"
        return f"{self.part(left, symbol, False)} {symbol} {self.part(right, symbol, True)}"

    def part(self, value: Nat, symbol: str, is_right: bool) -> str:
        """An operand, in parentheses unless C reads it the same without."""
        bare = parts(value) is not None and binds_tighter(value, symbol, is_right)
        return self.sum(value) if bare else self.operand(value)

    def closed(self, text: str) -> str:
        return text if _ONE_WORD.fullmatch(text) else f"({text})"

    def helper(self, symbol: str) -> str:
        """The name of a function that the kernel then needs."""
        name = f"index_{symbol}{'_long' if self.wide else ''}"
        self.helpers.add(name)
        return name

    def operand(self, value: Nat) -> str:
        return self.closed(self.sum(value))

    def cast(self, text: str) -> str:
        return f"(long){text}" if self.wide else text
