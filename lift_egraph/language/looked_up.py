"""Elements of ranges that are looked up at places from arrays, as arrays that are looked up as a whole.

What a range combines is read by rules and plans from the arrays that it goes along: ``values[p] * x[cols[p]]`` is a
product of elements of ``values`` and of ``lookup(cols, x)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in, with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.computed_places import computed_place
from lift_egraph.language.layout import is_pure
from lift_egraph.language.respelled import respelled

T = TypeVar("T", bound=ir.Part)


def with_lookups(program: ir.Program) -> ir.Program:
    """The program with ranges of arrays that are looked up, where a range combines elements that are looked up at
    places from an array.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> product = "reduceRange(add, 0.0, 0, 5, map(fun (v, c) => v * x[c], zip(values, cols)))"
    >>> text = f"program p(values: [f32]K, cols: [i32]K, x: [f32]N) = {product}"
    >>> print_term(with_lookups(parse_program(text)).body.array)
    'map(mul, zip(values, lookup(cols, x)))'
    """
    return respelled(program, lambda named: _Lookups(names_in(named)).of(named))


@dataclass
class _Lookups:
    """Terms with lookups of arrays for those of elements."""

    taken: set[str]

    def of(self, term: T) -> T:
        """A term whose binders have names of their own."""
        term = ir.map_parts(term, self.of)
        match term:
            case ir.ReduceRange(array=ir.Map(function=ir.Lambda(binder=p, body=body) as f, array=xs)):
                functions = [f, *(t for t in ir.subterms(body) if isinstance(t, ir.Lambda))]
                inside = {v for function in functions for v in ir.bound_variables(function.binder)}
                made = self._elements(p, body, xs, inside)
                if made is not None:
                    binder, body, xs = made
                    return replace(term, array=ir.Map(ir.Lambda(binder, body), xs))
        return term

    def _elements(
        self, p: ir.Binder, body: ir.Expr, xs: ir.Expr, inside: set[ir.Var]
    ) -> tuple[ir.Binder, ir.Expr, ir.Expr] | None:
        """The parameter, the body and the array of a map that finds beside its elements, or in their place, what it
        looks up at them; None if that is nothing.

        Parameters
        ----------
        inside
            What is bound in the map.
        """
        if isinstance(p, ir.Var):
            return self._beside(p, body, xs, inside)
        if not isinstance(xs, ir.Zip):
            return None
        first = self._elements(p.first, body, xs.first, inside)
        one, body, left = first or (p.first, body, xs.first)
        second = self._elements(p.second, body, xs.second, inside)
        other, body, right = second or (p.second, body, xs.second)
        return (ir.PairBinder(one, other), body, ir.Zip(left, right)) if first or second else None

    def _beside(
        self, place: ir.Var, body: ir.Expr, places: ir.Expr, inside: set[ir.Var]
    ) -> tuple[ir.Binder, ir.Expr, ir.Expr] | None:
        found: dict[ir.Expr, ir.Var] = {}
        read: list[tuple[ir.Binder, ir.Expr]] = []
        for element in ir.subterms(body):
            if not isinstance(element, ir.At) or element in found or (known := computed_place(element)) is None:
                continue
            array, at = known
            if at == place and is_pure(array) and not inside & ir.free_variables(array):
                found[element] = ir.Var(fresh_name(place.name, self.taken), type_of(element))
                read.append((found[element], ir.Lookup(places, array)))
        if not read:
            return None
        body = with_parts(body, found)
        if place in ir.free_variables(body):
            read.insert(0, (place, places))
        *others, (binder, array) = read
        for p, xs in reversed(others):
            binder, array = ir.PairBinder(p, binder), ir.Zip(xs, array)
        return binder, body, array
