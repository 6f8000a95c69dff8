"""An e-graph that grows iteration by iteration, each step timed apart: rules, and reading it out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lift_egraph import rules as book
from lift_egraph.api import Phase, specialise
from lift_egraph.egraph.encoding import to_egg
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.saturate import Prepared
from lift_egraph.language import ir
from lift_egraph.programs import load


class Grown(NamedTuple):
    """The e-graph after an iteration, the seconds of all iterations so far, and those of reading it out."""

    iteration: int
    graph: FrozenEGraph
    seconds: float
    freeze_seconds: float


def mm(size: int) -> ir.Expr:
    """The multiplication of two square matrices."""
    return specialise(load("mm"), {"M": size, "K": size, "N": size}).body


def algorithmic(tiles: dict[int, tuple[int, ...]]) -> Phase:
    """All algorithmic rules, with simplification."""
    return Phase("algorithmic", book.algorithmic, book.simplification, tiles)


def whole_book(tiles: dict[int, tuple[int, ...]]) -> Phase:
    """All rules of the book in one phase."""
    return Phase(
        "whole book", tuple(r for r in book.all_rules if r.phase != "simplification"), book.simplification, tiles
    )


def grow(
    term: ir.Expr, phase: Phase, wanted: range, *, before_reading: Callable[[], object] = lambda: None
) -> Iterator[Grown]:
    """Run a phase without limits, and read the e-graph out after the wanted iterations."""
    prepared = Prepared(phase)
    with prepared.scratch.holding(to_egg(term), phase.facts) as held:
        seconds = _timed(lambda: held.run(prepared.cleaning))
        for iteration in range(wanted.stop):
            if iteration:
                seconds += _timed(lambda: held.run(prepared.exploring)) + _timed(lambda: held.run(prepared.cleaning))
            if iteration in wanted:
                before_reading()
                began = time.perf_counter()
                frozen = held.freeze()
                yield Grown(iteration, frozen, seconds, time.perf_counter() - began)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
