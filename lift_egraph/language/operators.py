"""Python's operators on terms: ``x * y + 1.0`` builds calls of scalar operations.

``==`` stays structural equality; the operation is the function `lift_egraph.language.build.equal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lift_egraph.errors import TypeProblem
from lift_egraph.language.scalar import COMPARISONS, OPERATIONS

if TYPE_CHECKING:
    from lift_egraph.language import ir


def _call(op: str, *arguments: Any) -> ir.Call:
    from lift_egraph.language.functions import scalar_call  # terms are defined before what builds them

    return scalar_call(op, *arguments)


class Operators:
    """What `lift_egraph.language.ir.Expr` inherits; a number beside a term becomes a literal of the term's type."""

    __array_ufunc__ = None  # NumPy scalars leave the operation to the term

    if TYPE_CHECKING:  # made below, of the table

        def __add__(self, other: Any) -> ir.Call: ...
        def __radd__(self, other: Any) -> ir.Call: ...
        def __sub__(self, other: Any) -> ir.Call: ...
        def __rsub__(self, other: Any) -> ir.Call: ...
        def __mul__(self, other: Any) -> ir.Call: ...
        def __rmul__(self, other: Any) -> ir.Call: ...
        def __truediv__(self, other: Any) -> ir.Call: ...
        def __rtruediv__(self, other: Any) -> ir.Call: ...
        def __mod__(self, other: Any) -> ir.Call: ...
        def __rmod__(self, other: Any) -> ir.Call: ...
        def __neg__(self) -> ir.Call: ...
        def __abs__(self) -> ir.Call: ...
        def __lt__(self, other: Any) -> ir.Call: ...
        def __le__(self, other: Any) -> ir.Call: ...
        def __gt__(self, other: Any) -> ir.Call: ...
        def __ge__(self, other: Any) -> ir.Call: ...

    def __bool__(self) -> bool:
        """Terms are true, but for comparisons: those have no value while the term is built."""
        if getattr(self, "op", None) in COMPARISONS:
            raise TypeProblem("a comparison has no value while a term is built; choose with select, min_ or max_")
        return True


for _op in OPERATIONS.values():
    if _op.python:
        setattr(Operators, f"__{_op.python}__", lambda *terms, op=_op.name: _call(op, *terms))
        if _op.arity == 2 and _op.kind != "comparison":  # Python turns a comparison around
            setattr(Operators, f"__r{_op.python}__", lambda term, other, op=_op.name: _call(op, other, term))
