"""What is little as one row, so that one group of a GPU computes it: no kernel waits for another's few numbers.

A launch takes longer than a group takes for some thousands of elements: of the softmax of a vector, whose stages are
the largest element, the sum and the quotients, the kernels of these would do next to nothing. The arrays that are read
get names, and what is computed of them becomes a function of a row, the only one. The terms are built here as the
rules `lift_egraph.rules.stages` build them; that they do is what the phases ``naming`` and ``one_row`` show.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from lift_egraph.algebra.laws import associative, commutative
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, in_lets, names_in, out_of_lets, unique_names, with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.nat import nat
from lift_egraph.language.types import Array, Scalar, bytes_of, is_data
from lift_egraph.meaning.flops import operations
from lift_egraph.workbench.changes.outside import all_outside
from lift_egraph.workbench.planning.plan import length_of, variables_of

LONGEST, MOST = 1 << 16, 4  # elements of a row that a group reads in less time than a launch takes; rows
WORK = 1 << 20  # floating-point operations, for which a group takes as long as a launch
SERIAL = 1 << 10  # elements from which a fold takes two kernels
_MOVES = (ir.Call, ir.Zip, ir.MakePair, ir.Component, ir.Slice, ir.At)


def with_one_row(term: ir.Expr, local_memory: int) -> list[ir.Expr]:
    """The term with a name for one array that its last stages read, or those of a step, after the other, and then with
    these as a row's; nothing if the stages are not little, or what they keep does not fit so many bytes.
    """
    term = unique_names(term)
    taken = names_in(term)
    if made := _last_as_row(term, local_memory, taken):
        return made
    for part in all_outside(term):
        if isinstance(part, ir.Iterate) and isinstance(step := part.function, ir.Lambda):
            made = _last_as_row(step.body, local_memory, taken)
            if made:
                return [with_parts(term, {part: replace(part, function=ir.Lambda(step.binder, b))}) for b in made]
    return []


def _last_as_row(term: ir.Expr, local_memory: int, taken: set[str]) -> list[ir.Expr]:
    lets, body = out_of_lets(term)
    for count in range(len(lets) + 1):
        around, rest = lets[:count], in_lets(lets[count:], body)
        arrays = _Reading.of(rest, local_memory)
        if arrays and not any(value in arrays for _, value in lets[count : count + 1]):  # or it has a name already
            break
    else:
        return []
    made: list[ir.Expr] = []
    rows: list[tuple[ir.Var, ir.Expr]] = []
    for array in sorted(arrays, key=is_pure):
        t = type_of(array)
        if not is_pure(array):
            around = (*around, (name := ir.Var(fresh_name("read", taken), t), array))
            rest, array = with_parts(rest, {array: name}), name
            made.append(in_lets((*around, *rows), rest))
        rows = [(ir.Var(fresh_name("row", taken), t), array), *rows]
        rest = with_parts(rest, {array: rows[0][0]})
        made.append(in_lets((*around, *rows), rest))
    if operations(rest) > WORK:
        return []
    binder = reduce(lambda p, v: ir.PairBinder(v, p), (v for v, _ in reversed(rows)))
    row = reduce(lambda xss, xs: ir.Zip(xs, xss), (_row(array) for _, array in reversed(rows)))
    return [*made, in_lets(around, ir.At(nat(0), ir.Map(ir.Lambda(binder, rest), row)))]


def _row(array: ir.Expr) -> ir.Expr:
    return ir.Split(nat(length_of(array)), array)


def _is_sum(fold: ir.Reduce) -> bool:
    """Whether the items of a group share a fold: others are better in chunks of many groups."""
    is_scalar = isinstance(type_of(fold.initial), Scalar)
    return is_scalar and bool(associative(fold.operator)) and commutative(fold.operator) is not None


def _is_plain(part: ir.Part) -> bool:
    """Whether a part computes scalars of scalars."""
    return not any(isinstance(t, (ir.Map, ir.Generate, *ir.FOLDS)) for t in ir.subterms(part))


def _arrays_in(part: ir.Part) -> dict[ir.Expr, None]:
    """The arrays that a part mentions, and others give it."""
    free = ir.free_variables(part)
    named = (t for t in ir.subterms(part) if isinstance(t, ir.Input) or (isinstance(t, ir.Var) and t in free))
    return {t: None for t in named if isinstance(type_of(t), Array)}


class _Reading:
    """Which arrays stages read, and how long the arrays are that they fold."""

    def __init__(self) -> None:
        self.arrays: dict[ir.Expr, None] = {}
        self.folded: list[int] = []
        self.kept = 0  # bytes that are computed and read again

    @staticmethod
    def of(term: ir.Expr, local_memory: int) -> tuple[ir.Expr, ...]:
        """The arrays, if one group is to compute the term alone; none if it takes one kernel, or is too much for it."""
        result, found = type_of(term), _Reading()
        element = result.element if isinstance(result, Array) else result
        if not (is_data(element) and found.reads(term, frozenset())):
            return ()
        kernels = sum(2 if length >= SERIAL else 1 for length in found.folded) + isinstance(result, Array)
        is_worth_it = found.folded and kernels > 1 and found.kept <= local_memory
        return tuple(found.arrays) if is_worth_it and 0 < len(found.arrays) <= MOST else ()

    def reads(self, term: ir.Expr, bound: frozenset[ir.Var]) -> bool:
        """Whether a term is little, apart from the arrays that it reads; `bound` are the names of its own."""
        match term:
            case ir.Apply(function=ir.Lambda(binder=p, body=body), argument=argument):
                self.kept += 0 if is_pure(argument) else bytes_of(type_of(argument))
                return self.reads(argument, bound) and self.reads(body, bound | variables_of(p))
            case ir.Reduce(operator=f, initial=initial, array=array) if _is_sum(term):
                self.folded.append(length_of(array))
                return self.reads(initial, bound) and self.reads(array, bound) and self.has_rows(f, bound)
            case ir.Map(function=f, array=array) if _is_plain(f):
                return self.reads(array, bound) and self.has_rows(f, bound)
            case ir.Generate(function=f) if _is_plain(f) and not _arrays_in(f):
                return True
        if isinstance(term, _MOVES):
            return all(self.reads(part, bound) for part in ir.parts(term) if isinstance(part, ir.Expr))
        if isinstance(t := type_of(term), Array):
            return term in bound or self.is_row(term, t, bound)
        return _is_plain(term) and self.has_rows(term, bound)

    def has_rows(self, part: ir.Part, bound: frozenset[ir.Var]) -> bool:
        """Whether the arrays that a function mentions can be rows."""
        return all(self.reads(array, bound) for array in _arrays_in(part))

    def is_row(self, array: ir.Expr, t: Array, bound: frozenset[ir.Var]) -> bool:
        """Whether an array that others make can be a row."""
        self.arrays[array] = None
        fits = is_data(t.element) and 0 < length_of(array) <= LONGEST
        return fits and ir.free_variables(array).isdisjoint(bound)
