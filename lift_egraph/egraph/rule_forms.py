"""The two sides and the conditions of a rule as plain data, read from what egglog holds of it.

egglog's declarations are not a stable interface, so every use of them is here, behind a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

from egglog import declarations as egg

from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_files import line_in
from lift_egraph.errors import RuleProblem


@dataclass(frozen=True)
class Hole:
    """A pattern variable, with its sort: ``Ex``, ``Fn``, ``Op``, ``P``, ``V``, ``Ty``, ``i64``, ``String``, …"""

    name: str
    sort: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constant:
    """A number or a string."""

    value: Any

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Node:
    """An operation applied to parts; methods are named ``Fn_lam``, ``i64___mod__``, ``Set_insert``."""

    op: str
    parts: tuple[Pattern, ...]
    sort: str

    def __str__(self) -> str:
        return f"{self.op}({', '.join(str(p) for p in self.parts)})"


CLASSES = ("Ex", "Fn", "Op", "P", "V", "Ty")  # the sorts of terms; the others are computed with
SORTS = (*CLASSES, "i64", "String")
Pattern = Union[Hole, Constant, Node]


@dataclass(frozen=True)
class Equation:
    """The condition that two patterns are in one class."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Form:
    """One rewrite of a rule: where `left` matches and the conditions hold, `right` is put beside it.

    Conditions are equations, or facts such as ``tile(m, n)`` and ``n < m``.
    """

    left: Pattern
    right: Pattern
    conditions: tuple[Equation | Node, ...]

    @cached_property
    def flat(self) -> tuple[Pattern, tuple[Equation, ...]]:
        """The left-hand side with variables for the sizes that it computes, and their equations."""
        sizes: list[Equation] = []

        def put(p: Pattern) -> Pattern:
            if not isinstance(p, Node):
                return p
            if p.sort not in CLASSES:
                hole = Hole(f"#{len(sizes)}", p.sort)
                sizes.append(Equation(hole, p))
                return hole
            return Node(p.op, tuple(map(put, p.parts)), p.sort)

        return put(self.left), tuple(sizes)


def forms(rule: Rule) -> tuple[Form, ...]:
    """Every rewrite of a rule; parts that only make names or facts are left out.

    Raises
    ------
    RuleProblem
        If the function of the rule fails (an unknown sort, a wrong argument), if it yields no rewrite, or if
        a variable on the right is bound nowhere.
    """
    try:
        rule.ruleset.__egg_decls__  # noqa: B018  # egglog runs the function now
    except Exception as problem:  # anything at all: it is a user's function
        path, _, line = rule.place.rpartition(":")
        place = f"{path}:{line_in(problem, path) or line}"
        raise RuleProblem(rule.name, place, _failure(rule, problem)) from problem
    found = [form for declaration in rule.ruleset.__egg_ruleset__.rules for form in _forms(declaration)]
    if not found:
        raise RuleProblem(rule.name, rule.place, "it yields no rewrite")
    for form in found:
        bound = holes(form.left)
        for c in form.conditions:
            bound |= holes(c.left) | holes(c.right) if isinstance(c, Equation) else holes(c)
        loose = sorted(h.name for h in holes(form.right) - bound)
        if isinstance(form.left, Hole):
            raise RuleProblem(rule.name, rule.place, "its left-hand side is a variable; a pattern is needed")
        if loose:
            names = ", ".join(loose)
            raise RuleProblem(
                rule.name, rule.place, f"{names} on the right is bound neither on the left nor in a condition"
            )
    return tuple(found)


def _failure(rule: Rule, problem: Exception) -> str:
    if isinstance(problem, NameError) and problem.name in rule.body.__annotations__.values():
        return f"unknown sort {problem.name}; the sorts are {', '.join(SORTS)}"
    return f"{type(problem).__name__}: {problem}"


def holes(pattern: Pattern) -> set[Hole]:
    """The variables of a pattern."""
    return {p for p in subpatterns(pattern) if isinstance(p, Hole)}


