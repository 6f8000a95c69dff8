"""The time that the k best terms take, as the e-graph grows."""

from __future__ import annotations

import statistics
import time

import harness
import numpy as np
from growth import algorithmic, grow, mm

from lift_egraph.api import StructuralCost, best_terms
from lift_egraph.process.child import call

SIZE = 512
CHUNKS = ((8,), (8, 32))
HEADINGS = ("chunks", "iteration", "tuples", "classes", "nodes", "freeze s", "k-best s", "terms", "peak MB")
AT, TARGET = 100_000, 2.0  # tuples, and the seconds in which the terms should be found


def measure(chunks: tuple[int, ...], tuples: int, count: int, repeats: int) -> list[tuple]:
    """The rows of one tiling, in this process."""
    rows = []
    for grown in grow(mm(SIZE), algorithmic({SIZE: chunks}), range(2, 12)):
        graph, times, found = grown.graph, [], []
        with harness.PeakMemory() as memory:
            for _ in range(repeats):
                began = time.perf_counter()
                found = best_terms(graph, graph.roots["root"], StructuralCost(), count)
                times.append(time.perf_counter() - began)
        sizes = (graph.tuples, graph.class_count, graph.node_count)
        seconds = (grown.freeze_seconds, statistics.median(times))
        name = ", ".join(map(str, chunks))
        rows.append((name, grown.iteration, *sizes, *seconds, len(found), memory.peak / 1e6))
        if graph.tuples >= tuples:
            break
    return rows


def main() -> None:
    parser = harness.options("extraction", __doc__ or "", has_device=False)
    parser.add_argument("--tuples", type=int, default=AT, help="how large the e-graphs get at least")
    parser.add_argument("--count", type=int, default=10, help="how many terms (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the median counts")
    arguments = parser.parse_args()
    rows, at_target = [], []
    for chunks in CHUNKS:
        found = call(measure, chunks, arguments.tuples, arguments.count, arguments.repeats, time_limit=600.0)
        rows += found
        at_target.append(float(np.interp(AT, [row[2] for row in found], [row[6] for row in found])))
    harness.report(
        arguments.out,
        f"The {arguments.count} best distinct terms of mm {SIZE}³, algorithmic phase",
        HEADINGS,
        rows,
        notes=(
            "Freeze: reading egglog's tables into plain ones. k-best: structural cost, terms told apart by all but "
            f"names; median of {arguments.repeats} runs. Peak MB: of a process for each tiling, e-graph included.",
            f"At {AT} tuples, interpolated: {' and '.join(f'{s:.2f} s' for s in at_target)}; target: {TARGET:g} s.",
        ),
    )


if __name__ == "__main__":
    main()
