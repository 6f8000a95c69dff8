"""What a user adds to a search: rules and alternatives, which are checked before they take part, and plans.

A rule takes part in the phases that its own phase names (`ROLES`). Files with rules are run in child processes only:
in that of the check, in that of the search, and in that which explains a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import perf_counter

from lift_egraph import rules as book
from lift_egraph.codegen.devices import Device
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_files import OwnRule, RuleFile, RuleIn, rule_of
from lift_egraph.errors import InputProblem, LiftError, ModelProblem, RuleProblem
from lift_egraph.language import ir
from lift_egraph.soundness.alternatives import check_alternative
from lift_egraph.soundness.many_rules import EXAMPLES, Verdict, check_rules
from lift_egraph.workbench.planning.plan import PLANNED, Plan
from lift_egraph.workbench.progress import Event, Listener

ROLES = {
    "stages": "algorithmic",
    "algorithmic": "algorithmic",
    "lowering": "lowering",
    "sharing": "lowering",
    "memory": "memory",
}
"""Which rules take part in a phase beside the phase's own; those that simplify do in all."""

Plans = Callable[[ir.Expr, Device], Iterable[Plan]]


@dataclass(frozen=True)
class Additions:
    """The rules, plans and alternatives of a user; `files` are run where `own_rules` is asked for.

    `checks` says how often the alternatives were compared with their functions.
    """

    files: tuple[RuleFile, ...] = ()
    rules: tuple[Rule, ...] = ()
    plans: Plans | None = None
    alternatives: tuple[ir.Alternative, ...] = ()
    checks: tuple[str, ...] = ()

    def own_rules(self) -> tuple[OwnRule, ...]:
        """All rules.

        Raises
        ------
        RuleProblem
            If a file has changed since it was given.
        """
        return (*self.rules, *(RuleIn(name, file) for file in self.files for name in file.rules()))

    def own_plans(self, term: ir.Expr, device: Device) -> Iterator[Plan]:
        """The plans for a stage on a device.

        Raises
        ------
        ModelProblem
            If the user's function fails, or yields anything but plans.
        """
        if self.plans is None:
            return
        what = f"the function {getattr(self.plans, '__name__', type(self.plans).__name__)} for plans"
        try:
            made = list(self.plans(term, device))
        except LiftError:
            raise
        except Exception as problem:  # anything at all: it is a user's function
            raise ModelProblem(f"{what} failed: {type(problem).__name__}: {problem}") from problem
        for plan in made:
            if not isinstance(plan, Plan):
                raise ModelProblem(f"{what} yields {plan!r}, which is no lift_egraph.workbench.Plan")
            for step in plan.steps:
                if step.name not in PLANNED:
                    raise ModelProblem(f"{what}: there is no phase {step.name!r}; known are {', '.join(PLANNED)}")
            yield plan


def taking_part(rules: Iterable[OwnRule], role: str | None) -> tuple[OwnRule, ...]:
    """The rules that take part in phases of a role (`ROLES`); None stands for a phase of our rules alone."""
    return tuple(own for own in rules if rule_of(own).phase in ("simplification", role))


def additions_of(
    rules: Rule | Path | str | Iterable[Rule | Path | str],
    plans: Plans | None,
    *,
    alternatives: Iterable[ir.Alternative] = (),
    examples: int = EXAMPLES,
    seconds: float = inf,
    listen: Listener = lambda event: None,
) -> Additions:
    """What a user gives, after a look at it.

    Parameters
    ----------
    rules
        Rules, and files with rules. Rules of the book are believed.
    alternatives
        Other algorithms for functions.
    examples
        How many programs ``lift-egraph rules check`` makes for each rule; with 0 it is only seen that rules can be run.
    seconds
        For comparing all alternatives with their functions.

    Raises
    ------
    InputProblem
        If a file cannot be read.
    RuleProblem
        If a rule is not sound, cannot be used, or has the name of another one; or an alternative disagrees with its
        function.
    """
    own = tuple(alternatives)
    checks, end = list[str](), perf_counter() + seconds
    for left, alternative in zip(range(len(own), 0, -1), own if examples else (), strict=False):
        checks.append(str(check_alternative(alternative, seconds=(end - perf_counter()) / left)))
        listen(Event("alternatives", checks[-1]))
    given = (rules,) if isinstance(rules, Rule | Path | str) else tuple(rules)
    for item in given:
        if not isinstance(item, Rule | Path | str):
            raise InputProblem(f"{item!r} is no rule, and no file with rules")
    files = dict.fromkeys(RuleFile.at(item) for item in given if not isinstance(item, Rule))
    alone = tuple(dict.fromkeys(item for item in given if isinstance(item, Rule)))
    new = tuple(rule for rule in alone if rule not in book.all_rules)
    sources = (*((new,) if new else ()), *(Path(file.path) for file in files))
    places = {rule.name: "" for rule in book.all_rules}

    def look(verdict: Verdict) -> None:
        listen(Event("rules", f"checking {verdict.name}: fired in {verdict.fired} of {verdict.examples}"))
        other = places.setdefault(verdict.name, verdict.place)
        if other != verdict.place:
            whose = f"another rule, at {other}," if other else "a rule of ours"
            raise RuleProblem(verdict.name, verdict.place, f"{whose} has the same name: change it")

    if not sources:
        return Additions(tuple(files), alone, plans, own, tuple(checks))
    for verdict in check_rules(sources, simplification=book.simplification, examples=examples, listen=look):
        if not verdict.passed:
            text = verdict.problem or f"it {str(verdict.counterexample).removeprefix(f'{verdict.name} ')}"
            raise RuleProblem(verdict.name, verdict.place, text)
    return Additions(tuple(files), alone, plans, own, tuple(checks))
