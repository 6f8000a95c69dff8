"""Scalar operations of user functions, and the laws of those used as reduction operators.

A user function is a lambda whose body applies these operations; it is never C text. Every
operation works on scalars and, lane by lane, on vectors; but `dot` takes two whole vectors to a scalar.

Where NaN meets ``min`` or ``max``, the result depends on the order of the operands, so a reduction may give
either; validation runs on inputs without NaN.

Source: 000 §2.4.2 (user functions), §2.4.3 (operator laws that the reduce rules ask for), Listing 5.13 (dot).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_egraph.errors import TypeProblem
from lift_egraph.language.types import BOOL, F32, F64, I32, Array, DataType, Scalar, Vector, scalar_of, width_of


@dataclass(frozen=True)
class ScalarOp:
    """One operation: its name, arity, kind of typing, and meaning on NumPy values.

    `kind` is one of ``arithmetic`` (numbers of one type to that type), ``float`` (the same, floats
    only), ``integer`` (i32 only), ``comparison`` (two numbers of one type to bool), ``logic`` (bools),
    ``select`` (bool, T, T to T), ``cast`` or ``lanes`` (two vectors of one float type to a scalar of
    that type). `symbol` is the infix spelling, where there is one.
    """

    name: str
    arity: int
    kind: str
    meaning: Callable[..., Any]
    symbol: str | None = None

    @property
    def result(self) -> Scalar | None:
        """The scalar of its result, where that is not the scalar of its last argument."""
        return BOOL if self.kind == "comparison" else _CASTS.get(self.name)


def _divide(a: Any, b: Any) -> Any:
    if np.issubdtype(np.result_type(a), np.integer):
        safe = np.where(b == 0, 1, b)
        quotient = np.trunc(np.asarray(a, np.float64) / safe).astype(np.int32)  # C rounds toward zero
        return np.where(b == 0, np.int32(0), quotient)
    return a / b


def _remainder(a: Any, b: Any) -> Any:
    return np.where(b == 0, np.int32(0), np.fmod(a, np.where(b == 0, 1, b)))


def _cast(dtype: Any) -> Callable[[Any], Any]:
    return lambda a: np.asarray(a).astype(dtype)


_ROWS = (
    # name        arity kind          meaning                                    infix
    ("add",       2, "arithmetic",  lambda a, b: a + b,                          "+"),
    ("sub",       2, "arithmetic",  lambda a, b: a - b,                          "-"),
    ("mul",       2, "arithmetic",  lambda a, b: a * b,                          "*"),
    ("div",       2, "arithmetic",  _divide,                                     "/"),
    ("mod",       2, "integer",     _remainder,                                  "%"),
    ("neg",       1, "arithmetic",  lambda a: -a,                                None),
    ("abs",       1, "arithmetic",  np.abs,                                      None),
    ("min",       2, "arithmetic",  lambda a, b: np.where(b < a, b, a),          None),
    ("max",       2, "arithmetic",  lambda a, b: np.where(a < b, b, a),          None),
    ("sqrt",      1, "float",       np.sqrt,                                     None),
    ("rsqrt",     1, "float",       lambda a: 1 / np.sqrt(a),                    None),
    ("exp",       1, "float",       np.exp,                                      None),
    ("log",       1, "float",       np.log,                                      None),
    ("sin",       1, "float",       np.sin,                                      None),
    ("cos",       1, "float",       np.cos,                                      None),
    ("tan",       1, "float",       np.tan,                                      None),
    ("tanh",      1, "float",       np.tanh,                                     None),
    ("floor",     1, "float",       np.floor,                                    None),
    ("ceil",      1, "float",       np.ceil,                                     None),
    ("pow",       2, "float",       np.power,                                    None),
    ("lt",        2, "comparison",  lambda a, b: a < b,                          "<"),
    ("le",        2, "comparison",  lambda a, b: a <= b,                         "<="),
    ("gt",        2, "comparison",  lambda a, b: a > b,                          ">"),
    ("ge",        2, "comparison",  lambda a, b: a >= b,                         ">="),
    ("eq",        2, "comparison",  lambda a, b: a == b,                         "=="),
    ("ne",        2, "comparison",  lambda a, b: a != b,                         "!="),
    ("and",       2, "logic",       np.logical_and,                              "&&"),
    ("or",        2, "logic",       np.logical_or,                               "||"),
    ("not",       1, "logic",       np.logical_not,                              None),
    ("select",    3, "select",      np.where,                                    None),
    ("dot",       2, "lanes",       lambda a, b: np.sum(a * b, axis=-1),         None),
    ("to_f32",    1, "cast",        _cast(np.float32),                           None),
    ("to_f64",    1, "cast",        _cast(np.float64),                           None),
    ("to_i32",    1, "cast",        _cast(np.int32),                             None),
)  # fmt: skip

OPERATIONS: dict[str, ScalarOp] = {row[0]: ScalarOp(*row) for row in _ROWS}
NUMPY_TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "bool": np.bool_}
DOT_WIDTHS = (2, 4)  # the vectors of ours that OpenCL's dot takes
_CASTS = {"to_f32": F32, "to_f64": F64, "to_i32": I32}


def result_type(name: str, arguments: tuple[DataType, ...]) -> DataType:
    """The type of an operation applied to arguments of these types.

    A vector argument makes the result a vector; scalar arguments beside it are broadcast. (Not so for dot.)

    Raises
    ------
    TypeProblem
        For an unknown operation, a wrong number of arguments, or arguments that do not fit.
    """
    op = OPERATIONS.get(name)
    if op is None:
        raise TypeProblem(f"there is no scalar operation {name!r}; known are {', '.join(OPERATIONS)}")
    if len(arguments) != op.arity:
        raise TypeProblem(f"{name} takes {op.arity} argument{'s' * (op.arity != 1)}, not {len(arguments)}")
    for t in arguments:
        if not isinstance(t, Scalar | Vector):
            raise TypeProblem(f"{name} works on scalars, not on {t}" + ("; use map" if isinstance(t, Array) else ""))
    widths = {width_of(t) for t in arguments} - {1}
    if len(widths) > 1:
        raise TypeProblem(f"{name} mixes vectors of {' and '.join(str(w) for w in sorted(widths))} lanes")
    if op.kind == "lanes":
        return _lanes_result(op, arguments)
    scalars = [scalar_of(t) for t in arguments]
    result = _scalar_result(op, scalars)
    return Vector(result, widths.pop()) if widths else result


def _lanes_result(op: ScalarOp, arguments: tuple[DataType, ...]) -> Scalar:
    first = arguments[0]
    if not isinstance(first, Vector) or len(set(arguments)) > 1 or first.width not in DOT_WIDTHS:
        shown = ", ".join(str(t) for t in arguments)
        raise TypeProblem(f"{op.name} takes two vectors of one type, of 2 or 4 lanes, got {shown}")
    if not first.scalar.is_float:
        raise TypeProblem(f"{op.name} works on vectors of floats, got {first}; cast with to_f32")
    return first.scalar


def _scalar_result(op: ScalarOp, scalars: list[Scalar]) -> Scalar:
    shown = ", ".join(str(s) for s in scalars)
    if op.kind == "cast":
        return _CASTS[op.name]
    values = scalars[1:] if op.kind == "select" else scalars
    if len(set(values)) > 1:
        raise TypeProblem(f"{op.name} needs arguments of one type, got {shown}; cast with to_f32, to_f64 or to_i32")
    first = values[0]
    wants_bool = op.kind == "logic"
    if op.kind == "select" and scalars[0] != BOOL:
        raise TypeProblem(f"the condition of select is a bool, got {scalars[0]}")
    if op.kind != "select" and wants_bool != (first == BOOL):
        raise TypeProblem(f"{op.name} works on {'bools' if wants_bool else 'numbers'}, got {shown}")
    if op.kind == "float" and not first.is_float:
        raise TypeProblem(f"{op.name} works on floats, got {shown}; cast with to_f32")
    if op.kind == "integer" and first != I32:
        raise TypeProblem(f"{op.name} works on i32, got {shown}")
    return op.result or first


@dataclass(frozen=True)
class Laws:
    """What rules may assume of a binary operator: associativity and commutativity as on real numbers
    (floating-point rounding aside), and its neutral element per scalar type, where it has one.
    """

    associative: bool
    commutative: bool
    neutral: dict[str, float | int | bool]


LAWS: dict[str, Laws] = {
    "add": Laws(True, True, {"f32": 0.0, "f64": 0.0, "i32": 0}),
    "mul": Laws(True, True, {"f32": 1.0, "f64": 1.0, "i32": 1}),
    "min": Laws(True, True, {"f32": float("inf"), "f64": float("inf"), "i32": 2**31 - 1}),
    "max": Laws(True, True, {"f32": float("-inf"), "f64": float("-inf"), "i32": -(2**31)}),
    "and": Laws(True, True, {"bool": True}),
    "or": Laws(True, True, {"bool": False}),
}
