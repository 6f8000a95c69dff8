"""Capture conditions that several rules share, where the analyses of `lift_egraph.egraph.sorts` give no single
query.
"""

from __future__ import annotations

from egglog import Fact

from lift_egraph.dsl import P, bvs, eq


def disjoint(p: P, q: P) -> Fact:
    """The condition that two patterns share no variable, so that they may stand in one."""
    return eq(bvs(p) - bvs(q)).to(bvs(p))
