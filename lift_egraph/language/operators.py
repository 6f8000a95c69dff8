"""Python's operators on terms: ``x * y + 1.0`` builds calls of scalar operations.

A number beside a term becomes a literal of the term's type. ``==`` stays structural equality; the operation is the
function `lift_egraph.language.build.equal`. What the operators build is type-checked, and the checker knows the terms:
so `lift_egraph.language.ir.Expr` gets its operators here.
"""

from __future__ import annotations

from typing import Any

from lift_egraph.errors import TypeProblem
from lift_egraph.language.functions import scalar_call
from lift_egraph.language.ir import Call, Expr

_ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "mod"}
_COMPARISONS = ("lt", "le", "gt", "ge")


def _binary(op: str) -> Any:
    return lambda self, other: scalar_call(op, self, other)


def _reflected(op: str) -> Any:
    return lambda self, other: scalar_call(op, other, self)


def _unary(op: str) -> Any:
    return lambda self: scalar_call(op, self)


def _truth(self: Expr) -> bool:
    """Terms are true, but for comparisons: those have no value while the term is built."""
    if isinstance(self, Call) and self.op in (*_COMPARISONS, "eq", "ne"):
        raise TypeProblem("a comparison has no value while a term is built; choose with select, min_ or max_")
    return True


for _name, _op in _ARITHMETIC.items():
    setattr(Expr, f"__{_name}__", _binary(_op))
    setattr(Expr, f"__r{_name}__", _reflected(_op))
for _op in _COMPARISONS:
    setattr(Expr, f"__{_op}__", _binary(_op))
for _op in ("neg", "abs"):
    setattr(Expr, f"__{_op}__", _unary(_op))
Expr.__bool__ = _truth
Expr.__array_ufunc__ = None  # NumPy scalars leave the operation to the term
