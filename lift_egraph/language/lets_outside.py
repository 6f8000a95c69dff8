"""Lets of arrays outside of the patterns that read them: ``zip(let m = e in b, ys)`` as ``let m = e in zip(b, ys)``.

What stands between a pattern and the array that it reads keeps rules from seeing both: a program is searched as one
that names its stages one after the other, wherever it was written that it names them.

Source: Flanagan et al., "The essence of compiling with continuations", 1993 (A-normal form).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import Let, in_lets, out_of_lets, substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.respelled import respelled
from lift_egraph.language.types import is_data

T = TypeVar("T", bound=ir.Part)
VIEWS = (ir.Zip, ir.Split, ir.Join, ir.Slice, ir.Transpose, ir.Slide)


def with_lets_outside(program: ir.Program) -> ir.Program:
    """The program with its lets of arrays around patterns instead of in their arguments, and without lets that are what
    they bind, or bind a view.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> zipped = "zip(let m = reduce(max, 0.0, x) in map(fun v => v / m, x), y)"
    >>> p = parse_program(f"program p(x: [f32]N, y: [f32]N) where N = 4 = map(mul, {zipped})")
    >>> print(print_term(with_lets_outside(p).body))
    let m = reduce(max, 0.0, x) in map(mul, zip(map(fun v => v / m, x), y))
    """
    return respelled(program, _outside)


def _outside(term: T) -> T:
    """A term whose binders have names of their own."""
    term = ir.map_parts(term, _outside)
    if isinstance(term, ir.Apply) and isinstance(term.function, ir.Lambda):
        binder, body = term.function.binder, term.function.body
        if body == binder:
            return term.argument  # pyright: ignore[reportReturnType]
        if isinstance(binder, ir.Var) and _is_view(term.argument, body, binder):
            return substitute(body, {binder: term.argument})  # pyright: ignore[reportReturnType]
        lets, argument = out_of_lets(term.argument)
        return in_lets(lets, replace(term, argument=argument)) if lets else term  # pyright: ignore[reportReturnType]
    if not isinstance(term, ir.Expr):
        return term
    around: list[Let] = []

    def without(part: ir.Part) -> ir.Part:
        lets, inner = out_of_lets(part) if isinstance(part, ir.Apply) and not is_data(type_of(part)) else ((), part)
        around.extend(lets)
        return inner

    made = ir.map_parts(term, without)
    return in_lets(around, made) if around else term  # pyright: ignore[reportReturnType]


def _is_view(term: ir.Expr, body: ir.Expr, v: ir.Var) -> bool:
    """Whether a term is another view of arrays, of which nothing is found at computed places by its name."""
    looked_up = (t.array for t in ir.subterms(body) if isinstance(t, ir.Lookup))
    return _regroups(term) and not any(v in ir.free_variables(array) for array in looked_up)


def _regroups(term: ir.Part) -> bool:
    """Whether a term has the elements of arrays side by side, in rows, or in another order of these alone."""
    return isinstance(term, ir.Var | ir.Input) or (isinstance(term, VIEWS) and all(map(_regroups, ir.parts(term))))
