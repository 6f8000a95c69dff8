"""Which reductions by index need no order of their elements: those whose places are distinct, and those whose elements
a device combines in memory.

The terms are built here as the rules of `lift_egraph.rules.by_index` build them; that they do is what the phase
``distinct_places``, or ``atomic_places``, shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import TypeVar

from lift_egraph.algebra.places import MOST_PLACES, distinct_in
from lift_egraph.codegen.lowering.atomics import is_atomic
from lift_egraph.egraph.encoding import combined, known_operator
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import element_type, size_of, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.types import I32, Array, Pair
from lift_egraph.workbench.changes.outside import map_outside, map_outside_and_steps
from lift_egraph.workbench.planning.plan import LONG

T = TypeVar("T", bound=ir.Part)
AtOnce = TypeVar("AtOnce", ir.ReduceByIndexGlb, ir.ReduceByIndexAtomic)
NOWHERE = ir.Literal(-1, I32)  # no place of a result


def with_distinct_places(term: ir.Expr) -> ir.Expr | None:
    """The term with those of its reductions by index that are outside of all loops, and have distinct places, with
    a work-item for each element; None if there are none.
    """
    known = distinct_in(term)
    made = _placed(term, known) if known else term
    return None if made == term else made


def _placed(term: ir.Expr, known: Mapping[ir.Expr, str]) -> ir.Expr:
    made = map_outside(term, lambda part: _placed(part, known))
    match made:
        case ir.ReduceByIndex(initial=initial) if isinstance(term, ir.ReduceByIndex) and term.indices in known:
            return _loop(ir.ReduceByIndexGlb, made, initial, _pairs, lambda i: i, lambda h: True)
    return made


def with_atomics(term: ir.Expr, few: int = 0) -> ir.Expr:
    """The term with those of its reductions by index that are outside of all loops but iterates as loops with a
    work-item for each element, where the operator is one that devices have for memory, or has one for each component of
    its pairs.

    So are those of a `few` rows at most that are long together: of all rows at once.
    """
    made = map_outside_and_steps(term, lambda part: with_atomics(part, few))
    match made:
        case ir.ReduceByIndex():
            return _of_arrays(made) or _at_once(made) or made
        case ir.Map(function=ir.Lambda(binder=p, body=body), array=xs) if (size_of(xs).constant or inf) <= few:
            return _of_rows(p, body, xs, 0) or made
    return made


def _of_arrays(made: ir.ReduceByIndex) -> ir.Expr | None:
    """A reduction by index of arrays, as one of all of their elements at once."""
    t, known = element_type(made.initial), known_operator(made.operator)
    if not isinstance(t, Array) or known is None or known[1] != 1 or element_type(made.indices) != I32:
        return None
    k, w = size_of(made).constant, t.size.constant
    if not (k and w) or k * w >= MOST_PLACES:
        return None
    i, j = ir.Var("$place", I32), ir.Var("$i", I32)
    numbers = ir.Map(ir.Lambda(i, ir.Generate(nat(w), ir.Lambda(j, ir.MakePair(i, j)))), made.indices)
    place = _kept(i, k, ir.Call("add", (ir.Call("mul", (i, ir.Literal(w, I32))), j)), NOWHERE)
    places = ir.Map(ir.Lambda(ir.PairBinder(i, j), place), ir.Join(numbers))
    a, b = (ir.Var(name, t.element) for name in ("$acc", "$x"))
    of_elements = ir.Lambda(ir.PairBinder(a, b), ir.Call(known[0], (a, b)))
    whole = ir.ReduceByIndex(of_elements, ir.Join(made.initial), places, ir.Join(made.array))
    at_once = _at_once(whole)
    return at_once and ir.Split(nat(w), at_once)


def _kept(i: ir.Expr, k: int, place: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
    """A place, where an index is one of so many; another one where it is not."""
    inside = ir.Call("and", (ir.Call("ge", (i, ir.Literal(0, I32))), ir.Call("lt", (i, ir.Literal(k, I32)))))
    return ir.Call("select", (inside, place, otherwise))


def _at_once(made: ir.ReduceByIndex) -> ir.Expr | None:
    if (sides := _sides(made)) is not None:
        first, second = map(_at_once, sides)
        return None if first is None or second is None else ir.Zip(first, second)
    if not _is_atomic(made):
        return None
    return _loop(ir.ReduceByIndexAtomic, made, made.initial, _pairs, lambda i: i, _is_of_scalars)


def _is_atomic(made: ir.ReduceByIndex) -> bool:
    known = known_operator(made.operator)
    return known is not None and not known[1] and is_atomic(known[0], element_type(made.initial))


def _of_rows(p: ir.Binder, body: ir.Expr, xs: ir.Expr, number: int) -> ir.Expr | None:
    """A map of a function with reductions by index, each of all rows at once, and of what else it does with them."""
    if isinstance(body, ir.ReduceByIndex):
        return _rows_at_once(p, body, xs)
    if (found := _named(body, number)) is None:
        return None
    s, fold, rest = found
    made = _rows_at_once(p, fold, xs)
    if made is None:
        return None
    rows = ir.Var(f"$results{number}", type_of(made))
    each, array = ir.PairBinder(s, p), ir.Zip(rows, xs)
    then = _of_rows(each, rest, array, number + 1) or ir.Map(ir.Lambda(each, rest), array)
    return ir.Apply(ir.Lambda(rows, then), made)


def _named(body: ir.Expr, number: int) -> tuple[ir.Binder, ir.ReduceByIndex, ir.Expr] | None:
    """A reduction by index that a body does something with, the name for its results, and the rest of the body."""

    def of(fold: ir.ReduceByIndex, rest: Callable[[ir.Expr], ir.Expr]) -> tuple[ir.Binder, ir.ReduceByIndex, ir.Expr]:
        s = ir.Var(f"$row{number}", type_of(fold))
        return s, fold, rest(s)

    match body:
        case ir.Apply(function=ir.Lambda(binder=q, body=rest), argument=ir.ReduceByIndex() as fold):
            return q, fold, rest
        case ir.Map(array=ir.ReduceByIndex() as fold):
            return of(fold, lambda s: replace(body, array=s))
        case ir.Map(array=ir.Zip(first=ir.ReduceByIndex() as fold, second=b)):
            return of(fold, lambda s: replace(body, array=ir.Zip(s, b)))
        case ir.Map(array=ir.Zip(first=b, second=ir.ReduceByIndex() as fold)):
            return of(fold, lambda s: replace(body, array=ir.Zip(b, s)))
        case ir.MakePair(first=ir.ReduceByIndex() as fold, second=b):
            return of(fold, lambda s: ir.MakePair(s, b))
        case ir.MakePair(first=b, second=ir.ReduceByIndex() as fold):
            return of(fold, lambda s: ir.MakePair(b, s))
    return None


def _rows_at_once(p: ir.Binder, fold: ir.ReduceByIndex, xs: ir.Expr) -> ir.Expr | None:
    k, m, n = (size_of(part).constant for part in (fold, fold.array, xs))
    if not (k and m and n) or n * k >= MOST_PLACES or n * m < LONG:
        return None
    if not _is_atomic(fold) or element_type(fold.indices) != I32:
        return None
    d = ir.Var("$row", I32)

    def with_rows(places: ir.Expr, array: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        """The elements of all rows, with the rows' numbers and with their places."""
        i, x = _names(places, array)
        value = ir.MakePair(ir.MakePair(d, i), x)
        row = ir.Map(ir.Lambda(ir.PairBinder(i, x), value), ir.Zip(places, array))
        numbers = ir.Generate(nat(n), ir.Lambda(d, d))
        return value, ir.Join(ir.Map(ir.Lambda(ir.PairBinder(d, p), row), ir.Zip(numbers, xs)))

    def place(i: ir.Expr) -> ir.Expr:
        return _kept(i, k, ir.Call("add", (ir.Call("mul", (d, ir.Literal(k, I32))), i)), NOWHERE)

    def is_of_no_row(h: ir.Lambda) -> bool:
        return not _mentions(h, p) and _is_of_scalars(h)

    initial = ir.Join(ir.Map(ir.Lambda(p, fold.initial), xs))
    return ir.Split(nat(k), _loop(ir.ReduceByIndexAtomic, fold, initial, with_rows, place, is_of_no_row))


