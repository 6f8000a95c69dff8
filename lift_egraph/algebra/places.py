"""Whether the places of a reduction by index are distinct, so that its elements need not wait for each other.

Places that count what was kept before them are: where flags are 0 or 1, their exclusive scan by + grows after each
element whose flag is 1. So no two elements that are kept at what the scan gives have one place, and those that are not
kept have none: their index is negative. The same holds for places that grow, or fall, with the position of the element.

It is shown for one element, whatever its values are: a case for each outcome of the comparisons that flags and places
make. In each case that keeps the element its place is what the scan gives, and the scan counts the element.

Source: Blelloch, "Prefix sums and their applications", 1990 (the pack operation).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lift_egraph.algebra.expressions import simplified
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute, unique_names
from lift_egraph.language.check import element_type, size_of, type_of
from lift_egraph.language.sizes import number_of
from lift_egraph.language.types import BOOL, I32, DataType

MOST_CASES = 256  # outcomes of comparisons
MOST_PLACES = 1 << 31
COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
Lets = Mapping[ir.Var, ir.Expr]


@dataclass(frozen=True)
class Linear:
    """A whole number: a multiple of what counts, and so much more."""

    times: int
    more: int


@dataclass(frozen=True)
class _Open(Exception):
    """The value depends on a comparison whose outcome is not assumed yet, or on a side of a concatenation."""

    on: ir.Expr


class _Unknown(Exception):
    """The value is no such number."""


@dataclass
class _Elements:
    """What the elements of arrays are, one position of all of them.

    Attributes
    ----------
    lets
        What the variables stand for.
    counts
        The elements whose exclusive scan by + a variable stands for, and what the scan begins with.
    positions
        The variables that stand for the position.
    sides
        The elements of both parts of a concatenation that a variable stands for.
    """

    lets: Lets
    counts: dict[ir.Var, tuple[ir.Expr, int]] = field(default_factory=dict)
    positions: set[ir.Var] = field(default_factory=set)
    sides: dict[ir.Var, tuple[ir.Expr, ir.Expr]] = field(default_factory=dict)
    known: dict[ir.Expr, ir.Expr] = field(default_factory=dict)

    def of(self, array: ir.Expr) -> ir.Expr:
        """An element of an array; equal arrays have equal ones."""
        array = self.resolved(array)
        if array not in self.known:
            self.known[array] = self._of(array)
        return self.known[array]

    def resolved(self, array: ir.Expr) -> ir.Expr:
        while isinstance(array, ir.Var) and array in self.lets:
            array = self.lets[array]
        return array

    def _of(self, array: ir.Expr) -> ir.Expr:
        match array:
            case ir.Map(function=ir.Lambda() as f, array=xs) | ir.MapLevel(function=ir.Lambda() as f, array=xs):
                return simplified(ir.Apply(unique_names(f), self.of(xs)))
            case ir.Apply(function=ir.Lambda(binder=ir.Var() as v, body=body), argument=argument):
                return self.of(substitute(body, {v: argument}))
            case ir.Zip(first=a, second=b):
                return ir.MakePair(self.of(a), self.of(b))
            case ir.Generate(function=ir.Lambda() as f):
                position = self._variable("position", I32)
                self.positions.add(position)
                return simplified(ir.Apply(unique_names(f), position))
            case ir.ScanExclusive() | ir.ScanExclusiveSeq() | ir.Scan() | ir.ScanSeq() if (
                _adds(array.operator)
                and type_of(array.initial) == I32
                and (start := number_of(array.initial)) is not None
            ):
                counted, before = self.of(array.array), self._variable("before", I32)
                self.counts[before] = counted, start
                is_exclusive = isinstance(array, ir.ScanExclusive | ir.ScanExclusiveSeq)
                return before if is_exclusive else ir.Call("add", (before, counted))
            case ir.Concat(first=a, second=b):
                either = self._variable("either", element_type(array))
                self.sides[either] = self.of(a), self.of(b)
                return either
            case ir.Fill(value=value):
                return value
        return self._variable("element", element_type(array))

    def _variable(self, name: str, t: DataType) -> ir.Var:
        """One that no program has."""
        return ir.Var(f"${name} {len(self.known)}", t)


def distinct_places(indices: ir.Expr, lets: Lets | None = None) -> str | None:
    """Why no two of these indices are one place, in words; None if that is not known.

    Parameters
    ----------
    lets
        What the variables in the indices stand for.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> text = '''program p(keep: [bool]9) =
    ...   map(fun (k, p) => select(k, p, -1), zip(keep, scanExclusive(add, 0, map(fun k => select(k, 1, 0), keep))))'''
    >>> distinct_places(parse_program(text).body)
    'an exclusive scan counts each element that is kept'
    >>> distinct_places(parse_program(text.replace("1, 0)", "0, 1)")).body)
    """
    elements = _Elements(lets or {})
    try:
        place = elements.of(indices)
        found = list(_cases(place, elements))
    except (_Unknown, LiftError, RecursionError):
        return None
    n = size_of(indices).constant
    counters = {c for c, _, _ in found if c is not None}
    if n is None or len(counters) != 1 or len({linear for c, linear, _ in found if c is not None}) != 1:
        return None
    ((counter, linear, _), *_) = [case for case in found if case[0] is not None]
    assert counter is not None
    if counter in elements.positions:
        in_range = abs(linear.times) * n + abs(linear.more) < MOST_PLACES
        return "they follow the positions of the elements" if linear.times and in_range else None
    _, start = elements.counts[counter]
    most = max(count for _, _, count in found)
    in_range = n * most + abs(start) + abs(linear.more) < MOST_PLACES
    counted = all(count > 0 if c is not None else count >= 0 for c, _, count in found)
    return "an exclusive scan counts each element that is kept" if linear.times == 1 and in_range and counted else None


def _cases(place: ir.Expr, elements: _Elements) -> Iterator[tuple[ir.Var | None, Linear, int]]:
    """What a place follows in each case, how, and what the scan that it follows counts; nothing where it is outside.

    Cases that are outside count what any scan of the place counts.
    """
    left, open_cases = MOST_CASES, list[dict[ir.Expr, int]]([{}])
    used = [v for v in elements.counts if any(t == v for t in ir.subterms(place))]
    counter = used[0] if len(used) == 1 else None
    while open_cases:
        left -= 1
        if left < 0:
            raise _Unknown
        case = open_cases.pop()
        try:
            followed, linear = _value(place, case, elements)
            count = 0
            if counter is not None:
                with_count, counted = _value(elements.counts[counter][0], case, elements)
                if with_count is not None:
                    raise _Unknown
                count = counted.more
        except _Open as problem:
            open_cases += [{**case, problem.on: outcome} for outcome in (0, 1)]
            continue
        if count < 0 or (followed is None and linear.more >= 0):
            raise _Unknown
        yield followed, linear, count


def _value(term: ir.Expr, case: Mapping[ir.Expr, int], elements: _Elements) -> tuple[ir.Var | None, Linear]:
    """A whole number as what it follows and how; a truth value as 0 or 1."""
    match term:
        case ir.Literal(value=value) if type_of(term) in (I32, BOOL):
            return None, Linear(0, int(value))  # pyright: ignore[reportArgumentType]
        case ir.SizeLiteral() if (n := number_of(term)) is not None:
            return None, Linear(0, n)
        case ir.Var() if term in elements.counts or term in elements.positions:
            return term, Linear(1, 0)
        case ir.Var() if term in elements.sides:
            return _value(elements.sides[term][_outcome(term, case)], case, elements)
        case ir.Call("select", (condition, inside, outside)):
            holds = _truth(condition, case, elements)
            return _value(inside if holds else outside, case, elements)
        case ir.Call("to_i32", (inner,)) if type_of(inner) == BOOL:
            return None, Linear(0, _truth(inner, case, elements))
        case ir.Call("add" | "sub" as op, (a, b)) if type_of(term) == I32:
            (x, left), (y, right) = _value(a, case, elements), _value(b, case, elements)
            sign = 1 if op == "add" else -1
            if x is not None and y is not None:
                raise _Unknown
            return x if y is None else y, _kept(left.times + sign * right.times, left.more + sign * right.more)
        case ir.Call("mul", (a, b)) if type_of(term) == I32:
            (x, left), (y, right) = _value(a, case, elements), _value(b, case, elements)
            if x is not None and y is not None:
                raise _Unknown
            (other, linear), factor = ((x, left), right.more) if y is None else ((y, right), left.more)
            return other, _kept(linear.times * factor, linear.more * factor)
        case _ if type_of(term) == BOOL:
            return None, Linear(0, _truth(term, case, elements))
    raise _Unknown


def _kept(times: int, more: int) -> Linear:
    """What does not wrap around by itself."""
    if max(abs(times), abs(more)) >= MOST_PLACES:
        raise _Unknown
    return Linear(times, more)


def _truth(term: ir.Expr, case: Mapping[ir.Expr, int], elements: _Elements) -> int:
    match term:
        case ir.Literal(value=value):
            return int(value)  # pyright: ignore[reportArgumentType]
        case ir.Var() if term in elements.sides:
            return _truth(elements.sides[term][_outcome(term, case)], case, elements)
        case ir.Call("not", (a,)):
            return 1 - _truth(a, case, elements)
        case ir.Call("and", (a, b)):
            return _truth(a, case, elements) and _truth(b, case, elements)
        case ir.Call("or", (a, b)):
            return _truth(a, case, elements) or _truth(b, case, elements)
        case ir.Call("select", (condition, inside, outside)):
            return _truth(inside if _truth(condition, case, elements) else outside, case, elements)
        case ir.Call(op, (a, b)) if op in COMPARISONS and type_of(a) in (I32, BOOL):
            try:
                (x, left), (y, right) = _value(a, case, elements), _value(b, case, elements)
            except _Unknown:
                return _outcome(term, case)
            if x is None and y is None:
                return int(COMPARISONS[op](left.more, right.more))
    return _outcome(term, case)


def _outcome(term: ir.Expr, case: Mapping[ir.Expr, int]) -> int:
    if term not in case:
        raise _Open(term)
    return case[term]


def _adds(operator: ir.Function) -> bool:
    """Whether an operator is the addition of its two arguments."""
    function = ir.function_body(operator)
    binder = function.binder
    if not isinstance(binder, ir.PairBinder):
        return False
    both = binder.first, binder.second
    return function.body in (ir.Call("add", both), ir.Call("add", both[::-1]))  # pyright: ignore


def distinct_in(term: ir.Expr) -> dict[ir.Expr, str]:
    """The indices of reductions by index in a term that are distinct places, and why.

    Variables that are bound several times in the term stand for nothing.
    """
    folds = [t for t in ir.subterms(term) if isinstance(t, ir.ReduceByIndex)]
    lets = _lets(term) if folds else {}
    found = {fold.indices: distinct_places(fold.indices, lets) for fold in folds}
    return {indices: why for indices, why in found.items() if why}


def doubtful_in(term: ir.Expr) -> list[ir.ReduceByIndexGlb]:
    """The reductions by index with a work-item for each element whose places are not known to be distinct."""
    folds = [t for t in ir.subterms(term) if isinstance(t, ir.ReduceByIndexGlb)]
    lets = _lets(term) if folds else {}
    return [fold for fold in folds if distinct_places(ir.Map(fold.place, fold.array), lets) is None]


def _lets(term: ir.Expr) -> dict[ir.Var, ir.Expr]:
    functions = [t for t in ir.subterms(term) if isinstance(t, ir.Lambda)]
    bound = Counter(v for f in functions for v in ir.bound_variables(f.binder))
    return {
        t.function.binder: t.argument
        for t in ir.subterms(term)
        if isinstance(t, ir.Apply)
        and isinstance(t.function, ir.Lambda)
        and isinstance(t.function.binder, ir.Var)
        and bound[t.function.binder] == 1
    }
