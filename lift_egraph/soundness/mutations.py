"""Wrong versions of a rule, made one small change at a time: the measure of what the check of rules can see.

Every condition is removed, weakened, shifted by one, or asked of another variable, with its operands exchanged. On
the right-hand side operands are swapped, a binder is replaced by another one of the rule, and a size by one that is
off by one or by another size of the rule (a tile and a length exchanged). A change that leaves a variable of the
right-hand side unbound is no rule, and is not made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from lift_egraph.egraph import rule_edits as edits
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_edits import Expression, Fact, Rewrite
from lift_egraph.egraph.rule_forms import GUARDS, Constant, Hole, Node, Pattern, forms, read_declared, shown
from lift_egraph.errors import RuleProblem
from lift_egraph.soundness.near_misses import STEERING

WEAKER = {"__lt__": "__le__", "__gt__": "__ge__"}
WEAKER_SIDE = {"__lt__": 1, "__le__": 1, "__gt__": 0, "__ge__": 0}  # the side that is shifted: a stricter rule is right
OTHERS = 2  # binders and sizes by which one is replaced
BINDERS, NUMBERS = ("P", "V"), "i64"
COMPUTED = ("i64_", "Set_", "String_", "!=")


@dataclass(frozen=True)
class Mutant:
    """A rule with one change.

    Attributes
    ----------
    kind
        ``removed``, ``weakened``, ``shifted``, ``swapped``, ``another binder``, ``off by one`` or ``another size``.
    change
        What was changed, as text; of several changes that read alike, also at which place of the rewrite it is.
    rule
        The changed rule.
    condition
        The condition that was changed, as text; None if it was the right-hand side.
    rewrite
        The rewrite of the rule that was changed, as it was.
    sizes
        A size of the right-hand side and what it became, if it is one.
    place
        The end of `change` that says at which place; empty where no other change reads alike.
    """

    kind: str
    change: str
    rule: Rule
    condition: str | None
    rewrite: Rewrite = field(repr=False)
    sizes: tuple[Pattern, Pattern] | None = None
    place: str = ""

    @property
    def is_offer(self) -> bool:
        """Whether the condition only offers a choice, such as the chunks that a phase allows."""
        return self.condition is not None and self.condition.partition("(")[0] in STEERING

    @property
    def change_alone(self) -> str:
        """What was changed, without the number of the rewrite."""
        return self.change.removeprefix("rewrite ").partition(": ")[2] if self.change[:8] == "rewrite " else self.change

    @property
    def names(self) -> tuple[str, ...]:
        """What a note may call the change, that of one place first."""
        return tuple(dict.fromkeys((self.change_alone, self.change_alone.removesuffix(self.place))))


def mutants_of(rule: Rule) -> tuple[Mutant, ...]:
    """All mutants of a rule, those of conditions first.

    Raises
    ------
    RuleProblem
        If the rule cannot be read, or notes what is no condition, size or change of it.

    Examples
    --------
    >>> from lift_egraph.rules.iteration import iterate_decomposition
    >>> for mutant in mutants_of(iterate_decomposition)[:3]:
    ...     print(mutant.kind, mutant.change, sep=": ")
    removed: n > 1
    weakened: n > 1 becomes n >= 1
    swapped: n > 1 becomes 1 > n
    """
    forms(rule)  # says what is wrong with one that cannot be read
    found: dict[Rewrite, Mutant] = {}
    several = len(edits.rewrites(rule)) > 1
    for number, (at, rewrite) in enumerate(edits.rewrites(rule), 1):
        where = f"rewrite {number}: " if several else ""
        for kind, change, condition, changed, sizes in (*_conditions(rewrite), *_right_sides(rewrite)):
            if changed != rewrite and changed not in found and _is_bound(changed):
                wrong = edits.edited(rule, at, changed, f"{rule.law};  {kind}: {change}")
                found[changed] = Mutant(kind, where + change, wrong, condition, rewrite, sizes)
    made = _told_apart(list(found.values()))
    changes = {name for m in made for name in m.names}
    changes |= {shown(m.sizes[0]) for m in made if m.sizes is not None}
    for noted, _ in rule.notes:
        if noted not in changes:
            raise RuleProblem(rule.name, rule.place, f"it notes {noted!r}, which is no condition, size or change of it")
    return tuple(sorted(made, key=lambda m: m.condition is None))


def _told_apart(mutants: list[Mutant]) -> list[Mutant]:
    """The mutants, with the places of those changes that read alike."""
    alike, seen = Counter((m.kind, m.change) for m in mutants), Counter[tuple[str, str]]()
    made: list[Mutant] = []
    for m in mutants:
        seen[m.kind, m.change] += 1
        place = f" at place {seen[m.kind, m.change]}" if alike[m.kind, m.change] > 1 else ""
        wrong = replace(m.rule, law=m.rule.law + place)
        made.append(replace(m, change=m.change + place, place=place, rule=wrong))
    return made


_Change = tuple[str, str, str | None, Rewrite, tuple[Pattern, Pattern] | None]


def _is_bound(rewrite: Rewrite) -> bool:
    """Whether all that the right-hand side mentions is bound, and all that a condition computes with."""
    known = edits.variables(edits.left_of(rewrite))
    for condition in rewrite.conditions:
        for side, _ in edits.sides_of(condition):
            known |= _binding(side)
    needed = edits.variables(edits.right_of(rewrite))
    for condition in rewrite.conditions:
        for side, _ in edits.sides_of(condition):
            needed |= edits.variables(side)
    return needed <= known


def _binding(side: Expression) -> set[str]:
    """The variables that a condition binds: those that do not stand in something computed."""
    return {made.name for p in _outside_of_computed(side) if isinstance(made := p.pattern, Hole)}


def _outside_of_computed(whole: Expression) -> Iterator[edits.Place]:
    yield edits.Place(whole, lambda e: e)
    made = read_declared(whole)
    if isinstance(made, Node) and made.op.startswith(COMPUTED):
        return
    for argument in edits.arguments_of(whole):
        yield from _outside_of_computed(argument)


# --- conditions ---


def _conditions(rewrite: Rewrite) -> Iterator[_Change]:
    for number, condition in enumerate(rewrite.conditions):
        text = _shown(condition)
        for kind, changed in (("removed", None), *_changed(rewrite, condition)):
            if _steers(condition) and kind != "swapped":
                continue
            after = "" if changed is None else f" becomes {_shown(changed)}"
            yield kind, f"{text}{after}", text, edits.with_condition(rewrite, number, changed), None


def _changed(rewrite: Rewrite, condition: Fact) -> Iterator[tuple[str, Fact]]:
    for side, put in edits.sides_of(condition):
        relation = edits.relation_of(side, tuple(WEAKER))
        if relation is not None:
            yield "weakened", put(edits.with_relation(side, WEAKER[relation]))
        for place in edits.places(side):
            if _is_name(place) and _elsewhere(rewrite, condition, place):
                yield "weakened", put(place.put(edits.variable("any other", place.part)))
            if _swaps(place.part):
                yield "swapped", put(place.put(_swapped(place.part)))
            if place.sort in BINDERS:
                for other in _others(rewrite, place):
                    yield "another binder", put(place.put(other))
        relation = edits.relation_of(side, tuple(WEAKER_SIDE))
        only = None if relation is None else WEAKER_SIDE[relation]
        for number, place in enumerate(_sizes(side)):
            if only in (None, number):
                yield "shifted", put(place.put(edits.plus(place.part, 1)))


def _steers(condition: Fact) -> bool:
    sides = (read_declared(side) for side, _ in edits.sides_of(condition))
    return any(isinstance(p, Node) and p.op in (*STEERING, *GUARDS) for p in sides)


def _is_name(place: edits.Place) -> bool:
    return isinstance(place.pattern, Hole) and place.sort in (NUMBERS, "Ty")


def _elsewhere(rewrite: Rewrite, condition: Fact, place: edits.Place) -> bool:
    """Whether a variable of a condition stands in another part of the rewrite."""
    others = [edits.left_of(rewrite), edits.right_of(rewrite)]
    others += [side for c in rewrite.conditions if c != condition for side, _ in edits.sides_of(c)]
    return any(edits.variables(place.part) <= edits.variables(other) for other in others)


# --- right-hand sides ---


def _right_sides(rewrite: Rewrite) -> Iterator[_Change]:
    for kind, before, after, right in _changed_right(rewrite, edits.right_of(rewrite)):
        is_size = before.tp.ident.name == NUMBERS
        sizes = (read_declared(before), read_declared(after)) if is_size else None
        yield kind, f"{_text(before)} becomes {_text(after)}", None, edits.with_right(rewrite, right), sizes


def _changed_right(rewrite: Rewrite, right: Expression) -> Iterator[tuple[str, Expression, Expression, Expression]]:
    for place in edits.places(right):
        if _swaps(place.part):
            changed = _swapped(place.part)
            yield "swapped", place.part, changed, place.put(changed)
        if place.sort in BINDERS:
            for other in _others(rewrite, place):
                yield "another binder", place.part, other, place.put(other)
    for place in _sizes(right):
        for shift in (1, -1):
            changed = edits.plus(place.part, shift)
            yield "off by one", place.part, changed, place.put(changed)
        for other in _others(rewrite, place):
            yield "another size", place.part, other, place.put(other)


def _sizes(whole: Expression) -> Iterator[edits.Place]:
    """The sizes in an expression, not those that they are computed of."""
    if whole.tp.ident.name == NUMBERS:
        yield edits.Place(whole, lambda e: e)
        return
    made = read_declared(whole)
    unsized = isinstance(made, Node) and made.op == "map_level"  # a dimension is no size
    for i, argument in enumerate(edits.arguments_of(whole)):
        for inner in () if unsized and argument.tp.ident.name == NUMBERS else _sizes(argument):
            yield edits.Place(inner.part, lambda e, i=i, inner=inner: edits.with_argument(whole, i, inner.put(e)))


def _swaps(whole: Expression) -> bool:
    """Whether a call has two arguments of one sort, at its end, that matter by their order."""
    arguments = edits.arguments_of(whole)
    if len(arguments) < 2 or arguments[-1].tp != arguments[-2].tp or arguments[-1] == arguments[-2]:
        return False
    name = getattr(whole.expr.callable, "method_name", None)  # pyright: ignore[reportAttributeAccessIssue]
    return name not in ("__add__", "__mul__", "__or__", "__and__") and whole.tp.ident.name != "String"


def _swapped(whole: Expression) -> Expression:
    *_, first, second = edits.arguments_of(whole)
    last = len(edits.arguments_of(whole)) - 1
    return edits.with_argument(edits.with_argument(whole, last - 1, second), last, first)


def _others(rewrite: Rewrite, place: edits.Place) -> Iterator[Expression]:
    """What else of its sort stands in the rule: variables, and names that it makes."""
    found: dict[Expression, None] = {}
    for side in (edits.left_of(rewrite), edits.right_of(rewrite)):
        for other in edits.places(side):
            same = other.sort == place.sort and other.part != place.part
            if same and (place.sort in BINDERS or not isinstance(other.pattern, Constant)):
                found[other.part] = None
    yield from list(found)[:OTHERS]


# --- texts ---


def _shown(condition: Fact) -> str:
    return " = ".join(_text(side) for side, _ in edits.sides_of(condition))


def _text(part: Expression) -> str:
    return shown(read_declared(part))
