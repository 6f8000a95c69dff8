"""Proofs of rules for all sizes and all terms, and where there is none, sizes and an index that show why.

Both sides of a rule, as it is written, become functions of indices over unknown terms, which may depend on what their
conditions let them (`lift_egraph.soundness.proofs.meaning`). Under these conditions the right-hand side must be a term
of the same type, and each element equal to that of the left-hand side (`lift_egraph.soundness.proofs.equality`), where
z3 decides about sizes and indices. Sums of floats count as associative where a rule says so: what a proof says is what
the law says. Sizes are whole numbers without a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import LAWS, STARTS, Constant, Form, Hole, Node, Pattern, forms, shown, subpatterns
from lift_egraph.errors import TypeProblem
from lift_egraph.soundness.proofs.equality import Differs, Equality, NoPart, Where
from lift_egraph.soundness.proofs.integers import Integers, z3
from lift_egraph.soundness.proofs.meaning import Meaning, NotUnderstood
from lift_egraph.soundness.proofs.scopes import Scopes, leaves, pairs
from lift_egraph.soundness.proofs.typed import Typed
from lift_egraph.soundness.proofs.values import Function, Value
from lift_egraph.soundness.proofs.words import element_text

FOUND = {
    "acts": "folds that act like monoids",
    "steady": "folds that multiply by one matrix",
    "recalls": "folds that remember the element before",
    **dict.fromkeys(("kept_within", "kept_along"), "folds whose accumulator stays between bounds"),
    **dict.fromkeys(("tabulates", "tabulates_first"), "folds of few states over few elements"),
    "cascades": "folds of which some components do without the others",
    "distributes": "operators that distribute over others",
    "built_in": "operators that are an operation in other words",
}
COMPLETE = ("wrap", "mirror")  # boundaries that need as many elements as they add


@dataclass(frozen=True)
class Proof:
    """Whether a rule is proved; if not, why, and sizes with an element at which it shows."""

    proved: bool
    reason: str = ""
    counterexample: str = ""

    @property
    def text(self) -> str:
        """Why it is not proved; empty if it is."""
        return self.reason + (f", {self.counterexample}" if self.counterexample else "")

    def __str__(self) -> str:
        return "proved" if self.proved else f"not proved: {self.text}"


def prove_rule(rule: Rule) -> Proof:
    """Prove a rule for all sizes, or show where that fails.

    A rule that is not proved may still be right: most laws of operators are beyond this.

    Raises
    ------
    RuleProblem
        If the rule cannot be read.
    InputProblem
        If z3 is not installed.

    Examples
    --------
    >>> from lift_egraph.dsl import Ex, i64, join, rewrite, rule, split, transpose
    >>> @rule("join (split n xs) = xs")
    ... def join_of_split(n: i64, xs: Ex):
    ...     yield rewrite(join(split(n, xs))).to(xs)
    >>> print(prove_rule(join_of_split))
    proved
    >>> @rule("join (transpose xss) = join xss")
    ... def forget_transpose(xss: Ex):
    ...     yield rewrite(join(transpose(xss))).to(join(xss))
    >>> print(prove_rule(forget_transpose))  # doctest: +ELLIPSIS
    not proved: they are different elements, for xss of ..., at [...]: xss[...] and xss[...]
    """
    found = forms(rule)
    for number, form in enumerate(found, 1):
        proof = _prove(form)
        if not proof.proved:
            where = f"rewrite {number}: " if len(found) > 1 else ""
            return Proof(False, where + proof.reason, proof.counterexample)
    return Proof(True)


def _prove(form: Form) -> Proof:
    if form.claims:
        return Proof(False, "it states laws of operators")
    for c in form.conditions:
        if isinstance(c, Node) and c.op in FOUND:
            return Proof(False, f"this has no proofs about {FOUND[c.op]}")
    integers = Integers()
    try:
        typed = Typed(form, integers)
    except (TypeProblem, TypeError) as problem:
        return Proof(False, f"the right-hand side need not be a term of the same type: {problem}")
    try:
        if integers.model(()) is None:
            return Proof(False, "no sizes are known that fit its left-hand side and conditions")
        meaning = Meaning(typed, Scopes(form), integers)
        for goal in typed.goals:
            if not integers.follows((), goal):
                raise Differs(f"it needs {integers.text(goal)}", (z3().Not(goal),))
            integers.facts.append(goal)  # what is proved helps with the rest
        _binders(form, meaning.scopes)
        _pads(form, typed, integers)
        _orders(form, typed, meaning)
        equality = Equality(integers, meaning.scopes, _laws(form, meaning))
        left, right = meaning(form.left), meaning(form.right)
        if isinstance(left, Function):
            equality.functions(left, right, Where())
        else:
            equality.prove(left, right, Where())
    except NotUnderstood as problem:
        return Proof(False, f"this has no proofs about {problem}")
    except NoPart:
        return Proof(False, "a loop reads another part of its state")
    except Differs as problem:
        return Proof(False, problem.reason, _counterexample(integers, typed, problem))
    return Proof(True)


def _laws(form: Form, meaning: Meaning) -> dict[Pattern, dict[str, Value | None]]:
    """For each operator the names of its laws, and what is neutral for it."""
    found: dict[Pattern, dict[str, Value | None]] = {}
    for c in form.conditions:
        if isinstance(c, Node) and c.op in LAWS:
            start = meaning(c.parts[1]) if c.op in STARTS else None
            found.setdefault(c.parts[0], {})["neutral" if c.op in STARTS else c.op] = start
    return found


# --- what the right-hand side must fulfil to be a term ---


def _binders(form: Form, scopes: Scopes) -> None:
    for pair in pairs(form.right):
        for a, b in combinations(leaves(pair), 2):
            if not scopes.apart(a, b):
                raise Differs(f"{shown(a)} and {shown(b)} may share names", ())


def _used(side: Pattern, typed: Typed, *names: str) -> Iterator[tuple[Node, Any]]:
    """Operations on one array, and its length."""
    for p in subpatterns(side):
        if isinstance(p, Node) and p.op in names:
            yield p, typed.resolved(typed.types[p.parts[-1]]).size  # pyright: ignore[reportAttributeAccessIssue]


def _pads(form: Form, typed: Typed, integers: Integers) -> None:
    """Each pad has elements to pad from, or is one of those on the left, which have."""
    known = list(_used(form.left, typed, "pad"))
    for p, n in _used(form.right, typed, "pad"):
        left, right, kind = p.parts[0], p.parts[1], p.parts[2]
        same = [m for q, m in known if q.parts[:3] == p.parts[:3]]
        goal = n >= 1
        if isinstance(kind, Constant) and kind.value in COMPLETE:
            goal = z3().And(goal, integers.size(left) <= n, integers.size(right) <= n)
        needs = z3().Or(*(m == n for m in same), goal if isinstance(kind, Constant) else False)
        if not integers.follows((), needs):
            raise Differs("pad may have no elements to pad from", (z3().Not(needs),))


def _orders(form: Form, typed: Typed, meaning: Meaning) -> None:
    """Each order is one of those on the left, at that length, or its text says that it is one."""
    solver, integers = z3(), meaning.integers
    known = list(_used(form.left, typed, "gather", "scatter"))
    for p, n in _used(form.right, typed, "gather", "scatter"):
        order = p.parts[0]
        same = [m for q, m in known if q.parts[0] == order and q.op in (p.op, "scatter")]
        if integers.follows((), solver.Or(*(m == n for m in same))):
            continue
        if isinstance(order, Hole):
            raise Differs(f"{order} need not be an order of that length", ())
        i, j = integers.new("i"), integers.new("i")
        x, y = meaning.source(order, i, n), meaning.source(order, j, n)
        one = Where().below(i, n)
        both = one.below(j, n)
        inside = solver.And(x >= 0, x < n)
        if not integers.follows(one.hypotheses, inside):
            raise Differs("the order leaves the array", (*one.hypotheses, solver.Not(inside)), None, one.indices)
        if p.op == "scatter" and not integers.follows(both.hypotheses, solver.Implies(x == y, i == j)):
            raise Differs("the order is no permutation", (*both.hypotheses, x == y, i != j), None, one.indices)


def _counterexample(integers: Integers, typed: Typed, problem: Differs) -> str:
    model = integers.model(problem.hypotheses)
    if model is None:
        return ""
    sizes = [f"{name} = {model.eval(v, True)}" for name, v in sorted(integers.shown.items()) if " " not in name]
    arrays = [
        f"{p.name} of {' × '.join(str(model.eval(n, True)) for n in lengths)}"
        for p, lengths in sorted(typed.arrays(), key=str)
    ]
    found = f"for {', '.join((*sizes, *arrays))}" if sizes or arrays else "for all sizes"
    place = "".join(f"[{model.eval(i, True)}]" for i in problem.indices)
    found += f", at {place}" if place else ""
    if problem.sides is not None:
        left, right = (element_text(value, model) for value in problem.sides)
        found += f": {left} and {right}" if left != right else f": {left}"
    return found
