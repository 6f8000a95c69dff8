"""Patterns that mean the same whatever they match: up to names that a rule makes, and operands that commute."""

from __future__ import annotations

from collections.abc import Mapping

from lift_egraph.egraph.rule_forms import Constant, Node, Pattern, shown, subpatterns

COMMUTING = ("add", "mul", "dot", "eq", "ne", "and", "or")  # bit for bit
OF_WHOLE = ("min", "max")  # these are not, of NaN


def same(first: Pattern, second: Pattern) -> bool:
    """Whether two patterns mean the same.

    Examples
    --------
    >>> from lift_egraph.egraph.rule_forms import forms
    >>> from lift_egraph.rules.reduction import combine_lifted, combine_scalars
    >>> from lift_egraph.soundness.mutations import mutants_of
    >>> [form] = forms(combine_lifted)
    >>> [same(forms(m.rule)[0].right, form.right) for m in mutants_of(combine_lifted) if m.kind == "swapped"]
    [False, False, False]
    """
    return _canonical(first, {}) == _canonical(second, {})


def _canonical(p: Pattern, names: Mapping[Pattern, Pattern]) -> Pattern:
    """A pattern with the names that it makes numbered as they are bound, and what commutes in order."""
    if p in names:
        return names[p]
    if not isinstance(p, Node):
        return p
    if p.op == "Fn_lam":
        made = [n for n in subpatterns(p.parts[0]) if isinstance(n, Node) and n.op == "V___init__"]
        numbered = {n: Node("V___init__", (Constant(len(names) + i), n.parts[1]), "V") for i, n in enumerate(made)}
        names = {**names, **numbered}
    parts = tuple(_canonical(part, names) for part in p.parts)
    if p.op == "call2" and isinstance(p.parts[0], Constant):
        name = p.parts[0].value
        if name in COMMUTING or (name in OF_WHOLE and any(map(_is_whole_literal, p.parts[1:]))):
            parts = (parts[0], *sorted(parts[1:], key=shown))
    return Node(p.op, parts, p.sort)


def _is_whole_literal(p: Pattern) -> bool:
    return isinstance(p, Node) and p.op == "Ex_literal" and shown(p.parts[1]) == "Ty.scalar(i32)"
