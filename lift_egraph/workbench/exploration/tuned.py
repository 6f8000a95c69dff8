"""Plans with other numbers: the term that a plan led to becomes one with parameters, and is tried at other points.

The plan is followed again at stand-in sizes, which says what each number of the term is
(`lift_egraph.tuning.parametric`). So are the numbers of the phases on its way: what is tried at another point is
explained by the same phases with these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lift_egraph.caching import cached_property
from lift_egraph.codegen.devices import Device
from lift_egraph.errors import LiftError, SearchProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import specialise
from lift_egraph.language.types import WIDTHS
from lift_egraph.tuning.demands import Demand, demands_of, space_of
from lift_egraph.tuning.numbers import lets_in_order, shape
from lift_egraph.tuning.parametric import Parametric, generalised
from lift_egraph.tuning.space import Point, Space
from lift_egraph.tuning.stand_ins import stand_ins
from lift_egraph.workbench.candidates import Candidate
from lift_egraph.workbench.phases import Found
from lift_egraph.workbench.planning.plan import Plan, Recipe

WIDTH = "width"  # what a parameter is called that is the width of a vector
LEAST = 2  # of a parameter, and of what it divides a length into: with 1 it is another plan


@dataclass(frozen=True)
class Tunable:
    """A low-level term that a plan led to, with the numbers of the plan as parameters.

    Attributes
    ----------
    base
        The term as the plan found it, and its way: with as many iterations as it takes anywhere.
    numbers
        The parameters of the plan.
    sizes
        Of the program.
    parametric
        The term, and of each phase of the way the term, the chunk sizes and the widths.
    demands
        What the term asks of the parameters.
    """

    base: Found
    recipe: Recipe
    program: ir.Program
    parametric: Parametric[tuple[Any, ...]]
    demands: tuple[Demand, ...]

    @property
    def numbers(self) -> Point:
        """The parameters of the plan."""
        return dict(self.recipe.numbers)

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        return dict(self.program.sizes)

    def space(self, device: Device) -> Space:
        """The points at which the term fits the sizes and a device."""
        bounds = {name: WIDTHS for name in self.parametric.parameters if name == WIDTH}
        space = space_of(self.parametric, self.demands, self.sizes, device, bounds, least=LEAST)
        return space if self.numbers in space else space_of(self.parametric, self.demands, self.sizes, device, bounds)

    @cached_property
    def _term(self) -> Parametric[ir.Expr]:
        return self.parametric.part(0)

    def term(self, point: Mapping[str, int]) -> ir.Program:
        """The low-level program that the plan leads to with other numbers, without its way: enough to rank it.

        Raises
        ------
        SizeProblem, TypeProblem
            If there is no such term.
        """
        return replace(self.program, body=self._term.at(self.sizes, point))

    def found(self, point: Mapping[str, int]) -> Found:
        """What the plan leads to with other numbers.

        Raises
        ------
        SizeProblem, TypeProblem
            If there is no such term.
        """
        term, *terms = self.parametric.at(self.sizes, point)
        plan = self.recipe.at(self.program.body, point)
        facts = [(step.tiling, step.widths) for step in plan.steps]
        facts += [({}, plan.widths)] * (len(terms) - len(facts))
        way = tuple(
            replace(leg, term=of_leg, tiling=tiling, widths=widths)
            for leg, of_leg, (tiling, widths) in zip(self.base.way, terms, facts, strict=True)
        )
        return Found(self.base.cost, term, way)


def structure_of(found: Found) -> tuple[Any, ...]:
    """A low-level term, with that of each phase on its way."""
    return lets_in_order((found.term, *(leg.term for leg in found.way)))


def tunables(
    program: ir.Program,
    sizes: Mapping[str, int],
    recipe: Recipe,
    bases: Sequence[Found],
    follow: Callable[[ir.Program, Plan], Sequence[Found]],
    device: Device,
) -> Iterator[Tunable]:
    """The low-level terms that a plan led to, as far as they are found at other sizes too.

    Parameters
    ----------
    program
        With open sizes.
    bases
        What was found with the numbers of the recipe.
    follow
        What a plan leads to for the program at concrete sizes.

    Raises
    ------
    SearchProblem
        If none of them is found again.
    """
    numbers = dict(recipe.numbers)
    multiples: dict[str, list[str]] = {}
    for name, other in recipe.multiples:
        multiples.setdefault(name, []).append(other)
    points = stand_ins(list(sizes), list(numbers), widths=[n for n in numbers if n == WIDTH], multiples=multiples)
    programs: list[ir.Program] = []
    found: list[dict[Any, Found]] = []
    for point in points:
        special = specialise(program, {name: point[name] for name in sizes})
        plan = recipe.at(special.body, {name: point[name] for name in numbers})
        programs.append(special)
        there: dict[Any, Found] = {}
        for item in follow(special, plan):
            there.setdefault(shape(structure_of(item)), item)
        found.append(there)
    made, wanted = 0, specialise(program, dict(sizes))
    for base in bases:
        alike = [there[key] for there in found if (key := shape(structure_of(base))) in there]
        if len(alike) < len(points):
            continue
        every = [*points, {**sizes, **numbers}]
        try:
            parametric = generalised([*map(structure_of, (*alike, base))], tuple(sizes), tuple(numbers), every)
            terms = zip((*programs, wanted), (*alike, base), strict=True)
            demands = demands_of([replace(p, body=f.term) for p, f in terms], every, device)
        except SearchProblem:  # a number of it is none of the parameters': this term stays as it is
            continue
        made += 1
        legs = zip(base.way, *(item.way for item in alike), strict=True)
        way = tuple(replace(same[0], iterations=max(leg.iterations for leg in same)) for same in legs)
        yield Tunable(replace(base, way=way), recipe, wanted, parametric, demands)
    if not made:
        raise SearchProblem(f"no term of the plan with {numbers} is found at other sizes too")


class Tuning:
    """Which points of which plans to try, as kernels are measured.

    Parameters
    ----------
    points
        How many of a plan are drawn beside the neighbours of what was measured.
    """

    def __init__(self, device: Device, points: int, seed: int = 0) -> None:
        self._device, self._points, self._seed = device, points, seed
        self._waiting: dict[ir.Expr, Tunable] = {}
        self._measured: dict[ir.Expr, float] = {}
        self._tried: dict[ir.Expr, tuple[_Walk, Point]] = {}
        self._bases: dict[ir.Expr, Tunable] = {}

    def hear(self, tunable: Tunable) -> list[Found]:
        """Take in a term with parameters; returns what to try now, if it was measured already."""
        term = canonical(tunable.base.term)
        self._bases[term] = tunable
        if term in self._measured:
            return self._opened(tunable, self._measured[term])
        self._waiting[term] = tunable
        return []

    def learn(self, candidate: Candidate) -> list[Found]:
        """Take in what became of a candidate; returns what to try now because of it."""
        if candidate.measured_ms is None:
            return []
        term = canonical(candidate.program.body)
        self._measured[term] = candidate.measured_ms
        if term in self._waiting:
            return self._opened(self._waiting.pop(term), candidate.measured_ms)
        if term in self._tried:
            walk, point = self._tried[term]
            if candidate.measured_ms < walk.best_ms:
                walk.best_ms = candidate.measured_ms
                return self._found(walk, walk.space.neighbours(point))
        return []

    def plan_of(self, term: ir.Expr) -> tuple[Tunable, Point] | None:
        """The plan of which a low-level term is a point, and the numbers there; None where it is of none."""
        key = canonical(term)
        if key in self._tried:
            walk, point = self._tried[key]
            return walk.tunable, point
        tunable = self._bases.get(key)
        return (tunable, tunable.numbers) if tunable else None

    def drawn(self, tunable: Tunable, count: int) -> list[Found]:
        """What a plan leads to at points that are drawn from all, each as likely as any other."""
        made: list[Found] = []
        with suppress(SearchProblem):  # nothing bounds a parameter
            for point in tunable.space(self._device).sample(count, self._seed):
                with suppress(LiftError):  # what the space does not know
                    made.append(tunable.found(point))
        return made

    def _opened(self, tunable: Tunable, milliseconds: float) -> list[Found]:
        try:
            walk = _Walk(tunable, tunable.space(self._device), milliseconds)
            beside = walk.space.neighbours(tunable.numbers) if tunable.numbers in walk.space else []
            drawn = walk.space.sample(self._points, self._seed)
        except SearchProblem:  # nothing bounds a parameter
            return []
        return self._found(walk, [*beside, *drawn])

    def _found(self, walk: _Walk, points: Sequence[Point]) -> list[Found]:
        made: list[Found] = []
        for point in points:
            try:
                term = canonical(walk.tunable.term(point).body)
                if term in self._measured or term in self._tried:  # most neighbours of neighbours
                    continue
                made.append(walk.tunable.found(point))
            except LiftError:  # what the space does not know
                continue
            self._tried[term] = walk, point
        return made


@dataclass
class _Walk:
    """A term with parameters, its space, and the best time that was measured of it."""

    tunable: Tunable
    space: Space
    best_ms: float
