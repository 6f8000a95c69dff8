"""Results that elements are combined with in memory, each in one step that no other work-item interrupts."""

from __future__ import annotations

from lift_egraph.errors import NestingProblem
from lift_egraph.language import ir
from lift_egraph.language.check import element_type
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar

COMBINING = frozenset({"add", "mul", "min", "max", "bit_and", "bit_or", "bit_xor"})
TYPES = frozenset({"i32", "u32", "f32", "i64", "f64"})  # of 32 or 64 bits, as devices compare and exchange them


def is_atomic(op: str, t: object) -> bool:
    """Whether elements of a type can be combined so by a binary operation."""
    return op in COMBINING and LAWS[op].commutative and isinstance(t, Scalar) and t.name in TYPES


def combination(term: ir.ReduceByIndexAtomic) -> tuple[str, ir.Expr] | None:
    """The operation, and what an element adds to a result by it; None where results stay as they are.

    Raises
    ------
    NestingProblem
        If the operator is none of those that devices have for memory, applied to the result and something else.
    """
    t, operator = element_type(term.initial), ir.function_body(term.operator)
    result = operator.binder.first if isinstance(operator.binder, ir.PairBinder) else operator.binder
    if operator.body == result:
        return None
    match operator.body:
        case ir.Call(op=op, arguments=(one, other)) if is_atomic(op, t):
            added = other if one == result else one
            if result in (one, other) and result not in ir.free_variables(added):
                return op, added
        case _:
            pass
    raise NestingProblem(
        f"reduceByIndexAtomic: a result of type {t} and an element are combined in memory by one of "
        f"{', '.join(sorted(COMBINING))}, for results of {', '.join(sorted(TYPES))}"
    )
