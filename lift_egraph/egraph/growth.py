"""How an e-graph grows: its size after each iteration, and what each rule added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lift_egraph.egraph.saturate import Iteration


@dataclass(frozen=True)
class Growth:
    """The iterations of a saturation, as a table with a row for each rule.

    A rule's row has the nodes, and after the slash the classes, that it adds by itself to the e-graph before the
    iteration; a rule that says that classes are equal may leave fewer. Rules that find the same are each told of it, so
    the sum may be more than the growth. They are known of iterations of ``run_phase(term, phase, by_rule=True)``.

    Examples
    --------
    >>> first = Iteration(1, 60, 0.01, {"split_join": 3}, 20, 15, {"split_join": (9, 6)})
    >>> print(Growth((first, Iteration(2, 90, 0.02, {"fuse": 2}, 31, 20, {"fuse": (11, 5)}))))
    iteration       1       2
    tuples         60      90
    e-nodes        20      31
    e-classes      15      20
    ms             10      20
    fuse        0 / 0  11 / 5
    split_join  9 / 6   0 / 0
    """

    iterations: Sequence[Iteration]

    @property
    def nodes(self) -> dict[str, tuple[int, ...]]:
        """How many nodes each rule that matched adds in each iteration; those that add most come first."""
        return self._made(0)

    @property
    def classes(self) -> dict[str, tuple[int, ...]]:
        """How many classes each rule that matched adds in each iteration, in the order of `nodes`."""
        return self._made(1)

    def _made(self, what: int) -> dict[str, tuple[int, ...]]:
        names = dict.fromkeys(name for i in self.iterations for name in i.made)
        order = sorted(names, key=lambda name: -sum(i.made.get(name, (0, 0))[0] for i in self.iterations))
        return {name: tuple(i.made.get(name, (0, 0))[what] for i in self.iterations) for name in order}

    def __str__(self) -> str:
        rules, classes = self.nodes.items(), self.classes
        rows: list[tuple[str, Sequence[object]]] = [
            ("iteration", [i.number for i in self.iterations]),
            ("tuples", [i.tuples for i in self.iterations]),
            ("e-nodes", [i.nodes for i in self.iterations]),
            ("e-classes", [i.classes for i in self.iterations]),
            ("ms", [f"{1000 * i.seconds:.0f}" for i in self.iterations]),
            *((name, [f"{n} / {c}" for n, c in zip(made, classes[name], strict=True)]) for name, made in rules),
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
