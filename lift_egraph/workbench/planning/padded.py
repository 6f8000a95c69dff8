"""To which lengths arrays are padded that no tile divides, and how much may be wasted on that."""

from __future__ import annotations

from collections.abc import Sequence

Wastes = tuple[tuple[int, int], ...]  # multiples of a length, and which part of it they may add at most
DEPTH = 16  # what is added up in a tile is a multiple of it
DEPTHS: Wastes = ((DEPTH, 3),)
VIEW_DEPTHS: Wastes = (*DEPTHS, (DEPTH // 2, 3))  # of products of views, which are short more often
WASTES: Wastes = ((128, 16), (64, 16), (64, 8), (32, 3))  # of the rows and columns of products


def multiples_in(*wastes: Wastes) -> list[int]:
    """What lengths are padded to multiples of, the least first."""
    return sorted({k for each in wastes for k, _ in each})


VIEW_MULTIPLES = multiples_in(WASTES, VIEW_DEPTHS)


def padded_length(n: int, wastes: Wastes = WASTES, enough: int | None = None) -> int:
    """The length that an array of a length is padded to: itself, if the least multiple, or `enough`, divides it, or the
    least is longer.
    """
    if n % (enough or min(multiple for multiple, _ in wastes)) == 0:
        return n
    return next((n + -n % k for k, part in wastes if k < n and (-n % k) * part <= n), n)


def multiple_of(n: int, padded: int, multiples: Sequence[int]) -> int:
    """The first of some numbers of which what a length is padded to is the next multiple."""
    return next(k for k in multiples if n + -n % k == padded and k < n)
