"""What an e-graph is told of operators that are no built-in operation: the laws that are found in their expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from egglog import String
from egglog.egraph import ActionLike

from lift_egraph.algebra import laws
from lift_egraph.algebra.actions import Action, action_of, seen_first
from lift_egraph.algebra.cascades import parts_of, tabulated_parts
from lift_egraph.algebra.combining import combining_of
from lift_egraph.algebra.declared import believed
from lift_egraph.algebra.distributing import Distribution
from lift_egraph.algebra.kept import keeping_of
from lift_egraph.algebra.recalled import recalling_of
from lift_egraph.algebra.steady import Steady, steady_of
from lift_egraph.algebra.tabulated import Tabulated, tabulated_of
from lift_egraph.egraph import sorts
from lift_egraph.egraph.encoding import function_to_egg, known_operator, operator_to_egg, to_egg
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.types import Array

ALWAYS = " that is the same for all elements"
LEFT_TO_RIGHT = (ir.ReduceSeq, *ir.SCAN_LOOPS)


@dataclass(frozen=True)
class Use:
    """A fold by an operator, from an initial value."""

    pattern: type[ir.Expr]
    operator: ir.Lambda
    initial: ir.Expr
    given: ir.Lambda | None = None  # what makes the elements
    too_long: bool = False  # of more elements than what acts may be known of, or from another first result

    @property
    def is_reduction(self) -> bool:
        """Whether the operator may be associative: its arguments have one type."""
        return self.pattern in (ir.Reduce, *ir.SCANS, ir.ReduceRange, ir.ReduceByIndex)

    @property
    def in_parts(self) -> bool:
        """Whether it may be computed in parts as it is."""
        return self.is_reduction and laws.in_parts(self.pattern, self.operator, self.initial)


def uses_in(term: ir.Expr) -> tuple[Use, ...]:
    """The folds of a term whose operators are no built-in operation, and the loops by one that is."""
    found = tuple(dict.fromkeys(_uses(term)))
    too_long = {use.operator for use in found if use.too_long}  # what is known is so of all folds by an operator
    return tuple(replace(use, too_long=True) if use.operator in too_long else use for use in found)


def _uses(term: ir.Part) -> Iterator[Use]:
    for t in ir.subterms(term):
        if not isinstance(t, ir.FOLDS) or not isinstance(t.operator, ir.Lambda):
            continue
        if known_operator(t.operator) is None or isinstance(t, LEFT_TO_RIGHT):
            use = Use(type(t), t.operator, t.initial, making(t))
            too_long = isinstance(t, ir.WHOLE_FOLDS) and _is_too_long(use, t)
            yield replace(use, too_long=True) if too_long else use


def _is_too_long(use: Use, fold: ir.WholeFold) -> bool:
    """Whether a fold of an array that may act has so many elements that floats do not hold what acts, or is a scan
    whose first result that does not keep.
    """
    if known_operator(use.operator) or use.in_parts or not isinstance(found := action_of(use.operator), Action):
        return False
    t = type_of(fold.array)
    return isinstance(t, Array) and found.against(t.size.constant or 0, seen_first(fold)) is not None


def making(fold: ir.Expr) -> ir.Lambda | None:
    """What makes the elements of a fold, where its array is a map."""
    match ir.array_of_loop(fold):
        case ir.Map(function=ir.Lambda() as given):
            return given
    return None


def distribution_fact(found: Distribution) -> ActionLike:
    """What is known of an operator and another that it distributes over, as a relation."""
    return sorts.distributes(operator_to_egg(found.times), operator_to_egg(found.plus), to_egg(found.zero))


def facts_of(use: Use) -> tuple[ActionLike, ...]:
    """What is known of an operator as relations: its laws, and of a fold's what makes it a reduction."""
    return _facts_of(use, believed())


