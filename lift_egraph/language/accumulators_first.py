"""Operators of folds with the accumulator before the element: ``fun (a, b) => b + a`` as ``fun (a, b) => a + b``.

Operations that commute have one form in an operator, so that what is known of it, and what rules make of it, do not
depend on how it is written. So has a choice of the larger of two whole numbers, or the smaller: ``max`` or ``min``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from lift_egraph.language import ir
from lift_egraph.language.binders import bound_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.respelled import respelled
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Scalar

T = TypeVar("T", bound=ir.Part)
LARGER = {"gt": 0, "ge": 0, "lt": 1, "le": 1}  # which argument of a comparison that holds is larger


def with_accumulators_first(program: ir.Program) -> ir.Program:
    """The program with the accumulator first in each operation of its folds that commutes.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = "reduceSeq(fun ((s, m), x) => (x * x + s, if m < x then x else m), (0, 0), xs)"
    >>> p = parse_program(f"program p(xs: [i32]N) where N = 4 = {fold}")
    >>> print(print_term(with_accumulators_first(p).body))
    reduceSeq(fun ((s, m), x) => (s + x * x, max(m, x)), (0, 0), xs)
    """
    return respelled(program, _first)


def accumulator_first(operator: ir.Function) -> ir.Function:
    """An operator of folds with the accumulator, its first argument, first in each operation that commutes; the names
    of its binders are all different, as `lift_egraph.language.binders.unique_names` gives them.

    Examples
    --------
    >>> from lift_egraph.language.pretty import print_term
    >>> from lift_egraph.language.syntax import parse_program
    >>> fold = parse_program("program p(xs: [f32]N) where N = 4 = reduceSeq(fun (s, x) => 1.0 + s * x, 0.0, xs)").body
    >>> print(print_term(accumulator_first(fold.operator)))
    fun (s, x) => s * x + 1.0
    """
    if not isinstance(operator, ir.Lambda) or not isinstance(operator.binder, ir.PairBinder):
        return operator
    body = _ordered(operator.body, frozenset(ir.bound_variables(operator.binder.first)))
    return operator if body is operator.body else replace(operator, body=body)


def _first(term: T) -> T:
    term = ir.map_parts(term, _first)
    if isinstance(term, ir.FOLDS):
        operator = accumulator_first(term.operator)
        return term if operator is term.operator else replace(term, operator=operator)
    return term


def _ordered(term: T, state: frozenset[ir.Var]) -> T:
    """A term of an operator with what has to do with the state before what has not."""
    match term:
        case ir.Map(function=ir.Lambda(binder=binder) as f, array=array) | ir.Apply(
            function=ir.Lambda(binder=binder) as f, argument=array
        ):
            own = (ir.bound_variables(p) for p, part in bound_parts(binder, array) if _depends(part, state))
            state = state.union(*own)
            if isinstance(term, ir.Map) and isinstance(binder, ir.PairBinder) and isinstance(array, ir.Zip):
                one, other = array.first, array.second
                if _depends(other, state) and not _depends(one, state):
                    f, array = replace(f, binder=ir.PairBinder(binder.second, binder.first)), ir.Zip(other, one)
                    term = replace(term, function=f, array=array)
    term = ir.map_parts(term, lambda part: _ordered(part, state))
    if isinstance(term, ir.Call):
        term = _extreme(term)
        if _commutes(term):
            one, other = term.arguments
            if _depends(other, state) and not _depends(one, state):
                return ir.Call(term.op, (other, one))  # pyright: ignore[reportReturnType]
    return term


def _commutes(term: ir.Call) -> bool:
    """Whether an operation gives each bit the same in either order: of two zeros, ``max`` gives one by its place."""
    laws, t = LAWS.get(term.op), type_of(term.arguments[0])
    chooses = laws is not None and laws.idempotent and not (isinstance(t, Scalar) and not t.is_float)
    return laws is not None and laws.commutative and not chooses


def _extreme(term: ir.Call) -> ir.Call:
    """A choice of the larger of two whole numbers, or the smaller, as that operation; other operations as they are."""
    match term:
        case ir.Call(op="select", arguments=(ir.Call(op=op, arguments=(x, y) as sides), a, b)) if (
            op in LARGER and {x, y} == {a, b} and isinstance(t := type_of(a), Scalar) and t.is_integer
        ):
            return ir.Call("max" if sides[LARGER[op]] == a else "min", sides)
    return term


def _depends(term: ir.Part, state: frozenset[ir.Var]) -> bool:
    return not state.isdisjoint(ir.free_variables(term))
