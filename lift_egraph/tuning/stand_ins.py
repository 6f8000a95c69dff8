"""Stand-ins: points at which a term is derived, so that every factor of its numbers says whose it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import lcm

PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
STAND_IN_WIDTHS = (4, 8, 2)


def stand_ins(
    sizes: Sequence[str],
    parameters: Sequence[str],
    *,
    widths: Collection[str] = (),
    multiples: Mapping[str, Sequence[str]] | None = None,
    count: int = 3,
) -> list[dict[str, int]]:
    """Values of sizes and parameters at which each of them, but widths, has a prime of its own.

    Parameters
    ----------
    widths
        Parameters that are widths of vectors: powers of 2.
    multiples
        Which parameters each parameter is a multiple of; sizes are multiples of all of them.
    count
        How many points.

    Examples
    --------
    >>> for point in stand_ins("MN", ["tile", "width"], widths=["width"]):
    ...     print(point)
    {'M': 132, 'N': 156, 'tile': 3, 'width': 4}
    {'M': 520, 'N': 680, 'tile': 5, 'width': 8}
    {'M': 238, 'N': 266, 'tile': 7, 'width': 2}
    """
    free = [name for name in parameters if name not in widths]
    own = max(len(free), 1) + 1  # primes of the parameters: at each point they are shared out in another way
    made: list[dict[str, int]] = []
    for k in range(count):
        point = {n: STAND_IN_WIDTHS[(i + k) % len(STAND_IN_WIDTHS)] for i, n in enumerate(widths)}
        point |= {n: PRIMES[(i + k) % (own + 1)] for i, n in enumerate(free)}
        for name in free:
            for other in (multiples or {}).get(name, ()):
                point[name] *= point[other]
        least = lcm(*(point[n] for n in parameters))
        rest = PRIMES[own + 1 :]
        values = {n: least * rest[(i + k) % len(rest)] for i, n in enumerate(sizes)}
        made.append({**values, **{n: point[n] for n in parameters}})
    return made
