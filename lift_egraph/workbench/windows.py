"""Plans for stencils on GPUs, whose work-items compute several neighbours each.

Neighbouring work-items still read neighbouring elements: a work-item goes along the last dimension but one, so that
what the windows of its rows have in common is read once, and stays in registers.

Source: 000 §5.3.1 on thread coarsening; Rawat et al., "Register optimizations for stencils on GPUs", PPoPP 2018.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.guided import sketch as sk
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, array
from lift_egraph.workbench.plan import Plan, Step

WINDOW_ROWS = (8, 4)  # of a work-item


def rows_of_windows(term: ir.Expr) -> Iterator[Plan]:
    """Stencils in at least two dimensions whose work-items compute some rows of a column, most rows first."""
    lengths, leaf = _lengths(term)
    windows = sum(isinstance(part, ir.Slide) for part in ir.subterms(term))
    if windows < 2 or len(lengths) < 2:
        return
    rows, columns = lengths[-2:]
    for own in [n for n in WINDOW_ROWS if rows % n == 0 and n < rows]:
        column = sk.map_(sk.of_type(array(leaf, own), sk.map_(length=own)), length=columns)
        sketch = sk.contains(sk.map_(sk.contains(column), sk.split(own), length=rows // own))
        yield Plan((Step("rows", sketch, {rows: (own,)}),), ())


def _lengths(term: ir.Expr) -> tuple[list[int], DataType]:
    """The lengths of a result in each dimension, as far as they are numbers, and the type of what is inside."""
    lengths: list[int] = []
    t = type_of(term)
    while isinstance(t, Array) and t.size.constant:
        lengths.append(t.size.constant)
        t = t.element
    return lengths, t
