"""Whole numbers of a kernel that only its indices decide, though its text computes them as it does data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lift_egraph.codegen import c_walk
from lift_egraph.codegen.c_ast import CExpr, Computed, Const, IndexValue, Name, Operate
from lift_egraph.language.nat import Nat, is_at_least, maximum, minimum, nat
from lift_egraph.language.types import I32

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1  # beyond, values wrap around, and index expressions do not

_MADE_OF = Const, IndexValue, Name, Operate

Known = Mapping[str, Nat]
"""Constants of the kernel that are known, by their names."""


def index_of(value: CExpr, known: Known) -> Nat | None:
    """A value as an expression of indices; None if data decides it, or it may wrap around."""
    found = _index_of(value, known) if type(value) in _MADE_OF and value.type == I32 else None
    if found is None:
        return None
    low, high = found.range
    return found if low is not None and high is not None and low >= _LEAST and high <= _MOST else None


def without_data(index: Nat, known: Known) -> Nat:
    """An index expression in which what only indices decide does not count as data."""

    def new(atom: Any) -> Nat | None:
        if not isinstance(atom, Computed) or (value := index_of(atom.value, known)) is None:
            return None
        if atom.is_known or atom.low is None or atom.high is None:
            return value
        return minimum(maximum(value, atom.low), atom.high)

    return index.rebuild(new) if c_walk.data_in(index) else index


def conditions_of(value: CExpr, known: Known, holds: bool = True) -> tuple[Nat, ...] | None:
    """Index expressions that are all 0 or more where a condition holds, or does not; None if it is of another kind."""
    match value:
        case Operate(op="not", arguments=(inside,)):
            return conditions_of(inside, known, not holds)
        case Operate(op="and" | "or" as op, arguments=(first, second)) if (op == "and") == holds:
            one, other = (conditions_of(part, known, holds) for part in (first, second))
            return None if one is None or other is None else one + other
        case Operate(op="lt" | "le" | "gt" | "ge" | "eq" | "ne" as op, arguments=(first, second)):
            one, other = (index_of(part, known) for part in (first, second))
            if one is None or other is None:
                return None
            if op in ("eq", "ne"):
                return (one - other, other - one) if (op == "eq") == holds else None
            if op in ("lt", "le"):
                one, other = other, one
            if holds:
                return (one - other - (op in ("lt", "gt")),)
            return (other - one - (op in ("le", "ge")),)
    return None


def _index_of(value: CExpr, known: Known) -> Nat | None:
    match value:
        case Const(value=int() as number):
            return nat(number)
        case IndexValue(value=index):
            found = without_data(index, known)
            return None if c_walk.data_in(found) else found
        case Name(name=name):
            return known.get(name)
        case Operate(op=op, arguments=(first, second)):
            one, other = index_of(first, known), index_of(second, known)
            return None if one is None or other is None else _operated(op, one, other)
    return None


def _operated(op: str, one: Nat, other: Nat) -> Nat | None:
    match op:
        case "add":
            return one + other
        case "sub":
            return one - other
        case "mul":
            return one * other
        case "min":
            return minimum(one, other)
        case "max":
            return maximum(one, other)
        case "div" | "mod" if is_at_least(one, 0) and (other.constant or 0) > 0:  # both round down then
            return one // other if op == "div" else one % other
    return None
