"""How many programs of a rule share an e-graph: few at first, as most of what is wrong shows among them."""

from __future__ import annotations

FIRST, BATCH, LARGE_BATCH = 5, 20, 60  # the first, all of the first two, and the others


def next_batch(done: int, left: int) -> int:
    """How many programs come next.

    >>> next_batch(0, 200), next_batch(5, 195), next_batch(20, 180), next_batch(140, 10)
    (5, 15, 60, 10)
    """
    return min(left, FIRST if done < FIRST else BATCH - done if done < BATCH else LARGE_BATCH)
