"""Equality of scalar expressions case by case: whether the conditions in them hold or not, one after the other.

Once all conditions are decided nothing is left to choose, and what is left is compared as it is written. That a
condition chooses what another one compares does no harm: the inner one is decided first. So products of tables are
known to be associative, of which neither the entries nor what they mean is known.

Source: as normal forms of conditional expressions, Boyer and Moore, "A Computational Logic", 1979, chapter 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.scalar import NUMPY_TYPES, OPERATIONS
from lift_egraph.language.types import BOOL, Scalar

MOST_CASES = 4000
MOST_NODES = 4000  # of both sides, before anything is decided


def equal_in_all_cases(left: Sequence[ir.Expr], right: Sequence[ir.Expr]) -> bool:
    """Whether expressions are equal one by one, whatever their conditions are; False also where that takes too long.

    Examples
    --------
    >>> from lift_egraph.language.types import BOOL, F32
    >>> c, x, y = ir.Var("c", BOOL), ir.Var("x", F32), ir.Var("y", F32)
    >>> def choose(a, b):
    ...     return ir.Call("select", (c, a, b))
    >>> equal_in_all_cases([choose(x, y) * choose(y, x)], [choose(x * y, y * x)])
    True
    """
    if any(sum(1 for _ in ir.subterms(e)) > MOST_NODES for e in (*left, *right)):
        return False
    cases = [MOST_CASES]
    return all(_equal(decided(a, {}), decided(b, {}), cases) for a, b in zip(left, right, strict=True))


def _computed(op: str, literals: Sequence[ir.Expr]) -> ir.Expr:
    """What an operation gives of whole numbers and truth values; one that has to do with floats as it is."""
    made = ir.Call(op, tuple(literals))
    types = [type_of(made), *map(type_of, literals)]
    if not all(isinstance(t, Scalar) and (t.is_integer or t == BOOL) for t in types):
        return made
    t = types[0]
    assert isinstance(t, Scalar)
    with np.errstate(all="ignore"):
        given = (NUMPY_TYPES[e.type.name](e.value) for e in literals if isinstance(e, ir.Literal))
        value = np.asarray(OPERATIONS[op].meaning(*given)).astype(NUMPY_TYPES[t.name]).item()
    return ir.Literal(value, t)


def conjuncts(condition: ir.Expr) -> Iterator[ir.Expr]:
    """The conditions that a condition asks for, all of them."""
    if isinstance(condition, ir.Call) and condition.op == "and":
        for part in condition.arguments:
            yield from conjuncts(part)
    else:
        yield condition


def undecided(term: ir.Expr) -> ir.Expr | None:
    """A condition, in an expression or itself, that nothing in the expression chooses; None if there is none."""
    found = _undecided(term)
    return _atom(term) if found is None and type_of(term) == BOOL else found


def _equal(left: ir.Expr, right: ir.Expr, cases: list[int]) -> bool:
    cases[0] -= 1
    if cases[0] < 0:
        return False
    if left == right:
        return True
    condition = next((c for side in (left, right) if (c := _undecided(side)) is not None), None)
    if condition is None:
        return False
    outcomes = ({condition: ir.Literal(holds, BOOL)} for holds in (False, True))
    return all(_equal(decided(left, known), decided(right, known), cases) for known in outcomes)


def _undecided(term: ir.Expr) -> ir.Expr | None:
    """A condition in an expression that nothing in it chooses."""
    if not isinstance(term, ir.Call):
        return None
    inner = _undecided(term.arguments[0])
    if inner is not None:
        return inner
    if term.op == "select":
        return _atom(term.arguments[0])
    if OPERATIONS[term.op].kind == "logic":
        return _atom(term)
    return next((c for a in term.arguments[1:] if (c := _undecided(a)) is not None), None)


def _atom(condition: ir.Expr) -> ir.Expr | None:
    """What is decided first of a condition."""
    if isinstance(condition, ir.Call) and OPERATIONS[condition.op].kind == "logic":
        return next((c for a in condition.arguments if (c := _atom(a)) is not None), None)
    return None if isinstance(condition, ir.Literal) else condition


def decided(term: ir.Expr, known: Mapping[ir.Expr, ir.Literal]) -> ir.Expr:
    """An expression where some parts have known values, without what nothing chooses any more.

    Examples
    --------
    >>> from lift_egraph.language.types import I32
    >>> x, y = ir.Var("x", I32), ir.Var("y", I32)
    >>> decided(ir.Call("select", (x < 3, y, x)), {x: ir.Literal(2, I32)})
    Var(name='y', type=Scalar(name='i32'))
    """
    if term in known:
        return known[term]
    if not isinstance(term, ir.Call):
        return term
    if term.op == "select":
        chosen = decided(term.arguments[0], known)
        if isinstance(chosen, ir.Literal):
            return decided(term.arguments[1 if chosen.value else 2], known)
        return ir.Call("select", (chosen, *(decided(a, known) for a in term.arguments[1:])))
    arguments = tuple(decided(a, known) for a in term.arguments)
    operation, literals = OPERATIONS[term.op], [a.value for a in arguments if isinstance(a, ir.Literal)]
    if len(literals) == len(arguments):
        if operation.kind in ("comparison", "logic"):
            return ir.Literal(bool(operation.meaning(*literals)), BOOL)
        return _computed(term.op, arguments)
    match term.op, arguments:
        case "eq" | "ne", (ir.Literal(value=bool() as a), b) | (b, ir.Literal(value=bool() as a)):
            return b if a == (term.op == "eq") else decided(ir.Call("not", (b,)), {})
        case "and" | "or", (ir.Literal(value=bool() as a), b) | (b, ir.Literal(value=bool() as a)):
            return b if a == (term.op == "and") else ir.Literal(a, BOOL)
    return ir.Call(term.op, arguments)
