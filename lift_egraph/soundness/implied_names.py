"""What conditions on names imply, by truth tables: of any one variable, each set of variables holds it or does not.

Every condition on names says something of each variable: ``fv(e) - bvs(p) = fv(e)`` that it is not both free in e and
bound by p. So conditions imply another if they do for one variable, whatever sets it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from lift_egraph.egraph.rule_forms import Equation, Node, Pattern
from lift_egraph.soundness.clashes import is_about_names

Holds = Callable[[Pattern], bool]  # whether the variable is in a set that is not put together, or is a variable
ATOMS = 12  # more sets are not looked at
COMBINED: dict[str, Callable[[bool, bool], bool]] = {
    "Set___sub__": lambda a, b: a and not b,
    "Set___or__": lambda a, b: a or b,
    "Set___and__": lambda a, b: a and b,
}


def implied(goal: Equation | Node, given: Iterable[Equation | Node]) -> bool:
    """Whether conditions on names imply another, whatever terms and binders they are about.

    Examples
    --------
    >>> from lift_egraph.egraph.rule_forms import forms
    >>> from lift_egraph.rules.fusion import map_fusion, zip_of_maps
    >>> absent, _, disjoint = forms(zip_of_maps)[0].conditions
    >>> implied(absent, (disjoint, absent)), implied(absent, (disjoint,))
    (True, False)
    """
    if not is_about_names(goal):
        return False
    stated = [c for c in given if is_about_names(c)]
    atoms: dict[Pattern, None] = {}
    for c in (goal, *stated):
        _says(c, lambda p: bool(atoms.setdefault(p)))
    if len(atoms) > ATOMS:
        return False
    for truth in product((False, True), repeat=len(atoms)):
        holds = dict(zip(atoms, truth, strict=True)).__getitem__
        if all(_says(c, holds) for c in stated) and not _says(goal, holds):
            return False
    return True


def _says(c: Equation | Node, holds: Holds) -> bool:
    """Whether a condition is true of a variable."""
    if isinstance(c, Equation):
        left, right = _in(c.left, holds), _in(c.right, holds)
        return left == right
    names, name = _in(c.parts[0], holds), _in(Node("bvs", (c.parts[1],), "Set"), holds)
    return not name or names == (c.op == "Set_contains")


def _in(p: Pattern, holds: Holds) -> bool:
    """Whether a variable is in a set."""
    if not isinstance(p, Node):
        return holds(p)
    if p.op == "Set_empty":
        return False
    if p.op in COMBINED:
        left, right = (_in(part, holds) for part in p.parts)
        return COMBINED[p.op](left, right)
    if p.op in ("Set_insert", "Set_remove"):
        inside, is_it = _in(p.parts[0], holds), _in(Node("bvs", p.parts[1:], "Set"), holds)
        return inside or is_it if p.op == "Set_insert" else inside and not is_it
    binder = p.parts[0] if p.op == "bvs" else None
    if isinstance(binder, Node) and binder.op == "P_pair":
        parts = [_in(Node("bvs", (part,), p.sort), holds) for part in binder.parts]
        return any(parts)
    if isinstance(binder, Node) and binder.op == "P_var":
        return _in(Node("bvs", binder.parts, p.sort), holds)
    return holds(Node(p.op, p.parts, "Set"))
