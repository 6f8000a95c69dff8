"""What stands outside of all loops of a term: in no function, or in the body of a let that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lift_egraph.language import ir


def parts_outside(term: ir.Expr) -> Iterator[ir.Expr]:
    """The terms that stand directly in a term, outside of its loops; the body of a let comes last."""
    yield from (part for part in ir.parts(term) if isinstance(part, ir.Expr))
    if isinstance(term, ir.Apply) and isinstance(term.function, ir.Lambda):
        yield term.function.body


def map_outside(term: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """The term with others for its `parts_outside`; the same term if all stay the same."""
    made = ir.map_parts(term, lambda p: change(p) if isinstance(p, ir.Expr) else p)
    if isinstance(made, ir.Apply) and isinstance(made.function, ir.Lambda):
        body = change(made.function.body)
        if body is not made.function.body:
            return ir.Apply(ir.Lambda(made.function.binder, body), made.argument)
    return made
