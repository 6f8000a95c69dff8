"""Which reductions by index need no order of their elements: those whose places are distinct.

The terms are built here as the rules of `lift_egraph.rules.by_index` build them; that they do is what the phase
``distinct_places`` shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from lift_egraph.algebra.places import distinct_in
from lift_egraph.egraph.encoding import known_operator
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType

T = TypeVar("T", bound=ir.Part)


def with_distinct_places(term: ir.Expr) -> ir.Expr | None:
    """The term with those of its reductions by index that are outside of all loops, and have distinct places, with
    a work-item for each element; None if there are none.
    """
    known = distinct_in(term)
    made = _placed(term, known) if known else term
    return None if made == term else made


def _placed(term: ir.Expr, known: Mapping[ir.Expr, str]) -> ir.Expr:
    made = ir.map_parts(term, lambda p: _placed(p, known) if isinstance(p, ir.Expr) else p)
    match made:
        case ir.Apply(function=ir.Lambda(binder=binder, body=body), argument=argument):
            return ir.Apply(ir.Lambda(binder, _placed(body, known)), argument)
        case ir.ReduceByIndex(operator=operator, initial=initial, indices=indices, array=array) if (
            isinstance(term, ir.ReduceByIndex) and term.indices in known
        ):
            f, places = _mapped(indices)
            g, elements = _mapped(array)
            place, x, acc = (
                ir.Var(name, _element(xs)) for name, xs in (("place", places), ("x", elements), ("acc", initial))
            )
            each, value = ir.PairBinder(place, x), ir.Apply(g, x) if g else x
            step = ir.Lambda(ir.PairBinder(acc, each), _combined(operator, acc, value))
            at_place = ir.Lambda(each, ir.Apply(f, place) if f else place)
            return ir.ReduceByIndexGlb(at_place, step, initial, ir.Zip(places, elements))
    return made


def _mapped(array: ir.Expr) -> tuple[ir.Lambda | None, ir.Expr]:
    """The function of the map that makes an array, if one does, and what that is applied to."""
    if isinstance(array, ir.Map) and isinstance(array.function, ir.Lambda):
        return array.function, array.array
    return None, array


def _combined(operator: ir.Function, first: ir.Expr, second: ir.Expr) -> ir.Expr:
    known = known_operator(operator)
    return ir.Call(known[0], (first, second)) if known and not known[1] else ir.Apply(operator, ir.MakePair(first, second))


def _element(array: ir.Expr) -> DataType:
    t = type_of(array)
    assert isinstance(t, Array)
    return t.element
