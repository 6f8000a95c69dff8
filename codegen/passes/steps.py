"""Loops that count in the steps that their indices take.

Where every index multiplies a loop's variable by a multiple of some number, the variable itself is stepped by that
number: ``for (int i = 0; i < 4096; i += 128)`` with ``i`` rather than ``128 * i`` inside. Compilers for CPUs, which
put a loop over the work-items of a group around the body, otherwise multiply in each of them (GEMV is 1.3 times
slower on PoCL).
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from lift_egraph.codegen.c_ast import AROUND, Body, Computed, For, Statement, SteppedVar
from lift_egraph.codegen.c_walk import mentioned, mentioning, rewrite, with_body
from lift_egraph.language.nat import Nat, nat

_INT_MAX = 2**31 - 1


def stepped(body: Body) -> Body:
    """The body with its sequential loops stepped as their indices are."""
    return tuple(_stepped(statement) for statement in body)


def _stepped(statement: Statement) -> Statement:
    if not isinstance(statement, AROUND) or not mentioned(statement):
        return statement
    inner = stepped(statement.body)
    statement = with_body(statement, inner)
    if not isinstance(statement, For) or statement.is_parallel or statement.count.constant is None:
        return statement
    step = _common_step(statement)
    if step < 2 or statement.most * step > _INT_MAX:
        return statement
    old = statement.variable
    new = SteppedVar(old.name, old.low, None if old.high is None else old.high * step, step)

    def change(part: object) -> object:
        if old.name not in mentioned(part):
            return part
        if not isinstance(part, Nat) or old not in part.variables:
            return None
        slope = part.coefficient_of(old)
        assert slope is not None
        return part - slope * nat(old) + (slope // step) * nat(new)

    return replace(statement, variable=new, step=step, body=rewrite(inner, change))


def in_single_steps(index: Nat) -> Nat:
    """An index with its stepped variables written as multiples, to tell what divides it."""
    stepped_ones = [v for v in index.variables if isinstance(v, SteppedVar)]
    return index.substitute({v.name: v.step * nat(f"{v.name} / {v.step}") for v in stepped_ones})


def _common_step(loop: For) -> int:
    """The greatest number that divides the factor of the loop's variable wherever it stands."""
    step = 0
    for part in mentioning(loop.body, loop.variable):
        if isinstance(part, Nat) and loop.variable in part.variables:
            slope = part.coefficient_of(loop.variable)
            if slope is None or any(isinstance(v, Computed) for v in part.variables):
                return 1
            for _, coefficient in slope.terms:
                step = gcd(step, coefficient)
    return step
