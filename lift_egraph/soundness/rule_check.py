"""Checking that a rule is sound: rewritten programs are read back, typed, run and compared with the original.

`check_rule` makes programs around matches of a rule. For each program the rule runs alone; members of the program's
class that use what is new in the e-graph are sampled, and each must have the type and the value of the program.
A program that the rule gets wrong is shrunk. A rule that finds nothing to do in its own programs is no less
suspicious than a wrong one, so the report counts the programs in which it fired.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import egglog
from egglog import i64
from egglog.bindings import EggSmolError
from egglog.egraph import ActionLike

from lift_egraph.egraph import sorts
from lift_egraph.egraph.analyses import analyses
from lift_egraph.egraph.encoding import to_egg
from lift_egraph.egraph.frozen import FrozenEGraph, open_term
from lift_egraph.egraph.members import SLACK, MemberSampler, changes, uses
from lift_egraph.egraph.rule import Rule, together
from lift_egraph.egraph.scratch import ROOT, Schedule, Scratch
from lift_egraph.errors import LiftError, RuleProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import binder_type, type_of
from lift_egraph.language.types import Array, DataType, Pair
from lift_egraph.meaning.inputs import Kind, random_inputs
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value
from lift_egraph.soundness.counterexamples import Counterexample, closed, equal_values
from lift_egraph.soundness.instances import Instances, Rejected
from lift_egraph.soundness.random_terms import Replayer
from lift_egraph.soundness.shrinking import shrink

WIDTHS = (2, 4)
ITERATIONS = 2  # a rule that makes the names its conditions mention needs two
DEEP = 40  # how much deeper than the program a rewritten term may be, if none is found near
FRUITLESS = 8  # samples in a row without a new term, after which no more are drawn
NEAR_MISSES = 4  # one program for so many has its conditions broken


@dataclass(frozen=True)
class RuleReport:
    """In how many of the examples a rule fired, and the first program that it got wrong."""

    rule: Rule
    examples: int
    fired: int
    counterexample: Counterexample | None

    @property
    def fire_rate(self) -> float:
        """The share of the examples in which the rule fired."""
        return self.fired / self.examples if self.examples else 0.0


_Told = tuple[Scratch, Schedule, int, tuple[egglog.Ruleset, ...]]
_TOLD: dict[tuple[int, ...], _Told] = {}  # e-graphs of the last checkers, for the next with the same simplification
MOST_TOLD, MOST_KEPT = 12, 4  # rules that one e-graph is told: each makes the rest slower; e-graphs


def _fresh(others: tuple[egglog.Ruleset, ...]) -> _Told:
    """An e-graph that knows how to clean, and how, and how many rules it was told beside."""
    scratch = Scratch(sorts.lane_width(i64(width)) for width in WIDTHS)
    return scratch, scratch.compiled(together((*analyses, *others)).saturate()), 0, others


class RuleChecker:
    """Checks one rule on one program after another.

    Parameters
    ----------
    rule
        The rule. One of the phase ``simplification`` runs to saturation, as it does in use; others run once, and
        again if they only made names.
    simplification
        Rules run to saturation before and after it, such as the unfolding of definitions.
    members
        How many members of the program's class to look at.
    """

    def __init__(self, rule: Rule, *, simplification: Iterable[Rule] = (), members: int = 6):
        self.rule = rule
        self.members = members
        self._simplifies = bool(simplification := tuple(simplification))
        others = tuple(r.ruleset for r in simplification if r.name != rule.name)
        step = rule.ruleset.saturate() if rule.phase == "simplification" else egglog.run(rule.ruleset)
        key = tuple(id(ruleset) for ruleset in others)
        self._scratch, self._cleaning, told, _ = _TOLD.pop(key, None) or _fresh(others)
        try:
            self._step = self._scratch.compiled(step)
        except EggSmolError as problem:
            raise RuleProblem(rule.name, rule.place, f"egglog refuses it: {problem}") from None
        if told < MOST_TOLD:
            _TOLD[key] = self._scratch, self._cleaning, told + 1, others
        if len(_TOLD) > MOST_KEPT:
            del _TOLD[next(iter(_TOLD))]

    def graphs(self, term: ir.Expr, facts: Iterable[ActionLike] = ()) -> tuple[FrozenEGraph, FrozenEGraph]:
        """The e-graph of a term before and after the rule."""
        with self._scratch.holding(to_egg(term), (*_tiles(term), *facts)) as held:
            held.run(self._cleaning)
            old = new = held.freeze()
            for _ in range(ITERATIONS):
                held.run(self._step, self._cleaning)
                new = held.freeze()
                if new.node_count != old.node_count or new.class_count != old.class_count:
                    break
            return old, new

    def check(
        self, program: ir.Program, seed: int = 0, kind: Kind = "integer", facts: Iterable[ActionLike] = ()
    ) -> RuleReport:
        """What the rule does to one program of concrete sizes, run on random inputs.

        Parameters
        ----------
        seed
            Equal seeds give equal inputs and samples.
        kind
            The inputs are whole numbers, so that sums in any order are equal, or ``"float"``.
        facts
            What to register about the program beside the laws of operators, the divisors of all lengths as tiles
            (with one number that is no divisor) and the vector widths 2 and 4.

        Raises
        ------
        LiftError
            If the program itself is ill-typed or has no value.
        """
        inputs = random_inputs(program, seed, kind)
        expected = evaluate(program.body, inputs)
        fired = False
        for term in self.rewritten(program.body, seed, facts):
            fired = True
            given = {**random_inputs(ir.Program("free", _inputs(term), term), seed, kind), **inputs}
            found = _outcome(term, type_of(program.body), given)
            if not equal_values(expected, found):
                wrong = Counterexample(self.rule, program, term, given, expected, found)
                return RuleReport(self.rule, 1, 1, wrong)
        if not fired and self._simplifies:
            return self._alone.check(program, seed, kind, facts)
        return RuleReport(self.rule, 1, int(fired), None)

    @cached_property
    def _alone(self) -> RuleChecker:
        """The check without simplification, which may have done the rule's work before it."""
        return RuleChecker(self.rule, members=self.members)

    def rewritten(self, term: ir.Expr, seed: int = 0, facts: Iterable[ActionLike] = ()) -> Iterator[ir.Expr]:
        """Distinct terms that use what the rule puts beside a term, closed by `closed`.

        A rule that names what is there already (``λv. join v = join``) gives the term itself.
        """
        old, new = self.graphs(term, facts)
        changed = changes(old, new)
        sampler = MemberSampler(new, changed)
        seen = set()
        rng, tried, fruitless = random.Random(seed), set(), 0
        while len(seen) < self.members and fruitless < FRUITLESS:
            deep = not seen and fruitless >= FRUITLESS // 2  # what is new may stand far below what was there
            choice = sampler.sample(new.roots[ROOT], rng, DEEP if deep else SLACK)
            if choice is None:
                return
            fruitless += 1
            if choice in tried or not uses(choice, changed):
                continue
            tried.add(choice)
            try:
                member = closed(open_term(new, choice))
            except TypeProblem:  # a function whose type no analysis reached
                continue
            name = canonical(member)
            if name not in seen:
                fruitless = 0
                seen.add(name)
                yield member


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

    Where the conditions let names clash (`lift_egraph.soundness.clashes`), every other program has such a clash. One
    more program for every four must come to no harm, in which one condition on names is broken, or by chance some on
    names and laws; these do not count as examples.

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
    >>> print(check_rule(forget_transpose, 10).counterexample)
    forget_transpose is not sound: transpose xss = xss
    program example(a_f32_2_2: [[f32]2]2) =
      transpose(a_f32_2_2)
    becomes
      transpose(transpose(a_f32_2_2))
    for
      a_f32_2_2 = [[ 2.,  1.], [ 0., -2.]]
    expected
      [[ 2.,  0.], [ 1., -2.]]
    found
      [[ 2.,  1.], [ 0., -2.]]
    """
    check = RuleCheck(rule, simplification=simplification, seed=seed, members=members)
    report = check.run(examples)
    return report if report.counterexample is None else replace(report, counterexample=check.shrunk(shrink_steps))


class RuleCheck:
    """The check of a rule on random programs, some programs at a time (see `check_rule`)."""

    def __init__(self, rule: Rule, *, simplification: Iterable[Rule] = (), seed: int = 0, members: int = 6) -> None:
        self.instances = Instances(rule)
        self.checker = RuleChecker(rule, simplification=simplification, members=members)
        self.seed = seed
        self.report = RuleReport(rule, 0, 0, None)
        self._failed = Draw(0, True, ())

    def run(self, examples: int) -> RuleReport:
        """Check some more programs, until one is wrong; the report so far."""
        for number in range(self.report.examples, self.report.examples + examples):
            if self.report.counterexample is not None:
                break
            fired, wrong = self._one(number, careful=True)
            if wrong is None and number % NEAR_MISSES == 0:
                _, wrong = self._one(number, careful=False)
            self.report = RuleReport(self.report.rule, number + 1, self.report.fired + fired, wrong)
        return self.report

    def _one(self, number: int, careful: bool) -> tuple[int, Counterexample | None]:
        try:
            example, choices = self.instances.draw(
                f"{self.seed}/{number}/{careful}", careful, number if careful else number // NEAR_MISSES
            )
        except RuleProblem:
            if careful:
                raise
            return 0, None  # no program breaks the conditions and still has a type
        report = self.checker.check(example.program, self.seed + number, facts=example.facts)
        self._failed = Draw(number, careful, choices)
        return report.fired, report.counterexample

    def shrunk(self, steps: int = 400) -> Counterexample:
        """The counterexample with as simple a program as a number of steps find.

        Raises
        ------
        ValueError
            If none was found.
        """
        if self.report.counterexample is None:
            raise ValueError("no counterexample was found")
        failed = self._failed

        def wrong(taken: Sequence[int]) -> tuple[tuple[int, ...], Counterexample] | None:
            replayer = Replayer(taken)
            try:
                example = self.instances.example(replayer, failed.careful)
            except Rejected:
                return None
            report = self.checker.check(example.program, self.seed + failed.number, facts=example.facts)
            return None if report.counterexample is None else (tuple(replayer.taken), report.counterexample)

        return shrink(failed.choices, wrong, self.report.counterexample, steps, lambda c: c.size)


class Draw(NamedTuple):
    """How a program was made: its number, whether the rule's conditions are kept, and the choices."""

    number: int
    careful: bool
    choices: tuple[int, ...]


