"""Lets of an input in another order, as in ``let XT = transpose(X) in b``: plans look for what stands where it is read.

The term is built here as the rules of `lift_egraph.rules.stages` move lets inwards; that they do is what the phase
``inlining`` shows.
"""

from __future__ import annotations

from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.layout import LAYOUT, REORDERING

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


def is_view(xs: ir.Part) -> bool:
    """Whether an array is that of a name in another order."""
    return isinstance(xs, ir.Var | ir.Input) or (isinstance(xs, LAYOUT) and all(map(is_view, ir.parts(xs))))
