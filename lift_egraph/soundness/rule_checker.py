"""One rule on programs: they are rewritten, read back, typed, run and compared with the originals.

The rule runs alone; members of a program's class that use what is new in the e-graph are sampled, and each must have
the type and the value of the program. Programs stand in one e-graph side by side, as most of what each costs by itself
is what egglog does for an e-graph of any size. Each has variables of its own there. Of their facts, those on operators
are true, and the others offer sizes and places, so those of one take nothing from another.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import egglog
import numpy as np
from egglog import i64
from egglog.bindings import EggSmolError
from egglog.egraph import ActionLike

from lift_egraph.caching import cached_property
from lift_egraph.egraph import sorts
from lift_egraph.egraph.analyses import settled
from lift_egraph.egraph.encoding import to_egg
from lift_egraph.egraph.frozen import FrozenEGraph
from lift_egraph.egraph.members import SLACK, uses
from lift_egraph.egraph.pattern_nodes import NoLiteral
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_edits import watched
from lift_egraph.egraph.rule_forms import Form
from lift_egraph.egraph.scratch import ROOT, Held, Schedule, Scratch, suffix_of
from lift_egraph.errors import LiftError, RuleProblem, SizeProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical, stem
from lift_egraph.language.check import type_of
from lift_egraph.language.types import DataType
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value, leaves_of, zip_leaves
from lift_egraph.soundness.counterexamples import Counterexample, applied, bound_twice, closed, equal_values, same_bits
from lift_egraph.soundness.hostile_inputs import hostile_inputs
from lift_egraph.soundness.rule_steps import MATCHED, Step, names_in, tiles_of_all
from lift_egraph.soundness.whole_numbers import witness

WIDTHS = (2, 4)
MOST_WHOLE = 10  # programs that are computed over whole numbers: to know their degrees takes longer than all else
DEEP = 40  # how much deeper than the program a rewritten term may be, if none is found near
FRUITLESS = 8  # samples in a row without a new term, after which no more are drawn


@dataclass(frozen=True)
class RuleReport:
    """What the check of a rule saw.

    Attributes
    ----------
    examples, fired
        In how many examples the rule fired: it matched, though both sides may have been equal already.
    counterexample
        The first program that it got wrong.
    changed
        In how many examples it put something beside what was there.
    silent
        Rewrites of the rule that never fired, as text.
    exercised, unexercised
        Its conditions, as text: those that some program broke, which kept the others, and those that none did.
    whole, chance
        In how many examples a rewritten term was also right bit for bit with i32 for f32, on random 32-bit numbers, and
        the chance at the most that one of them computes other polynomials (`lift_egraph.soundness.whole_numbers`).
    """

    rule: Rule
    examples: int
    fired: int
    counterexample: Counterexample | None
    changed: int = 0
    silent: tuple[str, ...] = ()
    exercised: tuple[str, ...] = ()
    unexercised: tuple[str, ...] = ()
    whole: int = 0
    chance: float = 0.0

    @property
    def fire_rate(self) -> float:
        """The share of the examples in which the rule fired."""
        return self.fired / self.examples if self.examples else 0.0


@dataclass(frozen=True)
class Case:
    """A program of concrete sizes, and how it is looked at.

    Attributes
    ----------
    seed
        Equal seeds give equal inputs and samples.
    kind
        Of the inputs: ``whole``, ``fractions`` or ``extremes`` (`lift_egraph.soundness.hostile_inputs`); whole ones
        also where a program has no value for others.
    facts
        What to register about the program beside the laws of operators, the divisors of all lengths as tiles (with one
        number that is no divisor) and the vector widths 2 and 4.
    form
        The form of the rule that must match for it to count as fired; any by default.
    """

    program: ir.Program
    seed: int = 0
    kind: str = "whole"
    facts: tuple[ActionLike, ...] = ()
    form: Form | None = None


_Told = tuple[Scratch, Schedule, int, tuple[egglog.Ruleset, ...]]
_TOLD: dict[tuple[int, ...], _Told] = {}  # e-graphs of the last checkers, for the next with the same simplification
MOST_TOLD, MOST_KEPT = 12, 4  # rules that one e-graph is told: each makes the rest slower; e-graphs


def _fresh(others: tuple[egglog.Ruleset, ...]) -> _Told:
    """An e-graph that knows how to clean, and how, and how many rules it was told beside."""
    scratch = Scratch(sorts.lane_width(i64(width)) for width in WIDTHS)
    return scratch, scratch.compiled(settled(others)), 0, others


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
        ruleset = watched(rule)
        step = ruleset.saturate() if rule.phase == "simplification" else egglog.run(ruleset)
        self._whole = 0  # programs that were computed over whole numbers
        self._shared = frozenset(names_in(rule))
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

    def steps(self, terms: Sequence[tuple[ir.Expr, Iterable[ActionLike]]]) -> list[tuple[Step, str]]:
        """For each of some terms, with facts, an e-graph before and after the rule, and the term's root in it.

        Where the rule changes nothing it runs once more: it may have made the names that its conditions mention. Where
        it changes some terms, the others get an e-graph of their own for that: what becomes of results may have no end.
        """
        roots = [f"{ROOT}{number:04}" for number in range(len(terms))]
        told = {root: (to_egg(term), facts) for root, (term, facts) in zip(roots, terms, strict=True)}
        with self._scratch.holding_all(told, tiles_of_all(term for term, _ in terms), self._shared) as held:
            held.run(self._cleaning)
            old = held.freeze()
            step = self._once(held, old)
            left = [i for i, root in enumerate(roots) if not step.changes_in(root)]
            if len(left) == len(terms):
                step, left = self._once(held, old), []
        found = [(step, root) for root in roots]
        if left:
            for i, again in zip(left, self.steps([terms[i] for i in left]), strict=True):
                found[i] = again
        return found

    def _once(self, held: Held, old: FrozenEGraph) -> Step:
        """Run the rule once, and clean."""
        try:
            held.run(self._step, self._cleaning)
        except EggSmolError as problem:  # a number of the right-hand side that cannot be computed
            raise RuleProblem(self.rule.name, self.rule.place, f"egglog stops: {problem}") from None
        return Step(old, held.freeze(facts=MATCHED))

    def fires(self, cases: Sequence[Case]) -> list[bool]:
        """Whether the rule matches in each program, in the wanted form."""
        steps = self.steps([(c.program.body, c.facts) for c in cases])
        return [self._fired(step, root, case) for (step, root), case in zip(steps, cases, strict=True)]

    def _fired(self, step: Step, root: str, case: Case) -> bool:
        found = step.matched_in(root)
        if case.form is None:
            return bool(found)
        declared = self.rule.ruleset.__egg_ruleset__.rules
        return any(declared[number] == case.form.declared for number in found)

    def check(
        self,
        program: ir.Program,
        seed: int = 0,
        kind: str = "whole",
        facts: Iterable[ActionLike] = (),
        form: Form | None = None,
    ) -> RuleReport:
        """What the rule does to one program, run on random inputs; the parameters are those of a `Case`.

        Raises
        ------
        LiftError
            If the program itself is ill-typed or has no value.
        """
        return self.check_all([Case(program, seed, kind, tuple(facts), form)])[0]

    def check_all(self, cases: Sequence[Case]) -> list[RuleReport]:
        """What the rule does to each of some programs, as `check` says."""
        given = [self._given(case) for case in cases]
        steps = self.steps([(case.program.body, case.facts) for case in cases])
        found = [self._compared(c, g, *step) for c, g, step in zip(cases, given, steps, strict=True)]
        rest = [i for i, r in enumerate(found) if r.counterexample is None and not (r.fired and r.changed)]
        if self._simplifies and rest:
            for i, alone in zip(rest, self._alone.check_all([cases[i] for i in rest]), strict=True):
                fired, changed = found[i].fired or alone.fired, found[i].changed or alone.changed
                merged = replace(found[i], fired=fired, changed=changed)
                found[i] = merged if alone.counterexample is None else alone
        return found

    def _given(self, case: Case) -> tuple[str, dict[str, Value], Value]:
        """The kind of a program's inputs, the inputs, and its value."""
        inputs = self._inputs(case.program, case.seed, case.kind)
        try:
            return case.kind, inputs, evaluate(case.program.body, inputs)
        except SizeProblem:  # an index that is no index of an array
            inputs = self._inputs(case.program, case.seed, "whole")
            return "whole", inputs, evaluate(case.program.body, inputs)

    def _compared(self, case: Case, given: tuple[str, dict[str, Value], Value], step: Step, root: str) -> RuleReport:
        program, (kind, inputs, expected) = case.program, given

        def wrong(term: ir.Expr, inputs: dict[str, Value], found: Value | str) -> RuleReport:
            example = Counterexample(self.rule, program, closed(own(term)), inputs, expected, found)
            return RuleReport(self.rule, 1, 1, example, 1)

        names = {i.name + suffix_of(root): i.name for i in program.inputs}
        named = {there: inputs[here] for there, here in names.items()}

        def own(term: ir.Expr) -> ir.Expr:
            return _with_inputs(term, names)

        if step.misnamed is not None:
            return wrong(program.body, inputs, step.misnamed)
        changed, over_integers = False, None
        for term in self._members(step, root, case.seed):
            if isinstance(term, str):
                return wrong(program.body, inputs, term)
            free = ir.Program("free", inputs_of(term), term)
            new = tuple(i for i in free.inputs if i.name not in named)
            try:
                at = {**self._inputs(replace(free, inputs=new), case.seed, kind), **named} if new else named
            except SizeProblem as problem:  # an input that it makes has a negative length
                return wrong(term, named, str(problem))
            found = _outcome(term, type_of(program.body), at)
            if not self._equal(expected, found, program, inputs, free, at):
                return wrong(term, {names.get(name, name): value for name, value in at.items()}, found)
            if not changed and self._whole < MOST_WHOLE:
                same = own(term)
                both = ir.Program("both", tuple(dict.fromkeys((*program.inputs, *inputs_of(same)))), same)
                over_integers = witness(program, both, case.seed)
            if over_integers is not None and not over_integers.agrees:
                w = over_integers
                example = Counterexample(self.rule, w.program, closed(w.rewritten), w.inputs, w.expected, w.found)
                return RuleReport(self.rule, 1, 1, example, 1)
            changed = True
        self._whole += (whole := int(over_integers is not None))
        chance = 0.0 if over_integers is None else over_integers.chance
        fired = int(self._fired(step, root, case))
        return RuleReport(self.rule, 1, fired, None, int(changed), whole=whole, chance=chance)

    def _inputs(self, program: ir.Program, seed: int, kind: str) -> dict[str, Value]:
        return hostile_inputs(program, seed, kind, self.rule.rounds, self.rule.nan_unsafe)

    def _equal(
        self,
        expected: Value,
        found: Value | str,
        program: ir.Program,
        inputs: dict[str, Value],
        made: ir.Program,
        at: dict[str, Value],
    ) -> bool:
        """Bit for bit, but for what the flags of the rule allow: the bound on rounding is one of them.

        The bound of a fold holds for its own order alone, so what the term that was made may round to counts as well.
        """
        if isinstance(found, str):
            return False
        if self.rule.nan_unsafe or self.rule.signed_zero:
            expected = _allowed(expected, found, self.rule.nan_unsafe, self.rule.signed_zero)
        if not self.rule.rounds:
            return same_bits(expected, found)
        if equal_values(expected, found):
            return True
        value, bound = evaluate_bounded(program.body, inputs)
        if all(map(_within, *map(leaves_of, (expected, found, value, bound)))):
            return True
        other, slack = evaluate_bounded(made.body, at)
        both = zip_leaves(lambda a, b: a + np.where(np.isfinite(b), b, 0.0), bound, slack)
        sides = (expected, found), (value, other)
        return all(all(map(_within, *map(leaves_of, (a, b, value, both)))) for a, b in sides)

    @cached_property
    def _alone(self) -> RuleChecker:
        """The check without simplification, which may have done the rule's work before it."""
        return RuleChecker(self.rule, members=self.members)

    def _members(self, step: Step, root: str, seed: int) -> Iterator[ir.Expr | str]:
        """Distinct terms that use what is new, or why something that does is no term."""
        seen = set()
        rng, tried, fruitless = random.Random(seed), set(), 0
        while len(seen) < self.members and fruitless < FRUITLESS:
            deep = not seen and fruitless >= FRUITLESS // 2  # what is new may stand far below what was there
            choice = step.sampler.sample(step.new.roots[root], rng, DEEP if deep else SLACK)
            if choice is None:
                return
            fruitless += 1
            if choice in tried or not uses(choice, step.made):
                continue
            tried.add(choice)
            try:
                member = applied(step.read(choice))
            except NoLiteral:  # others of its class are read
                continue
            except TypeProblem as problem:  # parts that do not fit
                yield f"no term: {problem}"
                return
            name = canonical(member)
            if name not in seen:
                fruitless = 0
                seen.add(name)
                yield member


