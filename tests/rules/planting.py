"""Planting wrong versions of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import egglog

from lift_egraph.egraph.rule import Rule, rule

REVERSED = "n - 1 - i"


@dataclass(frozen=True)
class Twin:
    """A wrong version of the rule `of`."""

    of: str
    rule: Rule


@dataclass
class Planted:
    """The wrong twins of one module."""

    twins: list[Twin] = field(default_factory=list)

    def plant(self, of: str, mistake: str) -> Callable[[Callable[..., Iterable[egglog.RewriteOrRule]]], Rule]:
        """Declare a wrong twin of a rule by the mistake in it."""

        def make(body: Callable[..., Iterable[egglog.RewriteOrRule]]) -> Rule:
            wrong = rule(mistake)(body)
            self.twins.append(Twin(of, wrong))
            return wrong

        return make
