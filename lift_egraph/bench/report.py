"""The tables of a benchmark, and its picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lift_egraph.bench.folder import BenchRow, Crossing, key_of
from lift_egraph.bench.tables import Row, Table, text_of
from lift_egraph.errors import OutputProblem
from lift_egraph.files import require_writable_file

BESIDE = "program", "sizes", "naive ms", "best ms", "library", "library ms", "library / best", "p", "plan", "seconds"
ACROSS = "program", "kernel of", "on", "ms", "its own best ms", "relative speed", "problem"
PLANS = "program", "device", "plan", "parameters", "best ms", "median ms", "points", "median / best"


def tables(rows: Sequence[BenchRow], crossings: Sequence[Crossing]) -> list[Table]:
    """Beside the fastest library on each device, then beside all; each device's kernels on the others; which plan won,
    and what its parameters are worth.
    """
    made: list[Table] = []
    for device in dict.fromkeys(key_of(row.device) for row in rows):
        there = [_beside(row) for row in rows if key_of(row.device) == device]
        made.append(Table(f"On {device}", BESIDE, there, BESIDE_NOTES))
        made += _all_peers([row for row in rows if key_of(row.device) == device], device)
    if crossings:
        across = [_across(crossing) for crossing in crossings]
        made.append(Table("Each device's best kernel on the others", ACROSS, across, ACROSS_NOTES))
    plans = [_plan(row) for row in rows if row.kernel]
    if plans:
        made.append(Table("Which plan won", PLANS, plans, PLANS_NOTES))
    return made


BESIDE_NOTES = (
    "kernels, also those by hand, by the device's own clock; libraries by the wall clock, torch by CUDA graphs of ten "
    "calls; medians of rounds in turns; library: the fastest of all peers; library / best: above 1, ours is faster",
    "p: the sign test of the best kernel against the runner-up, in turns; from 0.05 on they are as fast as each other",
)
PEERS_NOTES = (
    "milliseconds, of the best of each peer's schedules, which is named; its result was compared with the kernel's, "
    "which was validated; compilation and first runs are not in the times; –: it has nothing for this program, or a "
    "note says why",
)
ACROSS_NOTES = (
    "each kernel was validated on the device where it ran, and timed in turns with that device's own best; relative "
    "speed: of the same program's own best there, 1 is as fast",
)
PLANS_NOTES = (
    "median: over points of the plan that were drawn at random, each as likely as any other; median / best is what "
    "choosing the parameters is worth",
)


def _sizes(row: BenchRow) -> str:
    return ", ".join(f"{name} = {value}" for name, value in row.sizes.items())


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _beside(row: BenchRow) -> Row:
    faster = _ratio(row.library_ms, row.best_ms)
    how = row.problem or ", ".join(dict.fromkeys(row.phases))
    times = row.naive_ms, row.best_ms, row.library or None, row.library_ms, faster
    return row.program, _sizes(row), *times, row.p_value, how, round(row.seconds, 1)


def _all_peers(rows: Sequence[BenchRow], device: str) -> list[Table]:
    """The times of all peers on a device, each of them a column."""
    libraries = list(dict.fromkeys(peer.library for row in rows for peer in row.peers))
    if not libraries:
        return []
    lines = [(row.program, _sizes(row), row.best_ms, *(_peer(row, name) for name in libraries)) for row in rows]
    problems = {(peer.library, peer.problem): row.program for row in rows for peer in row.peers if peer.problem}
    notes = [f"{library}: {text} ({program})" for (library, text), program in problems.items()]
    return [Table(f"All peers on {device}", ("program", "sizes", "best ms", *libraries), lines, [*PEERS_NOTES, *notes])]


def _peer(row: BenchRow, library: str) -> str | None:
    found = next((peer for peer in row.peers if peer.library == library and peer.ms is not None), None)
    return found and f"{text_of(found.ms)} {found.how}".strip()


def _across(c: Crossing) -> Row:
    return c.program, c.origin, key_of(c.device), c.ms, c.own_ms, _ratio(c.own_ms, c.ms), c.problem or None


def _plan(row: BenchRow) -> Row:
    numbers = ", ".join(f"{name} = {value}" for name, value in row.numbers.items()) or None
    how = ", ".join(dict.fromkeys(row.phases))
    count = row.points or None
    worth = _ratio(row.median_ms, row.best_ms)
    return row.program, key_of(row.device), how, numbers, row.best_ms, row.median_ms, count, worth


def require_picture(path: Path) -> None:
    """Check that a picture can be drawn, before any long work.

    Raises
    ------
    OutputProblem
        If it cannot.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise OutputProblem("pictures need matplotlib: pip install 'lift-egraph[bench]'") from None
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise OutputProblem(f"cannot draw {path}: the name of a picture ends with .svg, .png or .pdf")
    require_writable_file(path)


def draw(rows: Sequence[BenchRow], path: Path) -> None:
    """A picture: for each program, and each device, how many times as fast as the library the best kernel is.

    Raises
    ------
    OutputProblem
        If it cannot be written.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")
    from matplotlib import pyplot

    shown = [row for row in rows if row.best_ms and row.library_ms]
    names = list(dict.fromkeys(f"{row.program}\n{_sizes(row)}".replace(", ", "\n") for row in shown))
    devices = list(dict.fromkeys(key_of(row.device) for row in shown))
    figure, axes = pyplot.subplots(figsize=(1.1 * len(names) + 3, 4.5))
    width = 0.8 / max(1, len(devices))
    for number, device in enumerate(devices):
        ratios = {
            f"{row.program}\n{_sizes(row)}".replace(", ", "\n"): _ratio(row.library_ms, row.best_ms) or 0.0
            for row in shown
            if key_of(row.device) == device
        }
        places = [k + width * (number - (len(devices) - 1) / 2) for k in range(len(names))]
        axes.bar(places, [ratios.get(name, 0.0) for name in names], width=0.9 * width, label=device)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.set_ylabel("library's time / ours")
    axes.set_title("The best kernels beside libraries", fontsize=10)
    if devices:
        axes.legend(fontsize=8)
    figure.tight_layout()
    try:
        figure.savefig(path)
    except OSError as problem:
        raise OutputProblem(f"cannot write to {path}: {problem.strerror or problem}") from None
    finally:
        pyplot.close(figure)
