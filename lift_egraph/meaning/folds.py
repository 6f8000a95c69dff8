"""Reduction operators that are a built-in operation in disguise.

``λ(acc, x). acc + f x`` folds ``map f`` with ``+``; so does its lifting to arrays,
``λ(acc, x). map (λ(a, y). a + f y) (zip acc x)``, and to pairs, component by component.
"""

from __future__ import annotations

from typing import Any, Union

from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in, substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import LAWS
from lift_egraph.language.types import Pair

Operations = Union[str, tuple["Operations", "Operations"]]


def fold_form(operator: ir.Function) -> tuple[Operations, ir.Function | None] | None:
    """The operation of an operator per component, and the function of each element before it.

    Returns
    -------
    (operations, function) or None
        ``operator (acc, x) = acc ⊕ function x`` with ``⊕`` the operation on all scalars of (a component
        of) the accumulator; `function` is None for the identity. None if the operator is not of this form.

    Examples
    --------
    >>> from lift_egraph.language.types import F32
    >>> a, x = ir.Var("a", F32), ir.Var("x", F32)
    >>> fold_form(ir.Lambda(ir.PairBinder(a, x), ir.Call("add", (a, x))))
    ('add', None)
    >>> fold_form(ir.Lambda(ir.PairBinder(a, x), ir.Call("sub", (a, x)))) is None
    True
    """
    if isinstance(operator, ir.Vectorize):
        inner = fold_form(operator.function)
        if inner is None or inner[1] is None:
            return inner
        return inner[0], ir.Vectorize(operator.width, ir.function_body(inner[1]))
    function = opened(operator)
    if not isinstance(function.binder, ir.PairBinder):
        return None
    accumulator, element = function.binder.first, function.binder.second
    found = _recognise(function.body, accumulator, frozenset(ir.bound_variables(accumulator)))
    if found is None:
        return None
    operations, rest = found
    return operations, (None if _is(rest, element) else ir.Lambda(element, rest))


def _recognise(body: ir.Expr, accumulator: Any, hidden: frozenset[ir.Var]) -> tuple[Operations, ir.Expr] | None:
    """`body` as ``accumulator ⊕ rest``, with none of the hidden variables in the rest."""
    body = _head(body)
    if isinstance(body, ir.Call) and body.op in LAWS:
        left, right = body.arguments
        # a NaN makes min and max depend on the side
        if not _is(left, accumulator) and body.op not in ("min", "max"):
            left, right = right, left
        fits = _is(left, accumulator) and type_of(left) == type_of(right)
        if fits and not hidden & ir.free_variables(right):
            return body.op, right
    elif isinstance(body, ir.MakePair):
        first = _recognise(body.first, _part(accumulator, 0), hidden)
        second = _recognise(body.second, _part(accumulator, 1), hidden)
        if first and second:
            return (first[0], second[0]), ir.MakePair(first[1], second[1])
    elif isinstance(body, ir.Map | ir.MapLevel):
        zipped = _head(body.array)
        if isinstance(zipped, ir.Zip) and _is(zipped.first, accumulator):
            found = _applied(body.function, zipped.second, hidden)
            if found:
                operations, function = found
                return operations, (ir.Map(function, zipped.second) if function else zipped.second)
    elif isinstance(body, ir.Apply):
        return _recognise_let(body, accumulator, hidden)
    return None


def _recognise_let(body: ir.Apply, accumulator: Any, hidden: frozenset[ir.Var]) -> tuple[Operations, ir.Expr] | None:
    argument = _head(body.argument)
    if isinstance(argument, ir.MakePair) and _is(argument.first, accumulator):
        found = _applied(body.function, argument.second, hidden)
        if found:
            operations, function = found
            return operations, (ir.Apply(function, argument.second) if function else argument.second)
    function = body.function
    if isinstance(function, ir.Vectorize) or hidden & ir.free_variables(argument):
        return None
    if hidden & frozenset(ir.bound_variables(function.binder)):
        return None
    found = _recognise(function.body, accumulator, hidden)
    return found and (found[0], ir.Apply(ir.Lambda(function.binder, found[1]), argument))


def _applied(
    function: ir.Function, element: ir.Expr, hidden: frozenset[ir.Var]
) -> tuple[Operations, ir.Function | None] | None:
    """The form of an operator inside the body, applied to the accumulator and an element without it."""
    return None if hidden & (ir.free_variables(function) | ir.free_variables(element)) else fold_form(function)


def keeps_last(operator: ir.Function) -> bool:
    """Whether an operator gives its second argument, whatever the first is."""
    function = ir.function_body(operator)
    return isinstance(function.binder, ir.PairBinder) and _is(function.body, function.binder.second)


def opened(function: ir.Lambda) -> ir.Lambda:
    """The function with a pair taken apart in its pattern."""
    variable = function.binder
    if not (isinstance(variable, ir.Var) and isinstance(variable.type, Pair)):
        return function
    taken = names_in(function)
    first = ir.Var(fresh_name(f"{variable.name}_1", taken), variable.type.first)
    second = ir.Var(fresh_name(f"{variable.name}_2", taken), variable.type.second)
    body = substitute(function.body, {variable: ir.MakePair(first, second)})
    return ir.Lambda(ir.PairBinder(first, second), body)


def _head(term: ir.Expr) -> ir.Expr:
    """The term without address spaces and components of known pairs around it."""
    while True:
        if isinstance(term, ir.ToMemory):
            term = term.value
        elif isinstance(term, ir.Component) and isinstance(pair := _head(term.pair), ir.MakePair):
            term = pair.second if term.index else pair.first
        else:
            return term


def _part(accumulator: Any, index: int) -> Any:
    if isinstance(accumulator, ir.PairBinder):
        return accumulator.second if index else accumulator.first
    return ir.Component(index, accumulator)


def _is(term: ir.Expr, accumulator: Any) -> bool:
    term = _head(term)
    if isinstance(term, ir.MakePair):
        return _is(term.first, _part(accumulator, 0)) and _is(term.second, _part(accumulator, 1))
    if isinstance(term, ir.Component) and isinstance(accumulator, ir.Component):
        return term.index == accumulator.index and _is(term.pair, accumulator.pair)
    return term == accumulator
