"""Folds of which some components do without the others: these are scanned first, and the others are folded beside them.

The deepest place of a text with brackets needs the depth, and the depth needs nothing: so the depths are a scan, and
the deepest is the largest of them. What branches on the accumulator often branches on such a component alone, and is
linear once that is known. Nothing is computed in another order, so that whole numbers may wrap around.

Source: new, as loops are distributed: Kennedy and McKinley, "Loop distribution with arbitrary control flow", SC 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lift_egraph.algebra.actions import COMPOSES, Action, action_of
from lift_egraph.algebra.combining import combining_of
from lift_egraph.algebra.compensated import compensates
from lift_egraph.algebra.expressions import binder_of, fold_step, packed, right_nested, shaped_binder
from lift_egraph.algebra.laws import associative
from lift_egraph.algebra.tabulated import Tabulated, tabulated_of
from lift_egraph.language import ir
from lift_egraph.language.check import type_of


@dataclass(frozen=True)
class Cascade:
    """A fold's operator f as one of its first components and one of the others: ``f (whole (s, t), x) = whole (step (s,
    x), rest (t, (s, x)))``, and ``whole (first z, others z) = z``.

    Attributes
    ----------
    step
        What an element x makes of the first components s.
    rest
        What it makes of the others t, beside the s before it.
    first, others
        These components of an accumulator.
    whole
        The accumulator of both.
    """

    step: ir.Lambda
    rest: ir.Lambda
    first: ir.Lambda
    others: ir.Lambda
    whole: ir.Lambda


@lru_cache(maxsize=1024)
def cascade_of(function: ir.Function) -> Cascade | None:
    """A fold's operator in two, the first without those components that nothing but themselves needs; None if all need
    each other, or none needs another.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program(
    ...     "program p(xs: [i32]N) = reduceSeq(fun ((most, sum), x) => (max(most, sum + x), sum + x), (0, 0), xs)"
    ... ).body
    >>> found = cascade_of(fold.operator)
    >>> print(print_term(found.step), "and", print_term(found.rest))
    add and fun (most, sum, x) => max(most, sum + x)
    """
    op = fold_step(function)
    firsts = _needed_by_others(op.needs()) if op else ()
    if op is None or not firsts:
        return None
    rests = [i for i in range(len(op.first)) if i not in firsts]
    s, t = ([op.first[i] for i in own] for own in (firsts, rests))
    shape = type_of(ir.function_body(function).body)
    return Cascade(
        ir.Lambda(ir.PairBinder(binder_of(s), op.second), right_nested([op.results[i] for i in firsts])),
        ir.Lambda(
            ir.PairBinder(binder_of(t), ir.PairBinder(binder_of(s), op.second)),
            right_nested([op.results[i] for i in rests]),
        ),
        ir.Lambda(shaped_binder(op.first, shape), right_nested(s)),
        ir.Lambda(shaped_binder(op.first, shape), right_nested(t)),
        ir.Lambda(ir.PairBinder(binder_of(s), binder_of(t)), packed(op.first, shape)),
    )


def parts_of(f: ir.Function) -> Cascade | None:
    """A fold's operator in two parts that are reductions, or cascades again; None if it is a reduction as it is, or a
    part is not.
    """
    acting = action_of(f)
    if isinstance(acting, Action) or acting == COMPOSES or combining_of(f) or associative(f) or compensates(f):
        return None
    found = cascade_of(f)
    return found if found and _is_parallel(found.step) and _is_parallel(found.rest) else None


def tabulated_parts(f: ir.Function, initial: ir.Expr) -> tuple[Cascade, Tabulated, Action] | None:
    """A fold's operator in two parts, of which the first has a table of words from an initial value on, and the others
    act; None if it is not so.
    """
    found = cascade_of(f)
    if found is None or compensates(f):
        return None
    table, acting = tabulated_of(found.step, ir.Apply(found.first, initial)), acts_associatively(found.rest)
    return (found, table, acting) if table and acting else None


def acts_associatively(f: ir.Function) -> Action | None:
    """A fold's operator as an action of any length, if the product of what acts is known to be associative."""
    found = action_of(f)
    if not isinstance(found, Action) or found.longest is not None:
        return None
    return found if associative(found.operator) else None


def _is_parallel(f: ir.Function) -> bool:
    found = action_of(f)
    acts = isinstance(found, Action) and found.longest is None
    return acts or combining_of(f) is not None or parts_of(f) is not None


def _needed_by_others(needs: Sequence[set[int]]) -> Sequence[int]:
    """The components that others need, and that need each other alone."""
    needed = [{i, *own} for i, own in enumerate(needs)]
    alone = [i for i, own in enumerate(needed) if all(needed[j] == own for j in own)]
    return [i for i in alone if any(i in needed[j] for j in range(len(needed)) if j not in needed[i])]
