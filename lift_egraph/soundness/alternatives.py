"""Whether an alternative computes what its function does: both are interpreted at random sizes, on random inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import numpy as np

from lift_egraph.algebra.declared import only_of
from lift_egraph.errors import LiftError, RuleProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.definitions import at_sizes
from lift_egraph.language.sizes import size_variables
from lift_egraph.meaning.agreement import Comparer
from lift_egraph.meaning.bounds import evaluate_bounded
from lift_egraph.meaning.inputs import Kind
from lift_egraph.meaning.values import leaves_of
from lift_egraph.meaning.workload import effort

Sizes = tuple[tuple[str, int], ...]
Both = tuple[ir.Program, ir.Program]
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
    found = sorted(_drawn(alternative, seed, end), key=lambda one: effort(one[1][0].body) + effort(one[1][1].body))
    if not found:
        names = ", ".join((*size_variables(of), *(n for n, *_ in alternative.tunables)))
        problem = f"no sizes {names} were found at which it may be taken and computes a {type_of(of.body)}"
        raise RuleProblem(name, alternative.place, problem)
    agreed, enough = 0, perf_counter() <= end
    for sizes, (one, other) in found[:WANTED]:
        if agreed >= LEAST and perf_counter() > end:
            enough = False
            break
        if type_of(one.body) != type_of(other.body):
            what = f"{of.name} is a {type_of(one.body)}, the alternative a {type_of(other.body)}"
            raise RuleProblem(name, alternative.place, f"at {_assigned(sizes)} {what}")
        mentioned = replace(one, body=ir.MakePair(one.body, other.body))  # the numbers in both are drawn
        for kind in KINDS:
            comparer = Comparer(mentioned, seed, kind)
            equal = comparer.compare(one.body, other.body).equal
            if equal is False:
                raise RuleProblem(name, alternative.place, _difference(of.name, sizes, one, other, comparer))
            agreed += kind == "integer" and equal is True
    if not agreed:
        raise RuleProblem(name, alternative.place, "it is too much to interpret at all sizes at which it may be taken")
    return Agreement(alternative, agreed, enough)


def _drawn(alternative: ir.Alternative, seed: int, end: float) -> Iterator[tuple[Sizes, Both]]:
    """Different sizes at which an alternative may be taken, and both terms there."""
    generator = np.random.default_rng(seed)
    chosen = {name: (low, high) for name, low, high in alternative.tunables}
    names = [n for n in size_variables(alternative.of) if n not in chosen]
    limits = [side.constant for _, *sides in alternative.guards for side in sides]
    near = {n + k for n in limits if n for k in (-1, 0, *SMALL)}  # what is long may have to be even, or in chunks
    known = sorted({*SMALL, *(n for n in near if n > 0), *(1 << n.bit_length() for n in limits if n)})
    seen: set[Sizes] = set()
    count = 0
    for _ in range(TRIES if names or chosen else 1):
        values = {n: _chosen(low, high, generator) for n, (low, high) in chosen.items()}
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


def _chosen(low: int, high: int, generator: np.random.Generator) -> int:
    """A number in a range: small ones are as likely as all larger ones."""
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
