"""Capture conditions that several rules share, where the analyses of `lift_egraph.sorts` give no single query."""

from __future__ import annotations

from collections.abc import Iterator

from egglog import Fact, String, eq

from lift_egraph.sorts import Fn, Op, P, absent_in_function, bvs


def operators_without(p: P, s: String, op: Op, f: Fn) -> Iterator[tuple[Op, tuple[Fact, ...]]]:
    """The forms of an operator in which no variable of a pattern is free, each with its condition.

    There is no free-variable analysis of operators: named ones are closed, and only closed ones are lifted.
    """
    yield Op.scalar(s), ()
    yield op.lift(), ()
    yield Op.fn(f), (absent_in_function(p, f),)


def disjoint(p: P, q: P) -> Fact:
    """The condition that two patterns share no variable, so that they may stand in one."""
    return eq(bvs(p) - bvs(q)).to(bvs(p))
