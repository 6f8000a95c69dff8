"""Sizes and indices as integers of z3: what follows from what is known of them, and numbers for which it does not.

Quotients and remainders by sizes are not linear. Each becomes two new integers, with ``a = q · b + r`` and
``0 <= r < b`` where b is positive; what else z3 needs about products it is told as lemmas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any

from lift_egraph.egraph.rule_forms import Constant, Hole, Pattern
from lift_egraph.errors import InputProblem
from lift_egraph.language.nat import Nat, NatVar

EFFORT = 2_000_000  # z3's own measure of work, the same on all machines
SMALL = 12  # counterexamples with such numbers are looked for first


@cache
def z3() -> Any:
    """The solver.

    Raises
    ------
    InputProblem
        If it is not installed.
    """
    try:
        import z3 as solver  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputProblem(
            "proofs of rules need z3, which is not installed: python -m pip install 'lift-egraph[prove]'"
        ) from None
    return solver


@dataclass
class Integers:
    """Integers of one proof, and what holds of them.

    Attributes
    ----------
    facts
        What holds always: definitions of quotients, hypotheses about sizes.
    equal
        Sizes that others stand for.
    shown
        The integers that a counterexample shows: sizes by their names.
    """

    facts: list[Any] = field(default_factory=list)
    equal: dict[str, Pattern] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)
    _divided: dict[tuple[Any, Any], tuple[Any, Any]] = field(default_factory=dict)
    _guarded: list[tuple[Any, Any, Any]] = field(default_factory=list)
    _count: int = 0
    _known: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def new(self, stem: str) -> Any:
        """A new integer."""
        self._count += 1
        return z3().Int(f"{stem}!{self._count}")

    def number(self, value: int) -> Any:
        return z3().IntVal(value)

    def size(self, p: Pattern) -> Any:
        """A size of a rule as an integer.

        Raises
        ------
        TypeError
            If it is computed in a way that is not known.
        """
        if isinstance(p, Hole):
            if p.name in self.equal:
                return self.size(self.equal[p.name])
            return self.shown.setdefault(p.name, z3().Int(p.name))
        if isinstance(p, Constant):
            return self.number(p.value)
        left, right = (self.size(part) for part in p.parts)
        match p.op:
            case "i64___add__":
                return left + right
            case "i64___sub__":
                return left - right
            case "i64___mul__":
                return left * right
            case "i64___truediv__" | "i64___floordiv__":
                return self.divide(left, right, truncating=True)[0]
            case "i64___mod__":
                return self.divide(left, right, truncating=True)[1]
            case "i64_min":
                return z3().If(left < right, left, right)
            case "i64_max":
                return z3().If(left > right, left, right)
        raise TypeError(f"a size computed by {p.op}")

    def divide(self, a: Any, b: Any, truncating: bool = False) -> tuple[Any, Any]:
        """Quotient and remainder, by a positive divisor; of a negative number only if it does not truncate."""
        solver = z3()
        a, b = (solver.simplify(x, som=True) for x in (a, b))
        if solver.is_int_value(a) and solver.is_int_value(b) and b.as_long() > 0 and a.as_long() >= 0:
            return tuple(self.number(x) for x in divmod(a.as_long(), b.as_long()))  # pyright: ignore
        if solver.is_int_value(b) and b.as_long() == 1:
            return a, self.number(0)
        key = a, b
        if key not in self._divided:
            q, r = self.new("q"), self.new("r")
            holds = solver.And(a == q * b + r, r >= 0, r < b)
            where = solver.And(b > 0, a >= 0) if truncating else b > 0
            self.facts.append(holds if self.follows((), where) else solver.Implies(where, holds))
            if not solver.eq(self.facts[-1], holds):
                self._guarded.append((self.facts[-1], where, holds))
            self.facts.append(solver.Implies(solver.And(b > 0, a >= 0), solver.And(q >= 0, q <= a)))
            self._divided[key] = q, r
        return self._divided[key]

    def text(self, e: Any) -> str:
        """A formula as text, with quotients and remainders as they were computed."""
        text = str(e)
        for (a, b), parts in reversed(self._divided.items()):
            for part, sign in zip(parts, "/%", strict=True):
                text = re.sub(rf"{part}(?!\d)", f"(({a}) {sign} ({b}))", text)
        return text

    def index(self, body: Nat, values: Callable[[str], Any]) -> Any:
        """An index expression, with values of its variables."""
        total = self.number(0)
        for monomial, coefficient in body.terms:
            product = self.number(coefficient)
            for atom in monomial:
                if isinstance(atom, NatVar):
                    product = product * values(atom.name)
                    continue
                left, right = self.index(atom.left, values), self.index(atom.right, values)
                if atom.symbol in ("min", "max"):
                    made = z3().If((left < right) == (atom.symbol == "min"), left, right)
                else:
                    made = self.divide(left, right)[0 if atom.symbol == "/" else 1]
                product = product * made
            total = total + product
        return total

    # --- what follows ---

    def follows(self, hypotheses: Iterable[Any], goal: Any) -> bool:
        """Whether a goal follows from hypotheses and facts; what z3 cannot decide does not."""
        solver = z3()
        goal = solver.simplify(goal, som=True)
        if solver.is_true(goal):
            return True
        return self._contradictory([*hypotheses, solver.Not(goal)])

    def excluded(self, hypotheses: Iterable[Any]) -> bool:
        """Whether hypotheses contradict each other."""
        return self._contradictory(list(hypotheses))

    def model(self, hypotheses: Iterable[Any]) -> Any | None:
        """Numbers for which hypotheses hold, small ones if there are any."""
        solver = z3()
        given = [*self.facts, *hypotheses]
        for most in (3, SMALL, None):
            s = self._solver()
            s.add(given)
            if most is not None:
                s.add([x <= most for x in self.shown.values()])
            if s.check() == solver.sat:
                return s.model()
        return None

    def _solver(self) -> Any:
        s = z3().SolverFor("QF_UFNIA")
        s.set("rlimit", EFFORT)
        return s

    def _contradictory(self, given: list[Any]) -> bool:
        solver = z3()
        given = [*self.facts, *given]
        key = tuple(sorted(x.get_id() for x in given))
        if key not in self._known:
            self._keep = [*getattr(self, "_keep", []), *given]  # an id is used again once its formula is gone
            if self._linear(self._unguarded(given)):
                self._known[key] = True
            else:
                s = self._solver()
                s.add(given)
                self._known[key] = s.check() == solver.unsat
        return self._known[key]

    def _linear(self, given: list[Any]) -> bool:
        """Whether formulas contradict each other with lemmas about products alone."""
        solver = z3().SolverFor("QF_UFLIA")
        solver.set("rlimit", EFFORT)
        solver.add(linearised(solved(given)))
        return solver.check() == z3().unsat

    def _unguarded(self, given: list[Any]) -> list[Any]:
        """Formulas with quotients whose divisors are positive by what else is given."""
        solver = z3()
        for fact, where, holds in self._guarded:
            others = [f for f in given if not f.eq(fact)]
            plain = [f for f in others if not any(f.eq(g) for g, _, _ in self._guarded)]
            if self._linear([*plain, solver.Not(where)]):
                given = [*others, holds]
        return given


def linearised(formulas: Iterable[Any]) -> list[Any]:
    """Formulas with an integer for each product of integers, and lemmas about these products.

    What contradicts itself so does so with the products, too: each lemma holds for all integers.
    """
    products = _Products()
    made = [products.put(z3().simplify(f, som=True, arith_lhs=True)) for f in formulas]
    return made + list(products.lemmas())


class _Products:
    """Products of integers, each with an integer that stands for it."""

    def __init__(self) -> None:
        self.named: dict[tuple[Any, ...], Any] = {}
        self._done: dict[int, tuple[Any, Any]] = {}

    def put(self, e: Any) -> Any:
        """A formula without products."""
        solver = z3()
        if e.get_id() not in self._done:
            parts = [self.put(c) for c in e.children()]
            made = e.decl()(*parts) if parts else e
            if solver.is_mul(e):
                numbers = [p for p in parts if solver.is_int_value(p)]
                made = self.of(tuple(p for p in parts if not solver.is_int_value(p)))
                for n in numbers:
                    made = n * made
            self._done[e.get_id()] = made, e  # an id is used again once its formula is gone
        return self._done[e.get_id()][0]

    def of(self, factors: tuple[Any, ...]) -> Any:
        """The integer for a product."""
        factors = tuple(sorted(factors, key=str))
        if len(factors) < 2:
            return factors[0] if factors else z3().IntVal(1)
        return self.named.setdefault(factors, z3().Int("·".join(map(str, factors))))

    def lemmas(self) -> Iterator[Any]:
        """What holds of the products by the signs of their factors, and of two products with a common part."""
        solver = z3()
        given = list(self.named.items())
        singles = [((x,), x) for x in {x for factors, _ in given for x in factors}]
        for factors, _ in given:
            for i in range(len(factors)):
                self.of(factors[:i] + factors[i + 1 :])
        for (f, whole), (g, other) in combinations([*given, *singles], 2):
            common, left, right = _taken_apart(f, g)
            if not common:
                continue
            x, a, b = self.of(common), self.of(left), self.of(right)
            yield solver.Implies(a == b, whole == other)
            yield solver.Implies(solver.And(x > 0, a < b), whole + x <= other)
            yield solver.Implies(solver.And(x > 0, a > b), other + x <= whole)
            yield solver.Implies(a + 1 == b, whole + x == other)
            yield solver.Implies(a == b + 1, other + x == whole)
            yield solver.Implies(solver.And(x > 0, a + 1 < b), whole + 2 * x <= other)
            yield solver.Implies(solver.And(x > 0, a > b + 1), other + 2 * x <= whole)
        for factors, whole in list(self.named.items()):
            for i, x in enumerate(factors):
                rest = self.of(factors[:i] + factors[i + 1 :])
                yield solver.Implies(solver.And(x >= 0, rest >= 0), whole >= 0)
                yield solver.Implies(solver.And(x >= 1, rest >= 0), whole >= rest)
                yield solver.Implies(x == 0, whole == 0)
                yield solver.Implies(x == 1, whole == rest)


def _taken_apart(f: tuple[Any, ...], g: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The common factors of two products, and those that only one of them has."""
    left, right, common = list(f), list(g), []
    for x in f:
        if x in right:
            right.remove(x)
            left.remove(x)
            common.append(x)
    return tuple(common), tuple(left), tuple(right)


