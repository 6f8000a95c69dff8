"""Which terms only move data, so that they need no memory of their own: what reads them sees them as views."""

from __future__ import annotations

from lift_egraph.language import ir

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
