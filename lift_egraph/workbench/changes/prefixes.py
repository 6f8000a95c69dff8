"""What is specified by all prefixes or all tails of an array as a scan or a fold: each element is read once.

The terms are built here as the rules of `lift_egraph.rules.prefixes` build them; that they do is what the phase
``algebra`` shows.

Source: Bird, "An introduction to the theory of lists", 1987 (the scan lemma, and Horner's rule).
"""

from __future__ import annotations

from typing import TypeVar

from lift_egraph.algebra.distributing import Ranges, distributions, folded_ranges
from lift_egraph.algebra.laws import associative, commutative
from lift_egraph.egraph.encoding import combined
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.index_arrays import REVERSE
from lift_egraph.language.sizes import number_of
from lift_egraph.language.types import I32
from lift_egraph.workbench.planning.plan import length_of

ZERO, ONE = ir.Literal(0, I32), ir.Literal(1, I32)
T = TypeVar("T", bound=ir.Part)


def with_scanned_prefixes(term: ir.Expr) -> ir.Expr | None:
    """The term with the reductions of all prefixes or tails of an array as scans, and folds of those of tails as one
    fold, where one operator distributes over the other; None if there are none of these.
    """
    made = _scanned(term)
    return None if made == term else made


def _scanned(term: T) -> T:
    if isinstance(term, ir.MapLevel):  # somebody decided how it runs
        return term
    if isinstance(term, ir.Reduce) and (fold := _by_horners_rule(term)) is not None:
        return ir.map_parts(fold, _scanned)  # pyright: ignore[reportReturnType]
    made = ir.map_parts(term, _scanned)
    ranges = folded_ranges(made)
    found = None if ranges is None else _scan_of(ranges)
    return made if found is None else found  # pyright: ignore[reportReturnType]


def _scan_of(ranges: Ranges) -> ir.Expr | None:
    i, fold = ranges.place, ranges.fold
    n = length_of(fold.array)
    if ranges.size.constant != n or not _stays(ranges):
        return None
    f, z, xs = fold.operator, fold.initial, fold.array
    after = ir.Call("add", (i, ONE)), ir.Call("add", (ONE, i))
    if fold.low == ZERO:
        if fold.high == i:
            return ir.ScanExclusive(f, z, xs)
        return ir.Scan(f, z, xs) if fold.high in after else None
    if number_of(fold.high) != n or not (associative(f) and commutative(f)):
        return None
    backwards = ir.Gather(REVERSE, xs)
    if fold.low == i:
        return ir.Gather(REVERSE, ir.Scan(f, z, backwards))
    return ir.Gather(REVERSE, ir.ScanExclusive(f, z, backwards)) if fold.low in after else None


def _by_horners_rule(term: ir.Reduce) -> ir.Expr | None:
    ranges = folded_ranges(term.array)
    if ranges is None or ranges.fold.low != ranges.place or not _stays(ranges):
        return None
    fold, n = ranges.fold, length_of(ranges.fold.array)
    found = next(distributions(fold.operator, term), None)
    if found is None or number_of(fold.high) != n or ranges.size.constant not in (n, n + 1):
        return None
    t = type_of(term.initial)
    acc, x = ir.Var("$acc", t), ir.Var("$x", t)
    step = combined(fold.operator, combined(term.operator, acc, fold.initial), x)
    made: ir.Expr = ir.ReduceSeq(ir.Lambda(ir.PairBinder(acc, x), step), found.zero, fold.array)
    if ranges.size.constant == n + 1:
        made = combined(term.operator, made, fold.initial)
    return made if found.zero == term.initial else combined(term.operator, term.initial, made)


def _stays(ranges: Ranges) -> bool:
    """Whether what is folded, and how, is the same for all places."""
    fold = ranges.fold
    return all(ranges.place not in ir.free_variables(part) for part in (fold.operator, fold.initial, fold.array))
