"""Folds whose accumulator stays between bounds, so that nothing in them wraps around, or is negative.

``(s * 31 + c) % 65521`` is the hash of a text modulo a prime as long as s is below it, and c a byte: else the product
wraps around. From 7 on s is below it always. So the fold is also one by the function that first takes s to the nearest
number from 0 to 65520: that is linear modulo 65521 for all s.

Source: Cousot and Cousot, "Abstract interpretation", POPL 1977 (intervals, widened to the numbers in the program).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf

from lift_egraph.algebra.bounded import Interval, Known, bounds, hull, is_float, limits
from lift_egraph.algebra.cascades import acts_associatively, parts_of
from lift_egraph.algebra.combining import combining_of
from lift_egraph.algebra.equations import leaves_of_value
from lift_egraph.algebra.expressions import Binary, computed_once, opened, packed, shaped_binder
from lift_egraph.algebra.floats import number
from lift_egraph.algebra.grown import MOST_BEFORE, grown_bounds
from lift_egraph.algebra.reached import reached_of
from lift_egraph.algebra.residues import kept
from lift_egraph.algebra.steady import steady_of
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import domain, type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.types import DataType, Pair, Scalar

MOST_TURNS, MOST_EXACT = 20, 4  # the first of them without widening, so that a carry is known to be 0 or 1


@lru_cache(maxsize=1024)
def kept_of(
    function: ir.Function, initial: ir.Expr, given: ir.Lambda | None = None, *, before: int | None = None
) -> ir.Lambda | None:
    """A fold's operator with its numbers moved between those bounds that folds from a value never leave, whatever
    the elements are; None if none are known.

    Parameters
    ----------
    given
        What makes the elements, if that is known: they are moved between its bounds as well.
    before
        How many elements may stand before one: those bounds count that an accumulator does not leave in so many steps.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program("program p(xs: [u8]N) = reduceSeq(fun (s, x) => (s * 31 + to_i32(x)) % 97, 7, xs)").body
    >>> print_term(kept_of(fold.operator, fold.initial))
    'fun (s, x) => (min(max(s, 0), 96) * 31 + to_i32(x)) % 97'
    """
    op = opened(function, both=True)
    known = _known(op, initial, given, before) if op else {}
    if op is None or not known:
        return None
    moved: dict[ir.Var, ir.Expr] = {v: kept(v, interval) for v, interval in known.items()}
    if all(v == e for v, e in moved.items()):
        return None
    t = type_of(ir.function_body(function).body)
    results = packed([substitute(r, moved) for r in op.results], t)
    argument = domain(function)
    assert isinstance(argument, Pair)
    binder = shaped_binder(ir.bound_variables(op.second), argument.second)
    return ir.Lambda(ir.PairBinder(shaped_binder(op.first, t), binder), computed_once(results))


def keeping_of(function: ir.Function, initial: ir.Expr, given: ir.Lambda | None = None) -> ir.Lambda | None:
    """A fold's operator with its whole numbers between bounds, if the fold is parallel then, and is not as it is."""
    if is_parallel(function):
        return None
    return next((found for found in _keeping(function, initial, given) if found and is_parallel(found)), None)


def _keeping(function: ir.Function, initial: ir.Expr, given: ir.Lambda | None) -> Iterator[ir.Lambda | None]:
    """The operator with its accumulator between bounds, or among a few values, in the ways that are tried."""
    found = kept_of(function, initial, given)
    yield found
    yield kept_of(function, initial, given, before=MOST_BEFORE)
    yield reached_of(function, initial, given)
    if found:
        yield reached_of(found, initial, given)


def keeping_in(
    function: ir.Function, initial: ir.Expr, given: ir.Lambda | None = None, *, length: int
) -> ir.Lambda | None:
    """The same where no array has more than so many elements, if it is parallel for no other reason."""
    found = kept_of(function, initial, given, before=length - 1)
    return found if found and is_parallel(found) else None


def against_bounds(function: ir.Function, initial: ir.Expr, given: ir.Lambda | None = None) -> str | None:
    """Why the rest that a fold takes of its accumulator may be none of mathematics; None if none may be that."""
    op = opened(function, both=True)
    if op is None:
        return None
    known = _known(op, initial, given, None)
    for part in (p for r in op.results for p in ir.subterms(r)):
        match part:
            case ir.Call(op="mod", arguments=(a, ir.Literal(value=m))) if m > 1:
                low, high = bounds(a, known)
                if low < 0 and not ir.free_variables(a).isdisjoint(op.first):
                    known_of = f"{print_term(a)} is only known to be from {low} to {high}"
                    giving = "types such as u8, %, masks and ranges of inputs give bounds"
                    return f"modulo {m} it may be linear, but {known_of}: {giving}"
    return None