def _inputs(term: ir.Expr) -> tuple[ir.Input, ...]:
    found = {p.name: p for p in ir.subterms(term) if isinstance(p, ir.Input)}
    return tuple(found[name] for name in sorted(found))


def _outcome(term: ir.Expr, expected: DataType, inputs: dict[str, Value]) -> Value | str:
    """The value of a rewritten term, or what is wrong with it."""
    try:
        found = type_of(term)
        if found != expected:
            return f"a term of the type {found} for one of the type {expected}"
        return evaluate(term, inputs)
    except LiftError as problem:
        return f"{type(problem).__name__}: {problem}"


def array_lengths(term: ir.Expr) -> set[int]:
    """The lengths of all arrays in a term of concrete sizes."""
    return {n for t in _types(term) for n in _lengths(t)}


def _tiles(term: ir.Expr) -> Iterator[ActionLike]:
    for n in sorted(array_lengths(term)):
        yield from _tiles_of(n)


@cache
def _tiles_of(n: int) -> tuple[ActionLike, ...]:
    """The divisors of a length, and one number that is none; making such facts takes longer than using them."""
    odd = next((d for d in range(2, n) if n % d), None)
    return tuple(sorts.tile(i64(n), i64(d)) for d in range(1, n + 1) if n % d == 0 or d == odd)


def _types(term: ir.Expr) -> Iterator[DataType]:
    for part in ir.subterms(term):
        if isinstance(part, ir.Expr):
            yield type_of(part)
        elif isinstance(part, ir.Lambda):
            yield binder_type(part.binder)


def _lengths(t: DataType) -> Iterator[int]:
    if isinstance(t, Array):
        if t.size.constant is not None:
            yield t.size.constant
        yield from _lengths(t.element)
    elif isinstance(t, Pair):
        yield from _lengths(t.first)
        yield from _lengths(t.second)
