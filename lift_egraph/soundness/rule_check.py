"""Checking that a rule is sound, on random programs around matches of it.

A program that the rule gets wrong is shrunk. A rule that finds nothing to do in its own programs is no less suspicious
than a wrong one, so the report counts the programs in which it fired; a condition that no program broke may be missing
or wrong unseen, so it counts those, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Equation, Node, shown
from lift_egraph.errors import RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.meaning.interp import evaluate
from lift_egraph.soundness.batches import next_batch
from lift_egraph.soundness.counterexamples import Counterexample, closed, equal_values
from lift_egraph.soundness.hostile_inputs import KINDS, hostile_inputs
from lift_egraph.soundness.instances import ATTEMPTS, Instances
from lift_egraph.soundness.matches import Example
from lift_egraph.soundness.pattern_values import Rejected
from lift_egraph.soundness.random_terms import Replayer
from lift_egraph.soundness.rule_checker import Case, RuleChecker, RuleReport, inputs_of
from lift_egraph.soundness.rule_steps import array_lengths
from lift_egraph.soundness.shrinking import shrink

NEAR_MISSES = 4  # one program for so many breaks a condition
ORDERED = 32  # longer reductions are computed in any order, which extreme numbers show


def check_rule(
    rule: Rule,
    examples: int = 200,
    *,
    simplification: Iterable[Rule] = (),
    seed: int = 0,
    members: int = 6,
    shrink_steps: int = 400,
) -> RuleReport:
    """Check a rule on random programs made around matches of its left-hand side.

    Where the conditions let names clash (`lift_egraph.soundness.clashes`), two programs of three have such a clash. One
    more program for every four breaks one condition (`lift_egraph.soundness.near_misses`), the first conditions first,
    and must come to no harm; these do not count as examples. Inputs are small whole numbers, fractions and extreme
    numbers in turn. Results must be equal bit for bit, but for what the rule's flags allow
    (`lift_egraph.egraph.rule.FLAGS`): up to rounding if it reassociates or commutes.

    Parameters
    ----------
    examples
        How many programs, unless a counterexample ends it.
    simplification
        Rules run to saturation before and after it.
    seed
        Equal seeds give equal programs, inputs and samples.
    members
        How many rewritten terms of each program to look at.
    shrink_steps
        How many smaller programs to try in place of one that the rule gets wrong.

    Raises
    ------
    RuleProblem
        If the rule cannot be read, or its left-hand side fits no program.

    Examples
    --------
    >>> from lift_egraph.dsl import Ex, rewrite, rule, transpose
    >>> @rule("transpose xss = xss")
    ... def forget_transpose(xss: Ex):
    ...     yield rewrite(transpose(xss)).to(xss)
    >>> print(check_rule(forget_transpose, 10).counterexample)  # doctest: +ELLIPSIS
    forget_transpose is not sound: transpose xss = xss
    program example(a_f32_2_1: [[f32]2]1) =
      transpose(a_f32_2_1)
    becomes
      transpose(transpose(a_f32_2_1))
    for
      a_f32_2_1 = [[2., 1.]]
    expected
      [[2.], [1.]]
    found
      a term of the type [[f32]2]1 for one of the type [[f32]1]2
    the same again
      from lift_egraph.api import reproduce, rules, rules_in
      ...
    """
    check = RuleCheck(rule, simplification=simplification, seed=seed, members=members)
    report = check.run(examples)
    return report if report.counterexample is None else replace(report, counterexample=check.shrunk(shrink_steps))


class RuleCheck:
    """The check of a rule on random programs, some programs at a time (see `check_rule` and `Instances`)."""

    def __init__(
        self,
        rule: Rule,
        *,
        simplification: Iterable[Rule] = (),
        seed: int = 0,
        members: int = 6,
        attempts: int = ATTEMPTS,
        apart: Iterable[tuple[Equation | Node, ...]] = (),
    ) -> None:
        simplification = tuple(simplification)
        self.instances = Instances(rule, attempts, apart)
        self.checker = RuleChecker(rule, simplification=simplification, members=members)
        self.seed = seed
        self._simplifies = bool(simplification)
        self._counts = Counter[str]()
        self._chance = 0.0
        self._made, self._fired = Counter[int](), Counter[int]()
        self._exercised: set[tuple[int, int]] = set()
        self._wrong: Counterexample | None = None
        self._failed = Draw(0, ())

    @property
    def report(self) -> RuleReport:
        """What was seen so far."""
        forms = self.instances.forms
        conditions = self.instances.conditions
        return RuleReport(
            self.checker.rule,
            self._counts["examples"],
            self._fired.total(),
            self._wrong,
            self._counts["changed"],
            tuple(shown(forms[n].left) for n in self._made if not self._fired[n]),
            tuple(self.instances.condition(*c) for c in conditions if c in self._exercised),
            tuple(self.instances.condition(*c) for c in conditions if c not in self._exercised),
            self._counts["whole"],
            self._chance,
        )

    def run(self, examples: int) -> RuleReport:
        """Check some more programs, until one is wrong; the report so far."""
        left = examples
        while left > 0 and self._wrong is None:
            batch = next_batch(self._counts["examples"], left)
            self._run_batch(batch)
            left -= batch
        return self.report

    def _run_batch(self, examples: int) -> None:
        """Check programs that share an e-graph."""
        first = self._counts["examples"]
        problem: RuleProblem | None = None
        made: list[tuple[Draw, Example]] = []
        missed: list[tuple[Draw, Example]] = []
        for number in range(first, first + examples):
            try:
                example, choices = self.instances.draw(f"{self.seed}/{number}", True, number)
            except RuleProblem as no_program:
                problem = no_program
                break
            made.append((Draw(number, choices), example))
            if number % NEAR_MISSES == 0:
                missed += self._near_miss(number // NEAR_MISSES)
        self._look_at(made)
        if self._wrong is None:
            self._look_at(missed)
        if self._wrong is None and problem is not None:
            raise problem

    def _near_miss(self, number: int) -> Iterator[tuple[Draw, Example]]:
        with suppress(RuleProblem):  # no program breaks the condition and still has a type
            example, choices = self.instances.draw(f"{self.seed}/{number}/miss", False, number)
            yield Draw(number, choices), example

    def _look_at(self, some: list[tuple[Draw, Example]]) -> None:
        """Check some programs, and count them, until one is wrong."""
        reports = self.look_at([(example, draw.number) for draw, example in some])
        for (draw, example), report in zip(some, reports, strict=True):
            if example.broken is None:
                self._counts["examples"] += 1
                self._made[example.form] += 1
                self._fired[example.form] += report.fired
                self._counts["changed"] += report.changed
                self._counts["whole"] += report.whole
                self._chance = max(self._chance, report.chance)
            else:
                self._exercised.add((example.form, example.broken))
            if report.counterexample is not None:
                self._failed, self._wrong = self._by_itself(draw, example, some)
                self._wrong = self._wrong or report.counterexample
                return

    def _by_itself(
        self, draw: Draw, example: Example, some: list[tuple[Draw, Example]]
    ) -> tuple[Draw, Counterexample | None]:
        """What is wrong with one of some programs, with as few of the others in its e-graph as it takes."""
        others = [each for each in some if each[0] != draw]
        for beside in ([], *([other] for other in others), others):
            looked_at = [(example, draw.number), *((e, d.number) for d, e in beside)]
            found = self.look_at(looked_at)[0].counterexample
            if found is not None:
                return draw._replace(beside=tuple((d.number, d.choices) for d, _ in beside)), found
        return draw, None

    def look(self, example: Example, number: int) -> RuleReport:
        """What the rule does to one example, with the inputs of its number."""
        return self.look_at([(example, number)])[0]

    def look_at(self, some: Sequence[tuple[Example, int]]) -> list[RuleReport]:
        """What the rule does to some examples, with the inputs of their numbers."""
        cases = [self._case(*each) for each in some]
        claiming = [i for i, (example, _) in enumerate(some) if example.claims and example.broken is None]
        other = [i for i in range(len(some)) if i not in claiming]
        found: dict[int, RuleReport] = {}
        if other:
            found |= zip(other, self.checker.check_all([cases[i] for i in other]), strict=True)
        if claiming:
            for i, fired in zip(claiming, self.checker.fires([cases[i] for i in claiming]), strict=True):
                example, number = some[i]
                wrong = false_claim(self.checker.rule, example.claims, self.seed + number)
                found[i] = RuleReport(self.checker.rule, 1, int(fired), wrong if fired else None, int(fired))
        return [found[i] for i in range(len(some))]

    def _case(self, example: Example, number: int) -> Case:
        large = max(array_lengths(example.program.body), default=0) > ORDERED
        kind = KINDS[number % (2 if large else 3)]
        form = self.instances.forms[example.form]
        return Case(example.program, self.seed + number, kind, example.facts, form)

    def shrunk(self, steps: int = 400) -> Counterexample:
        """The counterexample with as simple a program as a number of steps find.

        Raises
        ------
        ValueError
            If none was found.
        """
        if self._wrong is None:
            raise ValueError("no counterexample was found")
        failed = self._failed

        def wrong(taken: Sequence[int]) -> tuple[tuple[int, ...], Counterexample] | None:
            replayer = Replayer(taken)
            try:
                example = self.instances.example(replayer)
            except Rejected:
                return None
            report = self.look(example, failed.number)
            return None if report.counterexample is None else (tuple(replayer.taken), report.counterexample)

        seen = {id(self._wrong): failed.choices}

        def noted(taken: Sequence[int]) -> tuple[tuple[int, ...], Counterexample] | None:
            outcome = wrong(taken)
            if outcome is not None:
                seen[id(outcome[1])] = outcome[0]
                kept.append(outcome[1])
            return outcome

        kept = [self._wrong]  # so that no other gets the id of one of them
        found = shrink(failed.choices, noted, self._wrong, steps, lambda c: c.size)
        return replace(found, reproducer=self._reproducer(failed._replace(choices=seen[id(found)])))

    def _reproducer(self, draw: Draw) -> str:
        rule = self.checker.rule
        file, module = rule.place.rpartition(":")[0], rule.body.__module__
        if getattr(sys.modules.get(module), rule.name, None) is rule:
            where = f"from {module} import {rule.name}"
        else:
            where = f"{rule.name} = rules_in({file!r})[{rule.name!r}]"
        beside = ", rules.simplification" if self._simplifies else ""
        beside += f", beside={draw.beside}" if draw.beside else ""
        return (
            f"from lift_egraph.api import reproduce, rules, rules_in\n{where}\n"
            f"print(reproduce({rule.name}, {self.seed}, {draw.number}, {draw.choices}{beside}))"
        )


def reproduce(
    rule: Rule,
    seed: int,
    number: int,
    choices: Sequence[int],
    simplification: Iterable[Rule] = (),
    beside: Iterable[tuple[int, Sequence[int]]] = (),
) -> Counterexample | None:
    """The counterexample that a check found, from the choices that made its program; None if there is none.

    Parameters
    ----------
    seed, number
        Of the check, and which of its programs it was: inputs depend on them.
    choices
        What was chosen to make the program.
    simplification
        The rules that ran before and after it.
    beside
        The numbers and choices of other programs in the same e-graph.

    Raises
    ------
    RuleProblem
        If the choices make no program: the rule is no longer what it was.
    """
    check = RuleCheck(rule, simplification=simplification, seed=seed)
    try:
        some = [(check.instances.example(Replayer(c)), n) for n, c in ((number, choices), *beside)]
    except Rejected as problem:
        raise RuleProblem(rule.name, rule.place, f"the choices make no program that it applies to: {problem}") from None
    return check.look_at(some)[0].counterexample


class Draw(NamedTuple):
    """How a program was made: its number, and the choices; and those of programs that stood beside it."""

    number: int
    choices: tuple[int, ...]
    beside: tuple[tuple[int, tuple[int, ...]], ...] = ()


def false_claim(
    rule: Rule, claims: Iterable[tuple[str, ir.Lambda, ir.Expr | None]], seed: int
) -> Counterexample | None:
    """Operators for which a law does not hold that a rule states."""
    for law, operator, start in claims:
        t = type_of(operator.body)
        a, b, c = (ir.Input(f"operand_{name}", t) for name in "abc")

        def on(left: ir.Expr, right: ir.Expr, operator: ir.Lambda = operator) -> ir.Expr:
            return ir.Apply(operator, ir.MakePair(left, right))

        if start is not None and law == "identity":
            sides = a, on(a, start)
        elif start is not None:  # once more changes nothing
            sides = on(start, a), on(on(start, a), start)
        elif law == "commutative":
            sides = on(a, b), on(b, a)
        else:
            sides = on(on(a, b), c), on(a, on(b, c))
        left, right = map(closed, sides)
        program = ir.Program(law, tuple(dict.fromkeys((*inputs_of(left), *inputs_of(right)))), left)
        inputs = hostile_inputs(program, seed, "fractions")
        expected, found = evaluate(left, inputs), evaluate(right, inputs)
        if not equal_values(expected, found):
            return Counterexample(rule, program, right, inputs, expected, found)
    return None
