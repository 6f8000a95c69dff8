"""Folds of rows as folds of each column, and transposed results as those of the maps in the other order.

``reduce(fun (u, v) => map(add, zip(u, v)), fill(N, 0.0), xss)`` is the sum of each column: what folds numbers may be in
parallel, and is what rules and plans are made for.

Source: 000 Listings 5.16 to 5.18, from right to left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in, substitute
from lift_egraph.language.check import element_type, type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.respelled import respelled

T = TypeVar("T", bound=ir.Part)


def with_columns(program: ir.Program) -> ir.Program:
    """The program with folds of columns for those of rows, and without transpositions of what nested maps make.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> rows = "reduce(fun (u, v) => map(add, zip(u, v)), fill(N, 0.0), xss)"
    >>> print(print_term(with_columns(parse_program(f"program sums(xss: [[f32]N]M) = {rows}")).body))
    map(reduce(add, 0.0), transpose(xss))
    """
    return respelled(program, lambda named: _Columns(names_in(named)).of(named))


@dataclass
class _Columns:
    """Terms with columns for rows."""

    taken: set[str]

    def of(self, term: T) -> T:
        """A term whose binders have names of their own."""
        term = ir.map_parts(term, self.of)
        made = None
        if isinstance(term, ir.Reduce | ir.ReduceSeq):
            made = self.fold(term)
        match term:
            case ir.Transpose(array=array):
                made = self.transposed(array, in_zips=False)
            case ir.Map(
                function=ir.Lambda(binder=rows, body=ir.Transpose(array=of)),
                array=ir.Map(function=ir.Lambda(binder=p, body=body), array=xs),
            ) if rows == of and (inner := self.transposed(body, in_zips=False)) is not None:
                made = ir.Map(ir.Lambda(p, inner), xs)
        return term if made is None else made  # pyright: ignore[reportReturnType]

    def fold(self, term: ir.Reduce | ir.ReduceSeq) -> ir.Expr | None:
        """The folds of columns that a fold of rows is."""
        match term.operator:
            case ir.Lambda(binder=ir.PairBinder(first=ir.Var() as u, second=p), body=ir.Map() as body):
                pass
            case _:
                return None
        match self._fused(body):
            case ir.Map(function=ir.Lambda(binder=ir.PairBinder() as both, body=c), array=ir.Zip() as zipped):
                pass
            case _:
                return None
        if zipped.first == u:
            a, b, row = both.first, both.second, zipped.second
        elif zipped.second == u:
            a, b, row = both.second, both.first, zipped.first
        else:
            return None
        if not isinstance(row, ir.Var) or row == u or {u, row} & ir.free_variables(c):
            return None
        rows = _beside(p, term.array, row)
        if rows is None:
            return None
        binder, column, columns = self._elements(rows)
        each, arrays = _with(p, term.array, row, b, column)
        match term.initial:
            case ir.Fill(value=z):
                pass
            case zs:
                if not is_pure(zs):
                    return None
                z = ir.Var(fresh_name("z", self.taken), element_type(zs))
                binder, columns = ir.PairBinder(z, binder), ir.Zip(zs, columns)
        fold = replace(term, operator=ir.Lambda(ir.PairBinder(a, each), c), initial=z, array=arrays)
        return ir.Map(ir.Lambda(binder, self.fold(fold) or fold), columns)

    def _fused(self, term: ir.Map) -> ir.Map:
        """A map of what another one only zips, as in ``map2d(f, zip2d(xss, yss))``, as one map."""
        match term:
            case ir.Map(
                function=ir.Lambda(binder=ir.Var() as r, body=body),
                array=ir.Map(function=ir.Lambda(binder=p, body=ir.Zip(first=first, second=second)), array=xs),
            ):
                if isinstance(p, ir.Var) and (first, second) == (ir.Component(0, p), ir.Component(1, p)):
                    first, second = (ir.Var(fresh_name("row", self.taken), type_of(side)) for side in (first, second))
                    p = ir.PairBinder(first, second)
                return ir.Map(ir.Lambda(p, substitute(body, {r: ir.Zip(first, second)})), xs)
        return term

    def _elements(self, rows: ir.Expr) -> tuple[ir.Binder, ir.Expr, ir.Expr]:
        """A parameter, a column made of it, and the array that has one for each column of rows."""
        columns = self.transposed(rows, in_zips=True)
        if isinstance(columns, ir.Map) and isinstance(columns.function, ir.Lambda):
            return columns.function.binder, columns.function.body, columns.array
        columns = _turned(rows) if columns is None else columns
        column = ir.Var(fresh_name("column", self.taken), element_type(columns))
        return column, column, columns

    def transposed(self, rows: ir.Expr, in_zips: bool) -> ir.Expr | None:
        """What nested maps make, transposed, as the maps in the other order, if they can be.

        Parameters
        ----------
        in_zips
            Whether the inner map may be one over rows that the outer one takes beside others.
        """
        match rows:
            case ir.Map(
                function=ir.Lambda(binder=p, body=ir.Map(function=ir.Lambda(binder=q, body=b), array=ys)), array=xs
            ) if is_pure(xs):
                pass
            case _:
                return None
        if not _bound(p) & ir.free_variables(ys):
            return ir.Map(ir.Lambda(q, ir.Map(ir.Lambda(p, b), xs)), ys)
        inner = _beside(p, xs, ys) if in_zips and isinstance(ys, ir.Var) else None
        if inner is None or ys in ir.free_variables(b):
            return None
        columns = _turned(inner)
        column = ir.Var(fresh_name("column", self.taken), element_type(columns))
        each, arrays = _with(p, xs, ys, q, column)
        return ir.Map(ir.Lambda(column, ir.Map(ir.Lambda(each, b), arrays)), columns)


def _bound(binder: ir.Binder) -> frozenset[ir.Var]:
    return frozenset(ir.bound_variables(binder))


def _turned(rows: ir.Expr) -> ir.Expr:
    return rows.array if isinstance(rows, ir.Transpose) else ir.Transpose(rows)


def _beside(p: ir.Binder, xs: ir.Expr, row: ir.Expr) -> ir.Expr | None:
    """Of the arrays that a loop takes elements of, that whose elements have a name."""
    if p == row:
        return xs
    if isinstance(p, ir.PairBinder) and isinstance(xs, ir.Zip):
        first = _beside(p.first, xs.first, row)
        return _beside(p.second, xs.second, row) if first is None else first
    return None


def _with(
    p: ir.Binder, xs: ir.Expr, row: ir.Expr, other: ir.Binder, column: ir.Expr
) -> tuple[ir.Binder, ir.Expr]:
    """The parameter and the arrays of a loop with a column for the rows that it takes under some name."""
    if p == row:
        return other, column
    if isinstance(p, ir.PairBinder) and isinstance(xs, ir.Zip):
        first, left = _with(p.first, xs.first, row, other, column)
        second, right = _with(p.second, xs.second, row, other, column)
        return ir.PairBinder(first, second), ir.Zip(left, right)
    return p, xs
