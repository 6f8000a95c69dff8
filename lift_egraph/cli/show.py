"""What the command line prints: tables, progress and JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from lift_egraph.workbench import Candidate, Event, Report, Validated
    from lift_egraph.workbench.candidates import Refusal

REASONS = 3  # why candidates were rejected: how many reasons are shown
PIPE_WIDTH = 160  # columns of a table that goes to a file or a pipe
LATE = 1.0  # seconds of the budget that passed before the search from which they are told
LAST_WIDTH = 18  # columns that a table's last one has at least, for the longest names of rules


def stdout() -> Console:
    """Where reports go; a file or a pipe gets a fixed width."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def table_of(*headings: str) -> Table:
    """An empty table; its last column takes what room there is."""
    table = Table(*headings[:-1], box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(headings[-1], overflow="fold", min_width=LAST_WIDTH)
    return table


def assignments(sizes: dict[str, int]) -> str:
    """``M = 4, N = 8``."""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def print_json(value: Any) -> None:
    """Print plain data as one JSON value."""
    print(json.dumps(value, indent=2, allow_nan=False))


@contextmanager
def progress() -> Iterator[Callable[[Event], None]]:
    """A function that shows events on stderr: on a terminal a live bar for each stage, else a line for each."""
    console = Console(stderr=True, highlight=False, markup=False)
    if not console.is_terminal:
        seen: set[str] = set()

        def tell(event: Event) -> None:
            if event.stage not in seen:
                seen.add(event.stage)
                print(f"{event.stage}: {event.text}", file=sys.stderr, flush=True)

        yield tell
        return
    stage, text = (TextColumn(column, markup=False) for column in ("{task.description:9}", "{task.fields[text]}"))
    with Progress(stage, BarColumn(20), TimeElapsedColumn(), text, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def finish() -> None:
            for task in tasks.values():
                bars.update(task, total=1.0, completed=1.0)

        def show(event: Event) -> None:
            if event.stage not in tasks:
                finish()
                tasks[event.stage] = bars.add_task(event.stage, total=None, text="")
            known = event.done > 0
            bars.update(tasks[event.stage], total=1.0 if known else None, completed=event.done, text=event.text)

        yield show
        finish()


def show_report(report: Report, late: float = 0.0) -> None:
    """Print a report: a table of the ranked kernels, and below it the best, the end of the search and rejections.

    `late`: the seconds of the budget that had passed when the search began.
    """
    console = stdout()
    of = report.source.name, assignments(dict(report.source.sizes)), "exact" * report.exact, f"on {report.device}"
    console.print(", ".join(filter(None, of)), soft_wrap=True)
    table = table_of(
        "#", "predicted\nms", "measured\nms", "spread\nms", "speed-up", "valid", "error", "bound", "found in"
    )
    for rank, c in enumerate(report.ranked, 1):
        speedup = f"{report.baseline_ms / c.measured_ms:.2f}" if report.baseline_ms and c.measured_ms else "–"
        times = (_number(c.predicted_ms), _number(c.measured_ms) + " tie" * report.is_tie(c), _spread(c))
        errors = (_number(c.max_error), _number(c.error_bound))
        phases = "\n".join((*(("the records",) if c.recorded else ()), *(str(leg) for leg in c.way)))
        table.add_row(str(rank), *times, speedup, "yes" if c.valid else "no", *errors, phases)
    console.print(table)
    best = report.best
    if best is not None:
        for line in _verdict(report, best):
            console.print(line, soft_wrap=True)
    for check in report.checks:
        console.print(f"Tried: {check}.", soft_wrap=True)
    for reason in report.loops:
        console.print(f"{reason[0].upper()}{reason[1:]}.", soft_wrap=True)
    before = f", behind {late:.1f} s of the budget in which the command started" if late >= LATE else ""
    console.print(f"Search ended: {report.stop_reason}; {report.seconds:.1f} s in all{before}.", soft_wrap=True)
    console.print(f"Valid: {len(report.valid)}. Not run: {report.not_run}.")
    if report.records is not None:
        console.print(f"Records: {report.records}.", soft_wrap=True)
        for note in (*report.records.notes, *filter(None, (report.records.problem,))):
            console.print(f"  note: {note}", soft_wrap=True)
    _show_reasons(console, "Rejected", report.rejected)
    _show_reasons(console, "Refused by the code generator", report.refused)
    if report.not_derived:
        console.print(f"Plans that rules did not lead to: {len(report.not_derived)}.")
        _show_counts(console, Counter(report.not_derived))


def _verdict(report: Report, best: Candidate) -> Iterator[str]:
    """What is to be said of the best kernel."""
    naive = report.candidates[0]
    if report.only_naive:
        yield f"Only the naive kernel was measured, {_number(best.measured_ms)} ms: {report.only_naive}."
    elif report.speedup is not None:
        tie = "a tie" if report.is_tie(naive) else f"{report.speedup:.2f} times as fast"
        times = f"{_number(best.measured_ms)} ms, the naive one {_number(report.baseline_ms)} ms"
        yield f"The best kernel takes {times}: {tie}."
    elif report.no_baseline:
        yield f"There is no naive kernel to compare with: {report.no_baseline}"
    else:
        yield f"The best kernel takes {_number(best.measured_ms)} ms. The naive one: {naive.message}."
    if report.runner_up is not None:
        yield _confirmed(report, best, report.runner_up)
    if both := _by_plans_and_rules(report):
        yield both
    if rates := report.rates(best):
        operations = f"{_number(rates[0])} GFLOP/s, " if rates[0] else ""
        yield f"Of the best: {operations}{_number(rates[1])} GB/s of inputs and result{_of_roofline(report, best)}."
    if report.numpy_ms is not None and best.measured_ms:
        ratio = report.numpy_ms / best.measured_ms
        yield f"NumPy takes {_number(report.numpy_ms)} ms: the best is {ratio:.2f} times as fast."
    if best.recorded:
        yield f"The best is from the records, measured before on {best.recorded[:10]}; this run validated it again."
    yield f"Validation: {report.validation}."
    yield f"Validation of the best: {best.message}."


def _confirmed(report: Report, best: Candidate, other: Candidate) -> str:
    """How the best did in turns with the one next to it."""
    rounds, p = len(best.turns_ms), report.p_value(other)
    faster = sum(a < b for a, b in zip(best.turns_ms, other.turns_ms, strict=True))
    chance = f"sign test: p = {_number(p)}"
    verdict = f"no difference was shown ({chance})" if report.is_tie(other) else chance
    return f"In turns with the next one it was faster in {faster} of {rounds} rounds; {verdict}."


def _by_plans_and_rules(report: Report) -> str:
    """What rules alone found beside plans; empty where there are not both."""
    plans, rules = report.by_plans, report.by_rules
    if not plans or not rules or not plans[0].measured_ms or not rules[0].measured_ms:
        return ""
    ratio = rules[0].measured_ms / plans[0].measured_ms
    is_tie = report.is_tie(rules[0]) or report.is_tie(plans[0])
    told = "a tie with" if is_tie else f"{ratio:.2f} times that of"
    counts = f"{len(plans)} of the valid kernels, rules alone to {len(rules)}"
    return f"Plans led to {counts}; the best by rules takes {_number(rules[0].measured_ms)} ms, {told} the best plan's."


def _of_roofline(report: Report, best: Candidate) -> str:
    reached, roof = report.of_roofline(best), report.roofline
    if roof is None or reached is None:
        return ""
    why = ", so caches held its data" if reached > 1 else ""
    most = f"{_number(roof.gflop_per_s)} GFLOP/s, {_number(roof.gb_per_s)} GB/s"
    return f", {100 * reached:.0f}% of the device's roofline ({most}){why}"


def _spread(c: Candidate) -> str:
    return "–" if c.spread_ms is None else "–".join(map(_number, c.spread_ms))


def _show_reasons(console: Console, what: str, items: Sequence[Candidate | Refusal]) -> None:
    """How many there are, and their most common reasons."""
    reasons = Counter(item.message.partition("\n")[0] for item in items)
    console.print(f"{what}: {len(items)}.")
    _show_counts(console, reasons)


def _show_counts(console: Console, reasons: Counter[str]) -> None:
    """The most common ones."""
    for reason, count in reasons.most_common(REASONS):
        console.print(f"  {count} × {reason}", soft_wrap=True)
    if len(reasons) > REASONS:
        console.print(f"  and {len(reasons) - REASONS} other reasons")


def show_validated(made: Validated) -> None:
    """Print on stderr how the kernels of a low-level program were validated, and their time."""
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    at = f" at {assignments(made.sizes)}" if made.sizes else ""
    console.print(f"Validated on {made.device}{at}: {made.verdict.message}.")
    if made.milliseconds is not None:
        console.print(f"The kernels take {_number(made.milliseconds)} ms.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
