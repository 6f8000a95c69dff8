"""Siblings of a program, which read the same arrays, as one: reductions beside each other, and maps beside each other.

A reduction of pairs reads once what two reductions read, and a map whose function makes several results computes once
what these have in common. The terms are built here, two siblings at a time, as the rules of
`lift_egraph.rules.siblings` build them; that they do is what the phase ``siblings`` shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Union

from lift_egraph.algebra.expressions import scalars
from lift_egraph.algebra.laws import associative, commutative
from lift_egraph.egraph.encoding import combined, known_operator
from lift_egraph.extract.baseline import computes
from lift_egraph.language import ir
from lift_egraph.language.binders import (
    Let,
    fresh_name,
    in_lets,
    names_in,
    out_of_lets,
    unique_names,
    with_part,
    with_parts,
)
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import is_data
from lift_egraph.workbench.planning.plan import LONG, length_of

MOST_RESULTS = 6  # of one reduction: registers hold a vector or two of each


def siblings_together(term: ir.Expr, few: int = 0) -> Iterator[ir.Expr]:
    """The term with two siblings more as one, step by step: each term is for a phase of its own.

    So are those of long columns, where these are `few`: else vectors of columns have them one after the other.
    """
    now = term
    while (steps := _reductions(now) or _maps(now) or _of_columns(now, few)) is not None:
        yield from steps
        *_, now = steps


# --- reductions -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """A reduction outside of all loops: in what the let of a number binds, or in the result, and whether it is that."""

    let: int
    reduction: ir.Reduce
    is_bound: bool


def _reductions(term: ir.Expr) -> list[ir.Expr] | None:
    """The steps to two reductions as one; None if there are none that read the same."""
    lets, result = out_of_lets(unique_names(term))
    found = [p for i, (_, c) in enumerate((*lets, (None, result))) for p in _places(i, c, i < len(lets))]
    for one, other in combinations(found, 2):
        if one.reduction is other.reduction:
            continue
        if one.let == other.let == len(lets) and result == ir.MakePair(one.reduction, other.reduction):
            if _are_alike(one.reduction, other.reduction):
                return [in_lets(lets, _together(one.reduction, other.reduction))]
        elif _are_alike(one.reduction, other.reduction) and not _needs(lets, one.let, other):
            return _named_together(lets, result, one, other)
    return None


def _of_columns(term: ir.Expr, few: int) -> list[ir.Expr] | None:
    """The steps to two reductions of the same of some columns as one, in a map outside of all loops."""
    lets, result = out_of_lets(term)
    for made in (*(value for _, value in lets), result):
        match made:
            case ir.Map(function=ir.Lambda(body=body) as f, array=ir.Transpose()) if length_of(made) < few:
                if steps := _reductions(body):
                    return [with_parts(term, {made: replace(made, function=replace(f, body=b))}) for b in steps]
    return None


def _places(number: int, term: ir.Expr, is_let: bool, is_bound: bool = True) -> Iterator[_Place]:
    if isinstance(term, ir.Reduce):
        yield _Place(number, term, is_bound and is_let)
    elif isinstance(term, ir.MakePair) or (isinstance(term, ir.Call) and len(term.arguments) <= 2):
        for part in ir.parts(term):
            if isinstance(part, ir.Expr):
                yield from _places(number, part, is_let, False)


def _are_alike(one: ir.Reduce, other: ir.Reduce) -> bool:
    """Whether two reductions read the same long arrays, and can be taken apart alike, and so can both as one."""
    same_laws = _laws(one.operator) == _laws(other.operator)
    types = [scalars(type_of(r.initial)) for r in (one, other)]
    fits = all(types) and sum(len(t or ()) for t in types) <= MOST_RESULTS
    long = length_of(one.array) == length_of(other.array) >= LONG
    known = all(is_pure(r.initial) and not ir.free_variables(r.initial) for r in (one, other))
    alike = bool(same_laws and fits and long and known and _read_the_same(one.array, other.array))
    return alike and _laws(_together(one, other).operator) == _laws(one.operator)


def _laws(operator: ir.Function) -> tuple[bool, bool]:
    """Whether an operator is associative, and commutative."""
    known = known_operator(operator)
    if known is not None:
        return LAWS[known[0]].associative, LAWS[known[0]].commutative
    return associative(operator) is not None, commutative(operator) is not None


def _read_the_same(one: ir.Expr, other: ir.Expr) -> bool:
    """Whether two arrays, read through views or computed on the fly, come from one."""
    bases = [_mapped(array)[1] for array in (one, other)]
    if not all(map(is_pure, bases)):
        return False
    first, second = ({t for t in ir.subterms(base) if isinstance(t, ir.Input | ir.Var)} for base in bases)
    return not first.isdisjoint(second)


def _mapped(array: ir.Expr) -> tuple[ir.Lambda | None, ir.Expr]:
    """The function of the map that makes an array, if one does, and what that is applied to."""
    if isinstance(array, ir.Map) and isinstance(array.function, ir.Lambda) and not is_pure(array):
        return array.function, array.array
    return None, array


def _needs(lets: Sequence[Let], first: int, other: _Place) -> bool:
    """Whether a reduction needs what the let of a number binds, or those between them."""
    free = ir.free_variables(other.reduction)
    return any(not free.isdisjoint(ir.bound_variables(binder)) for binder, _ in lets[first : other.let])


def _named_together(lets: Sequence[Let], result: ir.Expr, one: _Place, other: _Place) -> list[ir.Expr]:
    """The steps to two reductions in one let: each has a let of its own first."""
    steps: list[ir.Expr] = []
    parts = list(lets)
    for place in (other, one):  # from inside to outside: the numbers of what is outside stay as they are
        if place.is_bound:
            continue
        taken = names_in(in_lets(parts, result))
        x = ir.Var(fresh_name("total", taken), type_of(place.reduction.initial))
        if place.let == len(lets):
            result = with_part(result, place.reduction, x)
            parts.append((x, place.reduction))
        else:
            binder, argument = parts[place.let]
            parts[place.let : place.let + 1] = [(x, place.reduction), (binder, with_part(argument, place.reduction, x))]
        steps.append(in_lets(parts, result))
    first, second = (i for i, (_, c) in enumerate(parts) if c is one.reduction or c is other.reduction)
    (p, r), (q, s) = parts[first], parts[second]
    assert isinstance(r, ir.Reduce)
    assert isinstance(s, ir.Reduce)
    parts[first] = ir.PairBinder(p, q), _together(r, s)
    del parts[second]
    return [*steps, in_lets(parts, result)]


def _together(one: ir.Reduce, other: ir.Reduce) -> ir.Reduce:
    t, u = type_of(one.initial), type_of(other.initial)
    a, b, c, d = ir.Var("$a", t), ir.Var("$b", u), ir.Var("$c", t), ir.Var("$d", u)
    step = ir.MakePair(combined(one.operator, a, c), combined(other.operator, b, d))
    operator = ir.Lambda(ir.PairBinder(ir.PairBinder(a, b), ir.PairBinder(c, d)), step)
    return ir.Reduce(operator, ir.MakePair(one.initial, other.initial), _zipped(one.array, other.array))


def _zipped(one: ir.Expr, other: ir.Expr) -> ir.Expr:
    """Two arrays element by element: what both compute of one array, by one function."""
    (f, xs), (g, ys) = _mapped(one), _mapped(other)
    x, y = ir.Var("$x", element_type(xs)), ir.Var("$y", element_type(ys))
    if xs == ys:
        return ir.Map(ir.Lambda(x, ir.MakePair(_applied(f, x), _applied(g, x))), xs)
    if f is None and g is None:
        return ir.Zip(xs, ys)
    return ir.Map(ir.Lambda(ir.PairBinder(x, y), ir.MakePair(_applied(f, x), _applied(g, y))), ir.Zip(xs, ys))


def _applied(function: ir.Lambda | None, x: ir.Var) -> ir.Expr:
    return ir.Apply(function, x) if function else x


# --- maps -----------------------------------------------------------------------------------------------


Made = Union[ir.Map, "tuple[ir.Var, ir.Map, ir.Expr]"]  # a map, or what a let binds as one and makes of it


def _maps(term: ir.Expr) -> list[ir.Expr] | None:
    """The step to two maps as one in the program's result; None if there are none that read the same."""
    lets, result = out_of_lets(unique_names(term))
    made = _with_maps(result)
    return None if made is result else [in_lets(lets, made)]


