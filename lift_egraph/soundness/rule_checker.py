"""One rule on one program: it is rewritten, read back, typed, run and compared with the original.

The rule runs alone; members of the program's class that use what is new in the e-graph are sampled, and each must have
the type and the value of the program.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import egglog
import numpy as np
from egglog import i64
from egglog.bindings import EggSmolError
from egglog.egraph import ActionLike

from lift_egraph.caching import cached_property
from lift_egraph.egraph import sorts
from lift_egraph.egraph.analyses import settled
from lift_egraph.egraph.encoding import to_egg
from lift_egraph.egraph.frozen import FrozenEGraph, open_term
from lift_egraph.egraph.members import SLACK, MemberSampler, Site, changes, uses
from lift_egraph.egraph.pattern_nodes import NoLiteral
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Form
from lift_egraph.egraph.scratch import ROOT, Schedule, Scratch
from lift_egraph.errors import LiftError, RuleProblem, TypeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical, stem
from lift_egraph.language.check import binder_type, type_of
from lift_egraph.language.types import Array, DataType, Pair
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.interp import evaluate
from lift_egraph.meaning.values import Value, leaves_of
from lift_egraph.soundness.counterexamples import Counterexample, bound_twice, closed, equal_values, same_bits
from lift_egraph.soundness.hostile_inputs import hostile_inputs

WIDTHS = (2, 4)
ITERATIONS = 2  # a rule that makes the names its conditions mention needs two
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
    """

    rule: Rule
    examples: int
    fired: int
    counterexample: Counterexample | None
    changed: int = 0
    silent: tuple[str, ...] = ()
    exercised: tuple[str, ...] = ()
    unexercised: tuple[str, ...] = ()

    @property
    def fire_rate(self) -> float:
        """The share of the examples in which the rule fired."""
        return self.fired / self.examples if self.examples else 0.0


