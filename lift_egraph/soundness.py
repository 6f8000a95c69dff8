"""Checking that a rule is sound: rewritten programs are read back, typed, run and compared with the original.

`check_rule` takes a rule and programs that contain a match of it. For each program the rule runs alone for one
iteration; members of the program's class that use what is new in the e-graph are sampled, and each must have
the type and the value of the program. A rule that finds nothing to do in its own programs is no less suspicious
than a wrong one, so the report counts the programs in which it fired.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import egglog
import numpy as np
from egglog import i64
from egglog.egraph import ActionLike

from lift_egraph import ir, sorts
from lift_egraph.analyses import analyses
from lift_egraph.binders import canonical
from lift_egraph.check import pattern_type, type_of
from lift_egraph.encoding import operator_laws, to_egg
from lift_egraph.errors import LiftError, TypeProblem
from lift_egraph.frozen import FrozenEGraph, freeze, from_egg
from lift_egraph.inputs import Kind, random_inputs
from lift_egraph.interp import evaluate
from lift_egraph.members import MemberSampler, changes, uses
from lift_egraph.rule import Rule
from lift_egraph.saturate import ROOT
from lift_egraph.syntax import print_program, print_term
from lift_egraph.types import Array, DataType, Pair
from lift_egraph.values import Value

WIDTHS = (2, 4)
Facts = Callable[[ir.Expr], Iterable[egglog.Expr]]


@dataclass(frozen=True)
class Counterexample:
    """A program that a rule turns into something else.

    Attributes
    ----------
    program
        The program, which contains a match of the rule.
    rewritten
        The term that the rule made of its body.
    inputs
        The inputs for which they differ.
    expected, found
        Their results; `found` is a message where the rewritten term has no result or another type.
    """

    rule: Rule
    program: ir.Program
    rewritten: ir.Expr
    inputs: dict[str, Value]
    expected: Value
    found: Value | str

    def __str__(self) -> str:
        values = "\n".join(f"  {name} = {_shown(value)}" for name, value in self.inputs.items())
        return (
            f"{self.rule.name} is not sound: {self.rule.law}\n"
            f"{print_program(self.program)}becomes\n  {print_term(self.rewritten)}\nfor\n{values}\n"
            f"expected\n  {_shown(self.expected)}\nfound\n  {_shown(self.found)}"
        )


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


def no_facts(term: ir.Expr) -> tuple[egglog.Expr, ...]:
    """No facts beside those that every check registers."""
    return ()


class RuleChecker:
    """Checks one rule on one program after another.

    Parameters
    ----------
    rule
        The rule.
    simplification
        Rules run to saturation before and after it, such as the unfolding of definitions.
    before
        Rules run for one iteration each, in order, before it: they make what the rule matches.
    facts
        What to register about a program beside the laws of operators, the divisors of all lengths as tiles
        (with one number that is no divisor) and the vector widths 2 and 4.
    iterations
        How often the rule runs: one that makes the names its conditions mention needs two.
    members
        How many members of the program's class to look at.
    """

    def __init__(
        self,
        rule: Rule,
        *,
        simplification: Iterable[Rule] = (),
        before: Sequence[Rule] = (),
        facts: Facts = no_facts,
        iterations: int = 1,
        members: int = 6,
    ):
        self.rule = rule
        self.before = before
        self.facts = facts
        self.iterations = iterations
        self.members = members
        cleaning = (r.ruleset for r in simplification if r.name != rule.name)
        self._cleaning = egglog.unstable_combine_rulesets(*analyses, *cleaning).saturate()
        self._empty = egglog.EGraph()  # told all rules once, which takes longer than running them
        self._empty.register(*operator_laws())
        for ruleset in (*(r.ruleset for r in before), rule.ruleset):
            self._empty.run(egglog.run(ruleset))
        self._empty.run(self._cleaning)

    def graphs(self, term: ir.Expr) -> tuple[FrozenEGraph, FrozenEGraph]:
        """The e-graph of a term before and after one iteration of the rule."""
        with self._empty as graph:
            root = graph.let(ROOT, to_egg(term))
            graph.register(*(sorts.lane_width(i64(width)) for width in WIDTHS), *_tiles(term), *self.facts(term))
            graph.run(self._cleaning)
            for rule in self.before:
                graph.run(egglog.run(rule.ruleset))
                graph.run(self._cleaning)
            old = freeze(graph, {ROOT: root})
            for _ in range(self.iterations):
                graph.run(egglog.run(self.rule.ruleset))
                graph.run(self._cleaning)
            return old, freeze(graph, {ROOT: root})

    def check(self, program: ir.Program, seed: int = 0, kind: Kind = "integer") -> RuleReport:
        """What the rule does to one program of concrete sizes, run on random inputs.

        Raises
        ------
        LiftError
            If the program itself is ill-typed or has no value.
        """
        inputs = random_inputs(program, seed, kind)
        expected = evaluate(program.body, inputs)
        fired = False
        for term in self.rewritten(program.body, seed):
            fired = True
            found = _outcome(term, type_of(program.body), inputs)
            if not equal_values(expected, found):
                wrong = Counterexample(self.rule, program, term, inputs, expected, found)
                return RuleReport(self.rule, 1, 1, wrong)
        return RuleReport(self.rule, 1, int(fired), None)

    def rewritten(self, term: ir.Expr, seed: int = 0) -> Iterator[ir.Expr]:
        """Distinct closed terms that use what one iteration of the rule puts beside a term.

        A rule that names what is there already (``λv. join v = join``) gives the term itself.
        """
        old, new = self.graphs(term)
        changed = changes(old, new)
        sampler = MemberSampler(new, changed)
        seen = set()
        for attempt in range(4 * self.members):
            choice = sampler.sample(new.roots[ROOT], random.Random(f"{seed}/{attempt}"))
            if choice is None or len(seen) == self.members:
                return
            if not uses(choice, changed):
                continue
            try:
                member = from_egg(new, choice)
            except TypeProblem:  # an open member: a class may be closed while one of its members is not
                continue
            name = canonical(member)
            if name not in seen:
                seen.add(name)
                yield member


def check_rule(
    rule: Rule,
    programs: Iterable[ir.Program],
    *,
    simplification: Iterable[Rule] = (),
    before: Sequence[Rule] = (),
    facts: Facts = no_facts,
    iterations: int = 1,
    members: int = 6,
    seed: int = 0,
    kind: Kind = "integer",
) -> RuleReport:
    """Check a rule on programs of concrete sizes that contain a match of it.

    Parameters
    ----------
    seed
        Equal seeds give equal inputs and samples.
    kind
        The inputs are whole numbers, so that sums in any order are equal, or ``"float"``.

    The other parameters are those of `RuleChecker`.

    Examples
    --------
    >>> from egglog import i64, rewrite
    >>> from lift_egraph.rule import rule
    >>> from lift_egraph.sorts import Ex, transpose
    >>> from lift_egraph.syntax import parse_program
    >>> @rule("transpose xss = xss")
    ... def forget_transpose(xss: Ex):
    ...     yield rewrite(transpose(xss)).to(xss)
    >>> square = parse_program("program square(xss: [[f32]2]2) = transpose(xss)")
    >>> report = check_rule(forget_transpose, [square])
    >>> report.fired, report.counterexample is None
    (1, False)
    """
    checker = RuleChecker(
        rule, simplification=simplification, before=before, facts=facts, iterations=iterations, members=members
    )
    examples = fired = 0
    for program in programs:
        report = checker.check(program, seed + examples, kind)
        examples, fired = examples + 1, fired + report.fired
        if report.counterexample is not None:
            return RuleReport(rule, examples, fired, report.counterexample)
    return RuleReport(rule, examples, fired, None)


def equal_values(left: Any, right: Any) -> bool:
    """Whether two values are equal: pairs by component, NaN equal to itself, zeros of either sign equal."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        both = isinstance(left, tuple) and isinstance(right, tuple)
        return both and all(equal_values(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(right, str) or left.dtype != right.dtype:
        return False
    return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


def _outcome(term: ir.Expr, expected: DataType, inputs: dict[str, Value]) -> Value | str:
    """The value of a rewritten term, or what is wrong with it."""
    try:
        found = type_of(term)
        if found != expected:
            return f"a term of the type {found} for one of the type {expected}"
        return evaluate(term, inputs)
    except LiftError as problem:
        return f"{type(problem).__name__}: {problem}"


def _tiles(term: ir.Expr) -> Iterator[ActionLike]:
    lengths = {n for t in _types(term) for n in _lengths(t)}
    for n in sorted(lengths):
        odd = next((d for d in range(2, n) if n % d), None)
        for chunk in range(1, n + 1):
            if n % chunk == 0 or chunk == odd:
                yield sorts.tile(i64(n), i64(chunk))


def _types(term: ir.Expr) -> Iterator[DataType]:
    for part in ir.subterms(term):
        if isinstance(part, ir.Expr):
            yield type_of(part)
        elif isinstance(part, ir.Lambda):
            yield pattern_type(part.pattern)


def _lengths(t: DataType) -> Iterator[int]:
    if isinstance(t, Array):
        if t.size.constant is not None:
            yield t.size.constant
        yield from _lengths(t.element)
    elif isinstance(t, Pair):
        yield from _lengths(t.first)
        yield from _lengths(t.second)


def _shown(value: Value | str) -> str:
    if isinstance(value, tuple):
        return f"({_shown(value[0])}, {_shown(value[1])})"
    return value if isinstance(value, str) else np.array2string(value, separator=", ", threshold=64).replace("\n", "")
