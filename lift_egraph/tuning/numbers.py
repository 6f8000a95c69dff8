"""The numbers of a term, and the term with others: everything but its shape.

Numbers are sizes (in patterns, in the types of binders and inputs, in index expressions), widths of vectors, counts of
iterate, and values of ``i32``. Terms may stand in tuples, and numbers beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import partial
from operator import add, is_, mul
from typing import Any, Generic, TypeVar

from lift_egraph.caching import field_names
from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import Let, in_lets
from lift_egraph.language.nat import Nat, NatVar, Operation, nat, operate
from lift_egraph.language.types import I32, Scalar, Vector

T = TypeVar("T")

_NONE: Any = object()
_ZERO, _ONE = nat(0), nat(1)

COUNTS = {(ir.AsVector, "width"), (ir.Vectorize, "width"), (ir.Iterate, "times"), (Vector, "width")}
"""The fields that hold a number without being a size."""


def numbers(structure: Any) -> tuple[int, ...]:
    """The numbers of a term, or of terms and numbers in tuples, in a fixed order.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> numbers(parse_program("program p(x: [f32]64) = join(split(8, x))").body)
    (8, 64)
    """
    found: list[int] = []
    _read(structure, {}, found)
    return tuple(found)


def shape(structure: Any) -> Hashable:
    """What a term is but for its numbers and the names of its binders: equal for terms that differ in these only.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> one, two = (parse_program(f"program p(x: [f32]64) = join(split({n}, x))").body for n in (4, 16))
    >>> shape(one) == shape(two)
    True
    """
    return _read(structure, {}, [])


def lets_in_order(structure: Any) -> Any:
    """The same terms with lets beside each other that do not need each other in an order that numbers do not change.

    Which of several lets is the outer one is chance in what a search finds: by their shapes, terms that differ in
    numbers only have them in one order.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> one, two = (parse_program(f"program p(x: [f32]4) = {text}").body for text in (
    ...     "let a = split(2, x) in let b = map(abs, x) in zip(a, split(2, b))",
    ...     "let b = map(abs, x) in let a = split(2, x) in zip(a, split(2, b))"))
    >>> shape(one) == shape(two), shape(lets_in_order(one)) == shape(lets_in_order(two))
    (False, True)
    """
    return _in_order(structure, {})


def _in_order(part: Any, names: dict[str, int]) -> Any:
    if isinstance(part, tuple):
        return tuple(_in_order(p, names) for p in part)
    if not isinstance(part, ir.Expr | ir.Lambda | ir.Vectorize):
        return part
    lets, body = _chain(part)
    if len(lets) < 2:
        if isinstance(part, ir.Lambda):
            names = _bound(names, *(v.name for v in ir.bound_variables(part.binder)))
        return ir.map_parts(part, lambda p: _in_order(p, names))
    placed: list[Let] = []
    within = names
    while lets:
        ready = [k for k, (_, value) in enumerate(lets) if _is_free_of(value, lets[:k])]
        binder, value = lets.pop(min(ready, key=lambda k: repr(_read(lets[k][1], within, []))))
        placed.append((binder, _in_order(value, within)))
        within = _bound(within, *(v.name for v in ir.bound_variables(binder)))
    return in_lets(placed, _in_order(body, within))


def _chain(term: Any) -> tuple[list[Let], Any]:
    """The lets beside each other around a term, with names of their own that nothing else there has."""
    lets, body, taken = list[Let](), term, set[str]()
    while isinstance(body, ir.Apply) and isinstance(body.function, ir.Lambda):
        own = {v.name for v in ir.bound_variables(body.function.binder)}
        if not own.isdisjoint(taken):
            break
        lets.append((body.function.binder, body.argument))
        taken |= own | {v.name for v in ir.free_variables(body.argument)}
        body = body.function.body
    return lets, body


def _is_free_of(value: ir.Expr, lets: Sequence[Let]) -> bool:
    used = ir.free_variables(value)
    return all(used.isdisjoint(ir.bound_variables(binder)) for binder, _ in lets)


class Rewritten(Generic[T]):
    """A structure that is made again and again with other numbers; what is equal in it is made once.

    Parameters
    ----------
    places
        For each number of `numbers`, in its order, the place of its value in what a call is given.

    Raises
    ------
    SizeProblem
        If the structure has more or fewer numbers.

    Examples
    --------
    >>> from lift_egraph.language.syntax import parse_program
    >>> term = parse_program("program p(x: [f32]64) = join(split(8, x))").body
    >>> numbers(Rewritten(term, (0, 1))([4, 32]))
    (4, 32)
    """

    def __init__(self, structure: T, places: Sequence[int]) -> None:
        self._steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self._known: dict[Hashable, int] = {}
        self._given = max(places, default=-1) + 1
        waiting = iter(places)
        self._last = self._part(structure, waiting)
        if next(waiting, _NONE) is not _NONE:
            raise SizeProblem(f"the term has fewer numbers than {len(places)}")

    def __call__(self, values: Sequence[int]) -> T:
        """The structure with the values in their places."""
        made: list[Any] = list(values)
        for make, parts in self._steps:
            made.append(make(*[made[part] for part in parts]))
        return made[self._last]

    def _step(self, key: Hashable, make: Callable[..., Any], parts: Sequence[int]) -> int:
        """The place of what a step makes; `key` says what it does with the parts."""
        key = key, tuple(parts)
        if key not in self._known:
            self._known[key] = self._given + len(self._steps)
            self._steps.append((make, tuple(parts)))
        return self._known[key]

    def _constant(self, value: Any) -> int:
        return self._step((type(value), value if isinstance(value, str) else id(value)), lambda: value, ())

    def _part(self, value: Any, places: Iterator[int]) -> int:
        if isinstance(value, Nat):
            return self._nat(value, places)
        if isinstance(value, tuple):
            return self._made(value, tuple, lambda *new: new, value, [self._plain(v, places) for v in value])
        if isinstance(value, ir.Literal) and value.type == I32:
            t = value.type
            return self._step(("literal", t), lambda number: ir.Literal(number, t), [self._plain(value.value, places)])
        if isinstance(value, ir.Literal | Scalar) or not is_dataclass(value):
            return self._constant(value)
        kind = type(value)
        old = [getattr(value, name) for name in field_names(kind)]
        parts = [
            self._plain(part, places) if (kind, name) in COUNTS else self._part(part, places)
            for name, part in zip(field_names(kind), old, strict=True)
        ]
        return self._made(value, kind, kind, old, parts)

    def _made(self, value: Any, kind: type, make: Callable[..., Any], old: Sequence[Any], parts: Sequence[int]) -> int:
        """What is made of parts: the value itself, with its type, where they are its own."""

        def again(*new: Any) -> Any:
            return value if all(map(is_, new, old)) else make(*new)

        return self._step((kind, len(parts)), again, parts)

    def _plain(self, value: Any, places: Iterator[int]) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return _next(places)
        return self._part(value, places)

    def _nat(self, value: Nat, places: Iterator[int]) -> int:
        if (known := value.constant) is not None:
            number = _next(places)
            return self._step(("number", known), lambda new: value if new == known else nat(new), [number])
        total = self._constant(_ZERO)
        for monomial, _ in value.terms:
            number = _next(places)
            product = self._constant(_ONE)
            for atom in monomial:
                if isinstance(atom, NatVar):
                    factor = self._constant(nat(atom))
                else:
                    left = self._nat(atom.left, places)
                    operation = partial(operate, atom.symbol)
                    factor = self._step(atom.symbol, operation, [left, self._nat(atom.right, places)])
                product = self._step("*", mul, [product, factor])
            total = self._step("+", add, [total, self._step("*", mul, [number, product])])
        return total


def _read(value: Any, names: dict[str, int], found: list[int]) -> Hashable:
    """The shape of a value, whose numbers are appended to `found`; `names` are those of the binders around it."""
    if isinstance(value, Nat):
        return _read_nat(value, names, found)
    if isinstance(value, tuple):
        return tuple(_read_plain(v, names, found) for v in value)
    if isinstance(value, ir.Var):
        return "var", names.get(value.name, value.name), _read(value.type, names, found)
    if isinstance(value, ir.Literal):
        return "literal", value.type, _read_plain(value.value, names, found) if value.type == I32 else str(value.value)
    if isinstance(value, Scalar) or not is_dataclass(value):
        return value
    if isinstance(value, ir.Lambda):
        names = _bound(names, *(v.name for v in ir.bound_variables(value.binder)))
    elif isinstance(value, ir.IndexFunction):
        names = _bound(names, value.variable)
        return "index", _read(value.body, names, found)
    elif isinstance(value, ir.Iterate):
        names = _bound(names, value.size)
    kind = type(value)
    parts: list[Hashable] = [kind.__name__]
    for name in field_names(kind):
        part = getattr(value, name)
        if (kind, name) in COUNTS:
            part = _read_plain(part, names, found)
        elif not (kind is ir.Iterate and name == "size"):
            part = _read(part, names, found)
        else:
            part = names[part]
        parts.append(part)
    return tuple(parts)


def _read_plain(value: Any, names: dict[str, int], found: list[int]) -> Hashable:
    if isinstance(value, int) and not isinstance(value, bool):
        found.append(value)
        return "number"
    return _read(value, names, found)


def _bound(names: dict[str, int], *more: str) -> dict[str, int]:
    """The numbers of names with those that a binder binds; how many there are stands beside no name."""
    known = names.get("", 0)
    return {**names, **{name: known + k for k, name in enumerate(more)}, "": known + len(more)}


def _read_nat(value: Nat, names: dict[str, int], found: list[int]) -> Hashable:
    if not value.terms:
        found.append(0)
        return (((),),)
    parts: list[Hashable] = []
    for monomial, coefficient in value.terms:
        found.append(coefficient)
        parts.append(tuple(_read_atom(atom, names, found) for atom in monomial))
    return tuple(parts)


def _read_atom(atom: NatVar | Operation, names: dict[str, int], found: list[int]) -> Hashable:
    if isinstance(atom, NatVar):
        return names.get(atom.name, atom.name)
    return atom.symbol, _read_nat(atom.left, names, found), _read_nat(atom.right, names, found)


def _next(places: Iterator[int]) -> int:
    place = next(places, _NONE)
    if place is _NONE:
        raise SizeProblem("the term has more numbers than it is given")
    return place