class Step(NamedTuple):
    """An e-graph before and after a rule, and the declarations of the rule that matched, as egglog knows them."""

    old: FrozenEGraph
    new: FrozenEGraph
    matched: list[Any]


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

    def graphs(self, term: ir.Expr, facts: Iterable[ActionLike] = ()) -> Step:
        """The e-graph of a term before and after the rule, and which of the rule's rewrites matched."""
        with self._scratch.holding(to_egg(term), (*_tiles(term), *facts)) as held:
            held.run(self._cleaning)
            old = new = held.freeze()
            matched: list[Any] = []
            for _ in range(ITERATIONS):
                try:
                    step, _ = held.runs(self._step, self._cleaning)
                except EggSmolError as problem:  # a number of the right-hand side that cannot be computed
                    raise RuleProblem(self.rule.name, self.rule.place, f"egglog stops: {problem}") from None
                matched += [declared for declared, count in step if count]
                new = held.freeze()
                if new.node_count != old.node_count or new.class_count != old.class_count:
                    break
            return Step(old, new, matched)

    def check(
        self,
        program: ir.Program,
        seed: int = 0,
        kind: str = "whole",
        facts: Iterable[ActionLike] = (),
        form: Form | None = None,
    ) -> RuleReport:
        """What the rule does to one program of concrete sizes, run on random inputs.

        Parameters
        ----------
        seed
            Equal seeds give equal inputs and samples.
        kind
            Of the inputs: ``whole``, ``fractions`` or ``extremes`` (`lift_egraph.soundness.hostile_inputs`).
        form
            The form of the rule that must match for it to count as fired; any by default.
        facts
            What to register about the program beside the laws of operators, the divisors of all lengths as tiles
            (with one number that is no divisor) and the vector widths 2 and 4.

        Raises
        ------
        LiftError
            If the program itself is ill-typed or has no value.
        """
        inputs = self._inputs(program, seed, kind)
        expected = evaluate(program.body, inputs)
        step = self.graphs(program.body, facts)
        made, changed = changes(step.old, step.new), False
        if (wrong_type := _misnamed(step.new, made)) is not None:
            return RuleReport(
                self.rule, 1, 1, Counterexample(self.rule, program, program.body, inputs, expected, wrong_type), 1
            )
        for term in self._members(step.new, made, seed):
            changed = True
            if isinstance(term, str):
                wrong = Counterexample(self.rule, program, program.body, inputs, expected, term)
                return RuleReport(self.rule, 1, 1, wrong, 1)
            free = ir.Program("free", inputs_of(term), term)
            given = {**self._inputs(free, seed, kind), **inputs}
            found = _outcome(term, type_of(program.body), given)
            if not self._equal(expected, found, program.body, given):
                wrong = Counterexample(self.rule, program, term, given, expected, found)
                return RuleReport(self.rule, 1, 1, wrong, 1)
        fired = any(form is None or declared == form.declared for declared in step.matched)
        if not (fired and changed) and self._simplifies:
            alone = self._alone.check(program, seed, kind, facts, form)
            fired, changed = fired or bool(alone.fired), changed or bool(alone.changed)
            if alone.counterexample is not None:
                return alone
        return RuleReport(self.rule, 1, int(fired), None, int(changed))

    def _inputs(self, program: ir.Program, seed: int, kind: str) -> dict[str, Value]:
        return hostile_inputs(program, seed, kind, self.rule.rounds, self.rule.nan_unsafe)

    def _equal(self, expected: Value, found: Value | str, term: ir.Expr, inputs: dict[str, Value]) -> bool:
        """Bit for bit, but for what the flags of the rule allow: the bound on rounding is one of them."""
        if isinstance(found, str):
            return False
        if self.rule.nan_unsafe or self.rule.signed_zero:
            expected = _allowed(expected, found, self.rule.nan_unsafe, self.rule.signed_zero)
        if not self.rule.rounds:
            return same_bits(expected, found)
        if equal_values(expected, found):
            return True
        value, bound = evaluate_bounded(term, inputs)
        return all(map(_within, *map(leaves_of, (expected, found, value, bound))))

    @cached_property
    def _alone(self) -> RuleChecker:
        """The check without simplification, which may have done the rule's work before it."""
        return RuleChecker(self.rule, members=self.members)

    def rewritten(self, term: ir.Expr, seed: int = 0, facts: Iterable[ActionLike] = ()) -> Iterator[ir.Expr]:
        """Distinct terms that use what the rule puts beside a term, closed by `closed`.

        A rule that names what is there already (``λv. join v = join``) gives the term itself.
        """
        step = self.graphs(term, facts)
        members = self._members(step.new, changes(step.old, step.new), seed)
        yield from (t for t in members if not isinstance(t, str))

    def _members(self, new: FrozenEGraph, changed: set[Site], seed: int) -> Iterator[ir.Expr | str]:
        """Distinct terms that use what is new, or why something that does is no term."""
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


def _misnamed(new: FrozenEGraph, changed: set[Site]) -> str | None:
    """A function that the rule made which states another argument than its class has; other rules would trust it."""
    for owner, node in changed:
        own = new.own_domain(node)
        others = (new.own_domain(n) for n in new.nodes[owner])
        if own is not None and (of := next((t for t in others if t not in (None, own)), None)) is not None:
            return f"a function of {own} that stands for one of {of}"
    return None


def _within(expected: np.ndarray, found: np.ndarray, value: np.ndarray, bound: np.ndarray) -> bool:
    """Whether two leaves are what rounding may make of a value, or nothing is known of them."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return False
    with np.errstate(invalid="ignore"):
        near = np.abs(np.asarray(found, value.dtype) - value) <= bound if value.dtype.kind == "f" else found == value
    same = (found == expected) | ((found != found) & (expected != expected))
    return bool((same | near | ~np.isfinite(bound)).all())


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


def array_lengths(term: ir.Expr) -> set[int]:
    """The lengths of all arrays in a term of concrete sizes."""
    return {n for t in _types(term) for n in _lengths(t)}


def _tiles(term: ir.Expr) -> Iterator[ActionLike]:
    for n in sorted(array_lengths(term)):
        yield from _tiles_of(n)


@cache
def _tiles_of(n: int) -> tuple[ActionLike, ...]:
    """The divisors of a length, and one number that is none, but divides a length that no array need have.

    Making such facts takes longer than using them, so they are kept.
    """
    odd = next((d for d in range(2, n) if n % d), None)
    beside = () if odd is None else (sorts.tile(i64(2 * odd), i64(odd)),)
    return *(sorts.tile(i64(n), i64(d)) for d in range(1, n + 1) if n % d == 0 or d == odd), *beside


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
