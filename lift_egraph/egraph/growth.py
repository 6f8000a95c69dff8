"""How an e-graph grows: its size after each iteration, and how often each rule matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lift_egraph.egraph.saturate import Iteration


@dataclass(frozen=True)
class Growth:
    """The iterations of a saturation, as a table with a row for each rule.

    Examples
    --------
    >>> print(Growth((Iteration(1, 60, 0.01, {"split_join": 3}, 20, 15), Iteration(2, 90, 0.02, {"f": 2}, 31, 20))))
    iteration    1   2
    tuples      60  90
    e-nodes     20  31
    e-classes   15  20
    ms          10  20
    split_join   3   0
    f            0   2
    """

    iterations: Sequence[Iteration]

    @property
    def matches(self) -> dict[str, tuple[int, ...]]:
        """How often each rule that matched did so in each iteration; those that matched most often come first."""
        names = dict.fromkeys(name for i in self.iterations for name, count in i.matches.items() if count)
        found = {name: tuple(i.matches.get(name, 0) for i in self.iterations) for name in names}
        return dict(sorted(found.items(), key=lambda item: -sum(item[1])))

    def __str__(self) -> str:
        rows: list[tuple[str, Sequence[object]]] = [
            ("iteration", [i.number for i in self.iterations]),
            ("tuples", [i.tuples for i in self.iterations]),
            ("e-nodes", [i.nodes for i in self.iterations]),
            ("e-classes", [i.classes for i in self.iterations]),
            ("ms", [f"{1000 * i.seconds:.0f}" for i in self.iterations]),
            *self.matches.items(),
        ]
        return columns([(name, *map(str, values)) for name, values in rows])

    __repr__ = __str__


def columns(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of text with their columns aligned, the first ones to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append("  ".join(t.ljust(w) if n < left else t.rjust(w) for n, (t, w) in cells).rstrip())
    return "\n".join(lines)
