"""Whether an alternative computes what its function does: both are interpreted at random sizes, on random inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import numpy as np

from lift_egraph.algebra.declared import only_of
from lift_egraph.errors import LiftError, RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.definitions import at_sizes
from lift_egraph.language.nat import Nat
from lift_egraph.language.sizes import size_variables
from lift_egraph.meaning.agreement import Comparer
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.inputs import Kind
from lift_egraph.meaning.values import leaves_of
from lift_egraph.meaning.workload import effort

Sizes = tuple[tuple[str, int], ...]
Both = tuple[ir.Program, ir.Program]
Case = tuple[Sizes, Both]
SMALL = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 100, 256)
TRIES, WANTED = 4000, 16  # sizes that are drawn, and those at which both are compared
# the first shows best where they disagree; that of numbers of one sign alone the others hardly show
KINDS: tuple[Kind, ...] = ("integer", "float", "any", "low", "high")
LEAST = 4  # of these, however long that takes: an array of one element says little
MOST_EFFORT = 4e6  # of one of them
SHOWN = 12  # values of an input in a message


@dataclass(frozen=True)
class Agreement:
    """At how many sizes an alternative agreed with its function, and whether there was time for all that are wanted."""

    alternative: ir.Alternative
    sizes: int
    enough: bool = True

    def __str__(self) -> str:
        few = "" if self.enough else only_of(WANTED)
        sizes = f"{self.sizes} size{'s' * (self.sizes != 1)}"
        return f"{self.alternative.name} agrees with {self.alternative.of.name} at {sizes}{few}"


def check_alternative(alternative: ir.Alternative, seed: int = 0, seconds: float = inf) -> Agreement:
    """Compare an alternative with its function, at small sizes first.

    Parameters
    ----------
    seconds
        After which no other size is drawn or tried; a few are, however long that takes.

    Raises
    ------
    RuleProblem
        If they disagree: with the sizes and the inputs, or if no sizes are found at which it may be taken.
    """
    name, of = alternative.name, alternative.of
    end = perf_counter() + seconds
    marked = _mentioned(alternative)
    drawn = sorted(_drawn(alternative, marked, seed, end), key=lambda case: sum(effort(p.body) for p in case[1]))
    if not drawn:
        names = ", ".join((*size_variables(of), *(n for n, *_ in alternative.tunables)))
        problem = f"no sizes {names} were found at which it may be taken and computes a {type_of(of.body)}"
        raise RuleProblem(name, alternative.place, problem)
    agreed, enough = 0, perf_counter() <= end
    found = _wanted(drawn, marked)
    for sizes, (one, other) in _spread(found):
        if agreed >= LEAST and perf_counter() > end:
            enough = False
            break
        if type_of(one.body) != type_of(other.body):
            what = f"{of.name} is a {type_of(one.body)}, the alternative a {type_of(other.body)}"
            raise RuleProblem(name, alternative.place, f"at {_assigned(sizes)} {what}")
        for kind, comparer in zip(KINDS, _comparers(one, other, seed), strict=True):
            equal = comparer.compare(one.body, other.body).equal
            if equal is False:
                raise RuleProblem(name, alternative.place, _smallest_difference(of.name, found, seed))
            agreed += kind == "integer" and equal is True
    if not agreed:
        raise RuleProblem(name, alternative.place, "it is too much to interpret at all sizes at which it may be taken")
    return Agreement(alternative, agreed, enough)


def _comparers(one: ir.Program, other: ir.Program, seed: int) -> Iterator[Comparer]:
    """Of all kinds of inputs, among them the numbers in both."""
    mentioned = replace(one, body=ir.MakePair(one.body, other.body))
    return (Comparer(mentioned, seed, kind) for kind in KINDS)


def _smallest_difference(name: str, found: Sequence[Case], seed: int) -> str:
    """The first counterexample of some sizes, of which there is one, in words."""
    for sizes, (one, other) in found:
        for comparer in _comparers(one, other, seed):
            if comparer.compare(one.body, other.body).equal is False:
                return _difference(name, sizes, one, other, comparer)
    raise AssertionError("nothing differs any more")


def _wanted(drawn: Sequence[Case], marked: set[int]) -> list[Case]:
    """As many sizes as are compared, in their order, up to half of them `marked`."""
    special = [case for case in drawn if any(value in marked for _, value in case[0])][: WANTED // 2]
    others = [case for case in drawn if case not in special][: WANTED - len(special)]
    return [case for case in drawn if case in special or case in others]


def _spread(cases: Sequence[Case]) -> Iterator[Case]:
    """Small and large sizes by turns, so that a few are of all kinds."""
    step = max(1, len(cases) // LEAST)
    return (case for first in reversed(range(step)) for case in cases[first::step])


def _mentioned(alternative: ir.Alternative) -> set[int]:
    """Sizes at which something may be special: those that either term mentions, and the largest that are chosen."""
    parts = [part for body in (alternative.of.body, alternative.body) for part in ir.subterms(body)]
    numbers = {p.value for p in parts if isinstance(p, ir.Literal) and p.type.is_integer}
    numbers |= {n for p in parts for n in map(_constant, vars(p).values()) if n is not None}
    numbers |= {high - 1 for _, _, high in alternative.tunables}
    return {int(n) for n in numbers if n > max(SMALL[:9])}


def _constant(value: object) -> int | None:
    return value.constant if isinstance(value, Nat) else None


def _drawn(alternative: ir.Alternative, marked: set[int], seed: int, end: float) -> Iterator[Case]:
    """Different sizes at which an alternative may be taken, `marked` ones among them, and both terms there."""
    generator = np.random.default_rng(seed)
    chosen = {name: (low, high) for name, low, high in alternative.tunables}
    names = [n for n in size_variables(alternative.of) if n not in chosen]
    limits = [side.constant for _, *sides in alternative.guards for side in sides]
    near = {n + k for n in limits if n for k in (-1, 0, *SMALL)}  # what is long may have to be even, or in chunks
    known = sorted({*SMALL, *marked, *(n for n in near if n > 0), *(1 << n.bit_length() for n in limits if n)})
    seen: set[Sizes] = set()
    count = 0
    for _ in range(TRIES if names or chosen else 1):
        values = {n: _chosen(low, high, marked, generator) for n, (low, high) in chosen.items()}
        factors = [*values.values(), 1]
        for n in names:
            values[n] = int(generator.choice(known)) * int(generator.choice(factors))
        sizes = tuple(sorted(values.items()))
        if sizes in seen:
            continue
        seen.add(sizes)
        both = at_sizes(alternative, values)
        if both is not None and all(0 < effort(one.body) + 1 < MOST_EFFORT for one in both):
            yield sizes, both
            count += 1
            if count >= 4 * WANTED or (count >= LEAST and perf_counter() > end):
                return


def _chosen(low: int, high: int, marked: set[int], generator: np.random.Generator) -> int:
    """A number in a range: small ones are as likely as all larger ones, and some are `marked`."""
    fitting = sorted(n for n in marked if low <= n < high)
    if fitting and generator.random() < 0.2:
        return int(generator.choice(fitting))
    near = min(high, low + 8) if generator.random() < 0.7 else min(high, 16 * low)
    return int(generator.integers(low, near))


def _difference(name: str, sizes: Sizes, one: ir.Program, other: ir.Program, comparer: Comparer) -> str:
    """The counterexample in words."""
    inputs = ", ".join(f"{n} = {_shown(leaves_of(v))}" for n, v in comparer.inputs.items())
    values: list[str] = []
    for term in (one.body, other.body):
        try:
            values.append(_shown(leaves_of(evaluate_bounded(term, comparer.inputs)[0])))
        except LiftError as problem:
            values.append(str(problem))
    at = f"at {_assigned(sizes)}, for" if sizes else "for"
    return f"{at} {inputs} {name} is {values[0]}, and the alternative {values[1]}"


def _assigned(sizes: Sizes) -> str:
    return ", ".join(f"{n} = {value}" for n, value in sizes)


def _shown(leaves: Iterable[np.ndarray]) -> str:
    texts = []
    for leaf in leaves:
        flat = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in np.ravel(leaf)[:SHOWN].tolist()]
        more = ", …" if leaf.size > SHOWN else ""
        texts.append(f"[{', '.join(flat)}{more}]" if leaf.ndim else flat[0])
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
