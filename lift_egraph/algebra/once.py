"""Accumulators that are set where a condition on them holds: the place of the first element that is looked for.

``select (P s && c x, v x, s)``: an element that is looked for, if c, sets what P still holds of. Two elements one after
the other are one: the second sets what the first leaves, or what it has set, if P holds of that.

Source: new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lift_egraph.algebra.adjoined import any_value
from lift_egraph.algebra.cases import conjuncts
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.types import BOOL, Scalar


@dataclass(frozen=True)
class Once:
    """Components of an accumulator that are set together where `open` holds of them.

    It has what `lift_egraph.algebra.matrices.Block` has; its entries are whether they are set, and what to.
    """

    types: tuple[Scalar, ...]
    group: tuple[int, ...]
    variables: tuple[ir.Var, ...]
    open: ir.Expr
    entries: tuple[ir.Expr, ...]
    ones: tuple[ir.Expr, ...]
    why: str = "set where a condition on it holds"

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What acts like `first` and then `second`."""
        (was_set, *before), (is_set, *after) = first, second
        sets = ir.Call("and", (is_set, ir.Call("or", (ir.Call("not", (was_set,)), self._open(before)))))
        chosen = (ir.Call("select", (sets, new, old)) for old, new in zip(before, after, strict=True))
        return [ir.Call("or", (was_set, is_set)), *chosen]

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """The values, or what they are set to."""
        is_set, *given = data
        sets = ir.Call("and", (self._open(values), is_set))
        return [ir.Call("select", (sets, new, old)) for old, new in zip(values, given, strict=True)]

    def _open(self, values: Sequence[ir.Expr]) -> ir.Expr:
        return substitute(self.open, dict(zip(self.variables, values, strict=True)))


def once(group: Sequence[int], terms: Sequence[ir.Expr], variables: Sequence[ir.Var]) -> Once:
    """Expressions as what sets variables where a condition holds.

    Raises
    ------
    NotLinear
        If they are none, or the condition is about the variables and something else at once.
    """
    conditions = {t.arguments[0] if isinstance(t, ir.Call) and t.op == "select" else None for t in terms}
    condition = conditions.pop()
    if condition is None or conditions:
        raise NotLinear("it is not set where one condition holds")
    state = frozenset(variables)
    values: list[ir.Expr] = []
    for term, v in zip(terms, variables, strict=True):
        assert isinstance(term, ir.Call)
        _, value, kept = term.arguments
        if kept != v or not state.isdisjoint(ir.free_variables(value)):
            raise NotLinear("it is not set, or left as it is")
        values.append(value)
    parts: Mapping[bool, list[ir.Expr]] = {True: [], False: []}
    for factor in conjuncts(condition):
        free = ir.free_variables(factor)
        if free & state and not free <= state:
            raise NotLinear("what is compared with an element is more than set")
        parts[bool(free & state)].append(factor)
    types = tuple(v.type for v in variables)
    if not parts[True] or not all(isinstance(t, Scalar) for t in types):
        raise NotLinear("it is set whatever it is")
    ones = (ir.Literal(False, BOOL), *(any_value(t) for t in types if isinstance(t, Scalar)))
    entries = (_all(parts[False]), *values)
    return Once(tuple(o.type for o in ones), tuple(group), tuple(variables), _all(parts[True]), entries, ones)


def _all(conditions: Sequence[ir.Expr]) -> ir.Expr:
    """Whether all conditions hold."""
    *first, made = conditions or [ir.Literal(True, BOOL)]
    for c in reversed(first):
        made = ir.Call("and", (c, made))
    return made
