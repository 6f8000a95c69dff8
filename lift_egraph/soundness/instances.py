"""Programs around a match of any rule, made from the rule's own left-hand side and conditions.

Types and sizes come from `lift_egraph.soundness.pattern_types`, the rest from random choices
(`lift_egraph.soundness.matches`). Names clash on purpose (`lift_egraph.soundness.clashes`) where the conditions let
them. Other programs break one condition each (`lift_egraph.soundness.near_misses`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Equation, Form, Node, forms, shown
from lift_egraph.errors import LiftError, RuleProblem, TypeProblem
from lift_egraph.soundness.clashes import Clash, clashes_of, excluding
from lift_egraph.soundness.match_binders import Prepared
from lift_egraph.soundness.matches import Example, Match
from lift_egraph.soundness.near_misses import FEW, near_misses
from lift_egraph.soundness.pattern_types import solved
from lift_egraph.soundness.pattern_values import Rejected
from lift_egraph.soundness.random_terms import Choose, Recorder

ATTEMPTS = 400  # draws that may be rejected in a row
TRIES = 40  # after so many, a clash is given up: it may have no program


class Instances:
    """Makes programs around matches of a rule.

    Parameters
    ----------
    attempts
        How many draws may be rejected in a row.
    apart
        Further conditions on sizes, of which every other program keeps one or more: those where a mutant of a rule
        applies, and the rule does not.

    Attributes
    ----------
    conditions
        The conditions that may fail, by the number of their form and their own, and whether programs are known that
        break them.

    Raises
    ------
    RuleProblem
        If the rule cannot be read, or its left-hand side fits no program.
    """

    def __init__(self, rule: Rule, attempts: int = ATTEMPTS, apart: Iterable[tuple[Equation | Node, ...]] = ()) -> None:
        self.rule, self.attempts = rule, attempts
        plain = [self._prepare(number, form) for number, form in enumerate(forms(rule))]
        clashing: list[Prepared] = []
        self.conditions: dict[tuple[int, int], bool] = {}
        misses: list[list[Prepared]] = []
        for p in plain:
            excluded: dict[int, list[Prepared]] = {}
            for clash in p.clashes:
                made = _with_clash(p, clash)
                if made is None:
                    continue
                if broken := excluding(p.form, clash):
                    excluded.setdefault(broken[0], []).append(replace(made, broken=broken[0]))
                else:
                    clashing.append(made)
            for number, made in near_misses(p, excluded).items():
                self.conditions[p.number, number] = bool(made)
                misses.append(made)
        one_after_the_other = [p for turn in zip_longest(*misses) for p in turn if p is not None]
        self.prepared = list[Prepared]()
        kinds = plain, clashing, one_after_the_other, [a for p in plain for c in apart for a in _with_sizes(p, c)]
        self._plain, self._clashes, self._misses, self._apart = (self._added(some) for some in kinds)
        self.forms = [p.form for p in plain]

    def _added(self, some: list[Prepared]) -> range:
        """The places of some more that are prepared."""
        first = len(self.prepared)
        self.prepared += some
        return range(first, len(self.prepared))

    def _prepare(self, number: int, form: Form) -> Prepared:
        try:
            typing, solutions = solved(form)
        except TypeProblem as problem:
            raise RuleProblem(
                self.rule.name, self.rule.place, f"no program has its left-hand side {shown(form.left)}: {problem}"
            ) from problem
        if not solutions:
            where = f"its left-hand side {shown(form.left)} and its conditions"
            raise RuleProblem(self.rule.name, self.rule.place, f"no sizes that were tried fit {where}")
        return Prepared(form, typing, solutions, clashes_of(form), number)

    def condition(self, form: int, number: int) -> str:
        """A condition as text, with the number of its rewrite where the rule has several."""
        text = shown(self.forms[form].conditions[number])
        return text if len(self.forms) == 1 else f"rewrite {form + 1}: {text}"

    def breaking(self, form: int, condition: int) -> Iterator[int]:
        """The numbers of `draw` whose programs break a condition."""
        for number, at in enumerate(self._misses):
            if (self.prepared[at].number, self.prepared[at].broken) == (form, condition):
                yield number

    def example(self, choose: Choose) -> Example:
        """A program from a sequence of choices.

        Raises
        ------
        Rejected
            If the choices break a condition.
        """
        prepared = choose(self.prepared)  # the forms without a clash come first
        try:
            return Match(prepared, choose).example()
        except (LiftError, AssertionError) as problem:  # sizes that fit no pattern: choose others
            raise Rejected(str(problem)) from problem

    def draw(self, seed: str, careful: bool = True, number: int | None = None) -> tuple[Example, tuple[int, ...]]:
        """A random program and the choices that made it.

        Parameters
        ----------
        careful
            Whether all conditions are kept, so that the rule must fire; else the program breaks one of them.
        number
            Two programs of three have the clashes of names that the conditions allow, one after the other, where there
            are any; the others are of the rule's forms in turn. Those that break a condition break one after the
            other. Without a number it is any of them.

        Raises
        ------
        RuleProblem
            If no draw keeps the conditions of a form, or breaks one of them.
        """
        turn = self._turn(seed, careful, number)
        last: Exception | None = None
        for attempt in range(self.attempts):
            if attempt == TRIES and (turn in self._clashes or turn in self._apart):  # it may have no program
                turn = self.prepared[turn].number
            recorder = Recorder(random.Random(f"{seed}/{attempt}"), (turn,))
            try:
                return self.example(recorder), tuple(recorder.taken)
            except Rejected as problem:
                last = problem
            if attempt >= TRIES and not careful:
                break
        which = "" if len(self.forms) == 1 else f"its rewrite of {shown(self.prepared[turn].form.left)}: "
        raise RuleProblem(self.rule.name, self.rule.place, f"{which}no program was found that it applies to: {last}")

    def _turn(self, seed: str, careful: bool, number: int | None) -> int:
        """Whose turn it is."""
        if not careful:
            if not self._misses:
                raise RuleProblem(self.rule.name, self.rule.place, "it has no condition that a program breaks")
            return self._misses[(random.Random(seed).randrange(1000) if number is None else number) % len(self._misses)]
        if number is None:
            return random.Random(seed).choice(self._plain)
        if self._apart and number % 2:
            return self._apart[number // 2 % len(self._apart)]
        if self._clashes and number % 3 < 2:
            return self._clashes[(number - number // 3) % len(self._clashes)]
        return self._plain[(number // 3 if self._clashes else number) % len(self._plain)]


def _with_sizes(p: Prepared, conditions: tuple[Equation | Node, ...]) -> Iterator[Prepared]:
    """The form for programs whose sizes keep further conditions, if there are any."""
    try:
        typing, solutions = solved(replace(p.form, conditions=(*p.form.conditions, *conditions)), (), FEW)
    except TypeProblem:
        return
    if solutions:
        yield replace(p, typing=typing, solutions=solutions)


def _with_clash(p: Prepared, clash: Clash) -> Prepared | None:
    """The form for programs with a clash; None if types or sizes do not let two binders be one."""
    if not clash.shares:
        return replace(p, clash=clash)
    try:
        typing, solutions = solved(p.form, ((clash.binder, clash.other),))
    except TypeProblem:
        return None
    return replace(p, typing=typing, solutions=solutions, clash=clash) if solutions else None
