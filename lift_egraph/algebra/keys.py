"""Values that are chosen by what is computed of them: ``abs (select (c, a, b)) = select (c, abs a, abs b)``.

So what is computed stands below all choices, and each different computation counts as a variable, about which nothing
but its order is known. `lift_egraph.algebra.orders` can decide about the expression then: an operator that keeps the
value with the largest key, as ``select (abs x > abs y, x, y)``, is associative whatever the key is.
"""

from __future__ import annotations

from collections.abc import Sequence

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import OPERATIONS

CHOOSING = ("comparison", "logic", "select")
MOST = 200  # calls in an expression, once choices stand above them


class Keys:
    """Expressions with variables for what is computed below their choices: one for each different computation."""

    def __init__(self) -> None:
        self.names: dict[ir.Expr, ir.Expr] = {}
        self.left = MOST

    def of(self, term: ir.Expr) -> ir.Expr:
        """The expression with variables for what is computed; with the computations themselves, if it is too large.

        Examples
        --------
        >>> from lift_egraph.language.pretty import print_term
        >>> from lift_egraph.language.types import F32
        >>> x, y = ir.Var("x", F32), ir.Var("y", F32)
        >>> print(print_term(Keys().of(ir.Call("abs", (ir.Call("select", (x < y, x, y)),)))))
        select(x < y, $key0, $key1)
        """
        if not isinstance(term, ir.Call):
            return term
        arguments = [self.of(a) for a in term.arguments]
        if OPERATIONS[term.op].kind in CHOOSING or term.op in ("min", "max"):
            return ir.Call(term.op, tuple(arguments))
        return self._computed(term.op, arguments)

    def _computed(self, op: str, arguments: Sequence[ir.Expr]) -> ir.Expr:
        """A computation on choices as a choice between computations."""
        self.left -= 1
        for i, a in enumerate(arguments):
            if self.left > 0 and isinstance(a, ir.Call) and a.op in ("select", "min", "max"):
                condition, *chosen = a.arguments if a.op == "select" else _as_select(a)
                computed = (self._computed(op, [*arguments[:i], c, *arguments[i + 1 :]]) for c in chosen)
                return ir.Call("select", (condition, *computed))
        call = ir.Call(op, tuple(arguments))
        return self.names.setdefault(call, ir.Var(f"$key{len(self.names)}", type_of(call)))


def _as_select(term: ir.Call) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
    """``min`` or ``max`` as the arguments of the select that it means."""
    a, b = term.arguments
    return (b < a if term.op == "min" else a < b), b, a
