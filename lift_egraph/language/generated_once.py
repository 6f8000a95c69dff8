"""Arrays that are generated from others and looked up several times: computed once, instead of at each reading."""

from __future__ import annotations

from typing import Any

from lift_egraph.language import ir
from lift_egraph.language.layout import is_pure
from lift_egraph.language.respelled import respelled
from lift_egraph.language.types import I32


def with_generated_once(program: ir.Program) -> ir.Program:
    """The program with a map for each `generate` that looks up what a variable stands for, and is looked up again.

    A `generate` is read through, so each of its readings computes it, and what it looks up, again: a chain of them, as
    the stages of a Fourier transform, has kernels that grow by a factor with each. A map is computed once.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> stages = "generate(N, fun i => ys[i / 2] + ys[N - 1 - i])"
    >>> twice = parse_program(f"program twice(xs: [f32]N) = let ys = map(abs, xs) in let ys = {stages} in {stages}")
    >>> print_term(with_generated_once(twice).body.function.body.argument.array)
    'generate(N, id)'
    """
    return respelled(program, _with_generated_once)


def _with_generated_once(term: Any) -> Any:
    term = ir.map_parts(term, _with_generated_once)
    match term:
        case ir.Apply(
            function=ir.Lambda(binder=ir.Var() as table, body=body) as let,
            argument=ir.Generate(size=size, function=function) as made,
        ) if is_pure(made) and _readings(function) and _readings(body, table) > 1:
            index = ir.Var("i", I32)
            return ir.Apply(let, ir.Map(function, ir.Generate(size, ir.Lambda(index, index))))
    return term


def _readings(term: ir.Part, table: ir.Var | None = None) -> int:
    """How often a variable, or any, is looked up in a term."""
    free = (ir.free_variables(p.array) for p in ir.subterms(term) if isinstance(p, ir.Lookup))
    return sum(bool(variables) if table is None else table in variables for variables in free)
