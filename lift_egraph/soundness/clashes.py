"""Names that a rule might confuse, read from its two sides.

A rule substitutes nothing: it moves parts under binders and away from them. A part that stands under a binder on one
side only means another thing on the other side if a variable of that binder is free in it; so do parts of which two
binders change places, if both bind one variable. These are the clashes of a rule. Its conditions have to exclude them
all, and each is worth a program: if the rule applies to it, the rule is most likely wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lift_egraph.egraph.encoding import function_to_egg, operator_to_egg, to_egg
from lift_egraph.egraph.rule_forms import Equation, Form, Hole, Node, Pattern, holes, subpatterns
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.types import F32
from lift_egraph.soundness.pattern_values import Operator, Rejected, Term, Values


@dataclass(frozen=True)
class Clash:
    """Two names that are one.

    Attributes
    ----------
    binder
        What is bound on one side of the rule: a variable for a binder, or a name that the rule makes.
    other
        The part in which a variable of it is free, or another binder that binds the same variable.
    """

    binder: Hole | Node
    other: Hole | Node

    @property
    def shares(self) -> bool:
        """Whether two binders have the same variable."""
        return self.other.sort not in PARTS


PARTS = ("Ex", "Fn", "Op")
_Binders = tuple[Hole | Node, ...]


def clashes_of(form: Form) -> tuple[Clash, ...]:
    """All clashes of a form."""
    left, right = set(_places(form.left)), set(_places(form.right))
    found: dict[Clash, None] = {}
    shared = _together(form.right)
    for part in sorted({h for h, _ in left} & {h for h, _ in right}, key=str):
        above = [binders for h, binders in (*left, *right) if h == part]
        everywhere = set.intersection(*map(set, above))
        for binder in sorted(set().union(*above) - everywhere, key=str):
            found[Clash(binder, part)] = None
        for a, b in combinations(sorted(everywhere, key=str), 2):
            if len({binders.index(a) < binders.index(b) for binders in above}) > 1:
                shared.add((a, b))
    for a, b in sorted(shared - _together(form.left), key=str):
        if isinstance(a, Hole) or isinstance(b, Hole):  # two names that the rule makes differ
            found[Clash(a, b)] = None
    return tuple(found)


def _places(p: Pattern, above: _Binders = ()) -> Iterator[tuple[Hole, _Binders]]:
    """The parts of a pattern and what is bound above each, the outermost first; ``let v = v in b`` binds nothing."""
    if isinstance(p, Hole):
        if p.sort in PARTS:
            yield p, above
    elif (body := _body_of_itself(p)) is not None:
        yield from _places(body, above)
    elif isinstance(p, Node) and p.op == "Fn_lam":
        yield from _places(p.parts[1], (*above, *_bound(p.parts[0])))
    elif isinstance(p, Node):
        for part in p.parts:
            yield from _places(part, above)


def _body_of_itself(p: Pattern) -> Pattern | None:
    """The body of ``let v = v in b``; None of another pattern."""
    match p:
        case Node("app", (Node("Fn_lam", (Node("P_var", (bound,)), body)), Node("Ex___init__", (named,)))):
            return body if bound == named else None
    return None


def _bound(p: Pattern) -> _Binders:
    if isinstance(p, Node) and p.op in ("P_pair", "P_var"):
        return tuple(b for part in p.parts for b in _bound(part))
    return (p,) if isinstance(p, Hole) or (isinstance(p, Node) and p.op in ("V___init__", "V_of")) else ()


def _together(p: Pattern) -> set[_Binders]:
    """The binders that stand in one pattern, two and two."""
    lambdas = (node for node in subpatterns(p) if isinstance(node, Node) and node.op == "Fn_lam")
    return {pair for node in lambdas for pair in combinations(sorted(_bound(node.parts[0]), key=str), 2)}


class _Names(Values):
    """The shortest values that have the free variables of a clash, to ask a rule's conditions about names."""

    def __init__(self, form: Form, clash: Clash) -> None:
        super().__init__()
        found = holes(form.left).union(*(holes(p) for c in form.conditions for p in sides(c)))
        for hole in found:
            if hole.sort in ("P", "V"):
                self.values[hole.name] = ir.Var(f"the {hole.name}", F32)
            elif hole.sort in ("Ty", "i64"):
                self.values[hole.name] = F32 if hole.sort == "Ty" else 4
        variable = self.pattern(clash.binder)
        if clash.shares and isinstance(clash.other, Hole):
            self.values[clash.other.name] = variable
        elif clash.shares and isinstance(clash.binder, Hole):
            self.values[clash.binder.name] = self.pattern(clash.other)
        for hole in found:
            if hole.sort in PARTS:
                mentioned = variable if hole == clash.other else ir.Input("nothing", F32)
                self.values[hole.name] = self._part(hole.sort, mentioned)

    def _part(self, sort: str, mentioned: Any) -> Any:
        one, two = ir.Var("one", F32), ir.Var("two", F32)
        if sort == "Ex":
            return Term(mentioned, to_egg(mentioned))
        f = ir.Lambda(one if sort == "Fn" else ir.PairBinder(one, two), mentioned)
        return Term(f, function_to_egg(f)) if sort == "Fn" else Operator(f, operator_to_egg(f), None)


def excluding(form: Form, clash: Clash) -> tuple[int, ...]:
    """Which conditions on names exclude a clash, as far as this can be told before a program is made."""
    try:
        names = _Names(form, clash)
        return tuple(i for i, c in enumerate(form.conditions) if breaks_names(names, c))
    except (LiftError, Rejected):
        return ()


def is_about_names(c: Equation | Node) -> bool:
    """Whether a condition compares sets of variables, or asks what is in one."""
    parts = (c.left, c.right) if isinstance(c, Equation) else (c,)
    return any(isinstance(p, Node) and p.op.startswith(("Set_", "fv", "bvs")) for p in parts)


def breaks_names(values: Values, c: Equation | Node) -> bool:
    """Whether values break a condition on names; one on anything else is taken to hold."""
    if isinstance(c, Equation):
        left, right = values.names(c.left), values.names(c.right)
        return left is not None and right is not None and left != right
    if c.op not in ("Set_not_contains", "Set_contains"):
        return False
    names, name = values.names(c.parts[0]), values.pattern(c.parts[1])
    return names is not None and (name in names) != (c.op == "Set_contains")


def sides(c: Equation | Node) -> tuple[Pattern, ...]:
    """The patterns of a condition."""
    return (c.left, c.right) if isinstance(c, Equation) else (c,)
