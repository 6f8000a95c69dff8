"""Types with open parts, made equal by unification, and a search for sizes that fit.

`lift_egraph.soundness.pattern_types` says which types the parts of a rule's left-hand side have.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lift_egraph.egraph.rule_forms import Constant, Hole, Node, holes, subpatterns
from lift_egraph.errors import TypeProblem
from lift_egraph.language.nat import nat
from lift_egraph.language.signature import Condition, Parameter
from lift_egraph.language.types import WIDTHS, Array, DataType, Pair, Scalar, Vector, lanes

SIZES = (2, 3, 4, 6, 8, 1, 5, 12, 7, 9, 10, 16, 17, 24, 32, 13, 64, 67)  # the first are taken most often
MANY = 16  # one size that is free to choose may be as large
NESTED = 20  # arrays and pairs in each other whose leaves are vectors
LARGE = 1024  # what an equation may make of them
SOLUTIONS, STEPS = 60, 4000
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "i64___add__": operator.add,
    "i64___sub__": operator.sub,
    "i64___mul__": operator.mul,
    "i64___truediv__": operator.floordiv,
    "i64___floordiv__": operator.floordiv,
    "i64___mod__": operator.mod,
    "i64_min": min,
    "i64_max": max,
}
RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "i64___lt__": operator.lt,
    "i64___le__": operator.le,
    "i64___gt__": operator.gt,
    "i64___ge__": operator.ge,
    "!=": operator.ne,
}
_COMPARISONS = {
    **RELATIONS,
    "==": operator.eq,
    "divides": lambda n, m: n > 0 and m % n == 0,
    "?": lambda n, m: True,  # not understood
}

_SIGNS = {"+": "i64___add__", "-": "i64___sub__", "*": "i64___mul__", "/": "i64___truediv__"}
_RELATIONS = {"<": "i64___lt__", "<=": "i64___le__", ">": "i64___gt__", "|": "divides"}


@dataclass(frozen=True)
class Open:
    """A type that is not known yet."""

    number: int


@dataclass(frozen=True)
class Made:
    """A type constructor: ``scalar``, ``vec``, ``arr``, ``pair`` or ``lanes``, with sizes and types."""

    kind: str
    parts: tuple[Any, ...]


Type = Any  # Open | Made
Size = Any  # a Pattern of sort i64


@dataclass
class Typing:
    """The types of one form of a rule.

    Attributes
    ----------
    values
        The type of each variable: of the elements for an ``Op``, domain and codomain for a ``Fn``.
    roles
        What each string variable is: ``call2``, ``gather``, ``level``, …
    literals
        The names of terms that must be literals.
    numbers, plain, lawful
        Open types that must be numbers, have no vectors, or be elements of an operator with laws.
    conditions
        Conditions on sizes.
    """

    values: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    bound: dict[Open, Type] = field(default_factory=dict)
    numbers: list[Type] = field(default_factory=list)
    plain: list[Type] = field(default_factory=list)
    lawful: list[Type] = field(default_factory=list)
    literals: set[str] = field(default_factory=set)
    conditions: list[tuple[str, Size, Size]] = field(default_factory=list)
    domains: dict[str, tuple[int, ...]] = field(default_factory=dict)
    count: int = 0
    spread: int = 0
    sizes: tuple[int, ...] = SIZES

    # --- unification ---

    def open(self) -> Open:
        self.count += 1
        return Open(self.count)

    def open_size(self) -> Hole:
        self.count += 1
        return Hole(f"size {self.count}", "i64")

    def find(self, t: Type) -> Type:
        while isinstance(t, Open) and t in self.bound:
            t = self.bound[t]
        return t

    def equate(self, a: Type, b: Type) -> None:
        """Make two types equal.

        Raises
        ------
        TypeProblem
            If they do not fit.
        """
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if isinstance(b, Open):
            a, b = b, a
        if isinstance(a, Open):
            if self._occurs(a, b):
                raise TypeProblem(f"the type {self.show(b)} would contain itself")
            self.bound[a] = b
            return
        if b.kind == "lanes" and a.kind != "lanes":
            a, b = b, a
        if a.kind == "lanes" and b.kind != "lanes":
            self.spread += 1
            if self.spread > NESTED:
                raise TypeProblem(f"vectors whose lanes contain them, in {self.show(b)[:40]}")
            self._spread(a, b)
            self.spread -= 1
            return
        if a.kind != b.kind:
            raise TypeProblem(f"{self.show(a)} and {self.show(b)} do not fit")
        for x, y in zip(a.parts, b.parts, strict=True):
            if isinstance(x, str) or isinstance(y, str):
                if x != y:
                    raise TypeProblem(f"{self.show(a)} and {self.show(b)} do not fit")
            elif isinstance(x, Open | Made):
                self.equate(x, y)
            else:
                self.equate_sizes(x, y)

    # --- types by signatures: `lift_egraph.language.inference.Types` ---

    def scalar(self, name: str) -> Type:
        return Made("scalar", (name,))

    def array(self, size: Size, element: Type) -> Type:
        return Made("arr", (size, element))

    def pair(self, first: Type, second: Type) -> Type:
        return Made("pair", (first, second))

    def lanes(self, width: Size, t: Type) -> Type:
        self.plain.append(t)
        return Made("lanes", (width, t))

    def number(self, value: int) -> Size:
        return Constant(value)

    def arithmetic(self, sign: str, left: Size, right: Size) -> Size:
        return Node(_SIGNS[sign], (left, right), "i64")

    def parts_of_array(self, t: Type) -> tuple[Size, Type]:
        return self._parts(t, "arr", lambda: (self.open_size(), self.open()))

    def parts_of_pair(self, t: Type) -> tuple[Type, Type]:
        return self._parts(t, "pair", lambda: (self.open(), self.open()))

    def parts_of_lanes(self, t: Type) -> tuple[Size, Type]:
        width, element = self._parts(t, "lanes", lambda: (self.open_size(), self.open()))
        if isinstance(width, Hole):
            self.domains.setdefault(width.name, WIDTHS)
        self.plain.append(element)
        return width, element

    def _parts(self, t: Type, kind: str, fresh: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        found = self.find(t)
        if isinstance(found, Made) and found.kind == kind:
            return found.parts  # pyright: ignore[reportReturnType]
        parts = fresh()
        self.equate(t, Made(kind, parts))
        return parts

    def apply(self, function: Any, argument: Type, parameter: Parameter) -> Type:
        if parameter.is_operator:  # known by the type that it combines
            self.equate(argument, Made("pair", (function, function)))
            return function
        domain, codomain = function
        self.equate(domain, argument)
        return codomain

    def require(self, condition: Condition, left: Size, right: Size) -> None:
        self.conditions.append((_RELATIONS[condition.relation], left, right))

    def _occurs(self, part: Open, t: Type) -> bool:
        t = self.find(t)
        return t == part or (isinstance(t, Made) and any(self._occurs(part, p) for p in t.parts))

    def _spread(self, packed: Made, t: Made) -> None:
        width, inner = packed.parts
        if t.kind == "vec":
            self.equate_sizes(width, t.parts[0])
            self.equate(inner, Made("scalar", (t.parts[1],)))
        elif t.kind == "arr":
            element = self.open()
            self.equate(inner, Made("arr", (t.parts[0], element)))
            self.equate(Made("lanes", (width, element)), t.parts[1])
        elif t.kind == "pair":
            first, second = self.open(), self.open()
            self.equate(inner, Made("pair", (first, second)))
            self.equate(Made("lanes", (width, first)), t.parts[0])
            self.equate(Made("lanes", (width, second)), t.parts[1])
        else:
            raise TypeProblem(f"{self.show(t)} is no vector")

    def equate_sizes(self, a: Size, b: Size) -> None:
        """Note that two sizes are equal.

        Raises
        ------
        TypeProblem
            If they are different numbers.
        """
        if a != b:
            if isinstance(a, Constant) and isinstance(b, Constant):
                raise TypeProblem(f"the sizes {a} and {b} differ")
            self.conditions.append(("==", a, b))

    def show(self, t: Type) -> str:
        """A type as text."""
        t = self.find(t)
        if isinstance(t, Open):
            return "_"
        match t.kind:
            case "arr":
                return f"[{self.show(t.parts[1])}]{t.parts[0]}"
            case "pair":
                return f"({self.show(t.parts[0])}, {self.show(t.parts[1])})"
            case "lanes":
                return f"vectors of {t.parts[0]} lanes"
            case _:
                return str(t.parts[-1])

    # --- solutions ---

    def names(self) -> list[str]:
        """The size variables."""
        found: set[str] = set()

        def visit(t: Any) -> None:
            t = self.find(t)
            if isinstance(t, Made):
                for part in t.parts:
                    visit(part)
            elif isinstance(t, tuple):
                for part in t:
                    visit(part)
            elif isinstance(t, Hole | Node):
                found.update(h.name for h in holes(t))

        for value in self.values.values():
            visit(value)
        for _, a, b in self.conditions:
            visit(a)
            visit(b)
        return sorted(found)

    def solutions(self, most: int = SOLUTIONS) -> list[dict[str, int]]:
        """Up to `most` values of the size variables that fit, the smallest first; none if none was found."""
        names = self.names()
        rank = {n: sum(n in {h.name for h in holes(a) | holes(b)} for _, a, b in self.conditions) for n in names}
        names.sort(key=lambda n: (-rank[n], n))
        return self._solutions(names, most) or self._solutions(self._after_equations(names), most)

    def _after_equations(self, names: Sequence[str]) -> list[str]:
        """The names, those that equations determine as soon as they do: more sizes are found so, but alike."""
        left, done = list(names), list[str]()
        equations = [(a, b) for relation, a, b in self.conditions if relation == "=="]
        while left:
            known = {
                side.name
                for sides in equations
                for side, other in (sides, sides[::-1])
                if isinstance(side, Hole) and all(h.name in done for h in holes(other))
            }
            name = next((n for n in left if n in known), left[0])
            left.remove(name)
            done.append(name)
        return done

    def _solutions(self, names: list[str], most: int) -> list[dict[str, int]]:
        ready: list[list[tuple[str, Size, Size]]] = [[] for _ in range(len(names) + 1)]
        checks: list[list[Callable[[Mapping[str, int]], bool]]] = [[] for _ in ready]
        for condition in self.conditions:
            needs = {h.name for h in holes(condition[1]) | holes(condition[2])}
            depth = max((names.index(n) + 1 for n in needs), default=0)
            ready[depth].append(condition)
            checks[depth].append(_check(condition))
        if not all(check({}) for check in checks[0]):
            return []
        rng = random.Random(0)
        self.sizes = (*SIZES, *self._near_constants())
        determined = [_determined(name, ready[n + 1], names[:n]) for n, name in enumerate(names)]
        found: dict[tuple[int, ...], dict[str, int]] = {}
        steps = [0]

        def extend(values: dict[str, int]) -> dict[str, int] | None:
            depth = len(values)
            if depth == len(names):
                return values
            name = names[depth]
            domain = self._domain(name, determined[depth], values)
            place = {v: n for n, v in enumerate(domain, 1)}
            needed = checks[depth + 1]
            for value in sorted(domain, key=lambda v: place[v] * rng.random()):
                steps[0] += 1
                if steps[0] > STEPS * most:
                    return None
                more = {**values, name: value}
                if value >= MANY and len(domain) > 1 and sum(v >= MANY for v in more.values()) > 1:
                    continue
                for check in needed:
                    if not check(more):
                        break
                else:
                    done = extend(more)
                    if done is not None:
                        return done
            return None

        for _ in range(most):
            one = extend({})
            if one is None:
                break
            found[tuple(one[n] for n in names)] = one
        return [found[key] for key in sorted(found, key=lambda k: (sum(k), k))]

    def _domain(
        self, name: str, determined: Callable[[Mapping[str, int]], int | None] | None, values: dict[str, int]
    ) -> tuple[int, ...]:
        if name in self.domains:
            return self.domains[name]
        if determined is None:
            return self.sizes
        known = determined(values)
        return () if known is None or not 0 < known <= max(LARGE, *self.sizes) else (known,)

    def _near_constants(self) -> list[int]:
        """Sizes about the numbers that conditions mention: a rule for large arrays needs large ones."""
        numbers = {
            p.value
            for _, *sides in self.conditions
            for side in sides
            for p in subpatterns(side)
            if isinstance(p, Constant) and isinstance(p.value, int) and p.value > max(SIZES[:11])
        }
        return [n for c in sorted(numbers) for n in (c, c + 1, 2 * c, c - 1)]

    def concrete(self, t: Type, sizes: Mapping[str, int], leaf: Callable[[Open], DataType]) -> DataType:
        """The type at given sizes; `leaf` chooses what is open."""
        t = self.find(t)
        if isinstance(t, Open):
            chosen = leaf(t)
            self.bound[t] = Made("concrete", (chosen,))
            return chosen
        match t.kind:
            case "concrete":
                return t.parts[0]
            case "scalar":
                return Scalar(t.parts[0])
            case "vec":
                return Vector(Scalar(t.parts[1]), _known(t.parts[0], sizes))
            case "arr":
                return Array(nat(_known(t.parts[0], sizes)), self.concrete(t.parts[1], sizes, leaf))
            case "pair":
                return Pair(self.concrete(t.parts[0], sizes, leaf), self.concrete(t.parts[1], sizes, leaf))
            case _:
                return lanes(_known(t.parts[0], sizes), self.concrete(t.parts[1], sizes, leaf))

    def copy(self) -> Typing:
        """A copy in which open types can be chosen."""
        return Typing(self.values, self.roles, dict(self.bound), self.numbers, self.plain, self.lawful, self.literals)


def size_value(size: Size, values: Mapping[str, int]) -> int | None:
    """The value of a size expression, or None where it has none."""
    return _value_of(size)(values)


def _value_of(size: Size) -> Callable[[Mapping[str, int]], int | None]:
    """What `size_value` is for any values."""
    if isinstance(size, Hole):
        name = size.name
        return lambda values: values.get(name)
    if isinstance(size, Constant):
        value = size.value
        return lambda _: value
    compute = ARITHMETIC.get(size.op)
    if compute is None:
        return lambda _: None
    parts = [_value_of(p) for p in size.parts]

    def computed(values: Mapping[str, int]) -> int | None:
        made: list[int] = []
        for part in parts:
            value = part(values)
            if value is None:
                return None
            made.append(value)
        try:
            return compute(*made)
        except ZeroDivisionError:
            return None

    return computed


def _determined(
    name: str, conditions: Iterable[tuple[str, Size, Size]], before: Container[str]
) -> Callable[[Mapping[str, int]], int | None] | None:
    """What an equation says of a variable, by the values of those before it; None where none does."""
    for relation, a, b in conditions:
        if relation == "==":
            for hole, value in ((a, b), (b, a)):
                if isinstance(hole, Hole) and hole.name == name and all(h.name in before for h in holes(value)):
                    return _value_of(value)
    return None


def _check(condition: tuple[str, Size, Size]) -> Callable[[Mapping[str, int]], bool]:
    """Whether a condition on sizes holds for values; one that is not understood is taken to."""
    relation, a, b = condition
    value_of_left, value_of_right = _value_of(a), _value_of(b)
    compare = _COMPARISONS[relation]
    needed = {h.name for h in holes(a) | holes(b)}

    def check(values: Mapping[str, int]) -> bool:
        left, right = value_of_left(values), value_of_right(values)
        if left is None or right is None:
            return relation == "?" or not needed <= values.keys()
        return compare(left, right)

    return check


def _known(size: Size, sizes: Mapping[str, int]) -> int:
    value = size_value(size, sizes)
    if value is None or value < 0:
        raise TypeProblem(f"the size {size} has no value")
    return value
