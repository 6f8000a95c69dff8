"""Which kernel is measured next: predictions, corrected by what was measured of kernels found in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from lift_egraph.workbench.phases import LOWERED, Leg
from lift_egraph.workbench.report import Candidate

Family = tuple[tuple[object, ...], ...]
"""What the kernels of one way have in common."""


def family(way: Sequence[Leg]) -> Family:
    """The phases that restructured a term, with what steered them: what is found so differs in details."""
    return tuple(
        (leg.name, *sorted(leg.tiling.items()), *leg.spaces)
        for leg in way
        if leg.name not in LOWERED and _restructures(leg)
    )


def _restructures(leg: Leg) -> bool:
    return leg.name != "algorithmic" or leg.iterations > 0


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
        self._ratios: dict[tuple[object, ...], list[float]] = {}

    def learn(self, kind: tuple[object, ...], predicted: float, measured: float) -> None:
        """Take a measured time in, in the unit of the prediction."""
        if predicted > 0:
            self._ratios.setdefault(kind, []).append(measured / predicted)

    def expected(self, kind: tuple[object, ...], predicted: float) -> float:
        """The time to expect, in the unit of the prediction."""
        ratios = self._ratios.get(kind)
        if ratios is not None:
            return predicted * median(ratios)
        return predicted * min([1.0, *map(median, self._ratios.values())])

    def of(self, candidate: Candidate) -> float:
        """The milliseconds to expect of a candidate."""
        return self.expected(family(candidate.way), candidate.predicted_ms)
