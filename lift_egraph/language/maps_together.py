"""Maps over elements that a map makes for them alone as one: what is named outside of a map, or inside of it.

``let s = map(f, xs) in map(fun (x, y) => b, zip(xs, s))`` is ``map(fun x => let y = f(x) in b, xs)``: statistics of
rows are spelled either way, and searched as one program. A map of products, rows that meet those of another array,
stays apart: it has kernels of its own.

Source: 000 Listings 5.4 and 5.8, from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import bound_parts, in_lets, names_in, out_of_lets, substitute, unique_names
from lift_egraph.language.check import type_of
from lift_egraph.language.folds_outside import element_at
from lift_egraph.language.layout import is_layout, is_pure
from lift_egraph.language.respelled import respelled
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import I32, Array, is_data

T = TypeVar("T", bound=ir.Part)
CHEAP = 2  # sums and products that take less time than memory
REDUCTIONS = (ir.Reduce, ir.ReduceSeq, ir.ReduceByIndex)
Side = tuple[ir.Binder, ir.Expr]  # what binds the elements of an array that a map takes, and the array


def with_maps_together(program: ir.Program) -> ir.Program:
    """The program with maps that are read once, by a map of the same elements, inside of its function, and with folds
    that read what they fold as it is computed.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> named = "let s = map(reduce(max, 0.0), A) in map(fun (s, row) => map(fun x => x / s, row), zip(s, A))"
    >>> p = parse_program(f"program p(A: [[f32]N]M) where M = 3, N = 4 = {named}")
    >>> print(print_term(with_maps_together(p).body))
    map(fun row => let s1 = reduce(max, 0.0, row) in map(fun x => x / s1, row), A)
    """
    return respelled(program, _together)


def _together(term: T, inside: bool = False) -> T:
    """A term whose binders have names of their own, `inside` of a loop or not."""
    within = inside or not isinstance(term, ir.Apply)
    term = ir.map_parts(term, lambda part: _together(part, within if isinstance(part, ir.Lambda) else inside))
    match term:
        case ir.Apply(function=ir.Lambda(binder=ir.Var() as s, body=body), argument=ir.Map() | ir.Generate() as made):
            count = _count(body, s)
            if count == 1:
                joined = _read_once(body, s, made)
            else:
                joined = _read_again(body, s, made) if count > 1 and inside and _is_cheap(made) else None
            return term if joined is None else _together(joined, inside)  # pyright: ignore[reportReturnType]
        case ir.Map(function=ir.Lambda() as f):
            made = _of_what_is_read(term, f)
            if isinstance(made.function, ir.Lambda) and made.function.body == made.function.binder:
                return made.array  # pyright: ignore[reportReturnType]
            for _, array in _sides(made):
                if isinstance(array, ir.Map) and (joined := _joined(made, array, array)) is not None:
                    return _together(joined, inside)  # pyright: ignore[reportReturnType]
            return made  # pyright: ignore[reportReturnType]
    return term


def _read_again(term: ir.Expr, s: ir.Var, made: ir.Expr) -> ir.Expr | None:
    """A term with an array that takes less time to compute than to keep inside of the maps that read it."""
    taken = names_in(term) | names_in(made)

    def read(part: ir.Expr) -> ir.Expr:
        if s not in ir.free_variables(part):
            return part
        if isinstance(part, ir.Map) and any(side == s for _, side in _sides(part)):
            return _joined(part, s, unique_names(made, taken)) or part
        if isinstance(part, ir.Apply) and isinstance(part.function, ir.Lambda):
            let = replace(part.function, body=read(part.function.body))
            return ir.Apply(let, read(part.argument))
        return ir.map_parts(part, lambda p: read(p) if isinstance(p, ir.Expr) else p)

    found = read(term)
    return None if s in ir.free_variables(found) else found


def _is_cheap(made: ir.Expr) -> bool:
    """Whether a map calculates little for each of its elements."""
    if not isinstance(made, ir.Map) or not isinstance(made.function, ir.Lambda) or not is_pure(made.array):
        return False
    terms = list(ir.subterms(made.function.body))
    calls = [t.op for t in terms if isinstance(t, ir.Call)]
    scalars = all(not isinstance(t, ir.Expr) or is_data(type_of(t)) for t in terms)
    return scalars and len(calls) <= CHEAP and all(op in LAWS or op == "sub" for op in calls)


def _read_once(term: ir.Expr, s: ir.Var, made: ir.Map | ir.Generate) -> ir.Expr | None:
    """A term with an array inside of the one map or fold, outside of other loops, that reads it by its name."""
    if isinstance(term, ir.Map) and any(side == s for _, side in _sides(term)):
        return _joined(term, s, made)
    if isinstance(term, REDUCTIONS) and not _is_long(made):
        for name in ("array", "indices"):
            if getattr(term, name, None) == s:
                return replace(term, **{name: made})
    match term:
        case ir.At(array=array) if array == s and isinstance(made, ir.Map):
            return element_at(replace(term, array=made))
        case ir.Apply(function=ir.Lambda(body=body) as let):
            if s not in ir.free_variables(term.argument):
                inner = _read_once(body, s, made)
                return None if inner is None else replace(term, function=replace(let, body=inner))
    part = next((p for p in ir.parts(term) if isinstance(p, ir.Expr) and s in ir.free_variables(p)), None)
    inner = None if part is None else _read_once(part, s, made)
    return None if inner is None else ir.map_parts(term, lambda p: inner if p is part else p)


@dataclass(frozen=True)
class _Made:
    """What a map makes of elements, with these."""

    body: ir.Expr
    sides: tuple[Side, ...]


def _joined(term: ir.Map, name: ir.Expr, array: ir.Expr) -> ir.Map | None:
    """A map whose function makes one of the elements that it takes, which stand for an array of its own."""
    made, sides = _made(array), _sides(term)
    if made is None or not isinstance(term.function, ir.Lambda):
        return None
    if is_layout(term.function) or _multiplies(term.function.body):
        return None
    elements = [binder for binder, side in sides if side == name]
    if len(elements) != 1:
        return None
    body, own = made.body, list[Side]()
    for binder, side in made.sides:
        known = next((b for b, other in sides if other == side and is_pure(side)), None)
        values = None if known is None else _renamed(binder, known)
        if values is None:
            own.append((binder, side))
        else:
            body = substitute(body, values)
    beside = {v for b, side in sides if side != name for v in ir.bound_variables(b)}
    if own and ir.has_folds(made.body) and _folds(term.function, beside):
        return None  # there are plans for folds of rows of one array, and for those of another
    binder, arrays = _zipped([side for old in sides for side in (own if old[1] == name else [old])])
    lets, element = out_of_lets(body)
    return ir.Map(ir.Lambda(binder, in_lets([*lets, (elements[0], element)], term.function.body)), arrays)


def _of_what_is_read(term: ir.Map, function: ir.Lambda) -> ir.Map:
    """A map over the arrays alone whose elements its function reads."""
    sides, free = _sides(term), ir.free_variables(function.body)
    read = [side for side in sides if not free.isdisjoint(ir.bound_variables(side[0]))]
    if len(read) in (0, len(sides)):
        return term
    binder, arrays = _zipped(read)
    return ir.Map(replace(function, binder=binder), arrays)


def _zipped(sides: Sequence[Side]) -> Side:
    """Arrays as one of tuples, and what binds these."""
    binder, arrays = sides[-1]
    for b, side in sides[-2::-1]:
        binder, arrays = ir.PairBinder(b, binder), ir.Zip(side, arrays)
    return binder, arrays


def _made(array: ir.Expr) -> _Made | None:
    """What a map makes, if its function may stand in another one's."""
    match array:
        case ir.Map(function=ir.Lambda(body=body)) if not (is_layout(array.function) or _multiplies(body)):
            return _Made(body, tuple(_sides(array)))
        case ir.Generate(size=size, function=ir.Lambda(binder=ir.Var() as i, body=body)) if body != i:
            index = ir.Var(i.name + "_", I32)
            return _Made(body, ((i, ir.Generate(size, ir.Lambda(index, index))),))
    return None


