"""Terms in error messages: one line that says which part of a program is meant.

Source: new.
"""

from __future__ import annotations

from typing import TypeVar

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term

_LEAVES = (ir.Var, ir.Input, ir.Literal, ir.SizeLiteral)
_WIDTH = 90
_DEEPEST = 12

Problem = TypeVar("Problem", bound=LiftError)


def describe(term: ir.Part, width: int = _WIDTH) -> str:
    """The text form of a term with its type, on one line, inner parts shortened to ``…`` until it fits.

    Examples
    --------
    >>> from lift_egraph.language.build import F32, Input, array, map_, split
    >>> xs = Input("xs", array(F32, 64))
    >>> halves = map_(lambda half: map_(lambda x: x * 2.0 + 1.0, half), split(32, xs))
    >>> print(describe(halves))
    map(map(fun x => x * 2.0 + 1.0), split(32, xs)) : [[f32]32]2
    >>> print(describe(halves, width=40))
    map(map(fun x => …), split(32, xs)) : [[f32]32]2
    """
    text = _print(_abridged(term, 1))
    for depth in range(2, _DEEPEST):
        longer = _print(_abridged(term, depth))
        if len(longer) > width:
            break
        text = longer
    return f"{text} : {type_of(term)}" if isinstance(term, ir.Expr) else text


def blame(problem: Problem, term: ir.Part | None) -> Problem:
    """The same problem with the subterm that it is about, unless a part of it was named already."""
    if term is None or problem.subterm:
        return problem
    text = describe(term)
    made = type(problem)(str(problem) if text in str(problem) else f"{problem}\n  in {text}")
    vars(made).update(vars(problem))
    made.subterm = text
    return made


def _print(term: ir.Part) -> str:
    return print_term(term, 1 << 30)


def _abridged(term: ir.Part, depth: int) -> ir.Part:
    """The term down to a depth; what is below stands as a variable that prints as dots."""
    if isinstance(term, _LEAVES):
        return term
    if depth == 0 and isinstance(term, ir.Expr):
        return ir.Var("…", type_of(term))
    below = depth if isinstance(term, ir.Lambda | ir.Vectorize) else depth - 1
    return ir.map_parts(term, lambda part: _abridged(part, below))
