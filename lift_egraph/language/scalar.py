"""Scalar operations of user functions, and the laws of those used as reduction operators.

A user function is a lambda whose body applies these operations; it is never C text. Every
operation works on scalars and, lane by lane, on vectors; but `dot` takes two whole vectors to a scalar.

Where NaN meets ``min`` or ``max``, the result depends on the order of the operands, so a reduction may give
either; validation runs on inputs without NaN.

Source: 000 §2.4.2 (user functions), §2.4.3 (operator laws that the reduce rules ask for), Listing 5.13 (dot).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_egraph.errors import TypeProblem
from lift_egraph.language.types import (
    BOOL,
    F32,
    F64,
    I32,
    SCALAR_BYTES,
    Array,
    DataType,
    Scalar,
    Vector,
    scalar_of,
    width_of,
)


@dataclass(frozen=True)
class Laws:
    """What rules may assume of a binary operator: associativity and commutativity as on real numbers
    (floating-point rounding aside), and its neutral element per scalar type, where it has one.

    What is idempotent too gives the same in every order, for it never rounds. `ufunc` folds a NumPy axis.
    """

    ufunc: np.ufunc
    neutral: dict[str, float | int | bool]
    associative: bool = True
    commutative: bool = True
    idempotent: bool = False


@dataclass(frozen=True)
class ScalarOp:
    """One operation: its name in the text form (of a function of floats, in OpenCL too), its typing and its meaning.

    Attributes
    ----------
    kind
        ``arithmetic`` (numbers of one type to that type), ``float`` (the same, floats only), ``integer`` (integers),
        ``comparison`` (two numbers of one type to bool; two bools as well, where they are equal or not),
        ``logic`` (bools), ``select`` (bool, T, T to T), ``cast`` or ``lanes`` (two vectors of one
        float type to a scalar of that type).
    meaning
        On NumPy values.
    symbol, level
        The infix spelling and how tightly it binds, where there is one.
    python
        Python's operator, as in ``__add__``, where there is one.
    result
        The scalar of its result, where that is not the scalar of its last argument.
    """

    name: str
    arity: int
    kind: str
    meaning: Callable[..., Any]
    symbol: str = ""
    level: int = 0
    python: str = ""
    result: Scalar | None = None
    laws: Laws | None = None


def _divide(a: Any, b: Any) -> Any:
    if np.issubdtype(np.result_type(a), np.integer):
        safe = np.where(b == 0, np.ones_like(b), b)
        down = a // safe
        quotient = down + ((a % safe != 0) & ((a < 0) != (safe < 0)))  # C rounds toward zero
        return np.where(b == 0, b, quotient.astype(down.dtype))
    return a / b


def _remainder(a: Any, b: Any) -> Any:
    return np.where(b == 0, b, np.fmod(a, np.where(b == 0, np.ones_like(b), b)))


def _shift(shifted: np.ufunc) -> Callable[[Any, Any], Any]:
    """By as many bits as the lowest bits of the second argument say, as many as a number of the type can need."""
    return lambda a, b: shifted(a, b & (8 * np.result_type(b).itemsize - 1))


def _erf(a: Any) -> Any:
    return np.asarray(_ERF(a), np.result_type(a))


def _cast(dtype: Any) -> Callable[[Any], Any]:
    return lambda a: np.asarray(a).astype(dtype)


def _neutral(real: float) -> dict[str, float | int | bool]:
    """Of an operation; of ``min`` and ``max`` it is infinite, or the extreme of an integer type."""
    whole: dict[str, float | int | bool] = {}
    for name in _INTEGERS:
        limits = np.iinfo(NUMPY_TYPES[name])
        whole[name] = int(min(max(real, limits.min), limits.max))
    return {"f16": real, "f32": real, "f64": real, **whole}


_ERF = np.frompyfunc(math.erf, 1, 1)
NUMPY_TYPES = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "bool": np.bool_,
    "i64": np.int64, "u32": np.uint32, "u8": np.uint8, "f16": np.float16,
}  # fmt: skip
_INTEGERS = ("i32", "i64", "u32", "u8")
_ADDED, _MULTIPLIED = Laws(np.add, _neutral(0.0)), Laws(np.multiply, _neutral(1.0))
# `fmin` and `fmax` drop a NaN on the right, as the scalar operations do
_LEAST = Laws(np.fmin, _neutral(float("inf")), idempotent=True)
_MOST = Laws(np.fmax, _neutral(float("-inf")), idempotent=True)
_BOTH = Laws(np.logical_and, {"bool": True}, idempotent=True)
_EITHER = Laws(np.logical_or, {"bool": False}, idempotent=True)
_ALL_BITS = {name: int(np.invert(NUMPY_TYPES[name](0))) for name in _INTEGERS}
_BITS_OF_BOTH = Laws(np.bitwise_and, dict(_ALL_BITS), idempotent=True)
_BITS_OF_EITHER = Laws(np.bitwise_or, dict.fromkeys(_INTEGERS, 0), idempotent=True)
_BITS_OF_ONE = Laws(np.bitwise_xor, dict.fromkeys(_INTEGERS, 0))

_TABLE = (
    #        name     arity kind         meaning                              infix    Python
    ScalarOp("add",    2, "arithmetic", lambda a, b: a + b,                  "+",  4, "add", laws=_ADDED),
    ScalarOp("sub",    2, "arithmetic", lambda a, b: a - b,                  "-",  4, "sub"),
    ScalarOp("mul",    2, "arithmetic", lambda a, b: a * b,                  "*",  5, "mul", laws=_MULTIPLIED),
    ScalarOp("div",    2, "arithmetic", _divide,                             "/",  5, "truediv"),
    ScalarOp("mod",    2, "integer",    _remainder,                          "%",  5, "mod"),
    ScalarOp("bit_and", 2, "integer",   np.bitwise_and,                      python="and", laws=_BITS_OF_BOTH),
    ScalarOp("bit_or", 2, "integer",    np.bitwise_or,                       python="or", laws=_BITS_OF_EITHER),
    ScalarOp("bit_xor", 2, "integer",   np.bitwise_xor,                      python="xor", laws=_BITS_OF_ONE),
    ScalarOp("bit_not", 1, "integer",   np.invert,                           python="invert"),
    ScalarOp("shift_left", 2, "integer", _shift(np.left_shift),              python="lshift"),
    ScalarOp("shift_right", 2, "integer", _shift(np.right_shift),            python="rshift"),
    ScalarOp("neg",    1, "arithmetic", lambda a: -a,                        python="neg"),
    ScalarOp("abs",    1, "arithmetic", np.abs,                              python="abs"),
    ScalarOp("min",    2, "arithmetic", lambda a, b: np.where(b < a, b, a),  laws=_LEAST),
    ScalarOp("max",    2, "arithmetic", lambda a, b: np.where(a < b, b, a),  laws=_MOST),
    ScalarOp("sqrt",   1, "float",      np.sqrt),
    ScalarOp("rsqrt",  1, "float",      lambda a: 1 / np.sqrt(a)),
    ScalarOp("exp",    1, "float",      np.exp),
    ScalarOp("log",    1, "float",      np.log),
    ScalarOp("sin",    1, "float",      np.sin),
    ScalarOp("cos",    1, "float",      np.cos),
    ScalarOp("tan",    1, "float",      np.tan),
    ScalarOp("asin",   1, "float",      np.arcsin),
    ScalarOp("acos",   1, "float",      np.arccos),
    ScalarOp("atan",   1, "float",      np.arctan),
    ScalarOp("atan2",  2, "float",      np.arctan2),
    ScalarOp("sinh",   1, "float",      np.sinh),
    ScalarOp("cosh",   1, "float",      np.cosh),
    ScalarOp("tanh",   1, "float",      np.tanh),
    ScalarOp("erf",    1, "float",      _erf),
    ScalarOp("floor",  1, "float",      np.floor),
    ScalarOp("ceil",   1, "float",      np.ceil),
    ScalarOp("pow",    2, "float",      np.power,                            python="pow"),
    ScalarOp("lt",     2, "comparison", lambda a, b: a < b,                  "<",  3, "lt", BOOL),
    ScalarOp("le",     2, "comparison", lambda a, b: a <= b,                 "<=", 3, "le", BOOL),
    ScalarOp("gt",     2, "comparison", lambda a, b: a > b,                  ">",  3, "gt", BOOL),
    ScalarOp("ge",     2, "comparison", lambda a, b: a >= b,                 ">=", 3, "ge", BOOL),
    ScalarOp("eq",     2, "comparison", lambda a, b: a == b,                 "==", 3, result=BOOL),
    ScalarOp("ne",     2, "comparison", lambda a, b: a != b,                 "!=", 3, result=BOOL),
    ScalarOp("and",    2, "logic",      np.logical_and,                      "&&", 2, laws=_BOTH),
    ScalarOp("or",     2, "logic",      np.logical_or,                       "||", 1, laws=_EITHER),
    ScalarOp("not",    1, "logic",      np.logical_not),
    ScalarOp("select", 3, "select",     np.where),
    ScalarOp("dot",    2, "lanes",      lambda a, b: np.sum(a * b, axis=-1)),
    *(ScalarOp(f"to_{name}", 1, "cast", _cast(t), result=Scalar(name))
      for name, t in NUMPY_TYPES.items() if name != "bool"),
)  # fmt: skip

OPERATIONS: dict[str, ScalarOp] = {op.name: op for op in _TABLE}
EQUALITIES = ("eq", "ne")
OF_BOOLS = {"bit_and": "and", "bit_or": "or", "bit_xor": "ne", "bit_not": "not"}
OF_CONDITIONS = "a condition of a number is x != 0, a number of a condition select(c, 1, 0)"
COMPARISONS = tuple(op.name for op in _TABLE if op.kind == "comparison")
LAWS: dict[str, Laws] = {op.name: op.laws for op in _TABLE if op.laws is not None}
DOT_WIDTHS = (2, 4)  # the vectors of ours that OpenCL's dot takes


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
        folded = f"; of an array it is reduce({name}, z, xs)" if _has_array(arguments) and name in LAWS else ""
        raise TypeProblem(f"{name} takes {op.arity} argument{'s' * (op.arity != 1)}, not {len(arguments)}{folded}")
    if op.kind == "select" and all(isinstance(t, Array) for t in arguments[1:]) and arguments[1] != arguments[2]:
        raise TypeProblem(f"{name} is between values of one type, got {arguments[1]} and {arguments[2]}")
    for t in arguments:
        if not isinstance(t, Scalar | Vector):
            wanted = "vectors" if op.kind == "lanes" else "scalars"
            raise TypeProblem(f"{name} works on {wanted}, not on {t}{_mapped(op, arguments)}")
    widths = {width_of(t) for t in arguments} - {1}
    if len(widths) > 1:
        raise TypeProblem(f"{name} mixes vectors of {' and '.join(str(w) for w in sorted(widths))} lanes")
    if op.kind == "lanes":
        return _lanes_result(op, arguments)
    scalars = [scalar_of(t) for t in arguments]
    result = _scalar_result(op, scalars)
    return Vector(result, widths.pop()) if widths else result


def _has_array(arguments: Iterable[DataType]) -> bool:
    return any(isinstance(t, Array) for t in arguments)


def _mapped(op: ScalarOp, arguments: tuple[DataType, ...]) -> str:
    """How the operation is written of arrays, for messages."""
    if not _has_array(arguments):
        return ""
    if op.kind == "lanes":
        return "; of arrays it is reduce(add, 0, map(mul, zip(xs, ys)))"
    if op.kind == "select" or not all(isinstance(t, Array) for t in arguments):
        return "; use map"
    return f"; use map: map({op.name}, xs)" if op.arity == 1 else f"; use map: map({op.name}, zip(xs, ys))"


def _lanes_result(op: ScalarOp, arguments: tuple[DataType, ...]) -> Scalar:
    first = arguments[0]
    if not isinstance(first, Vector) or len(set(arguments)) > 1 or first.width not in DOT_WIDTHS:
        shown = ", ".join(str(t) for t in arguments)
        raise TypeProblem(f"{op.name} takes two vectors of one type, of 2 or 4 lanes, got {shown}")
    if first.scalar not in (F32, F64):
        raise TypeProblem(f"{op.name} works on vectors of floats, got {first}; cast with to_f32")
    return first.scalar


def _scalar_result(op: ScalarOp, scalars: list[Scalar]) -> Scalar:
    shown = ", ".join(str(s) for s in scalars)
    result = op.result or scalars[-1]
    if op.kind == "cast":
        return result
    values = scalars[1:] if op.kind == "select" else scalars
    first = values[0]
    if len(set(values)) > 1:
        wide = max(values, key=lambda s: (s.is_float, SCALAR_BYTES[s.name]))
        of_numbers = "; 1 is an i32, 1.0 an f32" if I32 in values and wide.is_float else ""
        if F32 in values and wide == F64:
            of_numbers = "; 1.0f64 is an f64"
        cast = f"cast with to_{wide}{of_numbers}" if BOOL not in values else OF_CONDITIONS
        raise TypeProblem(f"{op.name} needs arguments of one type, got {shown}; {cast}")
    wants_bool = op.kind == "logic"
    takes_both = op.kind == "select" or op.name in EQUALITIES
    if op.kind == "select" and scalars[0] != BOOL:
        raise TypeProblem(f"the condition of select is a bool, got {scalars[0]}")
    if not takes_both and wants_bool != (first == BOOL):
        of_bools = OF_BOOLS.get(op.name)
        hint = "; select(c, 1, 0) is one"
        kind = f"integers, got {shown}; of bools it is {of_bools}" if of_bools else f"numbers, got {shown}{hint}"
        raise TypeProblem(f"{op.name} works on {f'bools, got {shown}; {OF_CONDITIONS}' if wants_bool else kind}")
    if op.kind == "float" and not first.is_float:
        raise TypeProblem(f"{op.name} works on floats, got {shown}; cast with to_f32")
    if op.kind == "integer" and not first.is_integer:
        rest = "; the rest of floats is x - floor(x / y) * y" if op.name == "mod" and first.is_float else ""
        raise TypeProblem(f"{op.name} works on integers, got {shown}{rest}")
    return result