def solved(formulas: Iterable[Any]) -> list[Any]:
    """Formulas without the integers that an equation among them gives, which is then true."""
    solver = z3()
    left = _different(f for formula in formulas for f in _conjuncts(solver.simplify(formula, som=True)))
    found = True
    while found:
        found = False
        for number, f in enumerate(left):
            value = _solution(f) if solver.is_eq(f) else None
            if value is not None:
                rest = left[:number] + left[number + 1 :]
                put = [solver.simplify(solver.substitute(other, value), som=True) for other in rest]
                left = _different(c for other in put for c in _conjuncts(other))
                found = True
                break
    return left


def _different(formulas: Iterable[Any]) -> list[Any]:
    return list({f.get_id(): f for f in formulas}.values())


def _conjuncts(f: Any) -> Iterator[Any]:
    if z3().is_and(f):
        for part in f.children():
            yield from _conjuncts(part)
    elif not z3().is_true(f):
        yield f


def _solution(equation: Any) -> tuple[Any, Any] | None:
    """An integer that an equation gives in terms of others; no remainder but a number, as its bounds are of use."""
    solver = z3()
    if not solver.is_int(equation.arg(0)):
        return None
    terms = solver.simplify(equation.arg(0) - equation.arg(1), som=True)
    terms = terms.children() if solver.is_add(terms) else [terms]
    for number, term in enumerate(terms):
        is_negative = solver.is_mul(term) and term.num_args() == 2 and str(term.arg(0)) == "-1"
        x = term.arg(1) if is_negative else term
        if not solver.is_const(x) or solver.is_int_value(x):
            continue
        others = terms[:number] + terms[number + 1 :]
        if str(x).startswith("r!") and not all(map(solver.is_int_value, others)):
            continue
        if any(_mentions(other, x) for other in others):
            continue
        rest = solver.Sum(*others) if others else solver.IntVal(0)
        return x, rest if is_negative else -rest
    return None


def _mentions(e: Any, x: Any) -> bool:
    return e.eq(x) or any(_mentions(c, x) for c in e.children())
