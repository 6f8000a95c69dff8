"""Programs around a match of any rule, made from the rule's own left-hand side and conditions.

Types and sizes come from `lift_egraph.soundness.pattern_types`, the rest from random choices
(`lift_egraph.soundness.matches`). Names clash on purpose (`lift_egraph.soundness.clashes`) where the conditions let
them, and, in the programs that break a condition, where they do not; beside these there are programs in which anything
may happen by chance. Draws that break a condition on names are rejected.
"""

from __future__ import annotations

import random
from dataclasses import replace

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Form, forms
from lift_egraph.errors import LiftError, RuleProblem, TypeProblem
from lift_egraph.soundness.clashes import Clash, clashes_of, excludes
from lift_egraph.soundness.matches import Example, Match, Prepared
from lift_egraph.soundness.pattern_types import typing_of
from lift_egraph.soundness.pattern_values import Rejected
from lift_egraph.soundness.random_terms import Choose, Recorder

ATTEMPTS = 400  # draws that may be rejected in a row
TRIES = 40  # after so many, another form or clash is drawn


class Instances:
    """Makes programs around matches of a rule.

    Raises
    ------
    RuleProblem
        If the rule cannot be read, or its left-hand side fits no program.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        plain = [self._prepare(form) for form in forms(rule)]
        self.prepared = list(plain)
        allowed: list[int] = []
        excluded: list[int] = []
        for p in plain:
            for clash in p.clashes:
                clashing = _with_clash(p, clash)
                if clashing is not None:
                    (excluded if excludes(p.form, clash) else allowed).append(len(self.prepared))
                    self.prepared.append(clashing)
        self._plain, self._clashes = range(len(plain)), {True: allowed, False: excluded}

    def _prepare(self, form: Form) -> Prepared:
        try:
            typing = typing_of(form)
        except TypeProblem as problem:
            raise RuleProblem(
                self.rule.name, self.rule.place, f"no program has its left-hand side {form.left}: {problem}"
            ) from problem
        solutions = typing.solutions()
        if not solutions:
            raise RuleProblem(
                self.rule.name, self.rule.place, f"no small sizes fit its left-hand side {form.left} and its conditions"
            )
        return Prepared(form, typing, solutions, clashes_of(form))

    def example(self, choose: Choose, careful: bool = True) -> Example:
        """A program from a sequence of choices.

        Parameters
        ----------
        careful
            Whether conditions on names and laws are kept, so that the rule must fire.

        Raises
        ------
        Rejected
            If the choices break a condition.
        """
        prepared = choose(self.prepared)  # the forms without a clash come first
        try:
            return Match(prepared, choose, careful).example()
        except (LiftError, AssertionError) as problem:  # sizes that fit no pattern: choose others
            raise Rejected(str(problem)) from problem

    def draw(self, seed: str, careful: bool = True, number: int | None = None) -> tuple[Example, tuple[int, ...]]:
        """A random program and the choices that made it.

        Parameters
        ----------
        number
            Two programs of three have the clashes of names that the conditions allow, or exclude if `careful` is
            false, one after the other, where there are any; the others are of the rule's forms in turn. Without a
            number it is any form.

        Raises
        ------
        RuleProblem
            If no draw keeps the rule's conditions.
        """
        last: Exception | None = None
        turn = random.Random(seed).choice(self._plain) if number is None else self._turn(careful, number)
        for attempt in range(ATTEMPTS):
            if attempt == TRIES:  # this form, or clash, may have no program
                turn = None
            recorder = Recorder(random.Random(f"{seed}/{attempt}"), () if turn is None else (turn,))
            try:
                return self.example(recorder, careful), tuple(recorder.taken)
            except Rejected as problem:
                last = problem
        raise RuleProblem(self.rule.name, self.rule.place, f"no program was found that it applies to: {last}")

    def _turn(self, careful: bool, number: int) -> int:
        """Whose turn it is."""
        clashes = self._clashes[careful]
        if clashes and number % 3 < 2:
            return clashes[(number - number // 3) % len(clashes)]
        return self._plain[(number // 3 if clashes else number) % len(self._plain)]


def _with_clash(p: Prepared, clash: Clash) -> Prepared | None:
    """The form for programs with a clash; None if types or sizes do not let two binders be one."""
    if not clash.shares:
        return replace(p, clash=clash)
    try:
        typing = typing_of(p.form, ((clash.binder, clash.other),))
    except TypeProblem:
        return None
    solutions = typing.solutions()
    return replace(p, typing=typing, solutions=solutions, clash=clash) if solutions else None
