"""Conditions on parameters: what a form of them must be, and which values of one parameter that leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from lift_egraph.errors import SearchProblem
from lift_egraph.tuning.forms import Form

MOST_VALUES = 1 << 16  # of a parameter that is only bounded


@dataclass(frozen=True)
class Condition:
    """What a form must be: a number from `low` to `high`, one of `among` if that is given.

    `whole`: a whole one. `why` says what a point that breaks it asks for.
    """

    form: Form
    low: int = 1
    high: float = inf
    among: tuple[int, ...] | None = None
    why: str = ""
    whole: bool = True

    def holds(self, point: Mapping[str, int]) -> bool:
        """Whether it holds at a point."""
        value = self.form.value(point)
        if (self.whole and value.denominator != 1) or not self.low <= value <= self.high:
            return False
        return self.among is None or value in self.among

    def problem(self, point: Mapping[str, int]) -> str:
        """What is wrong with a point at which it does not hold."""
        value = self.form.value(point)
        shown = str(value) if value.denominator == 1 else f"{float(value):.6g}"
        if self.among is not None:
            wanted = f"one of {', '.join(map(str, self.among))}"
        elif self.whole and value.denominator != 1:
            wanted = "a whole number"
        else:
            wanted = f"at least {self.low}" if value < self.low else f"at most {self.high:g}"
        return f"{self.why or self.form} must be {wanted}, and is {shown}"

    @property
    def is_bounded(self) -> bool:
        """Whether it asks for more than a whole number above 0 of a product."""
        may_be_part = not self.whole and not self.is_integral
        return self.high < inf or self.low > 1 or self.among is not None or len(self.form.terms) != 1 or may_be_part

    @property
    def is_integral(self) -> bool:
        """Whether its form is a whole number wherever its variables are."""
        return all(c.denominator == 1 and all(e > 0 for _, e in powers) for c, powers in self.form.terms)


def needed(conditions: Iterable[Condition]) -> list[Condition]:
    """The conditions without those that hold anyway, or follow from another one."""
    kept = [c for c in dict.fromkeys(conditions) if c.form.names and (c.is_bounded or not c.is_integral)]
    plain = list({c.form: c for c in kept if not c.is_bounded}.values())
    bounded = [c for c in kept if c.is_bounded]
    return bounded + [c for c in plain if not any(o is not c and _follows(c.form, o.form) for o in plain)]


def _follows(form: Form, other: Form) -> bool:
    """Whether a product is a whole multiple of another one."""
    (c, powers), (d, others) = form.terms[0], other.terms[0]
    mine, theirs = dict(powers), dict(others)
    return (c / d).denominator == 1 and all(mine.get(n, 0) >= theirs.get(n, 0) for n in {*mine, *theirs})


def domain(name: str, conditions: Sequence[Condition]) -> tuple[int, ...]:
    """The values of a parameter that single conditions leave, in order: it divides a number, is one of some, or is at
    most something.

    Raises
    ------
    SearchProblem
        If nothing bounds it.
    """
    found: set[int] | None = None
    least, bound = 1, inf
    for c in conditions:
        if len(c.form.terms) == 1:
            coefficient, powers = c.form.terms[0]
            exponents = dict(powers)
            e = exponents.get(name, 0)
            if coefficient == 1 and exponents == {name: 1}:
                least = max(least, c.low)
            if e == 1 and len(exponents) == 1 and c.among is not None:
                values = {int(v / coefficient) for v in c.among if (v / coefficient).denominator == 1}
                found = values if found is None else found & values
            elif e < 0 and c.whole and all(other < 0 for other in exponents.values()):
                values = {d for d in divisors(coefficient.numerator) if coefficient.numerator % d**-e == 0}
                found = values if found is None else found & values
        if c.high < inf and all(k > 0 for k, _ in c.form.terms):
            for coefficient, powers in c.form.terms:
                if dict(powers).get(name, 0) > 0 and all(e > 0 for _, e in powers):
                    bound = min(bound, float(c.high / coefficient) ** (1 / dict(powers)[name]))
    if found is None and bound > MOST_VALUES:
        raise SearchProblem(f"nothing bounds the parameter {name}: it divides no size, and has no limit")
    values = found if found is not None else set(range(1, int(bound + 1e-9) + 1))
    return tuple(sorted(v for v in values if least <= v <= bound + 1e-9))


def divisors(n: int) -> list[int]:
    """The divisors of a number, in order.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
