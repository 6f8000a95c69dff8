"""The spectrum of a program: its versions by the alternatives of its functions, level by level.

Where a part of the program is what a function computes, at some sizes, an alternative may stand there, at each choice
of its tunable sizes; what it uses in turn, a function on the chunks of an array for example, has a spectrum of its own.

Source: 001 §4 (codelets and spectrums), §6 (composition level by level).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product, zip_longest
from typing import Any

from lift_egraph.egraph.alternatives import Sizes, rule_at
from lift_egraph.egraph.rule import Rule
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal, canonical, names_in, unique_names, with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.definitions import at_sizes, name_of, sizes_in_types
from lift_egraph.language.nat import Nat
from lift_egraph.language.sizes import substitute_nats

LEVELS = 3  # alternatives on the way to a version
VALUES = 6  # of a tunable size
MOST = 48  # versions of a level
Version = tuple[ir.Expr, tuple[Rule, ...]]


def versions(term: ir.Expr, alternatives: Sequence[ir.Alternative]) -> Iterator[Version]:
    """The versions of a term, with the rules that lead there; those of few levels first."""
    seen = {canonical(term)}
    level: list[Version] = [(term, ())]
    for _ in range(LEVELS):
        made: list[Version] = []
        for now, way in level:
            for changed, rule in _steps(now, alternatives):
                key = canonical(changed)
                if key not in seen:
                    seen.add(key)
                    made.append((changed, (*way, rule)))
        level = _spread(made, MOST)
        yield from level


def _spread(found: Sequence[Version], count: int) -> list[Version]:
    """Some of the versions, of each kind as many as of others."""
    kinds: dict[object, list[Version]] = {}
    for version in found:
        kinds.setdefault(kind_of(version), []).append(version)
    rows = zip_longest(*kinds.values())
    return [version for row in rows for version in row if version is not None][:count]


def kind_of(version: Version) -> tuple[str, ...]:
    """Which alternatives lead to a version, at whatever sizes."""
    return tuple(rule.name.partition(" at ")[0] for rule in version[1])


def _steps(term: ir.Expr, alternatives: Iterable[ir.Alternative]) -> Iterator[tuple[ir.Expr, Rule]]:
    """The term with one alternative, at one choice of sizes, wherever its function stands."""
    for alternative in alternatives:
        places: dict[tuple[tuple[str, int], ...], None] = {}
        for part in ir.subterms(term):
            if isinstance(part, ir.Expr) and (found := _match(alternative, part)) is not None:
                places[found] = None
        for at in places:
            for chosen in product(*(_values(low, high) for _, low, high in alternative.tunables)):
                numbers = {**dict(at), **dict(zip((n for n, *_ in alternative.tunables), chosen, strict=True))}
                sizes = tuple(sorted(numbers.items()))
                if at_sizes(alternative, numbers) is None:
                    continue
                changed = _changed(term, alternative, at, sizes)
                yield changed, rule_at(alternative, sizes)


def _values(low: int, high: int) -> list[int]:
    """Some numbers in a range: all of few, else powers of two."""
    if high - low <= VALUES:
        return list(range(low, high))
    powers = [1 << k for k in range(low.bit_length() - 1, high.bit_length()) if low <= 1 << k < high] or [low, high - 1]
    step = max(1, -(-len(powers) // VALUES))
    return powers[::-1][::step][::-1]


def _changed(term: Any, alternative: ir.Alternative, at: Sizes, sizes: Sizes) -> Any:
    if isinstance(term, ir.Expr) and _match(alternative, term) == at:
        holes = _holes(alternative, term)
        both = at_sizes(alternative, dict(sizes))
        assert holes is not None
        assert both is not None
        body = unique_names(both[1].body, names_in(term))
        return with_parts(body, {ir.Input(i.name, type_of(holes[i.name])): holes[i.name] for i in both[1].inputs})
    return ir.map_parts(term, lambda part: _changed(part, alternative, at, sizes))


def _match(alternative: ir.Alternative, term: ir.Expr) -> Sizes | None:
    """The sizes at which a term is what the function computes; None if it is not."""
    found = _Match(alternative.of)
    return found.sizes_of(term)


def _holes(alternative: ir.Alternative, term: ir.Expr) -> dict[str, ir.Expr] | None:
    found = _Match(alternative.of)
    return found.holes if found.sizes_of(term) is not None else None


class _Match:
    """A function with open sizes, held against a term: its inputs stand for parts of that."""

    def __init__(self, of: ir.Program) -> None:
        self.of = of
        self.fixed = {name for name, _ in of.ranges}
        self.holes: dict[str, ir.Expr] = {}
        self.sizes: dict[str, int] = {}

    def sizes_of(self, term: ir.Expr) -> Sizes | None:
        if not self.part(self.of.body, term):
            return None
        bound = {v for t in ir.subterms(term) if isinstance(t, ir.Lambda) for v in ir.bound_variables(t.binder)}
        if any(not ir.free_variables(hole).isdisjoint(bound) for hole in self.holes.values()):
            return None
        try:
            body = substitute_nats(self.of.body, dict(self.sizes))
            inputs = substitute_nats(self.of.inputs, dict(self.sizes))
            given = {i: self.holes[i.name] for i in inputs if i.name in self.holes}
            fits = all(type_of(hole) == i.type for i, hole in given.items())
            same = fits and alpha_equal(with_parts(body, given), term)
        except LiftError:
            return None
        return tuple(sorted(self.sizes.items())) if same else None

    def part(self, pattern: Any, term: Any) -> bool:
        if isinstance(pattern, ir.Input):
            if pattern.name in self.fixed and pattern.name != getattr(term, "name", None):
                return False
            for wanted, got in sizes_in_types(pattern.type, type_of(term)):
                self.size(wanted, got)
            known = self.holes.setdefault(pattern.name, term)
            return known == term
        if isinstance(pattern, ir.Var):
            return isinstance(term, ir.Var)
        if isinstance(pattern, Nat):
            return isinstance(term, Nat) and self.size(pattern, term)
        if isinstance(pattern, tuple):
            return isinstance(term, tuple) and len(pattern) == len(term) and all(map(self.part, pattern, term))
        if isinstance(pattern, ir.SizeLiteral):
            return isinstance(term, ir.Literal)
        if not isinstance(pattern, ir.Expr | ir.Lambda | ir.Vectorize):
            return True  # compared as a whole in the end
        if type(pattern) is not type(term):
            return False
        names = (name for name in vars(type(pattern))["__dataclass_fields__"] if name != "binder")
        return all(self.part(getattr(pattern, name), getattr(term, name)) for name in names)

    def size(self, wanted: Nat, given: Nat) -> bool:
        number = given.constant
        if number is None:
            return False
        if (name := name_of(wanted)) is not None:
            return self.sizes.setdefault(name, number) == number
        return wanted.constant in (None, number)
