"""Spaces of points: the values of parameters that conditions allow, counted and drawn from without a list of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lift_egraph.caching import cached_property
from lift_egraph.errors import SizeProblem
from lift_egraph.tuning.conditions import Condition, domain, needed
from lift_egraph.tuning.diagram import Diagram

Point = dict[str, int]

EXCHANGED = (2, 3, 5, 7)  # factors that neighbours of a point move from one parameter to another


@dataclass(frozen=True)
class Space:
    """The points that satisfy conditions.

    Parameters
    ----------
    parameters
        Their names.
    conditions
        Over these alone: values of sizes stand in their forms.

    Raises
    ------
    SearchProblem
        If nothing bounds a parameter.

    Examples
    --------
    >>> from lift_egraph.tuning.forms import Form
    >>> tiles = Condition(Form.of(coefficient=24, rows=-1, columns=-1)), Condition(Form.of("columns"), high=4)
    >>> space = Space(("rows", "columns"), tiles)
    >>> space.count, space[0], space.why_not({"rows": 5, "columns": 2})
    (22, {'rows': 1, 'columns': 1}, '24 / (columns * rows) must be a whole number, and is 2.4')
    """

    parameters: tuple[str, ...]
    conditions: tuple[Condition, ...]

    @cached_property
    def domains(self) -> dict[str, tuple[int, ...]]:
        """The values of each parameter that single conditions allow."""
        if not all(c.holds({}) for c in self.conditions if not c.form.names):
            return dict.fromkeys(self.parameters, ())
        return {name: domain(name, self.conditions) for name in self.parameters}

    @cached_property
    def _diagram(self) -> Diagram:
        return Diagram(self.domains, needed(self.conditions))

    @property
    def count(self) -> int:
        """How many points there are."""
        return self._diagram.count if all(self.domains.values()) else 0

    def __getitem__(self, index: int) -> Point:
        """The point with a number from 0 to ``count - 1``."""
        if not 0 <= index < self.count:
            raise IndexError(f"there are {self.count} points, and none has the number {index}")
        found = self._diagram.point(index)
        return {name: found[name] for name in self.parameters}

    def __iter__(self) -> Iterator[Point]:
        return (self[k] for k in range(self.count))

    def __contains__(self, point: Mapping[str, int]) -> bool:
        return not self.why_not(point)

    def why_not(self, point: Mapping[str, int]) -> str:
        """Why a point is not in the space; empty if it is."""
        for name in self.parameters:
            if point.get(name, 0) < 1:
                return f"{name} must be at least 1, " + (f"not {point[name]}" if name in point else "and has no value")
        more = point.keys() - set(self.parameters)
        if more:
            return f"there is no parameter {', '.join(sorted(more))}: there are {', '.join(self.parameters) or 'none'}"
        return next((c.problem(point) for c in self.conditions if not c.holds(point)), "")

    def require(self, point: Mapping[str, int]) -> None:
        """Check that a point is in the space.

        Raises
        ------
        SizeProblem
            If not; the message says which condition it breaks.
        """
        problem = self.why_not(point)
        if problem:
            raise SizeProblem(problem)

    def sample(self, count: int, seed: int = 0) -> list[Point]:
        """So many different points, or all, each as likely as any other; the same for a seed."""
        total = self.count
        draw = random.Random(seed)
        if count >= total:
            chosen = list(range(total))
            draw.shuffle(chosen)
        else:
            different: dict[int, None] = {}
            while len(different) < count:
                different[draw.randrange(total)] = None
            chosen = list(different)
        return [self[k] for k in chosen]

    def neighbours(self, point: Mapping[str, int]) -> list[Point]:
        """The points next to one: the next value up or down of one parameter, or a factor moved between two.

        Raises
        ------
        SizeProblem
            If the point is not in the space.
        """
        self.require(point)
        found: dict[tuple[int, ...], Point] = {}

        def add(**changed: int) -> bool:
            other = {**point, **changed}
            is_point = other in self
            if is_point:
                found.setdefault(tuple(other[n] for n in self.parameters), other)
            return is_point

        for name, values in self.domains.items():
            above = (v for v in values if v > point[name])
            below = (v for v in reversed(values) if v < point[name])
            for others in (above, below):
                next((v for v in others if add(**{name: v})), None)
        for giver in self.parameters:
            for taker in self.parameters:
                for factor in EXCHANGED:
                    if giver != taker and point[giver] % factor == 0:
                        add(**{giver: point[giver] // factor, taker: point[taker] * factor})
        return list(found.values())
