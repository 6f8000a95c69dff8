"""Types of both sides of a rule: those of the left-hand side are given, those of the right-hand side must follow.

What the signatures of the patterns on the left ask for, such as that a chunk divides a length, is known to hold where
the rule matches. What those on the right ask for is to be proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lift_egraph.egraph.pattern_nodes import KINDS, PatternNode
from lift_egraph.egraph.rule_forms import Equation, Form, Hole, Node, Pattern, holes, subpatterns
from lift_egraph.errors import TypeProblem
from lift_egraph.soundness.pattern_types import Inference
from lift_egraph.soundness.proofs.integers import Integers, z3
from lift_egraph.soundness.proofs.values import ArrayType, LanesType, LeafType, PairType, Type
from lift_egraph.soundness.unification import Made, Open, Typing

LEAST = {"nat": 0, "offset": 0, "count": 0, "width": 2}
DIVISIONS = ("i64___truediv__", "i64___floordiv__", "i64___mod__")


class Typed(Inference):
    """The types of all parts of a form.

    Attributes
    ----------
    types
        By the pattern.
    goals
        What must hold of sizes so that the right-hand side is a term. What holds where the rule matches is then among
        the facts about integers.

    Raises
    ------
    TypeProblem
        If the right-hand side is no term, or not of the type of the left-hand side.
    """

    def __init__(self, form: Form, integers: Integers) -> None:
        super().__init__(Typing())
        self.integers = integers
        self.types: dict[Pattern, Any] = {}
        self._bounded: list[tuple[str, Pattern]] = []
        left = self(form.left)
        for c in form.conditions:
            if isinstance(c, Equation):
                self.equation(c)
            else:
                self.fact(c)
        self.t.equate(left, left)
        self._assume(form)
        self._freeze()
        known = len(self.t.conditions), len(self.t.numbers), len(self.t.plain), self.t.count
        widths = set(self.t.domains)
        numbers, plain = self._leaves(self.t.numbers), self._leaves(self.t.plain)
        right = self(form.right)
        if isinstance(left, tuple):
            self.t.equate(left[0], right[0])
            self.t.equate(left[1], right[1])
        else:
            self.t.equate(left, right)
        self.type = None if isinstance(left, tuple) else self.resolved(left)
        self.goals = [*self._new_conditions(known[0], known[3]), *self._bounds()]
        self.goals += [self._defined(p) for p in _divisors(form.right)]
        for t in self._leaves(self.t.numbers[known[1] :]) - numbers:
            raise TypeProblem(f"{t} need not be a number")
        for t in self._leaves(self.t.plain[known[2] :]) - plain:
            raise TypeProblem(f"{t} may have vectors")
        self._widths(form.right, widths)

    def __call__(self, p: Pattern) -> Any:
        found = super().__call__(p)
        self.types[p] = found
        return found

    def signed(self, operation: PatternNode, parts: tuple[Pattern, ...]) -> Any:
        left = iter(parts)
        for p in operation.signature.parameters:
            for sort in KINDS[p.kind].sorts if p.form is None else ("part",):
                part = next(left)
                if sort == "i64" and p.kind in LEAST:
                    self._bounded.append((p.kind, part))
        return super().signed(operation, parts)

    def _bounds(self) -> list[Any]:
        found, self._bounded = self._bounded, []
        return [self.integers.size(p) >= LEAST[kind] for kind, p in found]

    def _assume(self, form: Form) -> None:
        """Note what holds of sizes where the rule matches; what is about quotients last, as they need the rest."""
        facts, size = self.integers.facts, self.integers.size
        for relation, a, b in self.t.conditions:
            if relation == "==":
                self._name(a, b)
        facts += [size(Hole(n, "i64")) >= 0 for n in self.t.names()]
        for c in form.conditions:
            if isinstance(c, Node) and c.op == "tile":  # what is offered is a chunk, or lanes
                facts.append(size(c.parts[1]) >= 1)
            elif isinstance(c, Node) and c.op == "lane_width":
                facts.append(size(c.parts[0]) >= LEAST["width"])
        divided = {d: bool(_divisors(Node("both", d[1:], ""))) or d[0] == "divides" for d in self.t.conditions}
        for c in (c for c, has in divided.items() if not has):
            facts.append(self._condition(*c))
        for c in (c for c, has in divided.items() if has):
            if c[0] == "divides":
                facts.append(size(c[1]) >= 1)
        facts += [size(p) >= LEAST[kind] for kind, p in self._bounded if not _divisors(p)]
        for c in (c for c, has in divided.items() if has):
            facts.append(self._condition(*c))
        facts += self._bounds()
        facts += [self._defined(p) for c in (*form.conditions, form.left) for p in _divisors(c)]

    def _name(self, a: Pattern, b: Pattern) -> None:
        """Let one of two equal sizes stand for the other, if that is only the length of some array."""
        equal = self.integers.equal
        while isinstance(a, Hole) and a.name in equal:
            a = equal[a.name]
        while isinstance(b, Hole) and b.name in equal:
            b = equal[b.name]
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Hole) and x.name.startswith("size ") and x != y and x not in holes(y):
                if not any(holes(y) & {Hole(name, "i64")} for name in equal):
                    equal[x.name] = y
                return

    def _conditions(self, conditions: list[tuple[str, Any, Any]]) -> list[Any]:
        return [self._condition(*c) for c in conditions]

    def _condition(self, relation: str, left: Any, right: Any) -> Any:
        a, b = self.integers.size(left), self.integers.size(right)
        match relation:
            case "==":
                return a == b
            case "i64___lt__":
                return a < b
            case "i64___le__":
                return a <= b
            case "i64___gt__":
                return a > b
            case "i64___ge__":
                return a >= b
            case "!=":
                return a != b
            case "divides":
                return z3().And(a > 0, self.integers.divide(b, a)[1] == 0)
        raise TypeProblem(f"a condition {relation} on sizes")

    def _defined(self, divisor: Pattern) -> Any:
        return self.integers.size(divisor) != 0

    def _new_conditions(self, first: int, count: int) -> list[Any]:
        """What the right-hand side asks of sizes; lengths that only it has are defined by it."""
        left = self.t.conditions[first:]
        defined: set[str] = set()
        rest: list[tuple[str, Any, Any]] = []
        for relation, a, b in left:
            for new, other in ((a, b), (b, a)):
                if relation == "==" and _is_own(new, count) and new.name not in defined:
                    defined.add(new.name)
                    self.integers.facts.append(self._condition("==", new, other))
                    break
            else:
                rest.append((relation, a, b))
        return self._conditions(rest)

    def _freeze(self) -> None:
        """Make types that are open stand for any type: the right-hand side can no longer choose them."""
        for number in range(1, self.t.count + 1):
            if Open(number) not in self.t.bound:
                self.t.bound[Open(number)] = Made("any", (f"type {number}",))

    def _leaves(self, types: list[Any]) -> set[str]:
        """The leaves of types that are not known."""
        found: set[str] = set()
        for t in types:
            t = self.t.find(t)
            if isinstance(t, Made) and t.kind == "any":
                found.add(t.parts[0])
            elif isinstance(t, Made):
                found |= self._leaves([p for p in t.parts if isinstance(p, Made | Open)])
        return found

    def _widths(self, right: Pattern, known: set[str]) -> None:
        for name in set(self.t.domains) - known:
            if any(isinstance(p, Node) and p.op == "as_vector" and p.parts[0] == Hole(name, "i64")
                   for p in subpatterns(right)):  # fmt: skip
                raise TypeProblem(f"{name} need not be a width of vectors")

    def arrays(self) -> Iterator[tuple[Hole, list[Any]]]:
        """The variables for arrays, and their lengths from outside to inside."""
        for p, t in self.types.items():
            if isinstance(p, Hole) and p.sort == "Ex":
                lengths, found = [], self.resolved(t)
                while isinstance(found, ArrayType):
                    lengths.append(found.size)
                    found = found.element
                if lengths:
                    yield p, lengths

    # --- types as values ---

    def resolved(self, t: Any) -> Type:
        """A type with integers for its sizes, and its vectors below all arrays and pairs."""
        t = self.t.find(t)
        if isinstance(t, Open):
            return LeafType(f"open {t.number}")
        match t.kind:
            case "arr":
                return ArrayType(self.integers.size(t.parts[0]), self.resolved(t.parts[1]))
            case "pair":
                return PairType(self.resolved(t.parts[0]), self.resolved(t.parts[1]))
            case "lanes":
                return _spread(self.integers.size(t.parts[0]), self.resolved(t.parts[1]))
            case "vec":
                return LanesType(self.integers.size(t.parts[0]), LeafType(str(t.parts[1])))
        return LeafType(str(t.parts[0]))


def _spread(width: Any, t: Type) -> Type:
    match t:
        case ArrayType(size, element):
            return ArrayType(size, _spread(width, element))
        case PairType(first, second):
            return PairType(_spread(width, first), _spread(width, second))
        case LeafType():
            return LanesType(width, t)
    raise TypeProblem("vectors of vectors")


def _is_own(size: Any, count: int) -> bool:
    """Whether a size is one that typing made after so many others."""
    return isinstance(size, Hole) and size.name.startswith("size ") and int(size.name.split()[1]) > count


def _divisors(c: Equation | Pattern) -> list[Pattern]:
    if isinstance(c, Equation):
        return _divisors(c.left) + _divisors(c.right)
    return [p.parts[1] for p in subpatterns(c) if isinstance(p, Node) and p.op in DIVISIONS]
