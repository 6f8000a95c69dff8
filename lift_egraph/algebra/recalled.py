"""Folds that remember the element before: components of the accumulator that each element sets, whatever they were.

A user who counts words or adds up distances keeps what the last element was. That need not be carried from step to
step: it is there in the array, one place before. What is left of the fold often is a reduction.

Source: new.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lift_egraph.algebra.expressions import binder_of, fold_step, numbered, packed, right_nested, shaped_binder
from lift_egraph.language import ir
from lift_egraph.language.check import type_of


@dataclass(frozen=True)
class Recalling:
    """A fold's operator f that remembers the element before, without what it remembers: ``f (s, x) = whole (first (s,
    x), x)``, and ``first (whole (k, y), x) = step (k, (y, x))``.

    Attributes
    ----------
    step
        What an element x makes of the rest k of the accumulator, after an element y.
    first
        That rest, after a whole accumulator and an element.
    whole
        The accumulator, of that rest and the last element.
    """

    step: ir.Lambda
    first: ir.Lambda
    whole: ir.Lambda


@lru_cache(maxsize=1024)
def recalling_of(function: ir.Function) -> Recalling | None:
    """A fold's operator without what it remembers of the element before; None if it remembers nothing, or that alone.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program(
    ...     "program p(xs: [f32]N) = reduceSeq(fun ((way, last), x) => (way + abs(x - last), x), (0.0, 0.0), xs)"
    ... ).body
    >>> print(print_term(recalling_of(fold.operator).step))
    fun (way, y0, x) => way + abs(x - y0)
    """
    op = fold_step(function)
    if op is None:
        return None
    state = frozenset(op.first)
    kept = [i for i, r in enumerate(op.results) if not state.isdisjoint(ir.free_variables(r))]
    remembered = {v for i, v in enumerate(op.first) if i not in kept}
    if not kept or not any(remembered & ir.free_variables(op.results[i]) for i in kept):
        return None
    x = ir.bound_variables(op.second)
    y = numbered("y", [v.type for v in x])
    t, rest = type_of(ir.function_body(function).body), [op.first[i] for i in kept]
    whole = [v if i in kept else op.results[i] for i, v in enumerate(op.first)]
    before = ir.Lambda(ir.PairBinder(binder_of(rest), op.second), packed(whole, t))
    after = [v if i in kept else r for i, (v, r) in enumerate(zip(op.first, op.at(op.first, y), strict=True))]
    stepped = op.at(after, x)
    elements = ir.PairBinder(_renamed(op.second, dict(zip(x, y, strict=True))), op.second)
    return Recalling(
        ir.Lambda(ir.PairBinder(binder_of(rest), elements), right_nested([stepped[i] for i in kept])),
        ir.Lambda(ir.PairBinder(shaped_binder(op.first, t), op.second), right_nested([op.results[i] for i in kept])),
        before,
    )


def _renamed(binder: ir.Binder, names: dict[ir.Var, ir.Var]) -> ir.Binder:
    if isinstance(binder, ir.Var):
        return names[binder]
    return ir.PairBinder(_renamed(binder.first, names), _renamed(binder.second, names))
