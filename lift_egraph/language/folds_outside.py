"""Folds that a loop does not change before it, and elements of scans as folds.

``map(fun x => x - reduce(max, 0.0, xs), xs)`` folds once for each element what gives the same each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, in_lets, names_in, substitute, with_parts
from lift_egraph.language.check import size_of, type_of
from lift_egraph.language.nat import nat
from lift_egraph.language.respelled import respelled
from lift_egraph.language.types import is_data

T = TypeVar("T", bound=ir.Part)
FEW = 64  # elements that a kernel of its own would take longer for


def with_folds_outside(program: ir.Program, sizes: Mapping[str, int] | None = None) -> ir.Program:
    """The program with each fold to numbers before the loops that do not change it, and with a fold for the last
    element of a scan that nothing else reads.

    Parameters
    ----------
    sizes
        Values for sizes, beside those of the program: folds of few elements stay in the loops that are kernels.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> p = parse_program("program p(x: [f32]N) where N = 100 = map(fun v => v - reduce(max, 0.0, x), x)")
    >>> print(print_term(with_folds_outside(p).body))
    let total = reduce(max, 0.0, x) in map(fun v => v - total, x)
    >>> p = parse_program("program p(x: [f32]N) where N = 100 = let s = scan(add, 0.0, x) in s[N - 1]")
    >>> print(print_term(with_folds_outside(p).body))
    reduce(add, 0.0, x)
    """
    known = {**dict(program.sizes), **(sizes or {})}
    return respelled(program, lambda named: _Outside(known, names_in(named)).of(named))


@dataclass
class _Outside:
    """Terms with folds before loops; `sizes` are those that have values, `taken` all names."""

    sizes: Mapping[str, int]
    taken: set[str]

    def of(self, term: T, inside: bool = False) -> T:
        """A term whose binders have names of their own, `inside` of a loop or not."""
        is_let = isinstance(term, ir.Apply)
        within = inside or (not is_let and not isinstance(term, ir.Lambda))

        def changed(part: ir.Part) -> ir.Part:
            return self.of(part, within if isinstance(part, ir.Lambda) and not is_let else inside)

        term = ir.map_parts(term, changed)
        made: ir.Part = term
        match term:
            case ir.Apply(function=ir.Lambda(binder=ir.Var() as s, body=body), argument=ir.Scan() as scan):
                made = _last_of(term, s, body, scan)
            case ir.Map() | ir.Generate():
                made = self.before(term, inside)
            case ir.At():
                made = element_at(term)
        return made  # pyright: ignore[reportReturnType]

    def before(self, loop: ir.Map | ir.Generate, inside: bool) -> ir.Expr:
        """A loop with what it does not change before it."""
        if not isinstance(loop.function, ir.Lambda):
            return loop
        found = dict.fromkeys(_unchanged(loop.function))
        worth = [fold for fold in found if inside or not self.is_short(fold)]
        if not worth:
            return loop
        names = [ir.Var(fresh_name("total", self.taken), type_of(fold)) for fold in worth]
        function = with_parts(loop.function, dict(zip(worth, names, strict=True)))
        return in_lets(list(zip(names, worth, strict=True)), replace(loop, function=function))

    def is_short(self, fold: ir.Expr) -> bool:
        array = ir.array_of_loop(fold)
        length = None if array is None else size_of(array).substitute(self.sizes).constant
        return length is not None and length < FEW


def _unchanged(function: ir.Lambda) -> list[ir.Expr]:
    """The outermost folds to numbers in a function that need nothing that is bound in it."""
    found: list[ir.Expr] = []

    def walk(part: ir.Part, bound: frozenset[ir.Var]) -> None:
        is_own = bool(ir.free_variables(part) & bound)
        if isinstance(part, ir.Reduce | ir.ReduceSeq) and is_data(type_of(part)) and not is_own:
            found.append(part)
            return
        if isinstance(part, ir.Lambda):
            bound |= frozenset(ir.bound_variables(part.binder))
        for inner in ir.parts(part):
            walk(inner, bound)

    walk(function, frozenset())
    return found


def element_at(term: ir.At) -> ir.Expr:
    """An element of what a map makes, or of an array that is folded on the way to it."""
    match term.array:
        case ir.Map(function=ir.Lambda() as f, array=xs) if not ir.has_folds(f):
            return ir.Apply(f, element_at(replace(term, array=xs)))
        case ir.Scan(operator=op, initial=z, array=xs) if _is_last(term):
            return ir.Reduce(op, z, xs)
    return term


def _is_last(term: ir.At) -> bool:
    return nat(term.index) + 1 == size_of(term.array)


def _last_of(let: ir.Apply, s: ir.Var, body: ir.Expr, scan: ir.Scan) -> ir.Expr:
    """What a let makes of a scan by a fold, if it reads the last element alone."""
    last = ir.At(size_of(scan) - 1, s)
    total = ir.Var(s.name, type_of(scan.initial))
    made = with_parts(body, {last: total})
    if made is body or s in ir.free_variables(made):
        return let
    fold = ir.Reduce(scan.operator, scan.initial, scan.array)
    return substitute(made, {total: fold}) if made == total else ir.Apply(ir.Lambda(total, made), fold)