def _sides(term: ir.Map) -> list[Side]:
    """The arrays of which a map takes elements, and what binds these."""
    return list(bound_parts(term.function.binder, term.array)) if isinstance(term.function, ir.Lambda) else []


def _renamed(binder: ir.Binder, known: ir.Binder) -> dict[ir.Var, ir.Expr] | None:
    """The variables of a binder by those of another one that binds the same."""
    match binder, known:
        case ir.Var(), ir.Var():
            return {binder: known}
        case ir.PairBinder(), ir.PairBinder():
            first, second = _renamed(binder.first, known.first), _renamed(binder.second, known.second)
            return None if first is None or second is None else first | second
        case ir.Var(), ir.PairBinder():
            return {binder: _value(known)}
    return None


def _value(binder: ir.Binder) -> ir.Expr:
    return binder if isinstance(binder, ir.Var) else ir.MakePair(_value(binder.first), _value(binder.second))


def _multiplies(body: ir.Expr) -> bool:
    """Whether a function of rows folds in a loop of its own, as products of matrices do."""
    functions = (t.function for t in ir.subterms(body) if isinstance(t, ir.Map | ir.Generate))
    return any(map(ir.has_folds, functions))


def _folds(function: ir.Lambda, of: set[ir.Var]) -> bool:
    """Whether a function folds what some variables stand for."""
    folds = (t for t in ir.subterms(function) if isinstance(t, ir.FOLDS))
    return any(not of.isdisjoint(ir.free_variables(fold)) for fold in folds)


def _is_long(made: ir.Expr) -> bool:
    """Whether an array has arrays for elements."""
    t = type_of(made)
    return not is_data(t.element if isinstance(t, Array) else t)


def _count(term: ir.Part, v: ir.Var) -> int:
    """How often a variable stands in a term."""
    if v not in ir.free_variables(term):
        return 0
    return 1 if term == v else sum(_count(part, v) for part in ir.parts(term))
