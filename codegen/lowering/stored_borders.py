"""Borders that large windows of a matrix read again and again: a CPU stores them, beside what they surround.

An element with its border is computed once then. Else each window works out, for each element that it reads, where
that lies inside. Where a loop goes through the windows of a row by vectors, the first and the last alone touch the
border, and nothing is stored of somewhat larger windows either: kernels take 0.4 to 0.9 of the time for 5 by 5, 0.7 to
1 for 7 by 7, but as long for 11 by 11, and up to 3 times as long for borders of constants, which are chosen one by one.
Tiles that overlap a little are no such windows, as large as they are: what is stored is hardly read again, and kernels
take 1.3 to 5 times as long with squares of 10 in steps of 8, or 20 in steps of 16, and as long with 12 in steps of 8.

    map f (slide 15 1 (map (slide 15 1) (pad … (map pad … xss))))
    → let padded = copy (pad … (map pad … xss)) in map f (slide 15 1 (map (slide 15 1) padded))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lift_egraph.language import ir
from lift_egraph.language.check import array_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.types import Array

LARGE = 25  # elements of a window from which its elements are stored with their borders …
LARGE_BY_VECTORS = 50  # … and where vectors that lie inside are read apart, unless the border is a constant
AGAIN = 2  # windows that have an element, on average, from which it is worth to be stored


def with_stored_borders(
    term: ir.Expr, stored: Callable[[ir.Expr], ir.Expr | None], *, apart: bool = False
) -> ir.Expr:
    """The term, reading what is `stored` of the padded matrices of its windows; None stands for what cannot be.

    Parameters
    ----------
    apart
        Whether the ends of loops, which touch borders, are apart from what lies between.
    """
    if not any(isinstance(part, ir.Pad) for part in ir.subterms(term)):
        return term
    inside = apart and _goes_by_vectors(term)

    def change(part: Any, reads: _Reads) -> Any:
        if not isinstance(part, ir.Expr) or not is_pure(part):
            return ir.map_parts(part, lambda inner: change(inner, _Reads()))
        by_constants = inside and reads.elements < LARGE_BY_VECTORS
        is_large = reads.elements >= LARGE and reads.windows >= AGAIN
        if is_large and _is_padded(part, by_constants) and (copy := stored(part)) is not None:
            return copy
        match part:
            case ir.Slide(size=size, array=array):
                return ir.Slide(size, part.step, change(array, reads.of(part)))
            case ir.Map(function=ir.Lambda(binder=ir.Var() as x, body=body) as function, array=array):
                if not isinstance(body, ir.Var) and (pads := next(_pads_of(x, body), None)) not in (None, body):
                    inner = ir.Var(f"{x.name}_padded", type_of(pads))
                    function = ir.Lambda(inner, _replaced(body, pads, inner))
                    array = ir.Map(ir.Lambda(x, pads), array)
                return ir.Map(function, change(array, reads.of(*_slides(function.body))))
        return ir.map_parts(part, lambda inner: change(inner, reads))

    return change(term, _Reads())


class _Reads(NamedTuple):
    """How many elements a window has, and how many windows have an element."""

    elements: int = 1
    windows: float = 1.0

    def of(self, *slides: ir.Slide) -> _Reads:
        """Those of the windows that some slides make of windows."""
        elements, windows = self
        for slide in slides:
            size, step = slide.size.constant or 1, slide.step.constant or 1
            elements, windows = elements * size, windows * size / step
        return _Reads(elements, windows)


def _goes_by_vectors(term: ir.Expr) -> bool:
    """Whether a loop goes through windows by vectors, each of which has an element of as many windows."""
    return any(
        isinstance(part, ir.MapLevel)
        and part.level.kind == "seq"
        and isinstance(part.function, ir.Vectorize)
        and isinstance(array_type(part.array, "windows").element, Array)
        for part in ir.subterms(term)
    )


def _is_padded(term: ir.Expr, by_constants: bool) -> bool:
    """Whether a term is a matrix with a border, of constants if only that counts, and nothing else."""
    t, has_border = type_of(term), False
    if not (isinstance(t, Array) and isinstance(t.element, Array)) or isinstance(t.element.element, Array):
        return False  # where a plane lies, its rows need not ask again
    while True:
        match term:
            case ir.Transpose(array=array):  # columns with their borders; what is stored lies as it is read
                term = array
                continue
            case ir.Pad(array=array) as pad:
                pass
            case ir.Map(function=ir.Lambda(binder=x, body=ir.Pad() as pad), array=array) if pad in _pads_of(x, pad):
                pass
            case _:
                return has_border
        term, has_border = array, has_border or not by_constants or pad.boundary.kind == "constant"


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


def _slides(body: ir.Expr) -> Iterator[ir.Slide]:
    """What makes windows of an element."""
    return (t for t in ir.subterms(body) if isinstance(t, ir.Slide))
