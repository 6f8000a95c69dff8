"""Names in a rule: which are bound where, what its conditions say about them, and what a term can see of them.

A variable of a rule stands for a term, whose value depends on what its free variables stand for. These are not known:
it is known which are not among them, by conditions such as ``absent(p, b)``, and that some binders share no name. A
condition about a composed term says that the value of that term does not depend on a name, and no more than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from lift_egraph.egraph.rule_forms import Constant, Equation, Form, Node, Pattern, subpatterns
from lift_egraph.soundness.proofs.values import Scope, Value, component

FREE = ("fv", "fvf", "fvo")


class Scopes:
    """What one form of a rule says about names."""

    def __init__(self, form: Form) -> None:
        self._absent: dict[Pattern, set[Pattern]] = {}
        self._hidden: dict[Pattern, set[tuple[Pattern, Pattern]]] = {}
        self._closed: set[Pattern] = set()
        self._apart: set[frozenset[Pattern]] = set()
        for pair in pairs(form.left):
            self._apart |= {frozenset(two) for two in combinations(leaves(pair), 2)}
        for c in form.conditions:
            if isinstance(c, Equation):
                self._equation(c.left, c.right)
                self._equation(c.right, c.left)
            elif c.op == "Set_not_contains":
                self._lacks(c.parts[0], c.parts[1])

    def _equation(self, small: Pattern, whole: Pattern) -> None:
        """What follows from ``names - others = names``, in several spellings."""
        if not isinstance(small, Node):
            return
        if small.op == "Set___sub__" and small.parts[0] == whole and isinstance(other := small.parts[1], Node):
            if other.op == "bvs":
                for leaf in leaves(other.parts[0]):
                    self._lacks(whole, leaf)
        elif small.op == "Set_remove":
            rest: Pattern = small
            removed: list[Pattern] = []
            while isinstance(rest, Node) and rest.op == "Set_remove":
                removed.append(rest.parts[1])
                rest = rest.parts[0]
            if rest == whole:
                for leaf in removed:
                    self._lacks(whole, leaf)
        elif small.op in FREE and isinstance(whole, Node) and whole.op == "Set_empty":
            self._closed.add(small.parts[0])

    def _lacks(self, names: Pattern, leaf: Pattern) -> None:
        """Note that a set of names has none of those of a binder."""
        if not isinstance(names, Node):
            return
        if names.op in FREE:
            self._absent.setdefault(names.parts[0], set()).add(leaf)
        elif names.op == "bvs":
            self._apart |= {frozenset((own, leaf)) for own in leaves(names.parts[0])}
        elif names.op == "Set___sub__":
            free, bound = names.parts
            if isinstance(free, Node) and free.op in FREE and isinstance(bound, Node) and bound.op == "bvs":
                for own in leaves(bound.parts[0]):
                    self._hidden.setdefault(free.parts[0], set()).add((leaf, own))

    def apart(self, a: Pattern, b: Pattern) -> bool:
        """Whether two binders are known to share no name."""
        if frozenset((a, b)) in self._apart:
            return True
        if not (isinstance(a, Node) and isinstance(b, Node)):
            return _derived(a, b) or _derived(b, a)
        if a.op != b.op:
            return True
        first, second = a.parts[0], b.parts[0]  # the name or the tag
        if isinstance(first, Constant) and isinstance(second, Constant) and first != second:
            return True
        if a.op == "V_of" and len(own := leaves(a.parts[1])) == len(other := leaves(b.parts[1])) == 1:
            return self.apart(own[0], other[0])  # names made of different names
        return _derived(a, b) or _derived(b, a)

    def seen(self, term: Pattern, scope: Scope) -> Scope:
        """The part of a scope on which a term may depend, without what is bound again further inside."""
        if term in self._closed:
            return ()
        absent, hidden = self._absent.get(term, ()), self._hidden.get(term, ())
        found: list[tuple[Pattern, Value]] = []
        inside: set[Pattern] = set()
        for leaf, value in reversed(scope):
            is_hidden = any((leaf, own) in hidden for own in inside)
            if leaf not in absent and leaf not in inside and not is_hidden:
                found.append((leaf, value))
            inside.add(leaf)
        return tuple(reversed(found))

    def same_order(self, a: Scope, b: Scope) -> bool:
        """Whether binders that may share names are nested the same way in two scopes with the same binders."""
        places = {leaf: i for i, (leaf, _) in enumerate(b)}
        return all(places[x] < places[y] or self.apart(x, y) for (x, _), (y, _) in combinations(a, 2))


def pairs(p: Pattern) -> Iterator[Node]:
    """The binders of a pattern that are pairs, the outermost only."""
    if isinstance(p, Node):
        if p.op == "P_pair":
            yield p
            return
        for part in p.parts:
            yield from pairs(part)


def leaves(binder: Pattern) -> tuple[Pattern, ...]:
    """The variables of a binder, and the binders in it that are not known."""
    if isinstance(binder, Node) and binder.op == "P_pair":
        return tuple(leaf for part in binder.parts for leaf in leaves(part))
    if isinstance(binder, Node) and binder.op == "P_var":
        return (binder.parts[0],)
    return (binder,)


def bound(binder: Pattern, value: Value) -> Scope:
    """What the names of a binder stand for."""
    if isinstance(binder, Node) and binder.op == "P_pair":
        first, second = binder.parts
        return bound(first, component(value, 0)) + bound(second, component(value, 1))
    return ((leaves(binder)[0], value),)


def _derived(a: Pattern, b: Pattern) -> bool:
    """Whether a name is made of the names of another binder."""
    return isinstance(a, Node) and a.op == "V_of" and any(part == b for part in subpatterns(a.parts[1]))
