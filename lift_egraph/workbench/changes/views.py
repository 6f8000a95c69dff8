"""Lets of an array in another order, as in ``let XT = transpose(X) in b``: plans look for what stands where it is read.

The terms are built here as the rules of `lift_egraph.rules.stages` move lets inwards, and those of
`lift_egraph.rules.views` name what stands in memory; that they do is what the phase ``inlining`` shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import in_lets, out_of_lets, substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import LAYOUT, REORDERING, is_pure

T = TypeVar("T", bound=ir.Part)


def with_views(term: T) -> T:
    """The term with arrays that are joined, split or transposed in the place of their names."""
    term = ir.map_parts(term, with_views)
    match term:
        case ir.Apply(function=ir.Lambda(binder=ir.Var() as v, body=body), argument=view) if (
            isinstance(view, REORDERING) and is_view(view)
        ):
            return substitute(body, {v: view})  # pyright: ignore[reportReturnType]
    return term


def with_matrices_as_stored(term: ir.Expr) -> ir.Expr:
    """The term outside of all loops with names for matrices that are computed as they are stored, and transposed where
    they are read; what these need is named before.
    """
    match term:
        case ir.Apply(function=ir.Lambda(binder=ir.Var() as v, body=body), argument=argument):
            lets, matrix = out_of_lets(with_matrices_as_stored(argument))
            if isinstance(matrix, ir.Transpose) and not is_pure(matrix):
                stored = ir.Var(v.name, type_of(matrix.array))
                body, v, matrix = substitute(body, {v: ir.Transpose(stored)}), stored, matrix.array
                return in_lets(lets, ir.Apply(ir.Lambda(v, with_matrices_as_stored(body)), matrix))
            return replace(term, function=ir.Lambda(v, with_matrices_as_stored(body)))
    return term


def is_view(xs: ir.Part) -> bool:
    """Whether an array is that of a name in another order."""
    return isinstance(xs, ir.Var | ir.Input) or (isinstance(xs, LAYOUT) and all(map(is_view, ir.parts(xs))))
