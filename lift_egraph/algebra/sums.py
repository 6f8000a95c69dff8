"""Sums inside of what is chosen: ``max (a, b) + c = max (a + c, b + c)``, so that sums stand below all choices.

Each different sum counts as a variable then, which `lift_egraph.algebra.orders` can decide about.
"""

from __future__ import annotations

from math import isinf

from lift_egraph.algebra.normal_forms import NoNormalForm, Number, polynomial
from lift_egraph.algebra.semirings import SEMIRINGS
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Scalar

CHOOSING = {"min": 0, "max": 0, "select": 1}  # the first argument that is chosen from
MOST = 200  # sums in an expression


class Sums:
    """Expressions with variables for their sums: one for each different sum."""

    def __init__(self) -> None:
        self.names: dict[object, ir.Expr] = {}
        self.left = MOST

    def of(self, term: ir.Expr) -> ir.Expr:
        """The expression with variables for the sums below its choices; whole numbers, whose sums wrap around, stay."""
        t = type_of(term)
        if not isinstance(t, Scalar) or not t.is_float:
            return term
        return self._named(self._lifted(term), t)

    def _lifted(self, term: ir.Expr) -> ir.Expr:
        """The expression with its choices above its sums."""
        match term:
            case ir.Call(op=op, arguments=arguments) if op in CHOOSING:
                first = CHOOSING[op]
                return ir.Call(op, (*arguments[:first], *map(self._lifted, arguments[first:])))
            case ir.Call(op="add", arguments=(a, b)):
                return self._sum(self._lifted(a), self._lifted(b))
        return term

    def _sum(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        for one, other in ((a, b), (b, a)):
            if self.left > 0 and isinstance(one, ir.Call) and one.op in CHOOSING:
                first = CHOOSING[one.op]
                self.left -= 1
                parts = (self._sum(x, other) for x in one.arguments[first:])
                return ir.Call(one.op, (*one.arguments[:first], *parts))
        return ir.Call("add", (a, b))

    def _named(self, term: ir.Expr, t: Scalar) -> ir.Expr:
        if isinstance(term, ir.Call) and term.op in CHOOSING:
            first = CHOOSING[term.op]
            return ir.Call(term.op, (*term.arguments[:first], *(self._named(x, t) for x in term.arguments[first:])))
        if not isinstance(term, ir.Call):
            return term
        try:
            found = polynomial(SEMIRINGS[0], t, term)
        except NoNormalForm:
            return term
        constant = found.get(frozenset(), 0)
        if _is_infinite(constant) or found.keys() <= {frozenset()}:
            return ir.Literal(float(constant), t)
        only = [m for m, c in found.items() if c == 1 and len(m) == 1]
        if len(found) == len(only) == 1 and (atom := next(iter(only[0])))[1] == 1:
            return atom[0]
        return self.names.setdefault(frozenset(found.items()), ir.Var(f"$sum{len(self.names)}", t))


def _is_infinite(c: Number) -> bool:
    return isinstance(c, float) and isinf(c)
