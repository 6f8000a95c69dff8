"""Ranges, and places of results, that all elements of a map have alike: lanes of vectors go through them together."""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.language import ir
from lift_egraph.language.binders import bound_to


def has_shared_ranges(term: ir.Part) -> bool:
    """Whether no map in a term has ranges, or places of results, that differ from element to element."""
    maps = (part for part in ir.subterms(term) if isinstance(part, ir.Map | ir.MapLevel))
    return not any(has_differing_ranges(part.function) for part in maps)


def has_differing_ranges(function: ir.Function) -> bool:
    """Whether there are any `differing_ranges`."""
    return next(differing_ranges(function), None) is not None


def differing_ranges(function: ir.Function) -> Iterator[ir.Part]:
    """Where the ends of a range, or the places of results, depend on what a function is applied to.

    Indices do not, nor elements of arrays that do not.
    """
    lambda_ = ir.function_body(function)
    yield from _differing(lambda_.body, frozenset(ir.bound_variables(lambda_.binder)))


def _differing(part: ir.Part, of_lanes: frozenset[ir.Var]) -> Iterator[ir.Part]:
    deciding: tuple[ir.Part, ...] = ()
    if isinstance(part, ir.ReduceRange | ir.ReduceRangeSeq):
        deciding = part.low, part.high
    elif isinstance(part, ir.INDEX_LOOPS):
        deciding = part.place, part.array
    if any(not ir.free_variables(d).isdisjoint(of_lanes) for d in deciding):
        yield part
    for inner in ir.parts(part):
        if isinstance(inner, ir.Lambda):
            bound = ir.bound_variables(inner.binder)
            alike = {v for v, source in _bound_in(part, inner) if ir.free_variables(source).isdisjoint(of_lanes)}
            yield from _differing(inner.body, of_lanes.difference(bound).union(v for v in bound if v not in alike))
        else:
            yield from _differing(inner, of_lanes)


def _bound_in(part: ir.Part, function: ir.Lambda) -> Iterator[tuple[ir.Var, ir.Part]]:
    """Variables of a pattern's function, with what they are, or are elements of."""
    pattern = function.binder
    match part:
        case ir.Apply(argument=source) | ir.Map(array=source) | ir.MapLevel(array=source):
            yield from bound_to(pattern, source)
        case ir.Generate() if isinstance(pattern, ir.Var):
            yield pattern, ir.SizeLiteral(part.size)
        case ir.ReduceSeq() | ir.ReduceRangeSeq() | ir.ScanSeq() | ir.ScanExclusiveSeq():
            if isinstance(pattern, ir.PairBinder):
                yield from bound_to(pattern.second, part.array)
        case _:
            return
