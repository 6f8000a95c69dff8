"""Borders that large windows of a matrix read again and again: a CPU stores them, beside what they surround.

An element with its border is computed once then. Else each window works out, for each element that it reads, where
that lies inside.

    map f (slide 15 1 (map (slide 15 1) (pad … (map pad … xss))))
    → let padded = copy (pad … (map pad … xss)) in map f (slide 15 1 (map (slide 15 1) padded))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import mul
from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.types import Array

LARGE = 25  # elements of a window from which its elements are stored with their borders


def with_stored_borders(term: ir.Expr, stored: Callable[[ir.Expr], ir.Expr | None]) -> ir.Expr:
    """The term, reading what is `stored` of the padded matrices of its windows; None stands for what cannot be."""

    def change(part: Any, reads: int) -> Any:
        if not isinstance(part, ir.Expr) or not is_pure(part):
            return ir.map_parts(part, lambda inner: change(inner, 1))
        if reads >= LARGE and _is_padded(part) and (copy := stored(part)) is not None:
            return copy
        match part:
            case ir.Slide(size=size, array=array):
                return ir.Slide(size, part.step, change(array, reads * (size.constant or 1)))
            case ir.Map(function=ir.Lambda(binder=ir.Var() as x, body=body) as function, array=array):
                if not isinstance(body, ir.Var) and (pads := next(_pads_of(x, body), None)) not in (None, body):
                    inner = ir.Var(f"{x.name}_padded", type_of(pads))
                    function = ir.Lambda(inner, _replaced(body, pads, inner))
                    array = ir.Map(ir.Lambda(x, pads), array)
                return ir.Map(function, change(array, reads * _elements(function.body)))
        return ir.map_parts(part, lambda inner: change(inner, reads))

    return change(term, 1)


def _is_padded(term: ir.Expr) -> bool:
    """Whether a term is a matrix with a border, and nothing else."""
    t, has_border = type_of(term), False
    if not (isinstance(t, Array) and isinstance(t.element, Array)) or isinstance(t.element.element, Array):
        return False  # where a plane lies, its rows need not ask again
    while True:
        match term:
            case ir.Pad(array=array):
                pass
            case ir.Map(function=ir.Lambda(binder=x, body=ir.Pad() as body), array=array) if body in _pads_of(x, body):
                pass
            case _:
                return has_border
        term, has_border = array, True


def _pads_of(x: ir.Binder, body: ir.Expr) -> Iterator[ir.Expr]:
    """The largest part of a body that is a row with its border."""
    for part in ir.subterms(body):
        inner = part
        while isinstance(inner, ir.Pad):
            inner = inner.array
        if isinstance(part, ir.Pad) and inner == x:
            yield part


def _replaced(term: Any, old: ir.Expr, new: ir.Expr) -> Any:
    return new if term == old else ir.map_parts(term, lambda part: _replaced(part, old, new))


def _elements(body: ir.Expr) -> int:
    """How many elements there are in the windows that a body makes of each element."""
    return reduce(mul, (t.size.constant or 1 for t in ir.subterms(body) if isinstance(t, ir.Slide)), 1)
