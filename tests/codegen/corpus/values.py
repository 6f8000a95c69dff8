"""Scalar expressions of random programs: values made from what is in scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lift_egraph.language import build as b, ir
from lift_egraph.language.check import type_of
from lift_egraph.language.functions import Section
from lift_egraph.language.scalar import COMPARISONS
from lift_egraph.language.types import BOOL, F32, F64, I32, Array, DataType, Pair, Scalar, Vector

Pick = Callable[[Sequence[Any]], Any]

_CASTS = {F32: b.to_f32, F64: b.to_f64, I32: b.to_i32}


def value(pick: Pick, t: DataType, pool: tuple[ir.Expr, ...], depth: int = 2) -> ir.Expr:
    """A scalar, vector or tuple of a type, from the scalars (and components, and elements) of a pool."""
    if isinstance(t, Pair):
        return b.tuple_(value(pick, t.first, pool, depth), value(pick, t.second, pool, depth))
    if isinstance(t, Array):
        return b.fill(t.size, value(pick, t.element, pool, depth))
    known = [s for e in pool for s in _scalars(e) if _fits(type_of(s), t)]
    if isinstance(t, Vector) and not any(type_of(s) == t for s in known):
        return b.at(0, b.as_vector(t.width, b.fill(t.width, value(pick, t.scalar, pool, 0))))
    if isinstance(t, Vector):
        first = pick([s for s in known if type_of(s) == t])
        if t.scalar == BOOL:
            return b.not_(first)
        return pick((b.add, b.sub, b.max_))(first, pick(known))
    if depth == 0 or pick((True, False)):
        return _leaf(pick, t, known)
    if t == BOOL:
        return _truth(pick, pool, depth)
    vectors = [s for e in pool for s in _scalars(e) if type_of(s) in (Vector(t, 2), Vector(t, 4))] if t.is_float else []
    form = pick(
        ("arithmetic", "arithmetic", "arithmetic", "scaled", "choice", "one", *(["dot"] * 3 if vectors else []))
    )
    if form == "dot":
        first = pick(vectors)
        return b.dot(first, pick([v for v in vectors if type_of(v) == type_of(first)]))
    if form == "arithmetic":
        operation = pick((b.add, b.sub, b.min_, b.max_, *((b.mul,) if t != I32 else ())))
        return operation(value(pick, t, pool, depth - 1), value(pick, t, pool, depth - 1))
    if form == "scaled":
        factor = pick((-2, -1, 2, 3))
        return b.mul(value(pick, t, pool, depth - 1), b.literal(factor if t == I32 else float(factor), t))
    if form == "one":
        one = (b.neg, b.abs_, lambda x: b.mod(x, 3)) if t == I32 else (b.neg, b.abs_, b.floor)
        return pick(one)(value(pick, t, pool, depth - 1))
    parts = (value(pick, t, pool, depth - 1), value(pick, t, pool, depth - 1))
    return b.select(_truth(pick, pool, depth - 1), *parts)


def number(pick: Pick, t: Scalar, pool: tuple[ir.Expr, ...]) -> ir.Expr:
    """A literal, or a scalar of the pool."""
    return _leaf(pick, t, [s for e in pool for s in _scalars(e) if type_of(s) == t])


def _truth(pick: Pick, pool: tuple[ir.Expr, ...], depth: int) -> ir.Expr:
    if depth <= 0:
        return _leaf(pick, BOOL, [s for e in pool for s in _scalars(e) if type_of(s) == BOOL])
    form = pick(("compare", "compare", "logic", "not"))
    if form == "compare":
        t = pick((F32, I32))
        operands = (value(pick, t, pool, depth - 1), value(pick, t, pool, depth - 1))
        return Section(pick(COMPARISONS))(*operands)
    if form == "logic":
        parts = (_truth(pick, pool, depth - 1), _truth(pick, pool, depth - 1))
        return pick((b.and_, b.or_, b.equal, b.not_equal))(*parts)
    return b.not_(_truth(pick, pool, depth - 1))


def _leaf(pick: Pick, t: Scalar, known: list[ir.Expr]) -> ir.Expr:
    if not known or pick((False, False, False, True)):
        return b.literal(pick(_literals(t)), t)
    chosen = pick(known)
    return chosen if type_of(chosen) == t else _CASTS[t](chosen)


def _literals(t: Scalar) -> tuple[float | int | bool, ...]:
    if t == BOOL:
        return (False, True)
    return (0, 1, 2, -3) if t == I32 else (0.0, 1.0, 2.0, -3.0)


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether a scalar can stand for one of a type, perhaps by a cast."""
    if isinstance(wanted, Vector):
        return given in (wanted, wanted.scalar)
    return given == wanted or (isinstance(given, Scalar) and wanted in _CASTS and given in _CASTS)


def _scalars(e: ir.Expr) -> Iterator[ir.Expr]:
    """The scalars and vectors in reach: itself, components, the first and last element."""
    t = type_of(e)
    if isinstance(t, Pair):
        yield from _scalars(b.get(0, e))
        yield from _scalars(b.rest(e))
    elif isinstance(t, Array):
        size = t.size.constant or 0
        if size and not isinstance(t.element, Array):
            yield from _scalars(b.at(size - 1, e))
    else:
        yield e
