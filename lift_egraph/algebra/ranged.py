"""Between which numbers the elements of an array lie: by the ranges of inputs, their types, and what makes them.

Source: Cousot and Cousot, "Abstract interpretation", POPL 1977: one interval for all elements of an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lift_egraph.algebra.bounded import Interval, bounds, hull, is_float, limits
from lift_egraph.algebra.equations import leaves_of_value
from lift_egraph.algebra.expressions import numbered, packed, scalars, shaped_binder
from lift_egraph.algebra.floats import EVERYTHING
from lift_egraph.algebra.residues import kept
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import I32, Array, DataType, Pair, Scalar

Leaves = tuple["Interval | None", ...]  # of each scalar in a value, or in the elements of an array; None where unknown
Known = Mapping[ir.Var, Leaves]
KNOWN_ALONE = (ir.Input, ir.Var, ir.At, ir.Component)  # of which bounds are known, but for those of operations


def moved_between(array: ir.Expr, ranges: Mapping[str, Interval], known: Known) -> ir.Lambda | None:
    """The function that moves whole numbers in the elements of an array between their bounds, which changes none of
    them; None if no more is known of them than their types.

    Parameters
    ----------
    ranges
        Those of inputs by name.
    known
        The bounds of variables around.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.types import F32, I32, array
    >>> xs, ys = ir.Input("xs", array(I32, 8)), ir.Input("ys", array(F32, 8))
    >>> print_term(moved_between(ir.Zip(xs, ys), {"xs": (0, 9)}, {}))
    'fun (e0, e1) => (min(max(e0, 0), 9), e1)'
    """
    t = type_of(array)
    element = t.element if isinstance(t, Array) else t
    types = scalars(element)
    if types is None:
        return None
    found = leaf_bounds(array, ranges, known)
    own = numbered("e", types)
    pairs = zip(own, found, strict=True)
    moved = [v if interval is None or is_float(v) else kept(v, interval) for v, interval in pairs]
    if moved == list(own):
        return None
    return ir.Lambda(shaped_binder(own, element), packed(moved, element))


def leaf_bounds(term: ir.Expr, ranges: Mapping[str, Interval], known: Known) -> Leaves:
    """The bounds of each scalar in a value, all elements of an array as one."""
    match term:
        case ir.Var() if term in known:
            return known[term]
        case ir.Input(name=name) if name in ranges:
            return (ranges[name],) * len(_leaf_types(term.type))
        case ir.Zip(first=first, second=second) | ir.MakePair(first=first, second=second):
            return leaf_bounds(first, ranges, known) + leaf_bounds(second, ranges, known)
        case ir.Map(function=ir.Lambda() as f, array=array):
            return leaf_bounds(f.body, ranges, {**known, **bound(f.binder, leaf_bounds(array, ranges, known))})
        case ir.Apply(function=ir.Lambda() as f, argument=argument):
            return leaf_bounds(f.body, ranges, {**known, **bound(f.binder, leaf_bounds(argument, ranges, known))})
        case ir.Split() | ir.Join() | ir.Slice() | ir.Transpose() | ir.Gather() | ir.Scatter() | ir.Slide() | ir.At():
            return leaf_bounds(term.array, ranges, known)
        case ir.Lookup(array=array):
            return leaf_bounds(array, ranges, known)
        case ir.Component(index=index, pair=pair):
            whole, t = leaf_bounds(pair, ranges, known), type_of(pair)
            assert isinstance(t, Pair)
            first = len(_leaf_types(t.first))
            return whole[first:] if index else whole[:first]
        case ir.Concat(first=first, second=second):
            pairs = zip(leaf_bounds(first, ranges, known), leaf_bounds(second, ranges, known), strict=True)
            return tuple(None if a is None or b is None else hull(a, b) for a, b in pairs)
        case ir.Fill(value=value):
            return leaf_bounds(value, ranges, known)
        case ir.Generate(size=size, function=ir.Lambda(binder=ir.Var() as i, body=body)):
            last = limits(I32)[1] if size.constant is None else size.constant
            return leaf_bounds(body, ranges, {**known, i: ((0, last - 1),)})
    types = _leaf_types(type_of(term))
    made = leaves_of_value(term) or (None,) * len(types)
    numbers = numbers_in((p for e in made if isinstance(e, ir.Call) for p in _operands(e)), ranges, known)
    return tuple(_bounds(e, t, numbers) for e, t in zip(made, types, strict=True))


def _operands(term: ir.Expr) -> Iterator[ir.Expr]:
    """What a scalar expression is made of by operations."""
    if isinstance(term, ir.Call):
        for argument in term.arguments:
            yield from _operands(argument)
    elif isinstance(term, KNOWN_ALONE):
        yield term


def _bounds(term: ir.Expr | None, t: DataType, numbers: Mapping[ir.Expr, Interval]) -> Interval | None:
    if not isinstance(t, Scalar) or not (t.is_integer or t.is_float):
        return None
    found = limits(t) if term is None else bounds(term, numbers)
    return None if found == EVERYTHING else found


def numbers_in(parts: Iterable[ir.Expr], ranges: Mapping[str, Interval], known: Known) -> dict[ir.Expr, Interval]:
    """The bounds of those parts of terms, no operations, that are a number each."""
    found = {p: leaf_bounds(p, ranges, known) for p in parts if isinstance(type_of(p), Scalar)}
    return {p: own[0] for p, own in found.items() if own[0] is not None}


def bound(binder: ir.Binder, found: Leaves) -> Known:
    """The bounds of what a binder binds."""
    made, start = dict[ir.Var, Leaves](), 0
    for v in ir.bound_variables(binder):
        made[v] = found[start : (start := start + len(_leaf_types(v.type)))]
    return made


def _leaf_types(t: DataType) -> tuple[DataType, ...]:
    """The scalars and vectors in a value, those of an array's elements for the array."""
    if isinstance(t, Array):
        return _leaf_types(t.element)
    return _leaf_types(t.first) + _leaf_types(t.second) if isinstance(t, Pair) else (t,)
