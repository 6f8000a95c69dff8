"""Which terms only move data, so that they need no memory of their own: what reads them sees them as views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Union

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, Pair, leaves

LAYOUT = (
    ir.Zip, ir.MakePair, ir.Component, ir.Split, ir.Join, ir.Slice, ir.Concat, ir.Transpose, ir.Gather, ir.Slide,
    ir.Pad, ir.At, ir.Fill, ir.Lookup, ir.AsVector, ir.AsScalar,
)  # fmt: skip
REORDERING = (ir.Join, ir.Split, ir.Transpose, ir.Scatter, ir.AsScalar, ir.AsVector)  # each element once
_NAMES = (ir.Var, ir.Input, ir.Literal, ir.SizeLiteral)


def is_pure(term: ir.Part) -> bool:
    """Whether a term can be read through a view: it moves data and computes scalars, but no array."""
    known = term.__dict__.get("_pure")
    if known is None:
        if isinstance(term, ir.Map):
            known = is_layout(term.function) and is_pure(term.array)
        else:
            allowed = isinstance(term, (*LAYOUT, *_NAMES, ir.Call, ir.Apply, ir.Generate, ir.Lambda, ir.Vectorize))
            known = allowed and all(is_pure(p) for p in ir.parts(term))
        term.__dict__["_pure"] = known
    return known


def is_layout(term: ir.Part) -> bool:
    """Whether a term only moves data; what is generated, and the positions of a lookup, may be computed."""
    if isinstance(term, ir.Generate):
        return is_pure(term)
    if isinstance(term, ir.Lookup):
        return is_pure(term.indices) and is_layout(term.array)
    allowed = isinstance(term, (*LAYOUT, *_NAMES, ir.Map, ir.Apply, ir.Lambda, ir.Vectorize))
    return allowed and all(is_layout(p) for p in ir.parts(term))


Tree = Union[int, "tuple[Tree, Tree]"]  # a tuple whose leaves are numbered from left to right


def takes_apart(function: ir.Lambda) -> bool:
    """Whether a function makes of an array of tuples that tuple of arrays: both lie in memory alike.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> text = "program p(ps: [(f32, i32)]N) = let r = ps in (map(fun p => get({}, p), r), map(fun p => get({}, p), r))"
    >>> [takes_apart(parse_program(text.format(*order)).body.function) for order in ((0, 1), (1, 0))]
    [True, False]
    """
    binder = function.binder
    if not isinstance(binder, ir.Var) or not isinstance(binder.type, Array):
        return False
    whole = _tree(binder.type.element, count())
    given = {(sizes, leaf) for _, sizes, leaf in leaves(binder.type)}
    same = {(sizes, leaf) for _, sizes, leaf in leaves(type_of(function.body))} == given
    return same and _taken(function.body, {binder: whole}) == whole


def _tree(t: DataType, numbers: Iterator[int]) -> Tree:
    if isinstance(t, Pair):
        return _tree(t.first, numbers), _tree(t.second, numbers)
    return next(numbers)


def _taken(term: ir.Expr, known: Mapping[ir.Var, Tree]) -> Tree | None:
    """Which leaves of a tuple a term has where, for each element of an array; None if it does more than take them."""
    match term:
        case ir.Var():
            return known.get(term)
        case ir.MakePair(first=a, second=b):
            first, second = _taken(a, known), _taken(b, known)
            return None if first is None or second is None else (first, second)
        case ir.Component(index=index, pair=pair):
            found = _taken(pair, known)
            return found[index] if isinstance(found, tuple) else None
        case (
            ir.Map(function=ir.Lambda(binder=p, body=body), array=c)
            | ir.Apply(function=ir.Lambda(binder=p, body=body), argument=c)
        ):
            found = _taken(c, known)
            inside = None if found is None else _bound(p, found)
            return None if inside is None else _taken(body, {**known, **inside})
    return None


def _bound(binder: ir.Binder, tree: Tree) -> dict[ir.Var, Tree] | None:
    if isinstance(binder, ir.Var):
        return {binder: tree}
    if not isinstance(tree, tuple):
        return None
    first, second = _bound(binder.first, tree[0]), _bound(binder.second, tree[1])
    return None if first is None or second is None else {**first, **second}


def reordered(term: ir.Expr) -> ir.Expr | None:
    """The array of a pattern that puts each of its elements to one place, so that it can be computed right there."""
    if isinstance(term, REORDERING):
        return term.array
    if isinstance(term, ir.Map) and isinstance(term.function, ir.Lambda):
        inner: ir.Expr | None = term.function.body
        while inner is not None and inner != term.function.binder:
            inner = reordered(inner)
        return None if inner is None else term.array
    return None