@lru_cache(maxsize=1024)
def _facts_of(use: Use, _: int) -> tuple[ActionLike, ...]:
    f, facts = use.operator, list[ActionLike]()
    if use.is_reduction:
        op = operator_to_egg(f)
        if laws.associative(f):
            facts.append(sorts.associative(op))
        if laws.commutative(f):
            facts.append(sorts.commutative(op))
        if laws.neutral(f, use.initial):
            facts.append(sorts.neutral(op, to_egg(use.initial)))
        if use.pattern in (ir.Reduce, *ir.SCANS) and laws.right_identity(f, use.initial):
            facts.append(sorts.identity(op, to_egg(use.initial)))
        if found := laws.built_in(f):
            facts.append(sorts.built_in(op, String(found[0])))
    acting = None if known_operator(f) or use.in_parts else action_of(f)
    if isinstance(acting, Action) and not use.too_long:
        facts.append(_acts(f, acting))
    if acting is not None and (steady := steady_of(f)):
        facts += _steady_facts(f, steady)
    if acting is not None and (recalling := recalling_of(f)):
        parts = f, recalling.step, recalling.first, recalling.whole
        facts.append(sorts.recalls(*map(function_to_egg, parts)))
    if in_table := tabulated_parts(f, use.initial):
        cascade, table, rest = in_table
        functions = (function_to_egg(g) for g in (cascade.rest, cascade.others, cascade.whole))
        facts.append(
            sorts.tabulates_first(function_to_egg(f), to_egg(use.initial), *functions, *_of_table(table))
        )
        facts.append(_acts(cascade.rest, rest))
    if cascade := parts_of(f):
        functions = f, cascade.step, cascade.rest, cascade.first, cascade.others, cascade.whole
        facts.append(sorts.cascades(*map(function_to_egg, functions)))
        for part, own in ((cascade.step, cascade.first), (cascade.rest, cascade.others)):
            of_part = action_of(part)
            if isinstance(of_part, Action) and of_part.against(0, ir.Apply(own, use.initial)) is None:
                facts.append(_acts(part, of_part))
    if acting is not None and (bounded := keeping_of(f, use.initial)):
        facts.append(sorts.kept_within(function_to_egg(f), function_to_egg(bounded), to_egg(use.initial)))
    elif acting is not None and use.given and (bounded := keeping_of(f, use.initial, use.given)):
        one, given, other = map(function_to_egg, (f, use.given, bounded))
        facts.append(sorts.kept_along(one, given, other, to_egg(use.initial)))
    if tabulated := tabulated_of(f, use.initial):
        facts.append(sorts.tabulates(function_to_egg(f), to_egg(use.initial), *_of_table(tabulated)))
    if (acting or known_operator(f)) and (combining := combining_of(f)):
        op, given, element = operator_to_egg(combining.operator), *(function_to_egg(g) for g in (f, combining.element))
        facts.append(sorts.combines(given, element, op))
        if known_operator(combining.operator) is None and (found := laws.built_in(combining.operator)):
            facts.append(sorts.built_in(op, String(found[0])))
    return tuple(facts)


def _acts(f: ir.Lambda, found: Action) -> ActionLike:
    given, matrix, act = (function_to_egg(g) for g in (f, found.matrix, found.act))
    return sorts.acts(given, matrix, operator_to_egg(found.operator), to_egg(found.one), act)


def _of_table(found: Tabulated) -> tuple[sorts.Ex | sorts.Fn, ...]:
    """A table of words, as relations have it."""
    words, start, places = map(to_egg, (found.words, found.start, found.places))
    step, value, steps, chosen = map(function_to_egg, (found.step, found.value, found.steps, found.found))
    return words, step, start, value, places, steps, chosen


def _steady_facts(f: ir.Lambda, found: Steady) -> Iterator[ActionLike]:
    """That a fold is steady, and what is known of the product of its matrices."""
    op, one = operator_to_egg(found.operator), to_egg(found.one)
    zero, power, onward = to_egg(found.zero), to_egg(found.power), function_to_egg(found.onward)
    yield sorts.steady(function_to_egg(f), zero, power, op, one, onward)
    if laws.associative(found.operator):
        yield sorts.associative(op)
    if laws.neutral(found.operator, found.one):
        yield sorts.neutral(op, one)


def reasons(use: Use) -> list[str]:
    """What is known of an operator, and why, in words; of a fold that is no reduction, why it is none."""
    f, found = use.operator, list[str]()
    name = print_term(f)
    if use.is_reduction:
        known = {"associative": laws.associative(f), "commutative": laws.commutative(f)}
        found += [f"{name} is {law}: both sides are {why}" for law, why in known.items() if why]
        if why := laws.neutral(f, use.initial):
            found.append(f"{name} may begin again with {print_term(use.initial)}: both sides are {why}")
        if operation := laws.built_in(f):
            found.append(f"{name} is {operation[0]} in other words: both sides are {operation[1]}")
    if known_operator(f) is None and not use.in_parts:
        acting, combining = action_of(f), combining_of(f)
        if combining:
            found.append(f"{name} combines the accumulator with {print_term(combining.element)}: {combining.why}")
        if recalling_of(f):
            found.append(f"{name} remembers the element before, which is there in the array")
        if tabulated := tabulated_of(f, use.initial):
            found.append(f"{name} has few states over few elements, whose words are {print_term(tabulated.words)}")
        if isinstance(acting, Action):
            found += _acting(name, acting, ALWAYS if steady_of(f) else "")
        elif steady := steady_of(f):
            found.append(f"{name} multiplies the accumulator by a matrix{ALWAYS}: {steady.why}")
        elif cascade := parts_of(f):
            parts = print_term(cascade.step), print_term(cascade.rest)
            found.append(f"{name} folds some components without the others: {' and then '.join(parts)}")
            for part in (cascade.step, cascade.rest):
                if isinstance(of_part := action_of(part), Action):
                    found += _acting(print_term(part), of_part)
        elif bounded := keeping_of(f, use.initial) or keeping_of(f, use.initial, use.given):
            found.append(f"{name} stays between bounds from {print_term(use.initial)}, as {print_term(bounded)} does")
        elif not combining:
            found.append(f"{name} stays a loop: {acting.why}")
    return found


def _acting(name: str, acting: Action, always: str = "") -> Iterator[str]:
    """What acts on the accumulator of a fold, and why it does so one after the other, in words."""
    how = "multiplies the accumulator by a matrix" if acting.is_matrix else "acts on the accumulator"
    yield f"{name} {how}{always}: {acting.why}"
    if why := laws.associative(acting.operator):
        yield f"what acts for two elements one after the other is associative: both sides are {why}"
