"""Index expressions as C text.

`Nat` divides toward minus infinity, C toward zero: the two agree for operands that ranges prove
non-negative, and only then is the plain operator printed.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.c_ast import CExpr, Computed
from lift_egraph.nat import Atom, Nat, Operation, is_at_least

_INT_MAX = 2**31 - 1


class IndexText:
    """Prints index expressions; `data` prints the values that an index reads from memory."""

    def __init__(self, data: Callable[[CExpr], str]) -> None:
        self.data = data
        self.helpers: set[str] = set()
        self.wide = False

    def __call__(self, value: Nat) -> str:
        """The text of an expression, computed in 64 bits where its range leaves 32."""
        low, high = value.range
        self.wide = high is None or high > _INT_MAX or low is None or low < -_INT_MAX
        text = self.sum(value)
        self.wide = False
        return text

    def atomic(self, value: Nat) -> str:
        """The text, in parentheses unless it is one name or number."""
        text = self(value)
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def condition(self, value: Nat) -> str:
        """The text of ``value >= 0`` with all terms positive: ``i < n`` rather than ``n - i - 1 >= 0``."""
        left = Nat(tuple((m, c) for m, c in value.terms if c > 0))
        right = Nat(tuple((m, -c) for m, c in value.terms if c < 0))
        if left.constant is not None and right.constant is None:
            return f"{self.sum(right)} < {self.sum(left + 1)}"
        return f"{self.sum(left)} >= {self.sum(right)}"

    def sum(self, value: Nat) -> str:
        if not value.terms:
            return "0"
        text = ""
        ordered = sorted(value.terms, key=lambda term: term[1] < 0)  # a leading minus reads badly
        for monomial, coefficient in ordered:
            factors = [self.atom(a, tight=len(monomial) > 1 or abs(coefficient) != 1) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, f"{abs(coefficient)}" + ("L" if abs(coefficient) > _INT_MAX else ""))
            product = " * ".join(factors)
            if not text:
                text = f"-{product}" if coefficient < 0 else product
            else:
                text += (" - " if coefficient < 0 else " + ") + product
        return text

    def atom(self, atom: Atom, tight: bool) -> str:
        if isinstance(atom, Computed):
            text = self.data(atom.value)
            low, high = atom.low, atom.high
            self.helpers |= {"index_min", "index_max"}
            return self.cast(f"index_min(index_max({text}, {low}), {high})")
        if not isinstance(atom, Operation):
            return self.cast(atom.name)
        if atom.symbol in ("min", "max"):
            self.helpers.add(f"index_{atom.symbol}")
            return self.cast(f"index_{atom.symbol}({self.sum(atom.left)}, {self.sum(atom.right)})")
        left, right = self.operand(atom.left), self.operand(atom.right)
        if is_at_least(atom.left, 0):
            text = f"{left} {atom.symbol} {right}"
            return f"({text})" if tight or atom.symbol == "%" else text
        rest = f"({left} % {right} + {right}) % {right}"
        return f"({rest})" if atom.symbol == "%" else f"(({self.sum(atom.left)} - ({rest})) / {right})"

    def operand(self, value: Nat) -> str:
        text = self.sum(value)
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def cast(self, text: str) -> str:
        return f"(long){text}" if self.wide else text
