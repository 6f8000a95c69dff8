"""Who owns which element of a private array: the mapLcl that produces it shares it out among the work-items.

A private array that a mapLcl fills is not whole anywhere: each work-item keeps the elements that it made.
Such an array can be read only by a mapLcl of the same dimension, each work-item its own elements. Arrays
that are split, joined or transposed around the mapLcl keep the form in which the mapLcl made them, and are
seen through the view of the pattern.

Source: 000 §4.3.2 (address spaces), §4.3.5 (private memory arrays).
"""

from __future__ import annotations

from collections.abc import Mapping

from lift_egraph.codegen.lowering.views import Choices
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import leaves

Owners = Mapping[Choices, tuple[int | None, ...]]
"""For each leaf of a value: the dimension of the mapLcl, if any, that owns the elements along each array dimension."""

NOBODY: Owners = {}


def owners_of(term: ir.Expr) -> Owners:
    """Who owns the elements of a term's value; leaves and dimensions that are missing belong to nobody.

    >>> from lift_egraph.language.build import Input, F32, array, id_, map_lcl, map_seq, transpose
    >>> rows = map_lcl(1, map_seq(id_), Input("xss", array(F32, 8, 4)))
    >>> owners_of(rows), owners_of(transpose(rows))
    ({(): (1,)}, {(): (None, 1)})
    """
    match term:
        case ir.MapLevel(level=level, function=function):
            own = level.dimension if level.kind == "lcl" else None
            inner = owners_of(ir.function_body(function).body)
            if own is None and not inner:
                return NOBODY
            return {choices: (own, *inner.get(choices, ())) for choices, _, _ in leaves(type_of(term))}
        case ir.ToMemory(value=value):
            return owners_of(value)
        case ir.Apply(function=function) | ir.ReduceSeq(operator=function) | ir.ReduceRangeSeq(operator=function):
            return owners_of(ir.function_body(function).body)
        case ir.Transpose(array=array):
            return {c: _swapped(owners) for c, owners in owners_of(array).items()}
        case ir.Zip(first=first, second=second) | ir.MakePair(first=first, second=second):
            parts = ((0, owners_of(first)), (1, owners_of(second)))
            return {(k, *c): owners for k, part in parts for c, owners in part.items()}
        case ir.Component(index=index, pair=pair):
            return {c[1:]: owners for c, owners in owners_of(pair).items() if c[0] == index}
    return NOBODY


def _swapped(owners: tuple[int | None, ...]) -> tuple[int | None, ...]:
    outer, inner, *rest = (*owners, None, None)[: max(len(owners), 2)]
    return (inner, outer, *rest)


def of_component(owners: Owners, index: int) -> Owners:
    """The owners of one component of a pair."""
    return {c[1:]: o for c, o in owners.items() if c and c[0] == index}


def of_elements(owners: Owners) -> Owners:
    """The owners of what is in an array's elements."""
    return {c: o[1:] for c, o in owners.items() if len(o) > 1}


def outermost(owners: Owners, choices: Choices = ()) -> int | None:
    """The owner along the outermost dimension of a leaf."""
    found = owners.get(choices, ())
    return found[0] if found else None


def is_shared_out(term: ir.Expr) -> bool:
    """Whether the value's parts are made by different work-items, at any depth of patterns that move data."""
    if any(o is not None for owners in owners_of(term).values() for o in owners):
        return True
    match term:
        case ir.Join() | ir.Split() | ir.Transpose() | ir.Scatter() | ir.AsScalar() | ir.AsVector() | ir.Map():
            return is_shared_out(term.array)
        case ir.Slice():
            return is_shared_out(term.array)
        case ir.Zip() | ir.MakePair() | ir.Concat():
            return is_shared_out(term.first) or is_shared_out(term.second)
        case ir.ToMemory():
            return is_shared_out(term.value)
        case (
            ir.Apply(function=function)
            | ir.ReduceSeq(operator=function)
            | ir.ReduceRangeSeq(operator=function)
            | ir.MapLevel(function=function)
        ):
            return is_shared_out(ir.function_body(function).body)
    return False
