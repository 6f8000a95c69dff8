"""The time that the k best terms take, as the e-graph grows."""

from __future__ import annotations

import statistics
import time

import harness
from growth import algorithmic, grow, mm

from extract.cost import StructuralCost
from extract.search import best_terms

SIZE = 512
TILES = ({SIZE: (8,)}, {SIZE: (8, 32)})
HEADINGS = ("chunks", "iteration", "tuples", "classes", "nodes", "freeze s", "k-best s", "terms", "peak MB")
TARGET = 2.0  # seconds, at 100,000 tuples


def main() -> None:
    """Run the benchmark."""
    parser = harness.options("extraction", __doc__ or "", has_device=False)
    parser.add_argument("--tuples", type=int, default=100_000, help="how large the e-graphs get at least")
    parser.add_argument("--count", type=int, default=10, help="how many terms (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the median counts")
    arguments = parser.parse_args()
    rows = []
    for tiles in TILES:
        for grown in grow(mm(SIZE), algorithmic(tiles), range(2, 12)):
            graph, times, found = grown.graph, [], []
            with harness.PeakMemory() as memory:
                for _ in range(arguments.repeats):
                    began = time.perf_counter()
                    found = best_terms(graph, graph.roots["root"], StructuralCost(), arguments.count)
                    times.append(time.perf_counter() - began)
            chunks = ", ".join(str(c) for c in tiles[SIZE])
            sizes = (graph.tuples, graph.class_count, graph.node_count)
            seconds = (grown.freeze_seconds, statistics.median(times))
            rows.append((chunks, grown.iteration, *sizes, *seconds, len(found), memory.peak / 1e6))
            print(*rows[-1], flush=True)
            if graph.tuples >= arguments.tuples:
                break
    harness.report(
        arguments.out,
        f"The {arguments.count} best distinct terms of mm {SIZE}³, algorithmic phase",
        HEADINGS,
        rows,
        notes=(
            "Freeze: reading egglog's tables into plain ones. k-best: structural cost, terms told apart by all but "
            f"names; median of {arguments.repeats} runs. Peak MB: of the process, egglog's e-graph included.",
            f"Target: less than {TARGET:g} s at 100,000 tuples.",
        ),
    )


if __name__ == "__main__":
    main()
