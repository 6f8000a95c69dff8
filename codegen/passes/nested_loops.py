"""Loops over what is joined as the loops that they are: one over the parts, and one inside of each.

What reads a window through ``join(join(w))``, or a matrix as one row, asks in each step where its element is. With a
loop for each dimension no division is left in the indices, which step by a number, and the innermost loops are short
enough to be unrolled.

    for (j < 576) s += a[j] * x[64 * (j / 9) + 8 * ((j / 3) % 3) + j % 3]
    becomes    for (c < 64) for (k < 3) for (l < 3) s += a[9 * c + 3 * k + l] * x[64 * c + 8 * k + l]

Source: loop delinearisation: Maslov, "Delinearization: an efficient way to break multiloop dependence equations", 1992.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lift_egraph.codegen.c_ast import AROUND, Block, Body, For, If, Statement
from lift_egraph.codegen.c_walk import (
    data_in,
    mentioned,
    mentioning,
    substitute,
    substitute_index,
    waits,
    walk,
    with_body,
)
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import Nat, NatVar, Operation, nat, operations

QUOTIENTS = "/", "%"


def nested_loops(body: Body, taken: set[str]) -> Body:
    """A kernel's body whose sequential loops divide by no number that divides their length.

    Parameters
    ----------
    taken
        Names that are in use; those of the new loops' variables join them.
    """
    if not any(isinstance(part, Nat) and _has_quotients(part) for part in walk(body)):
        return body
    return _nested_in(body, taken)


def _nested_in(body: Body, taken: set[str]) -> Body:
    return tuple([_nested(s, taken) if isinstance(s, AROUND) and mentioned(s) else s for s in body])


def _nested(statement: For | If | Block, taken: set[str]) -> Statement:
    if isinstance(statement, For):
        made = _in_parts(statement, taken)
        if made is not None:
            return _nested(made, taken)
    return with_body(statement, _nested_in(statement.body, taken))


def _in_parts(loop: For, taken: set[str]) -> For | None:
    """A loop as two, if that leaves fewer quotients in its body, and none of the outer one's variable."""
    count, variable = loop.count.constant, loop.variable
    if count is None or loop.is_parallel or loop.step != 1 or loop.pragma:
        return None
    if waits(loop):
        return None
    asked = [part for part in _indices(loop.body, variable) if _quotients(part, variable)]
    divisors = {q.right.constant or 0 for part in asked for q in _quotients(part, variable)}
    for part in sorted((d for d in divisors if 1 < d < count and count % d == 0), reverse=True):
        outer, inner = NatVar(variable.name, 0, count // part - 1), NatVar(c_name(variable.name, taken), 0, part - 1)
        place = {variable.name: nat(outer) * part + inner}
        if any(_quotients(substitute_index(index, place), outer) for index in asked if not data_in(index)):
            continue
        body = substitute(loop.body, place)
        if not any(_quotients(index, outer) for index in _indices(body, outer)):
            steps = For(inner, nat(part), loop.level, loop.threads, body, origin=loop.origin)
            return replace(loop, variable=outer, count=nat(count // part), body=(steps,), likely=None)
    return None


def _has_quotients(index: Nat) -> bool:
    return any(o.symbol in QUOTIENTS for o in operations(index))


def _indices(body: Body, variable: NatVar) -> Iterator[Nat]:
    """The indices of a body that mention a variable."""
    return (part for part in mentioning(body, variable) if isinstance(part, Nat))


def _quotients(index: Nat, variable: NatVar) -> list[Operation]:
    """The quotients and rests of what has a variable in it, in an index."""
    return [o for o in operations(index) if o.symbol in QUOTIENTS and variable in o.left.variables]