def _allowed(expected: Value, found: Value, nan_unsafe: bool, signed_zero: bool) -> Value:
    """What is expected, with what was found where a rule may change it: at numbers that are not finite, and zeros.

    What a zero of the other sign becomes, divided by, is an infinity of the other sign.
    """

    def change(e: np.ndarray, f: np.ndarray) -> np.ndarray:
        if e.dtype != f.dtype or e.shape != f.shape or e.dtype.kind != "f":
            return e
        free = (~np.isfinite(e) | ~np.isfinite(f)) if nan_unsafe else np.zeros(e.shape, bool)
        if signed_zero:
            free |= (np.isinf(e) & (f == -e)) | ((e == 0) & (f == 0))
        return np.where(free, f, e)

    if isinstance(expected, tuple) and isinstance(found, tuple):
        first, second = (_allowed(e, f, nan_unsafe, signed_zero) for e, f in zip(expected, found, strict=True))
        return first, second
    if isinstance(expected, tuple) or isinstance(found, tuple):
        return expected
    return change(expected, found)


def _within(expected: np.ndarray, found: np.ndarray, value: np.ndarray, bound: np.ndarray) -> bool:
    """Whether two leaves are what rounding may make of a value, or nothing is known of them."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return False
    with np.errstate(invalid="ignore"):
        near = np.abs(np.asarray(found, value.dtype) - value) <= bound if value.dtype.kind == "f" else found == value
    same = (found == expected) | ((found != found) & (expected != expected))
    return bool((same | near | ~np.isfinite(bound)).all())


def _with_inputs(term: Any, names: Mapping[str, str]) -> Any:
    """A term with other names for some inputs."""
    if isinstance(term, ir.Input):
        return replace(term, name=names.get(term.name, term.name))
    return ir.map_parts(term, lambda part: _with_inputs(part, names))


def inputs_of(term: ir.Expr) -> tuple[ir.Input, ...]:
    found = {p.name: p for p in ir.subterms(term) if isinstance(p, ir.Input)}
    return tuple(found[name] for name in sorted(found))


def _outcome(term: ir.Expr, expected: DataType, inputs: dict[str, Value]) -> Value | str:
    """The value of a rewritten term, or what is wrong with it."""
    if name := bound_twice(term):
        return f"a pattern that binds {stem(name)} twice"
    try:
        found = type_of(term)
        if found != expected:
            return f"a term of the type {found} for one of the type {expected}"
        return evaluate(term, inputs)
    except LiftError as problem:
        return f"{type(problem).__name__}: {problem}"
