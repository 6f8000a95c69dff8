"""The naive low-level term: one work-item an element, every reduction a loop. What optimisation is measured against.

A program may have several stages. What a ``let`` outside of all loops binds, or a nest of maps outside of all loops
reads, is computed by kernels of its own and stands in global memory; inside of a work-item, lowering finds a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from lift_egraph.egraph.encoding import known_operator
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in, substitute, unique_names
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_layout, is_pure, reordered
from lift_egraph.language.types import I32, Array, DataType

MOST_DIMENSIONS = 3
STEPS = (ir.ReduceSeq, ir.ScanSeq, ir.ScanExclusiveSeq)  # loops of programs that are not optimised yet
COMPUTING = (ir.Call, *ir.FOLDS, ir.ToMemory)  # the nodes that do more than rearrange data


def computes(term: ir.Part) -> bool:
    """Whether a term does more than rearrange data."""
    return any(isinstance(t, COMPUTING) for t in ir.subterms(term))


def naive_term(program: ir.Program) -> ir.Program:
    """The program with the outer maps of each stage on work-items, and everything inside them sequential.

    What is only rearranged is copied, an element a work-item.
    """
    return replace(program, body=unique_names(_stage(program.body, True)))


def is_sequential(term: ir.Expr) -> bool:
    """Whether a term is a loop whose steps need what was before: no work-items share what is outside of it.

    >>> from lift_egraph.language.syntax import parse_program
    >>> loop = "reduceSeq(fun (s, x) => map(fun a => 0.5 * a + x, s), fill(4, 0.0), xs)"
    >>> [is_sequential(parse_program(f"program p(xs: [f32]9) = {e}").body) for e in (loop, f"map(fun x => -x, {loop})")]
    [True, False]
    """
    if not any(isinstance(part, STEPS) for part in ir.subterms(term)):
        return False
    shared = (p for p in ir.subterms(_stage(term, True)) if isinstance(p, ir.MapLevel) and p.level != ir.SEQ)
    return not any(computes(p.function) for p in shared)


def _stage(term: ir.Expr, is_stored: bool = False) -> ir.Expr:
    """A term outside of all loops; `is_stored` says that its value is written to memory as it stands."""
    match term:
        case ir.Apply(function=ir.Lambda() as function):
            body = ir.Lambda(function.binder, _stage(function.body, is_stored))
            return ir.Apply(body, _stage(term.argument))
        case ir.Iterate(function=function):
            body = ir.Lambda(function.binder, _stage(function.body, True))
            return ir.Iterate(term.times, term.size, body, _stage(term.array))
        case ir.Reduce() | ir.Scan() | ir.ScanExclusive() | ir.ReduceRange():
            return _loop(term, _stage)
        case ir.ReduceByIndex():
            return _loop_by_index(term, _stage)
    nest = _map_of(term)
    if nest is not None and (is_stored or not is_pure(term)):
        return _parallel(nest, _depth(nest), _stage(nest.array))
    is_passed_on = isinstance(term, ir.Zip | ir.MakePair | ir.Concat | ir.ToMemory) or reordered(term) is not None
    if is_stored and not is_passed_on and isinstance(t := type_of(term), Array):
        return _copied(_stage(term), min(MOST_DIMENSIONS, _nested(t)))
    is_view = nest is not None  # its function is read through as well
    return ir.map_parts(
        term,
        lambda p: (
            _stage(p, is_stored and is_passed_on) if isinstance(p, ir.Expr) else p if is_view else _lower_function(p, 0)
        ),
    )


def _nested(t: DataType) -> int:
    """How many arrays stand directly inside each other."""
    return 1 + _nested(t.element) if isinstance(t, Array) else 0


def _copied(array: ir.Expr, dimensions: int) -> ir.Expr:
    """The array copied by as many work-items as its outer dimensions have elements."""
    t = type_of(array)
    assert isinstance(t, Array)
    element = ir.Var("x", t.element)
    body = _copied(element, dimensions - 1) if dimensions > 1 else element
    return ir.MapLevel(ir.Level("glb", dimensions - 1), ir.Lambda(element, body), array)


def _map_of(term: ir.Expr) -> ir.Map | None:
    """A term that computes an array element by element, as a map."""
    if isinstance(term, ir.Map) and (computes(term.function) or not is_layout(term.function)):
        return term
    if isinstance(term, ir.Generate) and computes(term.function):
        index = ir.Var("i", I32)
        return ir.Map(term.function, ir.Generate(term.size, ir.Lambda(index, index)))
    return None


def _depth(term: ir.Expr, inside: bool = False) -> int:
    """How many maps stand directly inside each other at the outside of a term.

    A map `inside` of another one counts if what it reads is there already: else each work-item would compute it.
    """
    nest = _map_of(term)
    if nest is not None:
        if inside and not is_pure(nest.array):
            return 0
        return min(MOST_DIMENSIONS, 1 + _depth(ir.function_body(nest.function).body, True))
    if isinstance(term, ir.Apply) and isinstance(term.function, ir.Lambda) and is_pure(term.argument):
        return _depth(term.function.body, inside)
    array = reordered(term)
    return 0 if array is None else _depth(array, inside)


def _parallel(nest: ir.Map, dimensions: int, array: ir.Expr) -> ir.Expr:
    return ir.MapLevel(ir.Level("glb", dimensions - 1), _lower_function(nest.function, dimensions - 1), array)


def _lower(term: ir.Expr, dimensions: int) -> ir.Expr:
    """`dimensions`: how many of the maps to come are parallel; the innermost of them is dimension 0."""
    if dimensions and (nest := _map_of(term)) is not None:
        return _parallel(nest, dimensions, _lower(nest.array, 0))
    if isinstance(term, ir.Map) and _map_of(term) is not None:
        return ir.MapLevel(ir.SEQ, _lower_function(term.function, 0), _lower(term.array, 0))
    if isinstance(term, ir.Reduce | ir.Scan | ir.ScanExclusive | ir.ReduceRange):
        return _loop(term, _in_a_loop)
    if isinstance(term, ir.ReduceByIndex):
        return _loop_by_index(term, _in_a_loop)
    if isinstance(term, ir.Apply) and isinstance(term.function, ir.Lambda):
        return ir.Apply(_lower_function(term.function, dimensions), _lower(term.argument, 0))
    passed = 0 if reordered(term) is None else dimensions
    return ir.map_parts(term, lambda p: _lower(p, passed) if isinstance(p, ir.Expr) else _lower_function(p, 0))


def _in_a_loop(term: ir.Expr) -> ir.Expr:
    return _lower(term, 0)


def _lower_function(f: ir.Function, dimensions: int) -> ir.Function:
    if isinstance(f, ir.Vectorize):
        return ir.Vectorize(f.width, ir.Lambda(f.function.binder, _lower(f.function.body, 0)))
    return ir.Lambda(f.binder, _lower(f.body, dimensions))


def _loop(
    term: ir.Reduce | ir.Scan | ir.ScanExclusive | ir.ReduceRange, lower: Callable[[ir.Expr], ir.Expr]
) -> ir.Expr:
    """A reduction or scan as a loop. A map in front of it is applied on the fly (000, Listing 5.7).

    Not so outside of all loops where each of the map's elements is a loop itself: those are computed in parallel.
    """
    operator = _lower_function(ir.function_body(term.operator), 0)
    initial = _lower(term.initial, 0)
    ends = (lower(term.low), lower(term.high)) if isinstance(term, ir.ReduceRange) else ()
    made, taken, array = ir.LOOP_OF[type(term)], names_in(term), term.array
    assert isinstance(operator, ir.Lambda)
    if isinstance(array, ir.Map) and isinstance(array.function, ir.Lambda) and computes(array.function):
        is_short = not ir.has_folds(array.function)
        if is_short or lower is _in_a_loop:
            inner = _named(array.function, taken, ir.free_variables(term))
            acc = ir.Var(fresh_name("acc", taken), type_of(term.initial))
            value = _lower(inner.body, 0)
            applied = _applied if isinstance(term, ir.Reduce) else partial(_bound, name=fresh_name("x", taken))
            value = applied(operator, acc, value)
            return made(ir.Lambda(ir.PairBinder(acc, inner.binder), value), initial, *ends, lower(array.array))
    if known_operator(ir.function_body(term.operator)) is None:  # as the rules for loops write it
        acc, x = (ir.Var(fresh_name(name, taken), type_of(term.initial)) for name in ("acc", "x"))
        operator = ir.Lambda(ir.PairBinder(acc, x), ir.Apply(operator, ir.MakePair(acc, x)))
    return made(operator, initial, *ends, lower(array))


def _loop_by_index(term: ir.ReduceByIndex, lower: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """A reduction by index as a loop; maps in front of it are applied on the fly, as `_loop` does."""
    operator = _lower_function(ir.function_body(term.operator), 0)
    assert isinstance(operator, ir.Lambda)
    sides: list[tuple[ir.Binder, ir.Expr, ir.Expr]] = []
    bound, taken = list[ir.Var](), names_in(term)
    for name, array in (("i", term.indices), ("x", term.array)):
        if isinstance(array, ir.Map) and isinstance(array.function, ir.Lambda) and _is_short(array.function):
            inner = _named(array.function, taken, (*ir.free_variables(term), *bound))
            bound += ir.bound_variables(inner.binder)
            sides.append((inner.binder, _lower(inner.body, 0), lower(array.array)))
        else:
            t = type_of(array)
            assert isinstance(t, Array)
            element = ir.Var(fresh_name(name, taken), t.element)
            sides.append((element, element, lower(array)))
    (i, place, indices), (x, value, array) = sides
    acc = ir.Var(fresh_name("acc", taken), type_of(term.array).element)  # pyright: ignore[reportAttributeAccessIssue]
    each = ir.PairBinder(i, x)
    body = _applied(operator, acc, value)
    initial = lower(term.initial)
    return ir.ReduceByIndexSeq(
        ir.Lambda(each, place), ir.Lambda(ir.PairBinder(acc, each), body), initial, ir.Zip(indices, array)
    )


def _named(function: ir.Lambda, taken: set[str], others: Iterable[ir.Var]) -> ir.Lambda:
    """A function whose binders have other names than these variables; they are `taken` then."""
    made = unique_names(function, {v.name for v in others})
    taken |= names_in(made)
    return made


def _is_short(function: ir.Lambda) -> bool:
    """Whether a function computes, but no loops."""
    return computes(function) and not ir.has_folds(function)


def _applied(operator: ir.Lambda, acc: ir.Var, value: ir.Expr) -> ir.Expr:
    """An operation of the accumulator and a value, or a function of both, as the rules for loops write it."""
    match operator.binder:
        case ir.PairBinder(ir.Var() as a, ir.Var() as b) if known_operator(operator) is not None:
            return substitute(operator.body, {a: acc, b: value})
    return ir.Apply(operator, ir.MakePair(acc, value))


def _bound(operator: ir.Lambda, acc: ir.Var, value: ir.Expr, name: str) -> ir.Expr:
    """The same with a name for the value, which the rules for other loops give what a function takes."""
    if known_operator(operator) is not None:
        return _applied(operator, acc, value)
    x = ir.Var(name, type_of(value))
    return ir.Apply(ir.Lambda(x, _applied(operator, acc, x)), value)
