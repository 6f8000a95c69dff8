"""Where the left-hand side of a rule fits a frozen e-graph, and which of its conditions hold there.

Matching ignores the conditions first and judges them one by one afterwards, so that it can say what is missing:
egglog itself only tells where everything holds. The facts that conditions ask for are those of the e-graph
(`freeze` with ``facts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lift_egraph.egraph.frozen import ANALYSES, ClassId, ENode, FrozenEGraph
from lift_egraph.egraph.rule_forms import CLASSES, Constant, Equation, Form, Hole, Node, Pattern, subpatterns
from lift_egraph.soundness.unification import ARITHMETIC, RELATIONS

NAMES = ("fv", "fvf", "fvo", "bvs")  # analyses that give sets of names
SETS: dict[str, Callable[..., Any]] = {
    "Set_empty": frozenset,
    "Set___sub__": lambda a, b: a - b,
    "Set___or__": lambda a, b: a | b,
    "Set___and__": lambda a, b: a & b,
    "Set_insert": lambda a, v: a | {v},
    "Set_remove": lambda a, v: a - {v},
    "Set_contains": lambda a, v: v in a,
    "Set_not_contains": lambda a, v: v not in a,
}
COMPUTED = {**ARITHMETIC, **RELATIONS, **SETS}

Condition = Equation | Node
Values = Mapping[str, Any]  # a class, a number or a text for each variable of a rule


@dataclass(frozen=True)
class Absent:
    """A term that the e-graph does not hold, such as a name that a rule would make."""

    op: str
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Fit:
    """The left-hand side of a rule on a class, and what came of its conditions.

    Attributes
    ----------
    values
        What stands for each variable.
    failed
        The conditions that do not hold.
    undecided
        Conditions that cannot be judged, as they use operations that only egglog knows.
    """

    values: Values
    failed: tuple[Condition, ...] = ()
    undecided: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Mismatch:
    """The one part of a left-hand side that does not fit a class.

    Attributes
    ----------
    expected
        The part of the pattern, a variable if it stands for something else elsewhere.
    found
        What there is: a class, or a number or text.
    shared
        How many nodes of the pattern fit.
    """

    expected: Pattern
    found: Any
    shared: int


class RuleMatcher:
    """Rules on one frozen e-graph with facts."""

    def __init__(self, graph: FrozenEGraph):
        self.graph = graph
        self._owners = {(n.op, n.children): c for c, nodes in graph.nodes.items() for n in nodes}

    def fits(self, form: Form, owner: ClassId, *, failing: bool = True) -> Iterator[Fit]:
        """Every way in which a left-hand side fits a class, with the conditions that fail.

        Parameters
        ----------
        failing
            Whether those are wanted where conditions fail.
        """
        left, sizes = form.flat
        seen = set()
        for values in self.match(left, owner, {}):
            for fit in self._judged(Fit(values), (*sizes, *form.conditions), failing):
                shown = tuple(sorted((k, v) for k, v in fit.values.items() if not k.startswith("#")))
                if (shown, fit.failed) not in seen:
                    seen.add((shown, fit.failed))
                    yield fit

    def match(self, pattern: Pattern, value: Any, values: Values) -> Iterator[Values]:
        """The ways in which a pattern fits a class, number or text, with what stands for its variables.

        Raises
        ------
        _Unknown
            If a number in it is computed of variables that nothing stands for yet.
        """
        return self._match(((pattern, value),), values)

    def _match(self, waiting: Sequence[tuple[Pattern, Any]], values: Values) -> Iterator[Values]:
        for number, (pattern, value) in enumerate(waiting, 1):
            if isinstance(pattern, Hole):
                if values.get(pattern.name, value) != value:
                    return
                values = {**values, pattern.name: value}
            elif isinstance(pattern, Constant):
                if pattern.value != value:
                    return
            elif isinstance(value, Absent):
                return
            elif pattern.op in COMPUTED:
                if self.value(pattern, values) != value:
                    return
            else:
                for node in self._nodes(pattern, value):
                    inside = tuple(zip(pattern.parts, node.children, strict=True))
                    yield from self._match((*inside, *waiting[number:]), values)
                return
        yield values

    def _nodes(self, pattern: Node, owner: ClassId) -> list[ENode]:
        return [n for n in self.graph.nodes[owner] if n.op == pattern.op and len(n.children) == len(pattern.parts)]

    # --- conditions ---

    def _judged(self, fit: Fit, waiting: Sequence[Condition], failing: bool) -> Iterator[Fit]:
        """The fit with its conditions judged, those first whose variables are known; a fact may hold for several."""
        for number, condition in enumerate(waiting):
            rest = (*waiting[:number], *waiting[number + 1 :])
            try:
                found = list(self._judge(condition, fit.values))
            except _Unknown:
                continue
            except _Undefined:
                found = []
            for values in found:
                yield from self._judged(replace(fit, values=values), rest, failing)
            if not found and failing:
                yield from self._judged(replace(fit, failed=(*fit.failed, condition)), rest, failing)
            return
        yield fit if fit.failed else replace(fit, undecided=tuple(waiting))

    def _judge(self, condition: Condition, values: Values) -> Iterator[Values]:
        """The values with which a condition holds.

        Raises
        ------
        _Unknown
            If it needs values that are not known yet.
        _Undefined
            If a part of it has no value.
        """
        if isinstance(condition, Equation):
            for pattern, other in ((condition.left, condition.right), (condition.right, condition.left)):
                if _is_made(pattern):
                    try:
                        value = self.value(other, values)
                    except _Unknown:
                        continue
                    return self.match(pattern, value, values)
            same = self.value(condition.left, values) == self.value(condition.right, values)
            return iter((values,) if same else ())
        if condition.op in COMPUTED:
            return iter((values,) if self.value(condition, values) else ())
        if condition.op in FACTS:
            return self._related(condition, values)
        raise _Unknown(condition.op)

    def _related(self, condition: Node, values: Values) -> Iterator[Values]:
        given: list[Any] = []
        for part in condition.parts:
            try:
                given.append(self.value(part, values))
            except _Unknown:
                if not isinstance(part, Hole):
                    raise
                given.append(None)
        if len(given) > 1 and given[0] is None:
            raise _Unknown(condition.op)  # every fact would do
        for row in sorted(self.graph.facts.get(condition.op, ())):
            if all(g is None or g == r for g, r in zip(given, row, strict=True)):
                new = {
                    p.name: r for p, g, r in zip(condition.parts, given, row, strict=True)
                    if g is None and isinstance(p, Hole)
                }  # fmt: skip
                yield {**values, **new}

    def value(self, pattern: Pattern, values: Values) -> Any:
        """What a pattern stands for: a class, a number, a text or a set of names.

        Raises
        ------
        _Unknown
            If it holds a variable without a value, or an operation that only egglog knows.
        _Undefined
            If the e-graph knows none.
        """
        if isinstance(pattern, Hole):
            if pattern.name not in values:
                raise _Unknown(pattern.name)
            return values[pattern.name]
        if isinstance(pattern, Constant):
            return pattern.value
        parts = tuple(self.value(p, values) for p in pattern.parts)
        if pattern.op in COMPUTED:
            try:
                return COMPUTED[pattern.op](*parts)
            except ZeroDivisionError:
                raise _Undefined(pattern.op) from None
        if pattern.op in ANALYSES or pattern.op in NAMES:
            known: Any = (
                self.graph.analyses[pattern.op] if pattern.op in ANALYSES else self.graph.facts.get(pattern.op, {})
            )
            key = parts[0] if pattern.op in ANALYSES else parts
            if key not in known:
                raise _Undefined(pattern.op)
            return known[key]
        if pattern.sort not in CLASSES:
            raise _Unknown(pattern.op)
        return self.held(pattern, parts)

    def held(self, pattern: Node, parts: tuple[Any, ...]) -> Any:
        """The class of a pattern's operator on what stands for its parts."""
        return self._owners.get((pattern.op, parts), Absent(pattern.op, parts))

    def known(self, pattern: Pattern, values: Values) -> Any:
        """What a pattern stands for, or None if that is not known."""
        try:
            return self.value(pattern, values)
        except (_Unknown, _Undefined):
            return None

    # --- what almost fits ---

    def nearest(self, form: Form, owner: ClassId) -> Mismatch | None:
        """The part of a left-hand side that does not fit, where it is the only one, and others do."""
        left, _ = form.flat
        missing, _, found = self._nearest(left, owner, {})
        if len(found) != 1 or found[0][0] is left:
            return None
        expected, there = found[0]
        return Mismatch(expected, there, _count(left) - missing)

    def _nearest(self, pattern: Pattern, value: Any, values: Values) -> tuple[int, Values, list[tuple[Pattern, Any]]]:
        """How many nodes of a pattern do not fit at best, and the parts that do not."""
        exact = next(self.match(pattern, value, values), None)
        if exact is not None:
            return 0, exact, []
        if not isinstance(pattern, Node):
            return 1, values, [(pattern, value)]
        whole: list[tuple[Pattern, Any]] = [(pattern, value)]
        best = (_count(pattern), values, whole)
        for node in self._nodes(pattern, value):
            missing, inside = 0, values
            found: list[tuple[Pattern, Any]] = []
            for part, child in zip(pattern.parts, node.children, strict=True):
                more, inside, wrong = self._nearest(part, child, inside)
                missing, found = missing + more, [*found, *wrong]
            if (len(found), missing) < (len(best[2]), best[0]) or best[2] is whole:
                best = (missing, inside, found)
        return best


class _Unknown(Exception):
    """A condition cannot be judged yet."""


class _Undefined(Exception):
    """A condition mentions what has no value."""


FACTS = (
    "tile", "lane_width", "associative", "commutative", "identity", "neutral", "scalar_like", "stage_local",
    "stage_private", "built_in", "distributes", "acts", "steady", "combines", "recalls", "cascades",
    "kept_within", "kept_along", "tabulates", "tabulates_first", "distinct",
)  # fmt: skip


def _is_made(pattern: Pattern) -> bool:
    """Whether a pattern can be matched: a variable or a constructor, not something computed."""
    if isinstance(pattern, Node):
        plain = pattern.op not in ANALYSES and pattern.op not in NAMES
        return pattern.sort in CLASSES and plain and pattern.op not in COMPUTED
    return isinstance(pattern, Hole)


def _count(pattern: Pattern) -> int:
    return sum(1 for p in subpatterns(pattern) if not isinstance(p, Hole))
