"""The two sides and the conditions of a rule as plain data, read from what egglog holds of it.

egglog's declarations are not a stable interface, so every use of them is here, behind a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import isgeneratorfunction, signature
from typing import Any, Union

from egglog import declarations as egg

from lift_egraph.caching import cached_property
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_files import line_in
from lift_egraph.errors import RuleProblem

NO_REWRITE = "it yields no rewrite: yield rewrite(left).to(right)"


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

    @cached_property
    def below(self) -> tuple[Pattern, ...]:
        """The pattern and everything below it, outermost first."""
        return (self, *(below for part in self.parts for below in subpatterns(part)))


CLASSES = ("Ex", "Fn", "Op", "P", "V", "Ty", "Order")  # the sorts of terms; the others are computed with
GUARDS = ("rearranged",)  # what keeps a rule from its own results, and says nothing of what is right
SORTS = (*CLASSES, "i64", "String")
STARTS = ("identity", "neutral")
LAWS = ("associative", "commutative", *STARTS)
Pattern = Union[Hole, Constant, Node]


@dataclass(frozen=True)
class Equation:
    """The condition that two patterns are in one class."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Form:
    """One rewrite of a rule: where `left` matches and the conditions hold, `right` is put beside it.

    Conditions are equations, or facts such as ``tile(m, n)`` and ``n < m``; what only keeps a rule from its own
    results is left out.

    Attributes
    ----------
    claims
        Laws of operators that are stated where `left` matches: `right` is then `left`.
    declared
        What egglog knows it by.
    """

    left: Pattern
    right: Pattern
    conditions: tuple[Equation | Node, ...]
    claims: tuple[Node, ...] = ()
    declared: Any = field(default=None, compare=False, repr=False)

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
    except Exception as raised:  # anything at all: it is a user's function
        problem = raised.__cause__ if isinstance(raised.__cause__, AttributeError) else raised  # egglog hides these
        path, _, line = rule.place.rpartition(":")
        place = f"{path}:{line_in(problem, path) or line}"
        raise RuleProblem(rule.name, place, _failure(rule, problem)) from problem
    found = [form for declaration in rule.ruleset.__egg_ruleset__.rules for form in _forms(declaration)]
    if not found:
        raise RuleProblem(rule.name, rule.place, NO_REWRITE)
    for form in found:
        bound = holes(form.left)
        for c in form.conditions:
            bound |= condition_holes(c)
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
    untold = [name for name in signature(rule.body).parameters if name not in rule.body.__annotations__]
    if untold:
        return f"the parameter {untold[0]} has no sort: {untold[0]}: Ex; the sorts are {', '.join(SORTS)}"
    if not isgeneratorfunction(rule.body):
        return NO_REWRITE
    if "_RewriteBuilder" in str(problem):
        return "a rewrite without its right-hand side: it is rewrite(left).to(right)"
    if str(problem).endswith(("has no method decl", "has no attribute '__egg_decls__'")):  # a term, or no term
        return f"it yields something else than a rewrite: {NO_REWRITE.partition(': ')[2]}"
    return f"{type(problem).__name__}: {problem}"


def holes(pattern: Pattern) -> set[Hole]:
    """The variables of a pattern."""
    return {p for p in subpatterns(pattern) if isinstance(p, Hole)}


def condition_holes(c: Equation | Node) -> set[Hole]:
    """The variables of a condition."""
    return holes(c.left) | holes(c.right) if isinstance(c, Equation) else holes(c)


def subpatterns(pattern: Pattern) -> tuple[Pattern, ...]:
    """A pattern and everything below it, outermost first."""
    return pattern.below if isinstance(pattern, Node) else (pattern,)


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
        conditions = _conditions(declaration.conditions)
        yield replace(_inlined(left, right, conditions), declared=declaration)
        if isinstance(declaration, egg.BiRewriteDecl):
            yield replace(_inlined(right, left, conditions), declared=declaration)
    elif isinstance(declaration, egg.RuleDecl):
        conditions = _conditions(declaration.body)
        for action in declaration.head:
            if isinstance(action, egg.UnionDecl):
                sort = action.tp.ident.name
                made = _inlined(_read(action.lhs, sort), _read(action.rhs, sort), conditions)
                yield replace(made, declared=declaration)
        claims = [claim for action in declaration.head for claim in _claims(action)]
        matched = next((c for c in conditions if isinstance(c, Equation) and _defines(c)), None)
        if claims and matched is not None:
            whole = matched.right if isinstance(matched.left, Hole) else matched.left
            made = _inlined(whole, whole, tuple(c for c in conditions if c is not matched))
            yield replace(made, claims=tuple(claims), declared=declaration)


def _claims(action: Any) -> Iterator[Node]:
    """The laws of operators that an action states."""
    if isinstance(action, egg.ExprActionDecl):
        made = read_declared(action.typed_expr)
        if isinstance(made, Node) and made.op in LAWS:
            yield made


def _defines(c: Equation) -> bool:
    """Whether a variable stands for a term or function."""
    hole, value = (c.left, c.right) if isinstance(c.left, Hole) else (c.right, c.left)
    return isinstance(hole, Hole) and hole.sort in ("Ex", "Fn") and isinstance(value, Node)


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


def _conditions(facts: Iterable[Any]) -> tuple[Equation | Node, ...]:
    """Those facts that are conditions of the law."""
    return tuple(c for fact in facts if not _guards(c := _condition(fact)))


def _guards(c: Equation | Node) -> bool:
    """Whether a condition only keeps a rule from its own results."""
    return isinstance(c, Equation) and any(isinstance(p, Node) and p.op in GUARDS for p in (c.left, c.right))


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
    return read_declared(term.__egg_typed_expr__)


def read_declared(expression: Any) -> Pattern:
    """An expression of egglog's declarations as a pattern."""
    return _read(expression.expr, expression.tp.ident.name)


_SIGNS = {
    "i64___lt__": "<", "i64___le__": "<=", "i64___gt__": ">", "i64___ge__": ">=", "i64___add__": "+",
    "i64___sub__": "-", "i64___mul__": "*", "i64___truediv__": "/", "i64___floordiv__": "/", "i64___mod__": "%",
    "Set___sub__": "-", "!=": "!=",
}  # fmt: skip


def shown(p: Equation | Pattern) -> str:
    """A condition or pattern as text, as rules are written."""
    if isinstance(p, Equation):
        return f"{shown(p.left)} = {shown(p.right)}"
    if not isinstance(p, Node):
        return str(p)
    parts = [shown(part) for part in p.parts]
    if p.op in _SIGNS:
        infix = [isinstance(part, Node) and part.op in _SIGNS for part in p.parts]
        return f" {_SIGNS[p.op]} ".join(f"({t})" if i else t for t, i in zip(parts, infix, strict=True))
    if p.op == "Set_empty":
        return "EMPTY"
    if p.op.startswith("Set_"):
        return f"{parts[0]}.{p.op.removeprefix('Set_')}({', '.join(parts[1:])})"
    name = p.op.removesuffix("___init__")
    return f"{name.replace('_', '.', 1) if name[0].isupper() else name}({', '.join(parts)})"
