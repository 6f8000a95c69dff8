"""Parametric terms: derived at a few stand-in sizes, true at all others.

Source: the planner's free parameters are 001 §7.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from lift_egraph.caching import cached_property
from lift_egraph.errors import LiftError, SearchProblem, SizeProblem, TypeProblem
from lift_egraph.garbage import no_search_for_garbage
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.tuning.forms import Form, read_forms
from lift_egraph.tuning.numbers import Rewritten, numbers, shape

T = TypeVar("T")

LARGEST = 1 << 31  # numbers of a term are below


@dataclass(frozen=True)
class Parametric(Generic[T]):
    """A term, or several with numbers beside them in tuples, whose numbers are expressions of sizes and parameters.

    Attributes
    ----------
    example
        What it is at one of the points that it was read from.
    forms
        The expression that each number is, in the order of `lift_egraph.tuning.numbers.numbers`.
    sizes, parameters
        The names of its variables.
    """

    example: T
    forms: tuple[Form, ...]
    sizes: tuple[str, ...]
    parameters: tuple[str, ...]

    @no_search_for_garbage()
    def at(self, sizes: Mapping[str, int], parameters: Mapping[str, int]) -> T:
        """The term at sizes and parameters.

        Raises
        ------
        SizeProblem
            If a value is missing or below 1, or does not divide what it must divide.
        TypeProblem
            If the parts of the term do not fit then.
        """
        values = {**sizes, **parameters}
        for name in (*self.sizes, *self.parameters):
            if values.get(name, 0) < 1:
                given = f"not {values[name]}" if name in values else "and has no value"
                raise SizeProblem(f"{name} must be at least 1, {given}")
        found = [form.number(values) for form in self._different]
        for form, number in zip(self._different, found, strict=True):
            if not -LARGEST <= number < LARGEST:
                raise SizeProblem(f"{form} is {number}, beyond the 32-bit index range")
        made = self._rewritten(found)
        for term in _terms(made):
            type_of(term)
        return made

    def part(self: Parametric[tuple[Any, ...]], number: int) -> Parametric[Any]:
        """One of several terms, by its place in the tuple."""
        before, own = (len(numbers(parts)) for parts in (self.example[:number], self.example[number]))
        return Parametric(self.example[number], self.forms[before : before + own], self.sizes, self.parameters)

    def why_not(self, sizes: Mapping[str, int], parameters: Mapping[str, int]) -> str:
        """Why there is no such term; empty if there is one."""
        try:
            self.at(sizes, parameters)
        except (SizeProblem, TypeProblem) as problem:
            return str(problem)
        return ""

    def __getstate__(self) -> dict[str, object]:
        """Without what is computed once: functions that a search found cannot leave its process."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def _different(self) -> tuple[Form, ...]:
        return tuple(dict.fromkeys(self.forms))

    @cached_property
    def _rewritten(self) -> Rewritten[T]:
        places = {form: place for place, form in enumerate(self._different)}
        return Rewritten(self.example, [places[form] for form in self.forms])


def _terms(structure: Any) -> Iterator[ir.Expr]:
    if isinstance(structure, tuple):
        for part in structure:
            yield from _terms(part)
    elif isinstance(structure, ir.Expr):
        yield structure


def generalised(
    found: Sequence[T], sizes: Sequence[str], parameters: Sequence[str], points: Sequence[Mapping[str, int]]
) -> Parametric[T]:
    """What was derived at some points, as a term with parameters.

    Parameters
    ----------
    found
        What there is at each point: a term, or several with numbers beside them in tuples.
    points
        Values of all sizes and parameters, three points at the least (`lift_egraph.tuning.stand_ins`). The numbers are
        read at the first and must hold at the others.

    Raises
    ------
    SearchProblem
        If the terms that were derived have different shapes, or a number is no expression of sizes and parameters.
    """
    if len(points) < 3:
        raise SearchProblem(f"a term is read at one point and confirmed at two others, not at {len(points)} in all")
    shapes = [shape(structure) for structure in found]
    for own, point in zip(shapes, points, strict=True):
        if own != shapes[0]:
            where = ", ".join(f"{n} = {v}" for n, v in point.items())
            raise SearchProblem(f"another term is derived at {where}")
    forms = read_forms([numbers(structure) for structure in found], points)
    made = Parametric(found[0], forms, tuple(sizes), tuple(parameters))
    for structure, point in zip(found, points, strict=True):
        values = {name: point[name] for name in made.sizes}, {name: point[name] for name in made.parameters}
        try:
            again = made.at(*values)
        except LiftError as problem:
            raise SearchProblem(f"the term with parameters does not hold at a point of its own: {problem}") from None
        if numbers(again) != numbers(structure):
            raise SearchProblem("the numbers of the term with parameters are not those that it was read from")
    return made
