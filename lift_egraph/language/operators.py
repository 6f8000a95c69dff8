"""Python's operators on terms: ``x * y + 1.0`` builds calls of scalar operations.

``==`` stays structural equality; the operation is the function `lift_egraph.language.build.equal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lift_egraph.errors import TypeProblem

if TYPE_CHECKING:
    from lift_egraph.language import ir


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _call(op: str, *arguments: Any) -> ir.Call:
    from lift_egraph.language.functions import scalar_call  # terms are defined before what builds them

    return scalar_call(op, *arguments)


class Operators:
    """What `lift_egraph.language.ir.Expr` inherits; a number beside a term becomes a literal of the term's type."""

    __array_ufunc__ = None  # NumPy scalars leave the operation to the term

    def __add__(self, other: Any) -> ir.Call:
        return _call("add", self, other)

    def __radd__(self, other: Any) -> ir.Call:
        return _call("add", other, self)

    def __sub__(self, other: Any) -> ir.Call:
        return _call("sub", self, other)

    def __rsub__(self, other: Any) -> ir.Call:
        return _call("sub", other, self)

    def __mul__(self, other: Any) -> ir.Call:
        return _call("mul", self, other)

    def __rmul__(self, other: Any) -> ir.Call:
        return _call("mul", other, self)

    def __truediv__(self, other: Any) -> ir.Call:
        return _call("div", self, other)

    def __rtruediv__(self, other: Any) -> ir.Call:
        return _call("div", other, self)

    def __mod__(self, other: Any) -> ir.Call:
        return _call("mod", self, other)

    def __rmod__(self, other: Any) -> ir.Call:
        return _call("mod", other, self)

    def __neg__(self) -> ir.Call:
        return _call("neg", self)

    def __abs__(self) -> ir.Call:
        return _call("abs", self)

    def __lt__(self, other: Any) -> ir.Call:
        return _call("lt", self, other)

    def __le__(self, other: Any) -> ir.Call:
        return _call("le", self, other)

    def __gt__(self, other: Any) -> ir.Call:
        return _call("gt", self, other)

    def __ge__(self, other: Any) -> ir.Call:
        return _call("ge", self, other)

    def __bool__(self) -> bool:
        """Terms are true, but for comparisons: those have no value while the term is built."""
        if getattr(self, "op", None) in _COMPARISONS:
            raise TypeProblem("a comparison has no value while a term is built; choose with select, min_ or max_")
        return True
