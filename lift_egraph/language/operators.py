"""Python's operators on terms: ``x * y + 1.0`` builds calls of scalar operations, ``xs[i]`` reads an element.

``==`` stays structural equality; the operation is the function `lift_egraph.language.build.equal`. A number beside a
term becomes a literal of the term's type. The nodes know nothing that is built on them, so
`lift_egraph.language.ir.Expr` gets its operators here, when the package is imported.
"""

from __future__ import annotations

from lift_egraph.errors import TypeProblem
from lift_egraph.language.functions import indexed, scalar_call
from lift_egraph.language.ir import Call, Expr
from lift_egraph.language.scalar import COMPARISONS, OPERATIONS


def _truth(self: Expr) -> bool:
    """Terms are true, but for comparisons: those have no value while the term is built."""
    if isinstance(self, Call) and self.op in COMPARISONS:
        raise TypeProblem("a comparison has no value while a term is built; choose with select, min_ or max_")
    return True


for _op in OPERATIONS.values():
    if _op.python:
        setattr(Expr, f"__{_op.python}__", lambda *terms, op=_op.name: scalar_call(op, *terms))
        if _op.arity == 2 and _op.kind != "comparison":  # Python turns a comparison around
            setattr(Expr, f"__r{_op.python}__", lambda term, other, op=_op.name: scalar_call(op, other, term))
Expr.__bool__ = _truth
Expr.__getitem__ = indexed
Expr.__iter__ = None  # else Python would try all numbers as an index
Expr.__array_ufunc__ = None  # NumPy scalars leave the operation to the term
