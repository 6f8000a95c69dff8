"""Equality of scalar expressions case by case: whether the conditions in them hold or not, one after the other.

Once all conditions are decided nothing is left to choose, and what is left is compared as it is written. That a
condition chooses what another one compares does no harm: the inner one is decided first. So products of tables are
known to be associative, of which neither the entries nor what they mean is known.

Source: as normal forms of conditional expressions, Boyer and Moore, "A Computational Logic", 1979, chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from lift_egraph.language import ir
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import BOOL

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
    return all(_equal(a, b, cases) for a, b in zip(left, right, strict=True))


def _equal(left: ir.Expr, right: ir.Expr, cases: list[int]) -> bool:
    cases[0] -= 1
    if cases[0] < 0:
        return False
    if left == right:
        return True
    condition = next((c for side in (left, right) if (c := _undecided(side)) is not None), None)
    if condition is None:
        return False
    return all(
        _equal(_decided(left, condition, holds), _decided(right, condition, holds), cases) for holds in (False, True)
    )


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


def _decided(term: ir.Expr, condition: ir.Expr, holds: bool) -> ir.Expr:
    """The expression where a condition holds or does not, without what nothing chooses any more."""
    if term == condition:
        return ir.Literal(holds, BOOL)
    if not isinstance(term, ir.Call):
        return term
    if term.op == "select":
        chosen = _decided(term.arguments[0], condition, holds)
        if isinstance(chosen, ir.Literal):
            return _decided(term.arguments[1 if chosen.value else 2], condition, holds)
        return ir.Call("select", (chosen, *(_decided(a, condition, holds) for a in term.arguments[1:])))
    arguments = tuple(_decided(a, condition, holds) for a in term.arguments)
    known = [a.value if isinstance(a, ir.Literal) else None for a in arguments]
    match term.op, known:
        case "not", [bool() as a]:
            return ir.Literal(not a, BOOL)
        case "and", [False, _] | [_, False]:
            return ir.Literal(False, BOOL)
        case "or", [True, _] | [_, True]:
            return ir.Literal(True, BOOL)
        case "and" | "or", [bool(), _]:
            return arguments[1]
        case "and" | "or", [_, bool()]:
            return arguments[0]
    return ir.Call(term.op, arguments)
