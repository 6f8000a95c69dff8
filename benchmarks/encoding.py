"""How the e-graph of matrix multiplication grows in the algorithmic phase, beside the encodings tried before."""

from __future__ import annotations

import harness
from growth import algorithmic, grow, mm, whole_book

from lift_egraph.process.child import call
from lift_egraph.process.child_process import resident_bytes

SIZE, CHUNK = 1024, 32
EARLIER = {  # the measurements that decided the encoding: tuples, seconds and MB of named, typed constants
    6: ("26k", None, None),
    7: ("92k", 0.5, 84),
    8: ("405k", 1.7, 203),
}
HEADINGS = ("iteration", "tuples", "classes", "nodes", "seconds", "MB", "earlier: tuples", "seconds", "MB")


def measure(iterations: int) -> tuple[int, int, int, float, float]:
    """Tuples, classes, nodes, seconds and additional megabytes of one e-graph, in this process."""
    term, phase = mm(SIZE), algorithmic({SIZE: (CHUNK,)})
    before = resident_bytes()
    megabytes = 0.0

    def note() -> None:
        nonlocal megabytes
        megabytes = (resident_bytes() - before) / 1e6

    (grown,) = grow(term, phase, range(iterations, iterations + 1), before_reading=note)
    graph = grown.graph
    return graph.tuples, graph.class_count, graph.node_count, grown.seconds, megabytes


def of_book(iterations: int) -> list[int]:
    """Tuples of the whole book after each iteration, in this process."""
    phase = whole_book({SIZE: (CHUNK,)})
    return [grown.graph.tuples for grown in grow(mm(SIZE), phase, range(iterations + 1))]


def main() -> None:
    parser = harness.options("encoding", __doc__ or "", has_device=False)
    parser.add_argument("--iterations", type=int, default=8, help="how many at most (default: %(default)s)")
    arguments = parser.parse_args()
    rows = []
    for iteration in range(arguments.iterations + 1):
        found = call(measure, iteration, time_limit=300.0, memory_limit=4 << 30)
        rows.append((iteration, *found, *EARLIER.get(iteration, (None, None, None))))
    tuples = call(of_book, 4, time_limit=300.0, memory_limit=4 << 30)
    harness.report(
        arguments.out,
        f"E-graph of mm {SIZE}³, algorithmic phase, chunks of {CHUNK}",
        HEADINGS,
        rows,
        notes=(
            "Each row is a fresh process. Seconds: all iterations so far, without reading the e-graph out. MB: what "
            "the e-graph adds to the resident memory of the process.",
            f"All rules of the book, tuples after iterations 0 to 4: {', '.join(map(str, tuples))}.",
            "Earlier: the prototype with named binders and typed constants, on its own, smaller set of rules.",
        ),
    )


if __name__ == "__main__":
    main()
