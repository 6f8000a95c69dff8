"""How likely a polynomial that is not 0 is 0 at a random point, over whole numbers that wrap.

Let f have n variables, degree d in all and e in each, and an odd coefficient; the point is uniform in (Z/2^m)^n.

- One variable: f is 0 with a probability of at most e·2^-r, r = ⌈m/e⌉. Otherwise there were e + 1 roots, no two alike
  modulo 2^r. Lagrange's formula gives f of its values there, divided by products of e differences, none of which is
  divisible by 2^r. Since e·(r - 1) < m, every coefficient of f would be even.
- Several: take a monomial with an odd coefficient whose degree is the greatest of these. At any values of the other
  variables its coefficient stays odd, so at most d variables matter. For one of them, with exponent k, let g be the
  coefficient of its power k: of degree d - k at most, with an odd coefficient, and 2^j divides g with a probability
  that is known already. Where it is divisible by 2^j and not by more, f is 2^j at most times a polynomial with an odd
  coefficient in that variable, which has to be 0 modulo 2^(m - j).

Source: Schwartz 1980 and Zippel 1979 take the variables one by one like this over a field, where e / |field| is the
chance in one variable. Z/2^m has divisors of zero: their bound does not hold there, and this one is weaker.
"""

from __future__ import annotations

from functools import cache
from math import ceil

MOST_DEGREE = 128  # products of so many are 0 nearly always; of a million, as loops make, a bound would take minutes


def chance_of_zero(degree: int, single: int, bits: int) -> float:
    """The chance that a polynomial with an odd coefficient is 0 at a random point of ``Z/2^bits``, at the most.

    Parameters
    ----------
    degree, single
        In all variables together, and in each alone.

    Examples
    --------
    >>> [chance_of_zero(1, 1, 8) * 256, chance_of_zero(2, 2, 8) * 256, chance_of_zero(0, 0, 8)]
    [1.0, 46.0, 0.0]

    Products of two variables, as in ``x·y``: half of all ``x`` are odd, and so on.

    >>> chance_of_zero(2, 1, 8) * 256
    5.0
    """
    if degree > MOST_DEGREE:
        return 1.0
    for less in range(1, degree):  # what it is made of, from the smallest on: so no call goes deep
        for fewer in range(bits + 1):
            _chance(less, min(less, single), fewer)
    return _chance(degree, min(degree, single), bits) if degree else 0.0


@cache
def _chance(degree: int, single: int, bits: int) -> float:
    if bits <= 0:
        return 1.0
    worst = _of_one(min(single, degree), bits)
    if worst == 1.0:  # of high degrees nothing can be said, and they would take minutes
        return worst
    for exponent in range(1, min(single, degree - 1) + 1):
        rest = [_chance(degree - exponent, min(single, degree - exponent), j) for j in range(bits + 1)]
        steps = ((rest[j] - rest[j + 1]) * _of_one(min(single, degree), bits - j) for j in range(bits))
        worst = max(worst, sum(steps) + rest[bits])
    return min(worst, 1.0)


def _of_one(degree: int, bits: int) -> float:
    """Of a polynomial of one variable."""
    return min(1.0, degree * 2.0 ** -ceil(bits / degree))
