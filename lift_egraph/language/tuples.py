"""The components of tuples, and selecting between and comparing tuples: scalar operations on their components.

``select(c, p, q)`` is a tuple of selects. ``p == q`` holds where all components are equal, and ``p < q`` where the
first two components that differ are in this order; ``min(p, q)`` is ``q`` where ``q < p``, else ``p``.
"""

from __future__ import annotations

from collections.abc import Iterator

from lift_egraph.errors import TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import Array, Pair, tuple_components

_STRICT = {"lt": "lt", "le": "lt", "gt": "gt", "ge": "gt"}
_EXTREME = {"min": "lt", "max": "gt"}


def components(value: ir.Expr) -> Iterator[ir.Expr]:
    """The components of a tuple."""
    for _ in range(len(tuple_components(type_of(value))) - 1):
        yield ir.Component(0, value)
        value = ir.Component(1, value)
    yield value


def component(index: int, pair: ir.Expr) -> ir.Expr:
    """A component of a pair: the term itself, where it is written out."""
    if isinstance(pair, ir.MakePair):
        return pair.second if index else pair.first
    return ir.Component(index, pair)


def on_tuples(op: str, arguments: tuple[ir.Expr, ...]) -> ir.Expr:
    """A selection or a comparison of tuples of one type, or the least or greatest of two; what is used twice is bound
    by a ``let``.

    Raises
    ------
    TypeProblem
        If it is another operation, or the types differ.
    """
    first, second = arguments[-2:]
    types = type_of(first), type_of(second)
    is_known = OPERATIONS[op].kind in ("select", "comparison") or op in _EXTREME
    if not is_known or types[0] != types[1]:
        shown = ", ".join(str(type_of(a)) for a in arguments)
        demand = "needs arguments of one type" if types[0] != types[1] else "works on scalars"
        tuples = [str(type_of(a)) for a in arguments if isinstance(type_of(a), Pair)]
        hint = f"; fun (a, b) => … takes {tuples[0]} apart" if tuples and types[0] != types[1] else ""
        raise TypeProblem(f"{op} {demand}, got {shown}{hint}")
    taken = set().union(*map(names_in, arguments))
    shared = {a: ir.Var(fresh_name("p", taken), type_of(a)) for a in arguments if not _is_at_hand(a)}
    made = _of_tuples(op, *(shared.get(a, a) for a in arguments))
    if shared:
        (value, binder), *others = reversed([*shared.items()])
        for argument, variable in others:  # all in one let: no argument stands inside the others' scope
            value, binder = ir.MakePair(argument, value), ir.PairBinder(variable, binder)
        made = ir.Apply(ir.Lambda(binder, made), value)
    type_of(made)
    return made


def select_arrays(condition: ir.Expr, first: ir.Expr, second: ir.Expr) -> ir.Expr:
    """A selection of arrays of one type, element by element; the condition is computed once."""
    taken = set().union(*map(names_in, (condition, first, second)))
    known = condition if _is_at_hand(condition) else ir.Var(fresh_name("chosen", taken), type_of(condition))
    made = _selected_arrays(known, first, second, taken)
    if known is not condition:
        assert isinstance(known, ir.Var)
        made = ir.Apply(ir.Lambda(known, made), condition)
    type_of(made)
    return made


def _selected_arrays(condition: ir.Expr, first: ir.Expr, second: ir.Expr, taken: set[str]) -> ir.Expr:
    t = type_of(first)
    if not isinstance(t, Array):
        return _selected("select", condition, first, second)
    a, b = (ir.Var(fresh_name(name, taken), t.element) for name in "ab")
    body = _selected_arrays(condition, a, b, taken)
    return ir.Map(ir.Lambda(ir.PairBinder(a, b), body), ir.Zip(first, second))


def _is_at_hand(term: ir.Expr) -> bool:
    """Whether a term computes nothing."""
    if isinstance(term, ir.Component | ir.MakePair):
        return all(_is_at_hand(p) for p in ir.parts(term) if isinstance(p, ir.Expr))
    return isinstance(term, ir.Var | ir.Input | ir.Literal | ir.SizeLiteral)


def _of_tuples(op: str, *arguments: ir.Expr) -> ir.Expr:
    """An operation on tuples that compute nothing."""
    if op == "select":
        return _selected(op, *arguments)
    if op in _EXTREME:
        first, second = arguments
        return on_tuples("select", (_compared(_EXTREME[op], second, first), second, first))
    return _compared(op, *arguments)


def _selected(op: str, condition: ir.Expr, first: ir.Expr, second: ir.Expr) -> ir.Expr:
    if not isinstance(type_of(first), Pair):
        return ir.Call(op, (condition, first, second))
    heads, tails = ((component(i, first), component(i, second)) for i in (0, 1))
    return ir.MakePair(_selected(op, condition, *heads), _selected(op, condition, *tails))


def _compared(op: str, first: ir.Expr, second: ir.Expr) -> ir.Expr:
    if not isinstance(type_of(first), Pair):
        return ir.Call(op, (first, second))
    heads, tails = ((component(i, first), component(i, second)) for i in (0, 1))
    if op in ("eq", "ne"):
        return ir.Call("and" if op == "eq" else "or", (_compared(op, *heads), _compared(op, *tails)))
    tied = ir.Call("and", (_compared("eq", *heads), _compared(op, *tails)))
    return ir.Call("or", (_compared(_STRICT[op], *heads), tied))