def _sides(made: ir.ReduceByIndex) -> tuple[ir.ReduceByIndex, ir.ReduceByIndex] | None:
    """The reductions of the first and of the second components of pairs, if the operator treats each by itself."""
    match made.operator:
        case ir.Lambda(
            binder=ir.PairBinder(ir.PairBinder(p, q), ir.PairBinder(r, s)), body=ir.MakePair(first=x, second=y)
        ) if not (_mentions(x, q, s) or _mentions(y, p, r)):
            steps = ir.Lambda(ir.PairBinder(p, r), x), ir.Lambda(ir.PairBinder(q, s), y)
        case _:
            return None
    parts = (tuple(_side(at, array) for array in (made.initial, made.array)) for at in (0, 1))
    first, second = (
        ir.ReduceByIndex(step, initial, made.indices, array)
        for step, (initial, array) in zip(steps, parts, strict=True)
    )
    return first, second


def _is_of_scalars(h: ir.Lambda) -> bool:
    """Whether a function only calculates: one that folds arrays is applied once for each element, by a map."""
    return not any(isinstance(part, ir.Expr) and isinstance(type_of(part), Array) for part in ir.subterms(h.body))


def _mentions(term: ir.Part, *binders: ir.Binder) -> bool:
    return any(v in ir.free_variables(term) for binder in binders for v in ir.bound_variables(binder))


