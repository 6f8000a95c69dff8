"""How many programs of a rule share an e-graph: few at first, as most of what is wrong shows among them."""

from __future__ import annotations

BATCH, LARGE_BATCH = 20, 60  # the first, and the others


def next_batch(done: int, left: int) -> int:
    """How many programs come next.

    >>> next_batch(0, 200), next_batch(20, 180), next_batch(140, 10)
    (20, 60, 10)
    """
    return min(left, BATCH if done < BATCH else LARGE_BATCH)
