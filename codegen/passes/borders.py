"""Loops along a border in parts: the elements at both ends, and those between, which need not ask where they are.

What reads a padded array chooses in each step between an element of the array and what stands for it outside. In most
steps of a loop along the array the answer is known: these become a loop of their own, without the choice. A compiler
finds vectors, loads that are shared and sums that are fused in it, where before there was a branch for each element.

    for (i < 256) f(16 * i >= 2 ? a[16 * i - 2] : b)
    becomes    f(0 >= 2 ? a[-2] : b);  for (i < 255) f(a[16 * i + 14])

Source: index set splitting: Wolfe, "High Performance Compilers for Parallel Computing", 1996; Halide's loop partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lift_egraph.codegen.c_ast import AROUND, Barrier, Block, Body, CExpr, Choose, For, Statement
from lift_egraph.codegen.c_walk import data_in, rewrite, substitute, walk, with_body
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import Nat, NatVar, is_at_least, nat, operations

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


def between(body: Body, variable: NatVar, count: int) -> tuple[Body, int, int]:
    """What a body is for the values of an index that are far from both ends, and the first and the last of these.

    There it is known what is chosen, which of two places is nearer, and how often a place has gone round. A body with
    loops stays as it is, unless they are short, so that they are unrolled: PoCL makes no vectors of work-items that
    differ in which loop they run. Without its choices, the sum of a window of 3 by 3 takes it half the time.
    """
    low, high = 0, count - 1
    while not any(isinstance(part, For) and not part.pragma for part in walk(body)):
        first, last = _first_and_last(body, replace(variable, low=low, high=high))
        if not 0 < first + last < (high - low) // 2:
            break
        low, high = low + first, high - last
        narrow = replace(variable, low=low, high=high)
        body = _decided(substitute(body, {variable.name: nat(narrow)}))
    return body, low, high


def _first_and_last(body: Body, variable: NatVar) -> tuple[int, int]:
    """How many values of an index at the beginning and the end of its range choose as those in the middle do not."""
    middle = {variable.name: nat(((variable.low or 0) + (variable.high or 0)) // 2)}
    first = last = 0
    for condition in dict.fromkeys(c for part in walk(body) for c in _deciding(part, middle)):
        slope, low = condition.coefficient_of(variable), condition.range[0]
        if data_in(condition) or slope is None or not slope.constant or low is None or low >= 0:
            continue
        if not is_at_least(condition.substitute(middle), 0):
            continue
        steps = -(low // abs(slope.constant))
        first, last = (max(first, steps), last) if slope.constant > 0 else (first, max(last, steps))
    return first, last


def _deciding(part: Any, middle: Mapping[str, Nat]) -> Iterator[Nat]:
    """What is at least 0 wherever a part's choices, and its indices' operations, are those in the middle."""
    if isinstance(part, Choose):
        yield from part.conditions
    if not isinstance(part, Nat):
        return
    for operation in operations(part):
        left, right = operation.left, operation.right
        if operation.symbol in ("min", "max"):
            yield from (left - right, right - left)
        elif operation.symbol == "%" and (number := right.constant):
            low, high = left.substitute(middle).range
            if low is not None and high is not None and low // number == high // number:
                begin = low // number * number
                yield from (left - begin, begin + number - 1 - left)


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