def _side(at: int, pairs: ir.Expr) -> ir.Expr:
    t = element_type(pairs)
    assert isinstance(t, Pair)
    sides = ir.Var("$first", t.first), ir.Var("$second", t.second)
    return ir.Map(ir.Lambda(ir.PairBinder(*sides), sides[at]), pairs)


def _loop(
    kind: type[AtOnce],
    fold: ir.ReduceByIndex,
    initial: ir.Expr,
    elements: Callable[[ir.Expr, ir.Expr], tuple[ir.Expr, ir.Expr]],
    place: Callable[[ir.Expr], ir.Expr],
    is_inside: Callable[[ir.Lambda], bool],
) -> AtOnce:
    """A reduction by index as a loop with a work-item for each element.

    Parameters
    ----------
    elements
        Of indices and an array: what is made of an element's place and value, by their `_names`, and the array of that.
    place
        Of an index.
    is_inside
        Whether a function that a map makes places or elements by is in the functions of the loop.
    """
    sides = [fold.indices, fold.array]
    (i, x), (value, array), acc = _names(*sides), elements(*sides), ir.Var("$acc", element_type(initial))
    each = _binder(value)
    step = ir.Lambda(ir.PairBinder(acc, each), combined(fold.operator, acc, x))
    made = kind(ir.Lambda(each, place(i)), step, initial, array)
    for side in (0, 1):
        h, inner = _mapped(sides[side])
        if h is None or not is_inside(h):
            continue
        sides[side] = inner
        value, array = elements(*sides)
        name, each = _names(*sides)[side], _binder(value)
        value = substitute(value, {name: ir.Apply(h, name)})
        step = ir.Lambda(ir.PairBinder(acc, each), ir.Apply(made.operator, ir.MakePair(acc, value)))
        made = replace(made, place=ir.Lambda(each, ir.Apply(made.place, value)), operator=step, array=array)
    return made


def _names(places: ir.Expr, array: ir.Expr) -> tuple[ir.Var, ir.Var]:
    return ir.Var("$place", element_type(places)), ir.Var("$x", element_type(array))


def _pairs(places: ir.Expr, array: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    return ir.MakePair(*_names(places, array)), ir.Zip(places, array)


def _binder(value: ir.Expr) -> ir.Binder:
    """What binds the variables that a value is made of."""
    if isinstance(value, ir.MakePair):
        return ir.PairBinder(_binder(value.first), _binder(value.second))
    assert isinstance(value, ir.Var)
    return value


def _mapped(array: ir.Expr) -> tuple[ir.Lambda | None, ir.Expr]:
    """The function of the map that makes an array, if one does, and what that is applied to."""
    if isinstance(array, ir.Map) and isinstance(array.function, ir.Lambda):
        return array.function, array.array
    return None, array
