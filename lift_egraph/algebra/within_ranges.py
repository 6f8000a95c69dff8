"""Programs whose folds know between which numbers their elements lie.

The range of an input of whole numbers, which is checked when a kernel is run, says so, and so do types, remainders and
masks in what makes the elements. Where a fold is parallel for such elements alone, a map before it moves them between
these numbers, where they are anyway: then the rules of `lift_egraph.rules.algebra` see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from lift_egraph.algebra.bounded import Interval
from lift_egraph.algebra.expressions import looked_up
from lift_egraph.algebra.kept import is_parallel, keeping_in, keeping_of
from lift_egraph.algebra.ranged import Known, bound, leaf_bounds, moved_between
from lift_egraph.algebra.residues import kept
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.ranges import Range, Values
from lift_egraph.language.types import Array, DataType, leaves, scalar_of

T = TypeVar("T", bound=ir.Part)


def with_ranges(program: ir.Program, sizes: Mapping[str, int] | None = None) -> ir.Program:
    """The program with the elements of folds between their bounds, where that makes these parallel.

    Parameters
    ----------
    sizes
        Values for sizes, beside those of the program: ranges may end with them, and folds have no more elements. The
        result is for these sizes.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> clock = parse_program("program clock(xs: [i32]N in 0..60) = reduceSeq(fun (s, x) => (s + x) % 12, 0, xs)")
    >>> print_term(with_ranges(clock).body.array)
    'map(fun e0 => min(max(e0, 0), 59), xs)'
    """
    types = {i.name: i.type for i in program.inputs}
    of_sizes = {**dict(program.sizes), **(sizes or {})}
    own = ((name, values.substitute(of_sizes)) for name, values in program.ranges)
    ranges = {name: found for name, values in own if (found := _whole(types[name], values))}
    body = _Ranged(ranges, of_sizes)(program.body, {})
    return program if body is program.body else replace(program, body=body)


def _whole(t: DataType, values: Values) -> Interval | None:
    """The bounds of arrays of whole numbers, if they have a range that is known."""
    if not isinstance(values, Range) or values.numbers is None:
        return None
    low, high = values.numbers
    are_checked = all(sizes and scalar_of(leaf).is_integer for _, sizes, leaf in leaves(t))
    return (int(low), int(high) - 1) if are_checked else None


@dataclass(frozen=True)
class _Ranged:
    """Terms with the elements of their folds between bounds, by the ranges of inputs and the values of sizes."""

    ranges: Mapping[str, Interval]
    sizes: Mapping[str, int]

    def __call__(self, term: T, known: Known) -> T:
        if isinstance(term, ir.Map | ir.Apply) and isinstance(term.function, ir.Lambda):
            given = term.array if isinstance(term, ir.Map) else term.argument
            names = bound(term.function.binder, leaf_bounds(given, self.ranges, known))
            body = self(term.function.body, {**known, **names})
            own = self(given, known)
            if body is term.function.body and own is given:
                return term
            return type(term)(ir.Lambda(term.function.binder, body), own)  # pyright: ignore
        if isinstance(term, ir.Lambda):
            hidden = set(ir.bound_variables(term.binder))
            known = {v: own for v, own in known.items() if v not in hidden}
        made = ir.map_parts(term, lambda part: self(part, known))
        if isinstance(made, ir.WHOLE_FOLDS) and isinstance(made.operator, ir.Lambda):
            return self._fold(made, made.operator, known)  # pyright: ignore
        return made

    def _fold(self, made: ir.WholeFold, f: ir.Lambda, known: Known) -> ir.WholeFold:
        z, given = made.initial, made.array.function if isinstance(made.array, ir.Map) else None
        given = given if isinstance(given, ir.Lambda) else None
        if keeping_of(f, z) or keeping_of(f, z, given):
            return made
        moved = moved_between(made.array, self.ranges, known)
        found = _found_between(f, self.ranges, known)
        for g, h in ((f, moved), (found, None), (found, given), (found, moved)):
            if (g is not f or h) and keeping_of(g, z, h):
                array = ir.Map(moved, made.array) if moved and h is moved else made.array
                return replace(made, operator=g, array=array)
        length = self._length(made.array)
        if length is None or length < 1:
            return made
        kept_in = keeping_in(f, z, moved, length=length) or keeping_in(f, z, given, length=length)
        return replace(made, operator=kept_in) if kept_in and not is_parallel(f) else made

    def _length(self, array: ir.Expr) -> int | None:
        t = type_of(array)
        return t.size.substitute(self.sizes).constant if isinstance(t, Array) else None


def _found_between(function: ir.Lambda, ranges: Mapping[str, Interval], known: Known) -> ir.Lambda:
    """A function with the whole numbers that it finds at computed places of arrays moved between their bounds, which
    changes none of them.
    """

    def found(term: T) -> T:
        made = ir.map_parts(term, found)
        if not isinstance(made, ir.Expr) or looked_up(made) is None:
            return made
        (interval, *others) = leaf_bounds(made, ranges, known)
        return made if interval is None or others else kept(made, interval)  # pyright: ignore[reportReturnType]

    names = set(ir.bound_variables(function.binder))
    known = {v: own for v, own in known.items() if v not in names}
    return ir.Lambda(function.binder, found(function.body))