def subpatterns(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern and everything below it, outermost first."""
    yield pattern
    if isinstance(pattern, Node):
        for part in pattern.parts:
            yield from subpatterns(part)


def replace_holes(pattern: Pattern, values: Mapping[str, Pattern]) -> Pattern:
    """The pattern with variables replaced, also inside what replaces them."""
    if isinstance(pattern, Hole):
        return replace_holes(values[pattern.name], values) if pattern.name in values else pattern
    if isinstance(pattern, Node):
        return Node(pattern.op, tuple(replace_holes(p, values) for p in pattern.parts), pattern.sort)
    return pattern


def _forms(declaration: Any) -> Iterator[Form]:
    if isinstance(declaration, egg.RewriteDecl | egg.BiRewriteDecl):
        sort = declaration.tp.ident.name
        left, right = _read(declaration.lhs, sort), _read(declaration.rhs, sort)
        conditions = tuple(_condition(c) for c in declaration.conditions)
        yield _inlined(left, right, conditions)
        if isinstance(declaration, egg.BiRewriteDecl):
            yield _inlined(right, left, conditions)
    elif isinstance(declaration, egg.RuleDecl):
        conditions = tuple(_condition(c) for c in declaration.body)
        for action in declaration.head:
            if isinstance(action, egg.UnionDecl):
                sort = action.tp.ident.name
                yield _inlined(_read(action.lhs, sort), _read(action.rhs, sort), conditions)


def _inlined(left: Pattern, right: Pattern, conditions: tuple[Equation | Node, ...]) -> Form:
    """The form with variables of terms that a condition defines replaced: ``e`` where ``e = map(f, x)``."""
    defined: dict[str, Pattern] = {}
    kept: list[Equation | Node] = []
    for c in conditions:
        if isinstance(c, Equation):
            for hole, value in ((c.left, c.right), (c.right, c.left)):
                if not isinstance(hole, Hole) or hole.sort not in ("Ex", "Fn", "Op", "P", "V"):
                    continue
                if hole.name not in defined and isinstance(value, Node) and hole not in holes(value):
                    defined[hole.name] = value
                    break
            else:
                kept.append(c)
            continue
        kept.append(c)

    def put(p: Any) -> Any:
        if isinstance(p, Equation):
            return Equation(replace_holes(p.left, defined), replace_holes(p.right, defined))
        return replace_holes(p, defined)

    if isinstance(left, Hole) and left.name not in defined and isinstance(right, Hole) and right.name in defined:
        left, right = right, left
    return Form(put(left), put(right), tuple(put(c) for c in kept))


def _condition(fact: Any) -> Equation | Node:
    if isinstance(fact, egg.EqDecl):
        sort = fact.tp.ident.name
        return Equation(_read(fact.left, sort), _read(fact.right, sort))
    made = _read(fact.typed_expr.expr, fact.typed_expr.tp.ident.name)
    assert isinstance(made, Node)
    return made


def _read(expression: Any, sort: str) -> Pattern:
    if isinstance(expression, egg.UnboundVarDecl):
        return Hole(expression.name, sort)
    if isinstance(expression, egg.LitDecl):
        return Constant(expression.value)
    if isinstance(expression, egg.CallDecl):
        parts = tuple(_read(a.expr, a.tp.ident.name) for a in expression.args)
        return Node(_operation(expression.callable), parts, sort)
    return Node(type(expression).__name__, (), sort)


def _operation(callable_: Any) -> str:
    name = callable_.ident.name
    if isinstance(callable_, egg.InitRef):
        return f"{name}___init__"
    if isinstance(callable_, egg.MethodRef | egg.ClassMethodRef):
        return f"{name}_{callable_.method_name}"
    if isinstance(callable_, egg.ClassVariableRef):
        return f"{name}_{callable_.var_name}"
    if isinstance(callable_, egg.PropertyRef):
        return f"{name}_{callable_.property_name}"
    return name


def read_term(term: Any) -> Pattern:
    """A term of egglog's as a pattern without variables."""
    found = term.__egg_typed_expr__
    return _read(found.expr, found.tp.ident.name)