def is_parallel(f: ir.Function) -> bool:
    """Whether a fold by an operator is parallel as it is."""
    return any(known(f) is not None for known in (acts_associatively, steady_of, combining_of, parts_of))


def _known(op: Binary, initial: ir.Expr, given: ir.Lambda | None, before: int | None) -> dict[ir.Var, Interval]:
    """The bounds of the numbers in a fold's accumulator, and in its elements; none where they are not known."""
    z = leaves_of_value(initial)
    if z is None or [v.type for v in op.first] != [type_of(e) for e in z]:
        return {}
    numbers = [i for i, v in enumerate(op.first) if _is_number(v.type)]
    made = leaves_of_value(given.body) if given else None
    elements = zip(ir.bound_variables(op.second), made or (), strict=False)
    of_elements = {v: bounds(e) for v, e in elements if _is_number(v.type)}
    results = {op.first[i]: op.results[i] for i in numbers}
    first = {op.first[i]: bounds(z[i]) for i in numbers}
    stable = _stable(results, first, of_elements)
    if before is not None:
        whole = ((v, r) for v, r in results.items() if not is_float(v))
        found = ((v, grown_bounds(v, r, first[v], {**of_elements, **stable}, before)) for v, r in whole)
        stable = _stable(results, first, of_elements, {v: interval for v, interval in found if interval})
    return {**{v: _sign(v, interval) for v, interval in stable.items()}, **of_elements} if stable else {}


def _sign(v: ir.Var, interval: Interval) -> Interval:
    """Of floats which sign they have: folds are parallel by no more."""
    if not is_float(v):
        return interval
    return (0.0 if interval[0] >= 0 else -inf), (0.0 if interval[1] <= 0 else inf)


def _stable(
    results: Mapping[ir.Var, ir.Expr],
    first: Mapping[ir.Var, Interval],
    others: Known,
    widest: Mapping[ir.Var, Interval] | None = None,
) -> dict[ir.Var, Interval]:
    """Bounds that the variables have at first, and the results have if the variables do and are within the `widest`."""
    most = widest or {}
    known = dict(first)
    literals = {e for r in results.values() for e in ir.subterms(r) if isinstance(e, ir.Literal)}
    whole = {int(e.value) for e in literals if e.type.is_integer}
    floats = {number(e) for e in literals if e.type.is_float and e.value == e.value}
    of_whole = sorted({0, *whole, *(n - 1 for n in whole), *(1 - n for n in whole)})
    of_floats = sorted({0.0, *floats, *(-n for n in floats)})
    for turn in range(MOST_TURNS):
        ends_of = ((v, hull(known[v], bounds(r, {**others, **known}))) for v, r in results.items())
        made = {v: _meet(interval, most.get(v, interval)) for v, interval in ends_of}
        if made == known:
            return known
        exact = turn < MOST_EXACT
        ends = {v: of_floats if is_float(v) else of_whole for v in made}
        wider = made if exact else {v: _widened(v, known[v], interval, ends[v]) for v, interval in made.items()}
        known = {v: _meet(interval, most.get(v, interval)) for v, interval in wider.items()}
    return {}


def _meet(a: Interval, b: Interval) -> Interval:
    """What two intervals have in common."""
    return max(a[0], b[0]), min(a[1], b[1])


def _is_number(t: DataType) -> bool:
    return isinstance(t, Scalar) and (t.is_integer or t.is_float)


def limits_of(v: ir.Var) -> Interval:
    """The least and the largest number of a variable's type."""
    assert isinstance(v.type, Scalar)
    return limits(v.type)


def _widened(v: ir.Var, before: Interval, now: Interval, ends: Sequence[float]) -> Interval:
    """An interval with ends that grew moved to the next number of a list, or of the type."""
    least, most = limits_of(v)
    low = now[0] if now[0] == before[0] else max((n for n in ends if n <= now[0]), default=least)
    high = now[1] if now[1] == before[1] else min((n for n in ends if n >= now[1]), default=most)
    return max(low, least), min(high, most)
