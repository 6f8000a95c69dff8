"""What stands outside of all loops of a term, in no function or in the body of a let that does; and its maps there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lift_egraph.language import ir
from lift_egraph.language.binders import in_lets, out_of_lets
from lift_egraph.language.check import codomain, domain
from lift_egraph.language.layout import is_pure


def parts_outside(term: ir.Expr) -> Iterator[ir.Expr]:
    """The terms that stand directly in a term, outside of its loops; the body of a let comes last."""
    yield from (part for part in ir.parts(term) if isinstance(part, ir.Expr))
    if isinstance(term, ir.Apply) and isinstance(term.function, ir.Lambda):
        yield term.function.body


def all_outside(term: ir.Expr) -> Iterator[ir.Expr]:
    """A term and all that stands in it, outside of its loops, the outermost first."""
    yield term
    for part in parts_outside(term):
        yield from all_outside(part)


def map_outside(term: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """The term with others for its `parts_outside`; the same term if all stay the same."""
    made = ir.map_parts(term, lambda p: change(p) if isinstance(p, ir.Expr) else p)
    if isinstance(made, ir.Apply) and isinstance(made.function, ir.Lambda):
        body = change(made.function.body)
        if body is not made.function.body:
            return ir.Apply(ir.Lambda(made.function.binder, body), made.argument)
    return made


def map_outside_and_steps(term: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """`map_outside`, also in the step of an iterate that keeps the length: each runs as kernels of its own."""
    made = map_outside(term, change)
    match made:
        case ir.Iterate(function=ir.Lambda(binder=binder, body=body) as step) if domain(step) == codomain(step):
            changed = change(body)
            return made if changed is body else replace(made, function=ir.Lambda(binder, changed))
    return made


def in_maps(
    term: ir.Expr,
    change: Callable[[ir.Binder, ir.Expr, ir.Expr], ir.Expr],
    outside: Callable[[ir.Expr], ir.Expr] = lambda term: term,
) -> ir.Expr:
    """A term outside of all loops but iterates, each step of which is a kernel, with other terms for its maps over what
    stands in memory, and for what is `outside` of these.
    """
    changed = outside(term)
    if changed is not term:
        return changed
    match term:
        case ir.Apply(function=ir.Lambda(binder=binder, body=body), argument=argument):
            return ir.Apply(ir.Lambda(binder, in_maps(body, change, outside)), in_maps(argument, change, outside))
        case ir.Map(function=ir.Lambda(binder=binder, body=body), array=array) if is_pure(array):
            return change(binder, body, array)
        case ir.Iterate(function=ir.Lambda(binder=binder, body=body) as step) if domain(step) == codomain(step):
            made = ir.Lambda(binder, in_maps(body, change, outside))
            return replace(term, function=made, array=in_maps(term.array, change, outside))
    if is_pure(term):
        return term
    if isinstance(term, ir.Map | ir.Reduce) and not isinstance(term.array, ir.Apply):
        lets, array = out_of_lets(in_maps(term.array, change, outside))
        return in_lets(lets, replace(term, array=array))
    if isinstance(term, ir.Call) and not any(isinstance(operand, ir.Apply) for operand in term.arguments):
        made = [out_of_lets(in_maps(operand, change, outside)) for operand in term.arguments]
        lets = tuple(let for of_operand, _ in made for let in of_operand)
        return in_lets(lets, replace(term, arguments=tuple(operand for _, operand in made)))
    return ir.map_parts(term, lambda p: in_maps(p, change, outside) if isinstance(p, ir.Expr) else p)
