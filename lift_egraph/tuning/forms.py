"""Numbers as expressions of sizes and parameters: ``N / tile``, ``2 * lanes * rows``, ``tile + 2``.

Products are read off the factors of one number: at stand-ins with primes of their own every factor says whose it is.
Sums (of slide and pad) are solved as linear forms of the products that are there. What is read must hold at all points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import prod

from lift_egraph.errors import SearchProblem, SizeProblem

Powers = tuple[tuple[str, int], ...]
"""A product of powers of variables, by name; none of them is 0."""

HIGHEST = 2  # power of a variable that has no prime of its own
MOST_OTHERS = 4  # such variables
LARGEST = 1 << 31  # numerator and denominator of the coefficient of a product


@dataclass(frozen=True)
class Form:
    """A sum of products of powers, with a coefficient each.

    Examples
    --------
    >>> blocks = Form.of("N", tile=-1)
    >>> print(blocks, blocks.number({"N": 512, "tile": 32}))
    N / tile 16
    >>> blocks.number({"N": 512, "tile": 30})
    Traceback (most recent call last):
    lift_egraph.errors.SizeProblem: N / tile is no whole number where N = 512, tile = 30
    """

    terms: tuple[tuple[Fraction, Powers], ...]

    @classmethod
    def of(cls, *names: str, coefficient: int | Fraction = 1, **powers: int) -> Form:
        """A product: of variables, and of powers of others."""
        every = {**dict.fromkeys(names, 1), **powers}
        return cls(((Fraction(coefficient), tuple(sorted((n, e) for n, e in every.items() if e))),))

    @classmethod
    def constant(cls, value: int | Fraction) -> Form:
        """A number."""
        return cls(((Fraction(value), ()),) if value else ())

    @property
    def names(self) -> frozenset[str]:
        """The variables in it."""
        return frozenset(name for _, powers in self.terms for name, _ in powers)

    def value(self, values: Mapping[str, int]) -> Fraction:
        """What it is for values of its variables, which are not 0."""
        return sum((c * _product(powers, values) for c, powers in self.terms), Fraction(0))

    def number(self, values: Mapping[str, int]) -> int:
        """The whole number that it is.

        Raises
        ------
        SizeProblem
            If it is none.
        """
        above, below = 0, 1
        for c, powers in self.terms:
            top, bottom = c.numerator, c.denominator
            for name, e in powers:
                top, bottom = (top * values[name] ** e, bottom) if e > 0 else (top, bottom * values[name] ** -e)
            above, below = above * bottom + top * below, below * bottom
        if above % below:
            where = ", ".join(f"{n} = {values[n]}" for n in values if n in self.names)
            raise SizeProblem(f"{self} is no whole number where {where}")
        return above // below

    def at(self, values: Mapping[str, int]) -> Form:
        """The form with values for some of its variables."""
        known = [(c * _product([x for x in powers if x[0] in values], values), powers) for c, powers in self.terms]
        return _sum((c, tuple(x for x in powers if x[0] not in values)) for c, powers in known)

    def __add__(self, other: Form) -> Form:
        return _sum((*self.terms, *other.terms))

    def __str__(self) -> str:
        text = ""
        for c, powers in self.terms:
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += sign + _shown(abs(c), powers)
        return text or "0"


def _sum(terms: Iterator[tuple[Fraction, Powers]] | Sequence[tuple[Fraction, Powers]]) -> Form:
    total: dict[Powers, Fraction] = {}
    for c, powers in terms:
        total[powers] = total.get(powers, Fraction(0)) + c
    return Form(tuple((c, powers) for powers, c in sorted(total.items(), key=lambda x: (not x[0], x[0])) if c))


def _product(powers: Sequence[tuple[str, int]], values: Mapping[str, int]) -> Fraction:
    above = prod(values[name] ** e for name, e in powers if e > 0)
    return Fraction(above, prod(values[name] ** -e for name, e in powers if e < 0))


def _shown(c: Fraction, powers: Powers) -> str:
    above = [name for name, e in powers for _ in range(e)]
    below = [name for name, e in powers for _ in range(-e)]
    above = [str(c.numerator)] * (c.numerator != 1 or not above) + above
    below = [str(c.denominator)] * (c.denominator != 1) + below
    divisor = f"({' * '.join(below)})" if len(below) > 1 else "".join(below)
    return " * ".join(above) + (f" / {divisor}" if below else "")


def read_forms(numbers: Sequence[Sequence[int]], points: Sequence[Mapping[str, int]]) -> tuple[Form, ...]:
    """The expressions that numbers are.

    Parameters
    ----------
    numbers
        At each point as many.
    points
        Values of all variables, above 0, different at each point. At most of them each variable but a few has an odd
        prime of its own, which divides the value of no other variable but those that are multiples of it.

    Raises
    ------
    SearchProblem
        If a number is no sum of a few products that holds at all points.
    """
    columns = list(zip(*numbers, strict=True))
    reader = _Reader(points)
    known: dict[tuple[int, ...], Form | None] = {column: reader.product(column) for column in dict.fromkeys(columns)}
    basis = [form for form in known.values() if form is not None]
    for column in [c for c, form in known.items() if form is None]:
        known[column] = reader.sum(column, basis)
        if known[column] is None:
            shown = ", ".join(map(str, column))
            raise SearchProblem(f"no expression of {', '.join(points[0])} is {shown} at the points {_at(points)}")
    return tuple(form for column in columns if (form := known[column]) is not None)


def _at(points: Sequence[Mapping[str, int]]) -> str:
    return "; ".join(", ".join(f"{n} = {v}" for n, v in point.items()) for point in points)


class _Peeled:
    """The variables with an odd prime of their own at a point, with the prime and how often it divides; and the others.

    Each is taken out before the next is looked for, so a size may be a multiple of parameters.
    """

    def __init__(self, point: Mapping[str, int]) -> None:
        self.point = point
        self.own: list[tuple[str, int, int]] = []
        left = dict(point)
        while True:
            found = next(((n, p) for n in left for p in _primes(left[n]) if p > 2 and _is_own(p, n, left)), None)
            if found is None:
                break
            name, prime = found
            self.own.append((name, prime, _times(prime, left.pop(name))))
        self.others = list(left)

    def powers(self, number: int) -> tuple[dict[str, int], Fraction]:
        """The powers of variables with a prime of their own in a number, and what is left of it."""
        powers: dict[str, int] = {}
        rest = Fraction(number)
        for name, prime, times in self.own:
            count = _times(prime, rest.numerator) - _times(prime, rest.denominator)
            powers[name] = count // times
            rest /= Fraction(self.point[name]) ** powers[name]
        return powers, rest


class _Reader:
    """Reads what numbers are at some points."""

    def __init__(self, points: Sequence[Mapping[str, int]]) -> None:
        self.points = points
        self.peeled = [_Peeled(point) for point in points]

    def product(self, column: Sequence[int]) -> Form | None:
        """The simplest product that is these numbers, if one is.

        A coefficient may have the prime of a variable at one point: then another point tells them apart.
        """
        if len(set(column)) == 1:
            return Form.constant(column[0])
        if 0 in column:
            return None
        for peeled, number in zip(self.peeled, column, strict=True):
            powers, rest = peeled.powers(number)
            found: list[tuple[int, Form]] = []
            for more in product(range(-HIGHEST, HIGHEST + 1), repeat=min(len(peeled.others), MOST_OTHERS)):
                others = dict(zip(peeled.others, more, strict=False))
                c = rest / _product([*others.items()], peeled.point)
                if max(abs(c.numerator), c.denominator) <= LARGEST:
                    form = Form.of(coefficient=c, **powers, **others)
                    if self.holds(form, column):
                        found.append((sum(map(abs, more)), form))
            if found:
                return min(found, key=lambda x: x[0])[1]
        return None

    def sum(self, column: Sequence[int], basis: Sequence[Form]) -> Form | None:
        """The sum of the fewest products that is these numbers at more points than it has products."""
        single = {powers: None for form in basis for _, powers in form.terms}
        single |= {((name, 1),): None for name in self.points[0]} | {(): None}
        products = list(single)
        for count in range(2, min(4, len(self.points))):
            for chosen in combinations(products, count):
                rows = [[_product(p, point) for p in chosen] for point in self.points[:count]]
                solved = _solve(rows, [Fraction(n) for n in column[:count]])
                if solved and all(c and c.denominator <= LARGEST for c in solved):
                    form = _sum(list(zip(solved, chosen, strict=True)))
                    if self.holds(form, column):
                        return form
        return None

    def holds(self, form: Form, column: Sequence[int]) -> bool:
        """Whether a form is these numbers at all points."""
        return all(form.value(point) == n for point, n in zip(self.points, column, strict=True))


def _primes(n: int) -> list[int]:
    """The prime factors of a number, the largest first."""
    found: list[int] = []
    p = 2
    while p * p <= n:
        if n % p == 0:
            found.append(p)
            n //= p ** _times(p, n)
        p += 1
    return sorted({*found, n} - {1}, reverse=True)


def _is_own(prime: int, name: str, values: Mapping[str, int]) -> bool:
    return all(other == name or value % prime for other, value in values.items())


def _times(prime: int, n: int) -> int:
    """How often a prime divides a number."""
    count = 0
    while n and n % prime == 0:
        n //= prime
        count += 1
    return count


def _solve(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The solution of a few linear equations; None where there is not one alone."""
    size = len(rows)
    table = [[*row, r] for row, r in zip(rows, right, strict=True)]
    for k in range(size):
        pivot = next((i for i in range(k, size) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for i in range(size):
            if i != k and table[i][k]:
                table[i] = [x - table[i][k] * y for x, y in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]
