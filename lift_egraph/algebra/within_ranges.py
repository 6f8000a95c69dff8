"""Programs whose folds know between which numbers their elements lie.

The range of an input, which is checked when a kernel is run, says so, and so do types, remainders and masks in what
makes the elements. Where a fold is parallel for such elements alone, a map before it moves whole numbers between these
numbers, where they are anyway: then the rules of `lift_egraph.rules.algebra` see it. Floats its operator moves itself,
those of them by which it is parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from lift_egraph.algebra.actions import Action, action_of
from lift_egraph.algebra.bounded import Interval, is_float
from lift_egraph.algebra.cascades import tabulated_parts
from lift_egraph.algebra.expressions import computed_once, looked_up, opened, packed, shaped_binder
from lift_egraph.algebra.kept import is_parallel, keeping_in, keeping_of
from lift_egraph.algebra.ranged import KNOWN_ALONE, Known, Leaves, bound, leaf_bounds, moved_between, numbers_in
from lift_egraph.algebra.residues import kept
from lift_egraph.algebra.tabulated import MOST_ELEMENTS, tabulated_of
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute, with_parts
from lift_egraph.language.check import domain, type_of
from lift_egraph.language.ranges import Range, Values, ends
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.types import Array, DataType, Pair, Scalar, leaves, scalar_of

MOST = 1 << 31  # elements of an array whose length is not known

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
    >>> text = "program peak(xs: [f32]N, k: f32 in 0..1) = reduceSeq(fun (s, x) => max(k * s + x, x), 0.0, xs)"
    >>> print_term(with_ranges(parse_program(text)).body.operator)
    'fun (s, x) => max(min(max(k, 0.0), 1.0) * s + x, x)'
    """
    types = {i.name: i.type for i in program.inputs}
    of_sizes = {**dict(program.sizes), **(sizes or {})}
    own = ((name, values.substitute(of_sizes)) for name, values in program.ranges)
    ranges = {name: found for name, values in own if (found := _bounds(types[name], values))}
    body = _Ranged(ranges, of_sizes)(program.body, {})
    return program if body is program.body else replace(program, body=body)


def _bounds(t: DataType, values: Values) -> Interval | None:
    """The bounds of the numbers in an input, if they have a range that is known."""
    if not isinstance(values, Range) or values.numbers is None:
        return None
    (_, _, leaf), *_ = leaves(t)
    scalar = scalar_of(leaf)
    low, high = ends(*values.numbers, NUMPY_TYPES[scalar.name])
    return (float(low), float(high)) if scalar.is_float else (low, high)


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
        """A fold with what it takes between bounds."""
        made = self._of_whole_numbers(made, f, known)
        assert isinstance(made.operator, ir.Lambda)
        length = self._length(made.array)
        of_elements = leaf_bounds(made.array, self.ranges, known)
        operator = _of_floats(made, of_elements, self.ranges, known, MOST if length is None else length)
        found = made if operator is None else replace(made, operator=operator)
        if isinstance(found.array, ir.Map) or not isinstance(found.operator, ir.Lambda):
            return found  # what makes the elements says so
        few = self._of_few(found.operator, found.initial, found.array, known)
        return replace(found, operator=few) if few else found

    def _of_few(self, f: ir.Lambda, z: ir.Expr, array: ir.Expr, known: Known) -> ir.Lambda | None:
        """A fold's operator with its elements between their bounds, if it has a table of words for these alone."""
        if tabulated_of(f, z) or tabulated_parts(f, z):
            return None
        (interval, *others) = leaf_bounds(array, self.ranges, known)
        binder = f.binder
        if interval is None or others or not isinstance(binder, ir.PairBinder) or not isinstance(binder.second, ir.Var):
            return None
        t = binder.second.type
        if not (isinstance(t, Scalar) and t.is_integer) or interval[1] - interval[0] >= MOST_ELEMENTS:
            return None
        body = substitute(f.body, {binder.second: kept(binder.second, interval)})
        few = ir.Lambda(binder, body)
        return few if tabulated_of(few, z) or tabulated_parts(few, z) else None

    def _of_whole_numbers(self, made: ir.WholeFold, f: ir.Lambda, known: Known) -> ir.WholeFold:
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


def _of_floats(
    fold: ir.WholeFold, elements: Leaves, ranges: Mapping[str, Interval], known: Known, length: int
) -> ir.Lambda | None:
    """A fold's operator with those floats between their bounds by which it is parallel: of its elements, and of what
    stands in it. None if it is anyway, or is not then.
    """
    f, z = fold.operator, fold.initial
    assert isinstance(f, ir.Lambda)
    op = opened(f, both=True)
    if op is None or _is_parallel_for(f, z, length):
        return None
    t, argument = type_of(f.body), domain(f)
    assert isinstance(argument, Pair)
    names = ir.bound_variables(op.second)
    around = {v: own for v, own in known.items() if v not in (*op.first, *names)}
    inside = [p for r in op.results for p in ir.subterms(r) if isinstance(p, KNOWN_ALONE) and p not in names]
    found = {**dict(zip(names, elements, strict=True)), **numbers_in(inside, ranges, around)}
    moved = {p: kept(p, interval) for p, interval in found.items() if is_float(p) and interval is not None}
    binder = ir.PairBinder(shaped_binder(op.first, t), shaped_binder(names, argument.second))

    def between(parts: Mapping[ir.Expr, ir.Expr]) -> ir.Lambda:
        return ir.Lambda(binder, computed_once(packed([with_parts(r, parts) for r in op.results], t)))

    if not moved or not _is_parallel_for(between(moved), z, length):
        return None
    for part in tuple(moved):
        others = {p: e for p, e in moved.items() if p != part}
        if others and _is_parallel_for(between(others), z, length):
            moved = others
    return between(moved)


def _is_parallel_for(f: ir.Lambda, initial: ir.Expr, length: int) -> bool:
    """Whether a fold of so many elements is parallel."""
    acting = action_of(f)
    acts = isinstance(acting, Action) and acting.against(length) is None
    return acts or is_parallel(f) or keeping_of(f, initial) is not None


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
