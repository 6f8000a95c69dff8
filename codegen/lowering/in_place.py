"""Whether a reduction may update its accumulator array in place.

It may where every element of the new value depends, of the old value, on the same element only; and where all elements
but one are as they were, whatever that one depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lift_egraph.algebra.cases import conjuncts
from lift_egraph.language import ir
from lift_egraph.language.binders import bound_to
from lift_egraph.language.check import type_of
from lift_egraph.language.types import is_data


def updates_in_place(body: ir.Expr, accumulator: ir.Binder) -> bool:
    """Whether `body`, written element by element over the accumulator, reads no element already overwritten."""
    if not isinstance(accumulator, ir.Var):
        return False
    return _aligned(body, frozenset((accumulator,)), frozenset((accumulator,)))


def are_apart(body: ir.Expr, accumulator: ir.Binder) -> bool:
    """Whether a step gives a tuple of which each array follows from that array before, and from no other one."""
    if not isinstance(accumulator, ir.PairBinder) or not isinstance(body, ir.MakePair):
        return False
    pairs = [*components(body, accumulator)]
    arrays = [frozenset(v for v in ir.bound_variables(p) if not is_data(v.type)) for _, p in pairs]
    return all(
        is_data(type_of(part)) or not _mentions(part, frozenset().union(*arrays[:k], *arrays[k + 1 :]))
        for k, (part, _) in enumerate(pairs)
    )


def components(body: ir.Expr, pattern: ir.Binder) -> Iterator[tuple[ir.Expr, ir.Binder]]:
    """The components of a tuple, with the patterns that they are bound by."""
    if isinstance(body, ir.MakePair) and isinstance(pattern, ir.PairBinder):
        yield from components(body.first, pattern.first)
        yield from components(body.second, pattern.second)
    else:
        yield body, pattern


def one_place(
    body: ir.Expr, accumulator: ir.Binder, counts: Callable[[ir.Expr], bool]
) -> tuple[ir.MapLevel, ir.Expr, ir.Expr] | None:
    """The map that `body` is, the only place where it gives another value than the accumulator has, and that value.

    As in ``map (λ(x, j). select(j == i, v, x)) (zip xs (generate n id))``, where `i` depends on no element. `counts`
    says which arrays are of their indices.
    """
    match body:
        case ir.MapLevel(level=ir.SEQ, function=ir.Lambda() as function, array=array):
            bound = [*bound_to(function.binder, array)]
            own = [v for v, xs in bound if xs == accumulator]
            indices = [v for v, xs in bound if counts(xs)]
            if len(own) == 1 and (found := _chosen(function.body, own[0])) is not None:
                condition, value = found
                inner = frozenset(ir.bound_variables(function.binder))
                for number, part in enumerate(parts := [*conjuncts(condition)]):
                    place = _equal_to(part, indices)
                    if place is not None and not _mentions(place, inner):
                        for other in reversed(parts[:number] + parts[number + 1 :]):
                            value = ir.Call("select", (other, value, own[0]))
                        return body, place, value
    return None


def _chosen(body: ir.Expr, old: ir.Var) -> tuple[ir.Expr, ir.Expr] | None:
    """Where a value is another one than before, and what it is there."""
    match body:
        case ir.Call("select", (ir.Call("ne", (a, b)), kept, value)) if kept == old:
            return ir.Call("eq", (a, b)), value
        case ir.Call("select", (condition, value, kept)) if kept == old:
            return condition, value
    return None


def _equal_to(condition: ir.Expr, indices: list[ir.Var]) -> ir.Expr | None:
    """What an index is compared with."""
    match condition:
        case ir.Call("eq", (a, b)) if a in indices:
            return b
        case ir.Call("eq", (a, b)) if b in indices:
            return a
    return None


def _mentions(term: ir.Part, variables: frozenset[ir.Var]) -> bool:
    return bool(ir.free_variables(term) & variables)


def _aligned(term: ir.Expr, here: frozenset[ir.Expr], old: frozenset[ir.Var]) -> bool:
    """`here` are the terms that denote exactly the place being written; `old` all variables that reach into it."""
    if term in here or not _mentions(term, old):
        return True
    match term:
        case ir.MapLevel(function=function, array=array):
            lambda_ = ir.function_body(function)
            elements = _element_variables(lambda_.binder, array, here, old)
            return elements is not None and _aligned(lambda_.body, frozenset(elements), old | elements)
        case ir.ReduceSeq(operator=operator, initial=initial, array=array):
            pattern = ir.function_body(operator).binder
            if initial not in here or _mentions(array, old) or not isinstance(pattern, ir.PairBinder):
                return False
            if not isinstance(pattern.first, ir.Var):
                return False
            inner = ir.function_body(operator).body
            return not _mentions(operator, old) and _aligned(inner, frozenset((pattern.first,)), old | {pattern.first})
        case ir.ToMemory(value=value):
            return _aligned(value, here, old)
        case ir.Apply(function=function, argument=argument) if not _mentions(argument, old):
            return _aligned(ir.function_body(function).body, here, old)
        case ir.Join(array=array):
            chunk = type_of(array).element.size  # pyright: ignore[reportAttributeAccessIssue]
            return _aligned(array, frozenset(ir.Split(chunk, h) for h in here), old)
        case ir.Transpose(array=array):
            return _aligned(array, frozenset(ir.Transpose(h) for h in here), old)
        case ir.Split(array=array):
            return _aligned(array, frozenset(ir.Join(h) for h in here), old)
        case ir.AsScalar(array=array):
            width = type_of(term).size // type_of(array).size  # pyright: ignore[reportAttributeAccessIssue]
            return _aligned(array, frozenset(ir.AsVector(width.constant or 1, h) for h in here), old)
    return is_data(type_of(term)) and all(v in here for v in ir.free_variables(term) & old)


def _element_variables(
    pattern: ir.Binder, array: ir.Expr, here: frozenset[ir.Expr], old: frozenset[ir.Var]
) -> frozenset[ir.Var] | None:
    """The variables that a map over zipped arrays binds to elements of the place itself; None if it reads others."""
    if array in here:
        return frozenset((pattern,)) if isinstance(pattern, ir.Var) else None
    if not _mentions(array, old):
        return frozenset()
    if isinstance(array, ir.AsVector) and isinstance(array.array, ir.Zip):  # vectors of pairs are pairs of vectors
        array = ir.Zip(*(ir.AsVector(array.width, xs) for xs in (array.array.first, array.array.second)))
    if isinstance(array, ir.Zip) and isinstance(pattern, ir.PairBinder):
        first = _element_variables(pattern.first, array.first, here, old)
        second = _element_variables(pattern.second, array.second, here, old)
        return None if first is None or second is None else first | second
    return None