def _with_maps(term: ir.Expr) -> ir.Expr:
    """A tuple of arrays with its first two maps from the right as one; the same term if there are none."""
    if not isinstance(term, ir.MakePair):
        return term
    second = _with_maps(term.second)
    if second is not term.second:
        return ir.MakePair(term.first, second)
    first = _with_maps(term.first)
    if first is not term.first:
        return ir.MakePair(first, second)
    f, g = _map_of(first), _map_of(second)
    if not isinstance(f, ir.Map) or g is None:
        return term
    other = g if isinstance(g, ir.Map) else g[1]
    if length_of(f) != length_of(other) or length_of(f) < LONG or not _read_the_same(f, other):
        return term
    both = _zipped(f, other)
    r = ir.Var("$both", type_of(both))
    a, b = ir.Var("$a", element_type(f)), ir.Var("$b", element_type(other))
    one, rest = (ir.Map(ir.Lambda(ir.PairBinder(a, b), component), r) for component in (a, b))
    left = rest if isinstance(g, ir.Map) else ir.Apply(ir.Lambda(g[0], g[2]), rest)
    return ir.Apply(ir.Lambda(r, ir.MakePair(one, left)), both)


def _map_of(term: ir.Expr) -> Made | None:
    """A map of scalars or tuples of them, whose function has no loops, or a let that binds one."""
    match term:
        case ir.Map(function=ir.Lambda(body=body)) if is_data(type_of(body)) and computes(term.function):
            return None if any(isinstance(t, (*ir.FOLDS, ir.Map)) for t in ir.subterms(body)) else term
        case ir.Apply(function=ir.Lambda(binder=ir.Var() as s, body=body), argument=ir.Map() as inner):
            return (s, inner, body) if is_pure(body) and isinstance(_map_of(inner), ir.Map) else None
    return None
