"""Accumulators that are only asked which of a few values they are: states of a finite automaton.

What an element makes of each of them is a table, and a table after a table is a table: what the second makes of what
the first gives. A truth value has two states; a whole number that is compared with literals alone has one for each of
these, and for what is between them. So does one that is first moved between two literals, a state for each number from
the one to the other: the carry of an addition is of this kind.

Source: Hillis and Steele, "Data parallel algorithms", CACM 1986 (lexical analysis by a scan of tables).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lift_egraph.algebra.bounded import FLIPPED
from lift_egraph.algebra.cases import decided
from lift_egraph.algebra.linear import NotLinear
from lift_egraph.language import ir
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import BOOL, Scalar

MOST_STATES = 6
Test = tuple[str, ir.Literal]  # a comparison with a literal


@dataclass(frozen=True)
class Table:
    """One component of an accumulator, of which it only matters which of a few states it is.

    It has what `lift_egraph.algebra.matrices.Block` has.

    Attributes
    ----------
    tests
        Which state a value is: the first whose comparison holds, and the last if none does.
    entries
        What becomes of each state. That of whole numbers begins with whether there is a table at all: there are others
        beside those values that stand for the states.
    ones
        No table, and a value of each state.
    """

    type: Scalar
    group: tuple[int, ...]
    tests: tuple[Test, ...]
    entries: tuple[ir.Expr, ...]
    ones: tuple[ir.Expr, ...]

    @property
    def why(self) -> str:
        """What the states are, in words."""
        if self.type == BOOL:
            return "true or false, and an element says what becomes of both"
        states = ", ".join(f"{OPERATIONS[op].symbol} {literal.value}" for op, literal in self.tests)
        return f"of {len(self.tests) + 1} states, {states} and the others, and an element says what becomes of each"

    @property
    def types(self) -> tuple[Scalar, ...]:
        """Of the entries."""
        flags = (BOOL,) if self.type != BOOL else ()
        return flags + (self.type,) * (len(self.entries) - len(flags))

    def product(self, first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What acts like `first` and then `second`."""
        if self.type == BOOL:
            return [self._found(second, value) for value in first]
        (was_table, *before), (is_table, *after) = first, second
        both = [
            ir.Call("select", (was_table, self._entry(after, v), own)) for v, own in zip(before, after, strict=True)
        ]
        changed = (ir.Call("select", (is_table, new, old)) for new, old in zip(both, before, strict=True))
        return [ir.Call("or", (was_table, is_table)), *changed]

    def applied(self, data: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """What becomes of a value."""
        return [self._found(data, values[0])]

    def _found(self, data: Sequence[ir.Expr], value: ir.Expr) -> ir.Expr:
        if self.type != BOOL:
            is_table, *entries = data
            return ir.Call("select", (is_table, self._entry(entries, value), value))
        return self._entry(data, value)

    def _entry(self, data: Sequence[ir.Expr], value: ir.Expr) -> ir.Expr:
        *entries, made = data
        for (op, literal), entry in reversed(list(zip(self.tests, entries, strict=True))):
            condition = value if self.type == BOOL else ir.Call(op, (value, literal))
            made = ir.Call("select", (condition, entry, made))
        return made


def table(t: Scalar, component: int, term: ir.Expr, variable: ir.Var, *, moved: bool = False) -> Table:
    """An expression as a table of what a variable may be.

    Parameters
    ----------
    moved
        Whether it may be used as a number, where it is moved between two literals first.

    Raises
    ------
    NotLinear
        If more is asked of it than which of a few states it is.
    """
    if t == BOOL:
        tests, ones = (("eq", ir.Literal(True, t)),), (ir.Literal(True, t), ir.Literal(False, t))
    elif t.is_integer:
        tests, ones = _states(t, set(_compared(term, variable, moved)))
    else:
        raise NotLinear("a float has more than a few states")
    if len(ones) > MOST_STATES:
        raise NotLinear("it has more than a few states")
    entries = tuple(decided(term, {variable: one}) for one in ones)
    if t == BOOL:
        return Table(t, (component,), tests, entries, ones)
    return Table(
        t, (component,), tests, (ir.Literal(True, BOOL), *entries), (ir.Literal(False, BOOL), *ones)
    )  # fmt: skip


def moved_table(t: Scalar, component: int, term: ir.Expr, variable: ir.Var) -> Table:
    """An expression as a table of the few numbers that a variable may be moved to."""
    return table(t, component, term, variable, moved=True)


def _compared(term: ir.Expr, variable: ir.Var, moved: bool) -> Iterator[tuple[str, int]]:
    """The comparisons of the variable with literals in an expression in which it does not occur otherwise; ``up to``
    where all up to a literal are one.
    """
    match term:
        case ir.Call(
            op="min",
            arguments=(ir.Call(op="max", arguments=(ir.Var() as v, ir.Literal(value=low))), ir.Literal(value=high)),
        ) if moved and v == variable and low < high < low + MOST_STATES:
            yield from (("up to", n) for n in range(int(low), int(high)))
        case ir.Var() if term == variable:
            raise NotLinear("it is more than compared")
        case ir.Call(op=op, arguments=(a, b)) if OPERATIONS[op].kind == "comparison" and variable in (a, b):
            other, op = (b, op) if a == variable else (a, FLIPPED[op])
            if not isinstance(other, ir.Literal):
                raise NotLinear("it is compared with what is no literal")
            yield op, int(other.value)
        case ir.Call(arguments=arguments):
            for a in arguments:
                yield from _compared(a, variable, moved)
        case _ if variable in ir.free_variables(term):
            raise NotLinear("it is more than compared")


def _states(t: Scalar, compared: set[tuple[str, int]]) -> tuple[tuple[Test, ...], tuple[ir.Literal, ...]]:
    """Tests that tell the states apart, and a value of each."""
    literals = sorted({value for _, value in compared})
    if literals and {op for op, _ in compared} == {"up to"}:
        return tuple(("le", ir.Literal(v, t)) for v in literals), _literals(t, (*literals, literals[-1] + 1))
    limits = np.iinfo(NUMPY_TYPES[t.name])
    if {op for op, _ in compared} <= {"eq", "ne"}:
        other = next(v for v in range(len(literals) + 1) if v not in literals)
        return tuple(("eq", ir.Literal(v, t)) for v in literals), _literals(t, (*literals, other))
    tests: list[Test] = []
    ones: list[int] = []
    below = int(limits.min) - 1  # all up to it have a state
    for v in literals:
        if v - 1 > below:
            tests.append(("lt", ir.Literal(v, t)))
            ones.append(v - 1)
        tests.append(("le", ir.Literal(v, t)))
        ones.append(v)
        below = v
    if below < limits.max:
        ones.append(below + 1)
    else:
        tests.pop()
    return tuple(tests), _literals(t, ones)


def _literals(t: Scalar, values: Iterable[int]) -> tuple[ir.Literal, ...]:
    return tuple(ir.Literal(v, t) for v in values)
