"""Loops along a border in parts: the elements at both ends, and those between, which need not ask where they are.

What reads a padded array chooses in each step between an element of the array and what stands for it outside. In most
steps of a loop along the array the answer is known: these become a loop of their own, without the choice. A compiler
finds vectors, loads that are shared and sums that are fused in it, where before there was a branch for each element.

    for (i < 256) f(16 * i >= 2 ? a[16 * i - 2] : b)
    becomes    f(0 >= 2 ? a[-2] : b);  for (i < 255) f(a[16 * i + 14])

Source: index set splitting: Wolfe, "High Performance Compilers for Parallel Computing", 1996; Halide's loop partitions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lift_egraph.codegen.c_ast import AROUND, Barrier, Block, Body, CExpr, Choose, For, Statement
from lift_egraph.codegen.c_walk import data_in, rewrite, substitute, walk, with_body
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import NatVar, is_at_least, nat

SHORT = 16  # steps below which a loop stays in one piece: it may be one over the elements of a window
LEAST_BETWEEN = 4  # a loop is taken apart where there are so many times more steps between its ends than at them
MOST_NODES = 4000  # of a body that is written three times


def borders_apart(body: Body, taken: set[str]) -> Body:
    """A kernel's body whose sequential loops along a border are in parts.

    Parameters
    ----------
    taken
        Names that are in use; those of the new loops' variables join them.
    """
    return tuple(part for statement in body for part in _apart(statement, taken))


def _apart(statement: Statement, taken: set[str]) -> Body:
    if not isinstance(statement, AROUND):
        return (statement,)
    if isinstance(statement, For):
        first, last = _ends(statement)
        if first or last:
            return _parts(statement, first, last, taken)
    return (with_body(statement, borders_apart(statement.body, taken)),)


def _ends(loop: For) -> tuple[int, int]:
    """How many steps at the beginning and at the end of a loop must choose; none where it stays in one piece."""
    count, variable = loop.count.constant, loop.variable
    if count is None or count < SHORT or loop.is_parallel or loop.step != 1:
        return 0, 0
    below = walk(loop.body)
    if len(below) > MOST_NODES or any(isinstance(part, Barrier) for part in below):
        return 0, 0
    first = last = 0
    for condition in dict.fromkeys(c for part in below if isinstance(part, Choose) for c in part.conditions):
        slope, low = condition.coefficient_of(variable), condition.range[0]
        if data_in(condition) or slope is None or not slope.constant or low is None or low >= 0:
            continue
        steps = -(low // abs(slope.constant))
        ends = (max(first, steps), last) if slope.constant > 0 else (first, max(last, steps))
        if (1 + LEAST_BETWEEN) * sum(ends) <= count:
            first, last = ends
    return first, last


def _parts(loop: For, first: int, last: int, taken: set[str]) -> Body:
    """The steps at the beginning, those between, and those at the end."""
    count = loop.count.constant
    assert count is not None
    made: list[Statement] = []
    for start, steps in ((0, first), (first, count - first - last), (count - last, last)):
        if steps == 1:
            made.append(Block(_decided(substitute(loop.body, {loop.variable.name: nat(start)})), origin=loop.origin))
        elif steps:
            variable = NatVar(c_name(loop.variable.name, taken), 0, steps - 1)
            body = _decided(substitute(loop.body, {loop.variable.name: nat(variable) + start}))
            is_between = start == first
            made.append(
                replace(
                    loop, variable=variable, count=nat(steps), body=borders_apart(body, taken) if is_between else body
                )
            )
    return tuple(made)


def _decided(body: Body) -> Body:
    """A body without the choices whose conditions are known to hold."""

    def change(part: Any) -> CExpr | None:
        if not isinstance(part, Choose):
            return None
        left = tuple(c for c in part.conditions if not is_at_least(c, 0))
        inside: CExpr = rewrite(part.inside, change)
        if not left:
            return inside
        return Choose(left, inside, rewrite(part.outside, change))

    return rewrite(body, change)
