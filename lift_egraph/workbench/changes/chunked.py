"""Folds and scans of one array in chunks, as lets: what the chunks give, what each starts from, and then all of them.

The terms are built here as the rules of `lift_egraph.rules.algebra` and `lift_egraph.rules.scans` build them; that they
do is what the phase ``long_rows`` shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.algebra.laws import associative, right_identity
from lift_egraph.algebra.steady import Steady, steady_of
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.language import ir
from lift_egraph.language.binders import Let
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar
from lift_egraph.workbench.planning.plan import length_of

EVEN = 16  # what divides long chunks, for vectors and powers
MOST = 1024  # factors of a power that need not be a power of powers
FOLDS, SCANS = (ir.Reduce, ir.ReduceSeq), (ir.Scan, ir.ScanSeq)


@dataclass(frozen=True)
class Chunked:
    """A fold or scan as what lets bind, and what is made of it."""

    lets: tuple[Let, ...]
    result: ir.Expr
    powers: tuple[int, ...] = ()  # how often a matrix is multiplied by itself, then what that gives, …


def chunked_steadily(
    term: ir.Expr, start: ir.Expr, array: ir.Expr, chunk: int, number: int, lanes: int | None = None
) -> Chunked | None:
    """A fold or scan from `start` of `array`, which chunks divide, if its operator multiplies by one matrix.

    Parameters
    ----------
    number
        In the names of what lets bind.
    lanes
        How many neighbouring elements of a chunk are folded beside each other.
    """
    assert isinstance(term, FOLDS + SCANS)
    f = term.operator
    found = steady_of(f)
    if found is None or not isinstance(f, ir.Lambda):
        return None
    split = ir.Split(nat(chunk), array)
    c = ir.Var("$chunk", element_type(split))
    from_zero = _in_lanes(f, found, c, lanes) if lanes else ir.ReduceSeq(f, found.zero, c)
    totals = ir.Map(ir.Lambda(c, from_zero), split)
    ts = ir.Var(f"$totals{number}", type_of(totals))
    q, s, t = (
        ir.Var("$power", type_of(found.one)),
        ir.Var("$start", type_of(start)),
        ir.Var("$total", element_type(totals)),
    )
    step = ir.Lambda(ir.PairBinder(s, t), ir.Apply(found.onward, ir.MakePair(q, ir.MakePair(s, t))))
    powers = _of_powers(chunk)

    def onward(fold: ir.Expr) -> ir.Expr:
        return ir.Apply(ir.Lambda(q, fold), _power(found, chunk, powers))

    if isinstance(term, FOLDS):
        return Chunked(((ts, totals),), onward(ir.ReduceSeq(step, start, ts)), powers)
    starts = onward(ir.ScanExclusiveSeq(step, start, ts))
    each = ir.Lambda(ir.PairBinder(s, c), replace(term, initial=s, array=c))
    return _from_starts((ts, totals), starts, each, split, number, powers)


def chunked_by_action(
    term: ir.Expr, start: ir.Expr, array: ir.Expr, chunk: int, number: int
) -> Chunked | None:
    """A fold from `start` of `array`, which chunks divide, if its operator acts like a monoid: each chunk gives what
    acts, and these act one after the other.
    """
    assert isinstance(term, FOLDS)
    found = action_of(term.operator)
    if not isinstance(found, Action) or found.against(length_of(term.array)):
        return None
    split = ir.Split(nat(chunk), array)
    c = ir.Var("$chunk", element_type(split))
    totals = ir.Map(ir.Lambda(c, ir.Reduce(found.operator, found.one, ir.Map(found.matrix, c))), split)
    ts = ir.Var(f"$totals{number}", type_of(totals))
    s, t = ir.Var("$start", type_of(start)), ir.Var("$total", element_type(totals))
    step = ir.Lambda(ir.PairBinder(s, t), ir.Apply(found.act, ir.MakePair(t, s)))
    return Chunked(((ts, totals),), ir.ReduceSeq(step, start, ts))


def _in_lanes(f: ir.Lambda, found: Steady, array: ir.Expr, lanes: int) -> ir.Expr:
    """A fold from zero, in which so many neighbouring elements are folded beside each other."""
    columns = ir.Transpose(ir.Split(nat(lanes), array))
    c = ir.Var("$lane", element_type(columns))
    q, s, t, x = (
        ir.Var("$power", type_of(found.one)),
        ir.Var("$start", type_of(found.zero)),
        ir.Var("$total", type_of(found.zero)),
        ir.Var("$element", element_type(array)),
    )

    def onward(power: ir.Expr, more: ir.Var, own: ir.Expr) -> ir.Lambda:
        return ir.Lambda(ir.PairBinder(s, more), ir.Apply(found.onward, ir.MakePair(power, ir.MakePair(s, own))))

    step = onward(q, x, ir.Apply(f, ir.MakePair(found.zero, x)))
    totals = ir.Map(ir.Lambda(c, ir.ReduceSeq(step, found.zero, c)), columns)
    last = ir.ReduceSeq(onward(found.power, t, t), found.zero, totals)
    return ir.Apply(ir.Lambda(q, last), _power(found, lanes))


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
    totals: Let, starts: ir.Expr, each: ir.Lambda, chunks: ir.Expr, number: int, powers: tuple[int, ...] = ()
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


def _of_powers(n: int) -> tuple[int, ...]:
    """How often a matrix is multiplied by itself, then what that gives, … until few factors are left of n."""
    found: list[int] = []
    while n > MOST and n % EVEN == 0 and len(found) < 2:
        found.append(EVEN)
        n //= EVEN
    return tuple(found) or tuple(k for k in (EVEN, *range(isqrt(n), 1, -1)) if n % k == 0 and k < n)[:1]


def _power(found: Steady, n: int, powers: tuple[int, ...] = ()) -> ir.Expr:
    made = found.power
    for k in powers:
        made, n = ir.Reduce(found.operator, found.one, ir.Fill(nat(k), made)), n // k
    return ir.Reduce(found.operator, found.one, ir.Fill(nat(n), made))
