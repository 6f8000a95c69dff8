"""Folds and scans of one array in chunks, as lets: what the chunks give, what each starts from, and then all of them.

The terms are built here as the rules of `lift_egraph.rules.algebra` and `lift_egraph.rules.scans` build them; that they
do is what the phase ``long_rows`` shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

from lift_egraph.algebra.laws import associative, right_identity
from lift_egraph.algebra.steady import Steady, steady_of
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.language import ir
from lift_egraph.language.binders import Let
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar

EVEN = 16  # what divides long chunks, for vectors and powers
FOLDS, SCANS = (ir.Reduce, ir.ReduceSeq), (ir.Scan, ir.ScanSeq)


@dataclass(frozen=True)
class Chunked:
    """A fold or scan as what lets bind, and what is made of it."""

    lets: tuple[Let, ...]
    result: ir.Expr
    powers: int | None = None  # of how many powers each power is a power


def chunked_steadily(term: ir.Expr, start: ir.Expr, array: ir.Expr, chunk: int, number: int) -> Chunked | None:
    """A fold or scan from `start` of `array`, which chunks divide, if its operator multiplies by one matrix.

    The `number` is in the names of what lets bind.
    """
    assert isinstance(term, FOLDS + SCANS)
    f = term.operator
    found = steady_of(f)
    if found is None or not isinstance(f, ir.Lambda):
        return None
    split = ir.Split(nat(chunk), array)
    c = ir.Var("$chunk", element_type(split))
    totals = ir.Map(ir.Lambda(c, ir.ReduceSeq(f, found.zero, c)), split)
    ts = ir.Var(f"$totals{number}", type_of(totals))
    q, s, t = (
        ir.Var("$power", type_of(found.one)),
        ir.Var("$start", type_of(start)),
        ir.Var("$total", element_type(totals)),
    )
    step = ir.Lambda(ir.PairBinder(s, t), ir.Apply(found.onward, ir.MakePair(q, ir.MakePair(s, t))))
    powers = next((k for k in (EVEN, *range(isqrt(chunk), 1, -1)) if chunk % k == 0 and k < chunk), None)

    def onward(fold: ir.Expr) -> ir.Expr:
        return ir.Apply(ir.Lambda(q, fold), _power(found, chunk, powers))

    if isinstance(term, FOLDS):
        return Chunked(((ts, totals),), onward(ir.ReduceSeq(step, start, ts)), powers)
    starts = onward(ir.ScanExclusiveSeq(step, start, ts))
    each = ir.Lambda(ir.PairBinder(s, c), replace(term, initial=s, array=c))
    return _from_starts((ts, totals), starts, each, split, number, powers)


def chunked_by_totals(term: ir.Scan, start: ir.Expr, array: ir.Expr, chunk: int, number: int) -> Chunked | None:
    """A scan from `start` of `array`, which chunks divide, if its operator is associative and has a right identity."""
    op, one = term.operator, _identity(term)
    if one is None:
        return None
    mapped, elements = (array.function, array.array) if isinstance(array, ir.Map) else (None, array)
    split = ir.Split(nat(chunk), elements)
    c, s = ir.Var("$chunk", element_type(split)), ir.Var("$start", type_of(start))
    own = ir.Map(mapped, c) if mapped else c
    totals = ir.Map(ir.Lambda(c, ir.Reduce(op, one, own)), split)
    ts = ir.Var(f"$totals{number}", type_of(totals))
    starts = ir.ScanExclusive(op, start, ts)
    each = ir.Lambda(ir.PairBinder(s, c), ir.Scan(op, s, own))
    return _from_starts((ts, totals), starts, each, split, number)


def _from_starts(
    totals: Let, starts: ir.Expr, each: ir.Lambda, chunks: ir.Expr, number: int, powers: int | None = None
) -> Chunked:
    """The scans of all chunks, each from where it starts."""
    ss = ir.Var(f"$starts{number}", type_of(starts))
    return Chunked((totals, (ss, starts)), ir.Join(ir.Map(each, ir.Zip(ss, chunks))), powers)


def _identity(term: ir.Scan) -> ir.Expr | None:
    """The right identity of a scan's operator: that of a built-in operation, or what the scan begins with."""
    known = known_operator(term.operator)
    if known is not None:
        name, lifted = known
        t = type_of(term.initial)
        values = LAWS[name].neutral if not lifted and isinstance(t, Scalar) else {}
        return ir.Literal(values[t.name], t) if isinstance(t, Scalar) and t.name in values else None
    return term.initial if associative(term.operator) and right_identity(term.operator, term.initial) else None


def _power(found: Steady, n: int, k: int | None) -> ir.Expr:
    def reduced(count: int, x: ir.Expr) -> ir.Expr:
        return ir.Reduce(found.operator, found.one, ir.Fill(nat(count), x))

    return reduced(n, found.power) if k is None else reduced(n // k, reduced(k, found.power))
