"""Rules: a law in mathematics, the rewrites that say the same, and facts about both.

A `Rule` owns its egglog ruleset, so that it can be run alone, timed, tested and shown by name.
Nothing registers itself: the collections in `rules` are explicit tuples.
"""

from __future__ import annotations

import importlib
import io
import itertools
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import egglog
from egglog import Ruleset
from egglog.declarations import Ident
from egglog.egraph import UnstableCombinedRuleset

from lift_egraph.egraph import sorts
from lift_egraph.egraph.expressions import direct_calls

FLAGS = {
    "reassociates": "another association of a reduction, which rounds differently",
    "commutes": "another order of a reduction, which rounds differently",
    "nan_unsafe": "where a value is NaN or infinite, other values",
    "signed_zero": "zeros of the other sign",
}
"""What a rule may change in the results of floats; without flags it keeps them bit for bit."""
PHASES = ("algorithmic", "lowering", "memory", "simplification")
_NUMBERS = itertools.count()


class _Rules(Ruleset):
    """What a rule's function yields, when somebody asks for it."""

    def _update_egg_decls(self) -> Any:
        waiting = list(self.deferred_rule_gens)
        try:
            with direct_calls():
                return super()._update_egg_decls()
        except BaseException:  # egglog forgets what failed: the rule would be one without rewrites from now on
            self.deferred_rule_gens[:] = waiting
            raise


