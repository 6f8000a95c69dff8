"""Sums of sums in products of matrices as one sum, as in the contraction of two arrays over several of their axes.

In ``map (λx. map (λy. sum (map (λ(r, s). sum (map f (zip r s))) (zip x y))) ys) xs`` x and y are matrices; read one row
after the other they are a row and a column, whose products have plans. The term is built here as the rules
`lift_egraph.rules.joined_sums` build it; that they do is what the phase ``joined_sums`` shows.
"""

from __future__ import annotations

from typing import TypeVar

from lift_egraph.algebra.laws import associative, neutral
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.layout import is_pure
from lift_egraph.workbench.planning.plan import variables_of

T = TypeVar("T", bound=ir.Part)
AXES = 2  # maps around sums of a product of matrices


def with_joined_sums(term: ir.Expr) -> ir.Expr:
    """The term with one reduction for each of those in a reduction inside of two maps, if they combine alike what is
    made of two arrays.
    """
    return _joined(term, 0)


def _joined(term: T, maps: int) -> T:
    if isinstance(term, ir.Map):
        made = ir.Map(_joined(term.function, maps + 1), _joined(term.array, maps))
        return term if made == term else made  # pyright: ignore[reportReturnType]
    made = ir.map_parts(term, lambda part: _joined(part, maps))
    if isinstance(made, ir.Reduce) and maps >= AXES:
        return _as_one(made)  # pyright: ignore[reportReturnType]
    return made


def _as_one(fold: ir.Reduce) -> ir.Reduce:
    match fold.array:
        case ir.Map(
            function=ir.Lambda(
                binder=ir.PairBinder() as p, body=ir.Reduce(initial=initial, array=ir.Map(function=f, array=b)) as inner
            ),
            array=ir.Zip() as xs,
        ):
            pass
        case _:
            return fold
    is_same = isinstance(initial, ir.Literal) and initial == fold.initial and alpha_equal(inner.operator, fold.operator)
    is_apart = variables_of(p).isdisjoint(ir.free_variables(f) | ir.free_variables(fold.operator))
    is_sum = is_same and associative(fold.operator) and neutral(fold.operator, fold.initial)
    if not (is_apart and is_sum and isinstance(b, ir.Zip) and is_pure(b) and is_pure(xs)):
        return fold
    return ir.Reduce(fold.operator, fold.initial, ir.Map(f, _rows_joined(p, b, xs)))


def _rows_joined(p: ir.Binder, b: ir.Expr, xs: ir.Expr) -> ir.Expr:
    """What a function makes of each row, one after the other."""
    match p, b, xs:
        case ir.PairBinder(first=q, second=r), ir.Zip(first=c, second=d), ir.Zip(first=ys, second=zs) if (
            ir.free_variables(c).isdisjoint(variables_of(r)) and ir.free_variables(d).isdisjoint(variables_of(q))
        ):
            return ir.Zip(_rows_joined(q, c, ys), _rows_joined(r, d, zs))
    return ir.Join(xs if p == b else ir.Map(ir.Lambda(p, b), xs))
