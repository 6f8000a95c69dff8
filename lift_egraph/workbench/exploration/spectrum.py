"""The spectrum of a program: its versions by the alternatives of its functions, level by level.

Where a part of the program is what a function computes, at some sizes, an alternative may stand there, at each choice
of its tunable sizes; what it uses in turn, a function on the chunks of an array for example, has a spectrum of its own.

Source: 001 §4 (codelets and spectrums), §6 (composition level by level).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product, zip_longest
from typing import Any

from lift_egraph.egraph.alternatives import rule_at
from lift_egraph.egraph.rule import Rule
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical, names_in, unique_names, with_parts
from lift_egraph.language.check import type_of
from lift_egraph.language.definitions import at_sizes
from lift_egraph.language.occurrences import Sizes, parts_of, stands_at

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
            if isinstance(part, ir.Expr) and (found := stands_at(alternative.of, part)) is not None:
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
    if isinstance(term, ir.Expr) and stands_at(alternative.of, term) == at:
        holes = parts_of(alternative.of, term)
        both = at_sizes(alternative, dict(sizes))
        assert holes is not None
        assert both is not None
        body = unique_names(both[1].body, names_in(term))
        return with_parts(body, {ir.Input(i.name, type_of(holes[i.name])): holes[i.name] for i in both[1].inputs})
    return ir.map_parts(term, lambda part: _changed(part, alternative, at, sizes))