@dataclass(frozen=True)
class Rule:
    """A rewrite rule.

    Attributes
    ----------
    name
        The name of the decorated function.
    law
        What it says, in mathematics.
    source
        The seed and section it comes from, or ``"new"``.
    family
        The module that defines it.
    phase
        ``algorithmic``, ``lowering``, ``memory``, or ``simplification`` (run to saturation in all).
    reassociates, commutes, nan_unsafe, signed_zero
        What it may change in the results of floats (`FLAGS`).
    ruleset
        The egglog rules.
    notes
        Changes with which the rule would be as right, and why it is as it is: a condition by itself is one that the
        rule needs not for its soundness but against waste, and a size by itself one for which any other would do.
        ``rules check --mutate`` verifies them.
    """

    name: str
    law: str
    source: str
    family: str
    phase: str
    reassociates: bool
    commutes: bool
    ruleset: Ruleset = field(repr=False, compare=False)
    body: Callable[..., Iterable[egglog.RewriteOrRule]] = field(repr=False, compare=False)
    nan_unsafe: bool = False
    signed_zero: bool = False
    notes: tuple[tuple[str, str], ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Rules travel to child processes by name, or by their function where that cannot be imported."""
        module = sys.modules.get(self.body.__module__)
        if self.body.__module__ != "__main__" and getattr(module, self.name, None) is self:
            return _named, (self.body.__module__, self.name)
        facts = {
            "source": self.source,
            "phase": self.phase,
            **dict.fromkeys(self.flags, True),
            "notes": dict(self.notes),
        }
        return _remade, (_dumped(self.body), self.law, facts)

    @property
    def flags(self) -> tuple[str, ...]:
        """What it may change in the results of floats, by the names of `FLAGS`."""
        return tuple(flag for flag in FLAGS if getattr(self, flag))

    @property
    def rounds(self) -> bool:
        """Whether results of floats may be rounded differently."""
        return self.reassociates or self.commutes

    @property
    def place(self) -> str:
        """The file and line where the rule is defined."""
        code = self.body.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def describe(self) -> dict[str, Any]:
        """The facts about this rule as plain data."""
        return {
            "name": self.name, "law": self.law, "source": self.source,
            "family": self.family, "phase": self.phase, "flags": list(self.flags), "notes": dict(self.notes),
        }  # fmt: skip


@dataclass(frozen=True)
class ToldRule(Rule):
    """What people see of a rule whose function stays in the process that may run it: it has no rewrites."""

    at: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _told, (self.name, self.law, self.source, self.family, self.phase, self.flags, self.notes, self.at)

    @property
    def place(self) -> str:
        """The file and line where the rule is defined."""
        return self.at


def told(rule: Rule) -> ToldRule:
    """A rule without its function."""
    return _told(rule.name, rule.law, rule.source, rule.family, rule.phase, rule.flags, rule.notes, rule.place)


def rule(
    law: str,
    *,
    source: str = "new",
    phase: str = "algorithmic",
    reassociates: bool = False,
    commutes: bool = False,
    nan_unsafe: bool = False,
    signed_zero: bool = False,
    notes: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Iterable[egglog.RewriteOrRule]]], Rule]:
    """Make a `Rule` of a function that yields egglog rewrites.

    The parameters of the function are the pattern variables, their annotations the sorts. `phase` is one of `PHASES`;
    what the rule may change in the results of floats is said by the flags (`FLAGS`). `notes` says of conditions,
    as ``rules check`` shows them, why the rule has them although it would be as right without; so of a changed
    condition or size, as ``rules check --mutate`` shows the change.

    Raises
    ------
    TypeError
        If the law is missing.
    ValueError
        If there is no such phase.

    Examples
    --------
    >>> from egglog import rewrite
    >>> from lift_egraph.egraph.sorts import Ex, transpose
    >>> @rule("transpose (transpose xs) = xs", source="000 Listing 5.20", phase="simplification")
    ... def transpose_transpose(xs: Ex):
    ...     yield rewrite(transpose(transpose(xs))).to(xs)
    >>> transpose_transpose.describe()["law"]
    'transpose (transpose xs) = xs'
    """
    if not isinstance(law, str):
        name = getattr(law, "__name__", repr(law))
        raise TypeError(f'{name}: a rule needs its law in mathematics: @rule("...") above the function')
    if phase not in PHASES:
        raise ValueError(f"unknown phase {phase!r}; known are {', '.join(PHASES)}")

    def make(body: Callable[..., Iterable[egglog.RewriteOrRule]]) -> Rule:
        rules = _Rules(Ident(own_name(body.__name__), body.__module__))
        rules.register(body, _increase_frame=True)
        return Rule(
            name=body.__name__,
            law=law,
            source=source,
            family=body.__module__.rpartition(".")[2],
            phase=phase,
            reassociates=reassociates,
            commutes=commutes,
            ruleset=rules,
            body=body,
            nan_unsafe=nan_unsafe,
            signed_zero=signed_zero,
            notes=tuple((notes or {}).items()),
        )

    return make


def together(rulesets: Iterable[Ruleset]) -> UnstableCombinedRuleset:
    """Rulesets that run as one."""
    return egglog.unstable_combine_rulesets(*rulesets, name=own_name("together"))


def own_name(name: str) -> str:
    """A name that no other rules get: an e-graph runs what it was told first under a name.

    egglog would use the address of rulesets without a name, which is used again, and a rule's name is used again for
    its next version.
    """
    return f"{name} {next(_NUMBERS)}"


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _told(
    name: str,
    law: str,
    source: str,
    family: str,
    phase: str,
    flags: tuple[str, ...],
    notes: tuple[tuple[str, str], ...],
    at: str,
) -> ToldRule:
    own = {flag: flag in flags for flag in FLAGS}
    rules = egglog.ruleset(name=own_name(name))
    return ToldRule(name, law, source, family, phase, ruleset=rules, body=_nothing, notes=notes, at=at, **own)


def _nothing() -> Iterable[egglog.RewriteOrRule]:
    return ()


_SHARED = {id(value): (m.__name__, name) for m in (egglog, sorts) for name, value in vars(m).items()}


class _Pickler(cloudpickle.Pickler):
    """Functions by value, but egglog's and the sorts by name: their values hold all declarations, without an end."""

    def reducer_override(self, obj: Any) -> Any:
        found = _SHARED.get(id(obj))
        return (_named, found) if found is not None else super().reducer_override(obj)


def _dumped(body: Callable[..., Iterable[egglog.RewriteOrRule]]) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(body)
    return file.getvalue()


def _remade(dumped: bytes, law: str, facts: dict[str, Any]) -> Rule:
    body = pickle.loads(dumped)
    for name in ("Ex", "Fn", "Op", "Order", "P", "Ty", "V"):  # annotations are not among the globals that travel
        body.__globals__.setdefault(name, getattr(sorts, name))
    for name in ("i64", "String"):
        body.__globals__.setdefault(name, getattr(egglog, name))
    return rule(law, **facts)(body)
