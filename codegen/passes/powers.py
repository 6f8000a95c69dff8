"""Powers by small whole numbers, which are products: the function takes a hundred times as long.

The exponent is a number, or made of the indices of loops, as in ``pow(1.0 + rate, -f32(year))``. A product of 32
factors rounds as often as OpenCL allows the function to be wrong by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from lift_egraph.codegen import c_ast, c_walk
from lift_egraph.codegen.c_ast import CExpr, Const, Operate
from lift_egraph.codegen.lowering.places import bounds_of
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import F16, F32, I32, scalar_of, width_of

MOST = 32  # factors, of which each rounds by half a unit in the last place: the function may be wrong by 16
_CASTS, _SUMS = ("to_f32", "to_f64"), ("add", "sub", "neg")


def whole_powers(body: c_ast.Body, known: Mapping[str, CExpr] | None = None) -> c_ast.Body:
    """The body with whole numbers for those exponents that are; `known` are constants of floats that are whole."""
    if not any(map(c_walk.functions, body)):
        return body
    found, made = dict(known or {}), list[c_ast.Statement]()

    def change(part: Any) -> Any:
        match part:
            case Operate(op="pow", arguments=(base, exponent)) if scalar_of(part.type) != F16:
                exponent = _folded(exponent)
                whole = _whole(exponent, found)
                if whole is not None and (bounds := bounds_of(whole)) and -MOST <= bounds[0] <= bounds[1] <= MOST:
                    exponent = whole
                return replace(part, arguments=(_folded(c_walk.rewrite(base, change)), exponent))
        return None

    for statement in body:
        if isinstance(statement, c_ast.AROUND):
            made.append(c_walk.with_body(statement, whole_powers(statement.body, found)))
            continue
        made.append(c_walk.rewrite(statement, change))
        if isinstance(statement, c_ast.Let):
            whole = _whole(statement.value, found)
            found = {name: value for name, value in found.items() if name != statement.name}
            found |= {} if whole is None else {statement.name: whole}
    return tuple(made)


def _folded(value: CExpr) -> CExpr:
    """The number that a base or an exponent of single precision made of numbers is, as ``1.0 / 2.2``."""
    match value:
        case Operate(op="add" | "sub" | "mul" | "div" | "neg" as op, arguments=arguments, type=t) if t == F32:
            parts = [_folded(a) for a in arguments]
            if all(isinstance(p, Const) for p in parts):
                with np.errstate(all="ignore"):
                    made = OPERATIONS[op].meaning(*(np.float32(p.value) for p in parts if isinstance(p, Const)))
                return Const(float(made), F32)
    return value


def _whole(value: CExpr, known: Mapping[str, CExpr]) -> CExpr | None:
    """A float as the whole number that it is."""
    match value:
        case Const(value=float() | int() as number, type=t) if width_of(t) == 1 and -MOST <= number <= MOST:
            return Const(int(number), I32) if number == int(number) else None
        case c_ast.Name(name=name):
            return known.get(name)
        case Operate(op=op, arguments=(inner,)) if op in _CASTS and inner.type == I32 and bounds_of(inner) is not None:
            return inner
        case Operate(op=op, arguments=arguments) if op in _SUMS:
            parts = [_whole(a, known) for a in arguments]
            return Operate(op, tuple(p for p in parts if p is not None), I32) if None not in parts else None
    return None
