"""Which kernel is measured next: predictions, corrected by what was measured of kernels found in the same way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from lift_egraph.workbench.phases import Leg
from lift_egraph.workbench.report import Candidate

Family = tuple[str, ...]
"""What the kernels of one way have in common."""

FAILED = 3.0  # times its prediction that a kernel counts which was wrong or did not end; the next like it, 9 times


def family(way: Sequence[Leg]) -> Family:
    """The phases that restructured a term: what is found so differs in details, and is predicted alike."""
    return tuple(
        leg.name for leg in way if leg.name != "lowering" and (leg.name != "algorithmic" or leg.iterations > 0)
    )


class Ranking:
    """The time to expect of a kernel: its prediction, times the ratio that was measured in its family.

    A family of which nothing was measured yet is believed, or has the least ratio of the others where that is less: so
    one that is predicted wrongly costs one kernel, and no family waits until another is done.

    Examples
    --------
    >>> ranking = Ranking()
    >>> ranking.expected(("tiled",), 2.0)
    2.0
    >>> ranking.learn(("tiled",), 2.0, 6.0)
    >>> ranking.learn(("planned",), 3.0, 4.5)
    >>> [ranking.expected((name,), 2.0) for name in ("tiled", "planned", "another")]
    [6.0, 3.0, 2.0]
    """

    def __init__(self) -> None:
        self._ratios: dict[Family, list[float]] = {}
        self._failures: Counter[Family] = Counter()

    def learn(self, kind: Family, predicted: float, measured: float) -> None:
        """Take a measured time in, in the unit of the prediction."""
        if predicted > 0:
            self._ratios.setdefault(kind, []).append(measured / predicted)

    def expected(self, kind: Family, predicted: float) -> float:
        """The time to expect, in the unit of the prediction."""
        ratios = self._ratios.get(kind)
        if ratios is not None:
            return predicted * median(ratios)
        return predicted * min([1.0, *map(median, self._ratios.values())])

    def fail(self, kind: Family, predicted: float) -> None:
        """Take in that a kernel was wrong, or did not end: one may be an exception, several are not."""
        self._failures[kind] += 1
        self.learn(kind, predicted, FAILED ** self._failures[kind] * predicted)

    def of(self, candidate: Candidate) -> float:
        """The milliseconds to expect of a candidate."""
        return self.expected(family(candidate.way), candidate.predicted_ms)
