"""Programs that break one condition of a rule, and keep the others: the rule must come to no harm there.

A condition that no such program was made for has not been put to the test: the check of a rule says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lift_egraph.egraph.rule_forms import (
    LAWS,
    Constant,
    Equation,
    Form,
    Hole,
    Node,
    condition_holes,
    holes,
    replace_holes,
)
from lift_egraph.errors import TypeProblem
from lift_egraph.soundness.clashes import is_about_names
from lift_egraph.soundness.match_binders import Prepared
from lift_egraph.soundness.pattern_types import solved

# they offer a choice, or say where a rule is of use: no program breaks them
STEERING = ("tile", "lane_width", "stage_local", "stage_private", "Set_contains")
VECTORS = Node("Ty_lanes", (Constant(2), Hole("type of lanes", "Ty")), "Ty")
FEW = 6  # sizes that break a condition
CONTRARY = {
    "i64___lt__": "i64___ge__", "i64___ge__": "i64___lt__", "i64___gt__": "i64___le__", "i64___le__": "i64___gt__",
}  # fmt: skip


def near_misses(plain: Prepared, clashing: dict[int, list[Prepared]]) -> dict[int, list[Prepared]]:
    """For each condition of a form that may fail, how programs are made that break it.

    Parameters
    ----------
    clashing
        For conditions on names, the forms with a clash that they exclude.

    Returns
    -------
    dict
        By the number of the condition. An empty list is a condition that no program is known to break.
    """
    found: dict[int, list[Prepared]] = {}
    for number, c in enumerate(plain.form.conditions):
        if isinstance(c, Node) and c.op in STEERING:
            continue
        if is_about_names(c):
            found[number] = clashing.get(number, [])
        elif isinstance(c, Node) and c.op in LAWS:
            found[number] = [replace(plain, broken=number)]
        else:
            made = [p for p in _broken(plain, number) if p.solutions]
            if made:
                found[number] = made
    return found


def _broken(plain: Prepared, number: int) -> Iterator[Prepared]:
    """The form with the contrary of a condition on sizes or types; nothing where it always holds."""
    c = plain.form.conditions[number]
    others = tuple(o for i, o in enumerate(plain.form.conditions) if i != number)
    form = replace(plain.form, conditions=others)
    for contrary in contraries(plain.form, number, c):
        equal = ((c.parts[0], VECTORS),) if isinstance(c, Node) and c.op == "scalar_like" else ()
        try:
            typing, solutions = solved(replace(form, conditions=(*others, *contrary)), equal, FEW)
        except TypeProblem:
            continue
        yield replace(plain, typing=typing, solutions=solutions, broken=number)


def contraries(form: Form, number: int, c: Equation | Node) -> Iterator[tuple[Equation | Node, ...]]:
    """Conditions that hold where one on sizes or types does not; none if it is of another kind, or never fails."""
    if isinstance(c, Node):
        if c.op == "scalar_like":
            yield ()
        elif c.op in CONTRARY:
            yield (Node(CONTRARY[c.op], c.parts, c.sort),)
        elif c.op == "!=":
            yield (Equation(*c.parts),)
        return
    if _sort(c) == "i64":
        yield (Node("!=", (c.left, c.right), "Unit"),)
        return
    known = holes(form.left).union(*(condition_holes(o) for i, o in enumerate(form.conditions) if i != number))
    for hole in sorted(condition_holes(c) & known, key=str):
        if hole.sort == "i64":  # a size that is known elsewhere is another one here
            other = Hole(f"another {hole.name}", "i64")
            sides = (replace_holes(p, {hole.name: other}) for p in (c.left, c.right))
            yield Equation(*sides), Node("!=", (hole, other), "Unit")


def _sort(c: Equation) -> str:
    return next((p.sort for p in (c.left, c.right) if isinstance(p, Hole | Node)), "i64")
