"""Scalar expressions as linear forms over a semiring: a coefficient for each of some variables, and the rest.

Source: 003 §4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from lift_egraph.algebra.bounded import bounds, is_exact_throughout, limits, settled, within
from lift_egraph.algebra.nonnegative import INTERVAL, NonNegative, is_negative
from lift_egraph.algebra.normal_forms import NoNormalForm, equal_over, polynomial
from lift_egraph.algebra.residues import Residues, kept
from lift_egraph.algebra.semirings import SEMIRINGS, Semiring
from lift_egraph.algebra.trials import Counted, counted
from lift_egraph.language import ir
from lift_egraph.language.binders import substitute
from lift_egraph.language.check import type_of
from lift_egraph.language.pretty import print_term
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import F64, Scalar

Form = dict[ir.Var | None, ir.Expr]  # of each variable, and of none: the rest
RING = next(s for s in SEMIRINGS if s.is_ring)
# of numbers that were computed beforehand, by which factors that are meant to be one differ
ROUNDING, ROUNDING_OF_DOUBLES = 1e-6, 1e-14
MOST_STEPS = 8  # of a loop in an operator, each of which is one more product in the coefficients


class NotLinear(Exception):
    """Why an expression is no linear form; `depth` counts the operations of the semiring around what is not."""

    def __init__(self, message: str, depth: int = 0) -> None:
        super().__init__(message)
        self.depth = depth


class NeedsRange(NotLinear):
    """Why it is none, where a range of an input would help."""


def linear_form(semiring: Semiring, t: Scalar, term: ir.Expr, variables: Sequence[ir.Var]) -> Form:
    """The coefficients of variables in an expression of a scalar type.

    Raises
    ------
    NotLinear
        If the expression is not written as a linear form: it says which part is not.
    """
    if isinstance(semiring, NonNegative):
        return _FormsOfNonNegative(semiring, t, variables)(term, 0)
    forms = _FormsOfRests(semiring, t, variables) if isinstance(semiring, Residues) else _Forms(semiring, t, variables)
    return forms(term, 0)


class _Forms:
    def __init__(self, semiring: Semiring, t: Scalar, variables: Sequence[ir.Var]) -> None:
        self.semiring, self.t, self.variables = semiring, t, frozenset(variables)
        self.zero, self.one = semiring.zero(t), semiring.one(t)

    def __call__(self, term: ir.Expr, depth: int) -> Form:
        s = self.semiring
        if self.is_free(term):
            return self.form({None: term})
        term = by_one_condition(term, self.is_free)
        plain = as_extreme(term) if s.has_normal_forms else term
        if (parts := s.sum_in(plain)) is not None:
            a, b = parts
            return self.both(self(a, depth + 1), self(b, depth + 1), self.plus)
        if (parts := s.product_in(plain)) is not None and any(map(self.is_free, parts)):
            a, b = parts
            factor, other = (a, b) if self.is_free(a) else (b, a)
            if s.commutes or factor == a:
                return self.each(self(other, depth + 1), lambda c: s.product(factor, c, self.t))
        match plain:
            case ir.Var() as v:
                return self.form({v: self.one})
            case ir.Call(op="sub", arguments=(a, b)) if s.is_ring:
                return self.both(self(a, depth + 1), self.each(self(b, depth + 1), self.negative), self.plus)
            case ir.Call(op="neg", arguments=(a,)) if s.is_ring:
                return self.each(self(a, depth + 1), self.negative)
            case ir.Call(op="bit_not", arguments=(a,)) if s.is_ring:  # it is -a - 1, as numbers wrap around
                least, most = limits(self.t)
                minus_one = self.form({None: ir.Literal(-1 if least < 0 else most, self.t)})
                return self.both(self.each(self(a, depth + 1), self.negative), minus_one, self.plus)
            case ir.Call(op="div", arguments=(a, b)) if s.is_ring and self.t.is_float and self.is_free(b):
                return self.each(self(a, depth + 1), lambda c: c if c == self.zero else ir.Call("div", (c, b)))
            case ir.Call(op="sub", arguments=(a, b)) if s.times == "add" and self.is_free(b):
                return self.each(self(a, depth + 1), lambda c: s.product(c, ir.Call("neg", (b,)), self.t))
            case ir.Call(op="select", arguments=(condition, a, b)) if self.is_free(condition):
                return self.both(self(a, depth + 1), self(b, depth + 1), self.chosen(condition))
            case ir.Reduce() | ir.ReduceSeq() if (loop := counted(plain)) is not None and loop.length <= MOST_STEPS:
                return self.of_steps(loop, depth)
        raise NotLinear(f"{print_term(term)} {self.problem(term)}, so it is not linear over {s}", depth)

    def of_steps(self, loop: Counted, depth: int) -> Form:
        """The form of a loop, whose steps are linear in what the step before gives: written out as terms, each would
        have those before it as often as it mentions them.
        """
        state, start = loop.accumulator, self.is_free(loop.initial)
        if state in self.variables:
            state = ir.Var(f"{state.name}${depth}", state.type)
        forms = type(self)(self.semiring, self.t, (*self.variables, state))
        made = self(loop.initial, depth + 1)
        for n in range(loop.length):
            before = loop.initial if start and n == 0 else state
            step = forms(substitute(loop.body, {loop.accumulator: before, loop.element: loop.at(n)}), depth + 1)
            by = step.pop(state)
            made = self.both(self.each(made, lambda c, by=by: self.semiring.product(by, c, self.t)), step, self.plus)
        return made

    def is_free(self, term: ir.Expr) -> bool:
        return self.variables.isdisjoint(ir.free_variables(term))

    def form(self, known: Form) -> Form:
        return {v: known.get(v, self.zero) for v in (*self.variables, None)}

    def each(self, form: Form, change: Callable[[ir.Expr], ir.Expr]) -> Form:
        return {v: change(c) for v, c in form.items()}

    def both(self, a: Form, b: Form, combine: Callable[[ir.Expr, ir.Expr], ir.Expr]) -> Form:
        return {v: combine(a[v], b[v]) for v in a}

    def plus(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return self.semiring.sum(a, b, self.t)

    def negative(self, c: ir.Expr) -> ir.Expr:
        if isinstance(c, ir.Literal) and not isinstance(c.value, bool) and self.t.name not in ("u8", "u32"):
            return c if c == self.zero else ir.Literal(-c.value, self.t)
        return ir.Call("neg", (c,))

    def chosen(self, condition: ir.Expr) -> Callable[[ir.Expr, ir.Expr], ir.Expr]:
        """A choice between coefficients."""
        return lambda x, y: x if x == y else ir.Call("select", (condition, x, y))

    def problem(self, term: ir.Expr) -> str:
        match term:
            case ir.Call(op="select", arguments=(condition, _, _)) if not self.is_free(condition):
                return "branches on the accumulator"
            case ir.Call(op=op) if op == self.semiring.times:
                return "multiplies the accumulator with itself"
            case ir.Call(op="div", arguments=(_, b)) if not self.is_free(b):
                return "divides by the accumulator" + ("" if self.t.is_float else " and cuts off")
            case ir.Call(op=op):
                return f"applies {OPERATIONS[op].symbol or op} to the accumulator"
        return "hides the accumulator"


class _FormsOfRests(_Forms):
    """Of rests, which are polynomials modulo a number as long as nothing wraps around."""

    semiring: Residues

    def __call__(self, term: ir.Expr, depth: int) -> Form:
        match term:
            case ir.Call(op="select", arguments=(condition, a, b)) if self.is_free(condition):
                return self.both(self(a, depth), self(b, depth), self.chosen(condition))
        if not within(bounds(term), self.semiring.interval):
            raise NotLinear(f"{print_term(term)} is no rest modulo {self.semiring.modulus}", depth)
        try:
            found = polynomial(self.semiring, self.t, term)
        except NoNormalForm:
            raise NotLinear(f"{print_term(term)} is too large", depth) from None
        own: dict[ir.Expr, ir.Var] = {kept(v, self.semiring.interval): v for v in self.variables}
        form = self.form({})
        for monomial, count in found.items():
            of = [(own[a], power) for a, power in monomial if a in own]
            others = [(a, power) for a, power in monomial if a not in own]
            if len(of) > 1 or any(power != 1 for _, power in of) or not all(self.is_free(a) for a, _ in others):
                raise NotLinear(f"{print_term(term)} is not linear over {self.semiring}", depth)
            made: ir.Expr = ir.Literal(int(count), self.t)
            for atom, power in others:
                for _ in range(power):
                    made = self.semiring.product(made, self.semiring.representative(atom, self.t), self.t)
            v = of[0][0] if of else None
            form[v] = self.plus(form[v], made)
        return form


class _FormsOfNonNegative(_Forms):
    """Of floats that are not negative: so is the accumulator where the least of it is 0."""

    def __call__(self, term: ir.Expr, depth: int) -> Form:
        if is_negative(term):
            raise NeedsRange(f"{print_term(term)} may be negative, else it may be linear over (max, ·)", depth)
        if self.is_free(term):
            return self.form({None: term})
        for v in self.variables:
            if term == kept(v, INTERVAL):
                return self.form({v: self.one})
        match as_extreme(by_one_condition(term, self.is_free)):
            case ir.Call(op="max", arguments=(a, b)):
                return self.both(self(a, depth + 1), self(b, depth + 1), self.plus)
            case ir.Call(op="mul", arguments=(a, b)) if self.is_free(a) or self.is_free(b):
                factor, other = (a, b) if self.is_free(a) else (b, a)
                if not is_negative(factor):
                    return self.each(self(other, depth + 1), lambda c: self.semiring.product(factor, c, self.t))
            case ir.Call(op="select", arguments=(condition, a, b)) if self.is_free(condition):
                return self.both(self(a, depth + 1), self(b, depth + 1), self.chosen(condition))
        raise NotLinear(f"{print_term(term)} is not linear over {self.semiring}", depth)


def by_one_condition(term: ir.Expr, is_free: Callable[[ir.Expr], bool]) -> ir.Expr:
    """A choice by several conditions, of which some are free of a variable, as a choice by these and one by the others.

    Examples
    --------
    >>> from lift_egraph.language.types import BOOL, F32
    >>> s, x, c = ir.Var("s", F32), ir.Var("x", F32), ir.Var("c", BOOL)
    >>> both = ir.Call("select", (ir.Call("and", (c, x > s)), x, s))
    >>> print(print_term(by_one_condition(both, lambda part: s not in ir.free_variables(part))))
    select(c, select(x > s, x, s), s)
    """
    match term:
        case ir.Call(op="select", arguments=(ir.Call(op="and" | "or" as op) as condition, a, b)):
            parts = list(_of_all(op, condition))
            free, others = ([p for p in parts if is_free(p) == own] for own in (True, False))
            if free and others:
                inner = ir.Call("select", (_all(op, others), a, b))
                return ir.Call("select", (_all(op, free), *((inner, b) if op == "and" else (a, inner))))
    return term


def _of_all(op: str, condition: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(condition, ir.Call) and condition.op == op:
        for part in condition.arguments:
            yield from _of_all(op, part)
    else:
        yield condition


def _all(op: str, conditions: Sequence[ir.Expr]) -> ir.Expr:
    return reduce(lambda a, b: ir.Call(op, (a, b)), conditions)


def as_extreme(term: ir.Expr) -> ir.Expr:
    """A select that chooses the larger or the smaller of two values as ``max`` or ``min``; other terms as they are.

    >>> from lift_egraph.language.types import F32
    >>> a, b = ir.Var("a", F32), ir.Var("b", F32)
    >>> print(print_term(as_extreme(ir.Call("select", (a > b, a, b)))))
    max(a, b)

    Floats may be moved by one and the same, and whole numbers where nothing wraps around:

    >>> print(print_term(as_extreme(ir.Call("select", (a > 0.0, a + b, b)))))
    max(a + b, b)

    What is clamped may be chosen at one bound after the other:

    >>> low = ir.Call("select", (a < 2.0, ir.Literal(2.0, F32), a))
    >>> print(print_term(as_extreme(ir.Call("select", (a > 5.0, ir.Literal(5.0, F32), low)))))
    min(max(2.0, a), 5.0)

    Nor need they be moved as far, if they are moved towards each other:

    >>> print(print_term(as_extreme(ir.Call("select", (a > b, a, b + 0.5 * (a - b))))))
    max(a, b + 0.5 * (a - b))
    """
    term = settled(term)
    match term:
        case ir.Call(op="select", arguments=(ir.Call(op=op, arguments=(x, y)), a, b)) if {x, y} == {a, b} and x != y:
            upwards = {"lt": y, "le": y, "gt": x, "ge": x}.get(op)
            if upwards is not None:
                return ir.Call("max" if a == upwards else "min", (a, b))
        case ir.Call(op="select", arguments=(ir.Call(op="lt" | "le" | "gt" | "ge" as op, arguments=(x, y)), a, b)):
            larger, smaller = (y, x) if op in ("lt", "le") else (x, y)
            for one, other, name in ((a, b, "max"), (b, a, "min")):
                if _differ_as(one, other, larger, smaller, strictly=op in ("lt", "gt")):
                    return ir.Call(name, (a, b))
            clamped = _clamped(larger, smaller, a, b)
            return term if clamped is None else clamped
    return term


def _differ_as(one: ir.Expr, other: ir.Expr, larger: ir.Expr, smaller: ir.Expr, *, strictly: bool) -> bool:
    """Whether the one is the larger of two values where ``larger > smaller``, or ``>=``, and the smaller where not.

    It is, where both differ by one and the same, or floats by a positive multiple. So it is where whole numbers differ
    by one more or less, at which the two comparisons differ.
    """
    t = type_of(one)
    if not isinstance(t, Scalar) or type_of(larger) != t or not (t.is_float or t.is_integer):
        return False
    a, b = one + smaller, other + larger
    if t.is_float:
        return equal_over(RING, t, a, b) or _is_multiple(t, one - other, larger - smaller)
    if not all(map(is_exact_throughout, (one, other, larger, smaller))):
        return False
    step = ir.Literal(1, t)
    return equal_over(RING, t, a, b) or equal_over(RING, t, *((a + step, b) if strictly else (a, b + step)))


def _is_multiple(t: Scalar, one: ir.Expr, other: ir.Expr) -> bool:
    """Whether one expression is a positive multiple of another, up to the rounding of numbers in them."""
    try:
        left, right = (polynomial(RING, t, e) for e in (one, other))
    except NoNormalForm:
        return False
    if not left or left.keys() != right.keys():
        return False
    factors = [float(left[m]) / float(right[m]) for m in right]
    rounding = ROUNDING_OF_DOUBLES if t == F64 else ROUNDING
    return min(factors) > 0 and max(factors) <= min(factors) * (1 + rounding)


def _clamped(larger: ir.Expr, smaller: ir.Expr, above: ir.Expr, otherwise: ir.Expr) -> ir.Expr | None:
    """A choice between a bound that a value is beyond, and the value clamped at another bound, as both clamps."""
    for value, bound, chosen, other, outer, inner in (
        (larger, smaller, above, otherwise, "min", "max"),
        (smaller, larger, otherwise, above, "min", "max"),
        (smaller, larger, above, otherwise, "max", "min"),
        (larger, smaller, otherwise, above, "max", "min"),
    ):
        if chosen != bound or not isinstance(bound, ir.Literal):
            continue
        clamped = as_extreme(other)
        match clamped:
            case ir.Call(op=op, arguments=(a, ir.Literal() as end) | (ir.Literal() as end, a)) if (
                (op, a) == (inner, value)
                and end.value != bound.value
                and (end.value < bound.value) == (outer == "min")
            ):
                return ir.Call(outer, (clamped, bound))
    return None
