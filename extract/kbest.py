"""The best distinct terms of a class of an e-graph, and which terms compute the same."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

from lift_egraph.egraph.frozen import ClassId, FrozenEGraph
from lift_egraph.egraph.kbest import CostModel, KBest
from lift_egraph.egraph.read_back import closed_term, open_terms
from lift_egraph.errors import LiftError
from lift_egraph.extract.baseline import COMPUTING
from lift_egraph.extract.cost import element_count
from lift_egraph.garbage import no_search_for_garbage
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array


@dataclass(frozen=True)
class Extracted:
    """A term with the cost it was extracted for."""

    cost: float
    term: ir.Expr


def best_terms(
    graph: FrozenEGraph,
    root: ClassId,
    model: CostModel,
    count: int,
    *,
    tries: int | None = None,
    per_shape: int | None = None,
    key: Callable[[ir.Expr], Hashable] = canonical,
    plainness: float = 0.0,
    patience: int = 200,
) -> list[Extracted]:
    """The `count` best distinct legal terms of a class, cheapest first.

    Open terms (a class may be closed while a member mentions a variable) are left out.

    Parameters
    ----------
    tries
        How many members of each shape to look at (default: ten times `count`).
    per_shape
        How many terms of one shape to keep at most (default: `count`).
    key
        Terms with the same key count once. The default tells terms apart that differ in more than the
        names of binders; `skeleton` tells only computations apart.
    plainness
        What a pattern that only rearranges data counts, as a share of the least cost. With a little of it,
        different computations come before many spellings of one.
    patience
        See `KBest`.

    Raises
    ------
    ModelProblem
        If the model fails, or rates a node with NaN.
    """
    found: dict[Hashable, Extracted] = {}
    read = open_terms(graph)
    with no_search_for_garbage():
        search = KBest(graph, model, patience=patience)
        if plainness:
            least = min((v.rating.cost for v in search.vertices(root) if v.rating is not None), default=0.0)
            search = KBest(graph, model, max(1.0, plainness * least), patience)
        for vertex in search.vertices(root):
            kept = 0
            for cost, choice in itertools.islice(search.choices(vertex), tries or 10 * count):
                try:
                    term = read(choice)
                    name = key(term)
                    if name not in found or found[name].cost > cost:
                        made = Extracted(cost, closed_term(term))
                        kept += name not in found
                        found[name] = made
                except LiftError:  # an open member, or one without a type: another member of the class will do
                    continue
                if kept >= (per_shape or count):
                    break
    return sorted(found.values(), key=lambda e: e.cost)[:count]


def skeleton(term: ir.Part) -> Hashable:
    """The loops of a term and the operations in each, without its layout patterns: what it computes, in which order.

    Two terms with one skeleton differ at most in how indices are written, and in how the expression of a step is: each
    ``let`` of a long one could stand in many places.
    """
    return _unordered(_summary(term).parts)


class _Summary(NamedTuple):
    parts: tuple[Hashable, ...]  # the operations and loops of a step
    computes: bool  # or does it only rearrange data?
    inputs: tuple[str, ...]


def _summary(term: ir.Part) -> _Summary:
    known = term.__dict__.get("_summary")
    if known is None:
        known = term.__dict__["_summary"] = _summarise(term)
    return known


def _summarise(term: ir.Part) -> _Summary:
    below = [_summary(p) for p in ir.parts(term)]
    parts = tuple([part for s in below for part in s.parts])
    inside = [_unordered(s.parts) for s in below if s.parts]
    computing = isinstance(term, COMPUTING) or any(s.computes for s in below)
    inputs = (term.name,) if isinstance(term, ir.Input) else tuple(name for s in below for name in s.inputs)
    if isinstance(term, ir.Map | ir.MapLevel) and below[0].computes:
        level = term.level if isinstance(term, ir.MapLevel) else None
        over = below[1].inputs
        parts = (("map", level, _length(term.array), over, isinstance(term.function, ir.Vectorize), *inside),)
    elif isinstance(term, ir.FOLDS):
        parts = ((type(term).__name__, _length(term.array), element_count(type_of(term.initial)), *inside),)
    elif isinstance(term, ir.Call):
        parts = (term.op, *parts)
    elif isinstance(term, ir.ToMemory | ir.Iterate | ir.Generate | ir.Lookup):
        parts = ((type(term).__name__, *inside),)
    return _Summary(parts, computing, inputs)


def _unordered(parts: tuple[Hashable, ...]) -> Hashable:
    return frozenset(Counter(parts).items())


def _length(array: ir.Expr) -> int | None:
    t = type_of(array)
    return t.size.constant if isinstance(t, Array) else None
