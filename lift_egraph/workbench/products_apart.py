"""Products of matrices out of functions of rows that do more: each is a stage of its own, for which there are plans.

In ``map(λx. let s = map(λy. x · y) ys in b) xs`` the rows s are a matrix, which a map of its own computes. What stands
before a product, such as the row that it multiplies, is named as well. The terms are built here as the rules of
`lift_egraph.rules` name what maps compute; that they do is what the phase ``products_apart`` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from lift_egraph.algebra.laws import associative
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.workbench.long_rows import in_maps
from lift_egraph.workbench.plan import length_of

FEW = 8  # elements of a row or a column, and products of a row, that are computed as they stand
Variables = frozenset[ir.Var]


def with_products_apart(term: ir.Expr) -> ir.Expr:
    """The term with a map for each product of matrices in a function of rows that names it, or what it needs."""
    numbers = count()

    def apart(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
        match body:
            case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c) if _has_product(body, _bound(p)):
                of_rows = apart(*_one_side(p, c, xs))
                s = ir.Var(f"$matrix{next(numbers)}", type_of(of_rows))
                return ir.Apply(ir.Lambda(s, apart(*_one_side(ir.PairBinder(q, p), b, ir.Zip(s, xs)))), of_rows)
            case ir.Map(function=ir.Lambda(binder=r, body=ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c))):
                of_columns = _map(*_one_side(r, c, body.array))
                if _has_product(of_columns, _bound(p)):
                    s = ir.Var(f"$products{next(numbers)}", type_of(of_columns))
                    rest = _map(*_one_side(ir.PairBinder(q, r), b, ir.Zip(s, body.array)))
                    return apart(p, ir.Apply(ir.Lambda(s, rest), of_columns), xs)
        return _map(p, body, xs)

    return in_maps(term, apart)


def _has_product(body: ir.Expr, rows: Variables) -> bool:
    """Whether a function's body has a reduction of what it is given with the elements of another array."""
    return next(_products(body, rows, frozenset()), None) is not None


def _products(term: ir.Part, rows: Variables, columns: Variables) -> Iterator[ir.Reduce]:
    """The reductions that need both; `rows` are the variables that depend on a row, `columns` those that do not."""
    match term:
        case ir.Reduce() if length_of(term.array) >= FEW and associative(term.operator):
            free = ir.free_variables(term.array)
            if free & rows and free & columns:
                yield term
            return
        case ir.Apply(function=ir.Lambda(binder=q, body=b), argument=c):
            yield from _products(c, rows, columns)
            inside = (rows | _bound(q), columns) if ir.free_variables(c) & rows else (rows, columns)
            yield from _products(b, *inside)
            return
        case ir.Map(function=ir.Lambda(binder=q, body=b), array=ys):
            yield from _products(ys, rows, columns)
            if ir.free_variables(ys) & rows:
                yield from _products(b, rows | _bound(q), columns)
            elif length_of(ys) >= FEW:
                yield from _products(b, rows, columns | _bound(q))
            return
    for part in ir.parts(term):
        yield from _products(part, rows, columns)


def _one_side(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> tuple[ir.Binder, ir.Expr, ir.Expr]:
    """A map by its parameter, body and array: one of a function of pairs without the sides that it does not read."""
    free = ir.free_variables(body)
    while isinstance(p, ir.PairBinder) and isinstance(xs, ir.Zip):
        if not free & _bound(p.first):
            p, xs = p.second, xs.second
        elif not free & _bound(p.second):
            p, xs = p.first, xs.first
        else:
            break
    return p, body, xs


def _map(p: ir.Binder, body: ir.Expr, xs: ir.Expr) -> ir.Expr:
    return ir.Map(ir.Lambda(p, body), xs)


def _bound(p: ir.Binder) -> Variables:
    return frozenset(ir.bound_variables(p))
