"""Changes of the folds of a term, one fold more at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lift_egraph.extract.tiling import Tiling
from lift_egraph.language import ir


@dataclass(frozen=True)
class FoldStep:
    """A term in which one fold more is changed, the phase that leads there, and its chunks."""

    phase: str
    tiling: Tiling
    term: ir.Expr


def one_more_each(term: ir.Expr, step: Callable[[ir.Expr], FoldStep | None]) -> Iterator[FoldStep]:
    """The steps that lead on from a term, until there is none."""
    now = term
    while (made := step(now)) is not None:
        yield made
        now = made.term
