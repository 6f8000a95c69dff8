"""Generated kernels beside kernels written by hand with the same optimisations: Table 4.2 of thesis 000."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import harness
import numpy as np
from rows import ROWS, Row

from lift_egraph.api import Runner, find_device, print_program
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import DEVICES, describe
from lift_egraph.codegen.optimise import ALL, Optimisations
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.validate import judge, references_for
from lift_egraph.errors import LiftError, RunProblem
from lift_egraph.language import ir

ROUNDS = 9
LONG = 300.0  # milliseconds from which one run a round is enough
TIME_LIMIT = 600.0
RELATIVE, OF_LARGEST = 1e-3, 1e-4  # by which results at the timed size may differ: of the element, of the largest one
OTHER_INTEGERS = 1e-4  # of the elements: where two candidates are equally near, rounding decides
HEADINGS = (
    "row", "input", "sizes", "by hand ms", "generated ms", "by hand / generated", "code generation ms", "lines of LIFT",
    "lines of generated OpenCL", "lines by hand",
)  # fmt: skip


class Measured(NamedTuple):
    """One line of the table: milliseconds, and how many lines each text has."""

    by_hand_ms: float
    generated_ms: float
    ratio: float
    code_generation_ms: float
    lift_lines: int
    generated_lines: int
    by_hand_lines: int


def code_lines(text: str) -> int:
    """The lines that are neither empty nor a comment."""
    stripped = (line.strip() for line in text.splitlines())
    return sum(1 for line in stripped if line and not line.startswith(("//", "/*", "*")))


def lift_lines(program: ir.Program) -> int:
    """The lines of a program's text."""
    return code_lines(print_program(program, 120))


def generate(row: Row, dialect: str, sizes: Mapping[str, int]) -> tuple[ir.Program, Plan, float]:
    """The term, its plan, and the milliseconds of processor time that code generation took (the median of three)."""
    spent = []
    while True:
        program = row.program(dialect, sizes)  # a new one each time: terms remember what was found out about them
        began = time.process_time()
        plan = compile_program(program, DEVICES[dialect])
        spent.append(1e3 * (time.process_time() - began))
        if len(spent) == 3:
            return program, plan, statistics.median(spent)


# --- checks -------------------------------------------------------------------------------------------


def validate(row: Row, dialect: str, runner: Runner, optimise: Optimisations = ALL) -> None:
    """Hold both kernels against the interpreter, at the size for that.

    Raises
    ------
    RunProblem
        Naming the side that is wrong and its first wrong element.
    """
    sizes = row.sizes["check"]
    program = row.program(dialect, sizes)
    generated = compile_program(program, DEVICES[dialect], optimise=optimise)
    inputs = {kind: row.inputs(program, 0, kind) for kind in ("integer", "float")}
    reference = references_for(program, inputs["integer"], inputs["float"])
    for kind, values in inputs.items():
        runner.load_inputs(kind, values)
    for side, plan in (("generated", generated), ("by hand", row.by_hand(dialect, sizes))):
        verdict = judge(reference, runner.run(plan, "integer"), runner.run(plan, "float"))
        if not verdict.valid:
            raise RunProblem(f"the {side} kernel is wrong: {verdict.message}")
    for kind in inputs:
        runner.forget_inputs(kind)


def agree(one: Any, other: Any) -> None:
    """Compare two results element by element.

    Raises
    ------
    RunProblem
        Where they differ by more than rounding.
    """
    if isinstance(one, tuple):
        for mine, theirs in zip(one, other, strict=True):
            agree(mine, theirs)
        return
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype.kind != "f":
        different = np.count_nonzero(a != b)
        if different > OTHER_INTEGERS * a.size:
            raise RunProblem(
                f"{different} of {a.size} elements differ between the generated and the hand-written kernel"
            )
        return
    allowed = RELATIVE * np.abs(b) + OF_LARGEST * np.abs(b).max(initial=0)
    wrong = ~(np.abs(a - b) <= allowed)
    if wrong.any():
        at = int(wrong.reshape(-1).argmax())
        raise RunProblem(
            f"element {at} is {a.reshape(-1)[at]} in the generated kernel's result and {b.reshape(-1)[at]} in the "
            f"hand-written one's; {np.count_nonzero(wrong)} of {a.size} differ"
        )


# --- time ---------------------------------------------------------------------------------------------


def alternate(runner: Runner, by_hand: Plan, generated: Plan, rounds: int) -> tuple[float, float, float]:
    """The median milliseconds of two plans measured turn by turn, and the median of the rounds' ratios."""
    times: dict[str, list[float]] = {"by hand": [], "generated": []}
    sides = [("by hand", by_hand), ("generated", generated)]
    first = runner.measure(by_hand, "timed", repeats=1, min_time=0).min_ms
    repeats, min_time = (1, 0.0) if first > LONG else (3, 0.05)
    for number in range(rounds):
        for name, plan in sides if number % 2 else reversed(sides):
            times[name].append(runner.measure(plan, "timed", repeats=repeats, min_time=min_time).min_ms)
    ratios = [hand / made for hand, made in zip(times["by hand"], times["generated"], strict=True)]
    return statistics.median(times["by hand"]), statistics.median(times["generated"]), statistics.median(ratios)


def compare(
    row: Row, plan: Plan, dialect: str, sizes: Mapping[str, int], runner: Runner, rounds: int
) -> tuple[float, float, float]:
    """`alternate` on the hand-written plan and a generated one, after comparing their results."""
    by_hand = row.by_hand(dialect, sizes)
    runner.load_inputs("timed", row.inputs(row.program(dialect, sizes), 1, "float"))
    agree(runner.run(plan, "timed"), runner.run(by_hand, "timed"))
    found = alternate(runner, by_hand, plan, rounds)
    runner.forget_inputs("timed")
    return found


def measure(row: Row, dialect: str, sizes: Mapping[str, int], runner: Runner, rounds: int) -> Measured:
    """Time both sides of a row at some sizes, after comparing their results."""
    program, generated, milliseconds = generate(row, dialect, sizes)
    times = compare(row, generated, dialect, sizes, runner, rounds)
    texts = (code_lines(generated.source), code_lines(row.by_hand(dialect, sizes).source))
    return Measured(*times, milliseconds, lift_lines(program), *texts)


def lines_of(
    row: Row, which: Sequence[str], device: DeviceInfo, dialect: str, rounds: int
) -> Iterator[tuple[str, str, str, Measured | str]]:
    """The lines of a row: its title, ``small`` or ``large``, the sizes, and what was measured or what went wrong."""
    with Runner(device, time_limit=TIME_LIMIT) as runner:
        try:
            validate(row, dialect, runner)
        except LiftError as problem:
            yield row.title, "check", shown(row.sizes["check"]), f"{type(problem).__name__}: {problem}"
            return
        for name in which:
            sizes = row.sizes_on(dialect, name)
            try:
                found: Measured | str = measure(row, dialect, sizes, runner, rounds)
            except LiftError as problem:
                found = f"{type(problem).__name__}: {problem}"
            yield row.title, name, shown(sizes), found


def shown(sizes: Mapping[str, int]) -> str:
    """Sizes as text."""
    return ", ".join(f"{key} = {value}" for key, value in sizes.items())


# --- the table ----------------------------------------------------------------------------------------


def table(found: Sequence[tuple[str, str, str, Measured | str]]) -> list[harness.Row]:
    """The lines, with the geometric mean and the least ratio below them."""
    rows: list[harness.Row] = []
    ratios: dict[str, float] = {}
    for title, which, sizes, result in found:
        if isinstance(result, str):
            rows.append((title, which, sizes, None, None, "failed", None, None, None, None))
            continue
        by_hand_ms, generated_ms, ratio, *rest = result
        ratios[f"{title}, {which}"] = ratio
        rows.append((title, which, sizes, by_hand_ms, generated_ms, f"{ratio:.3f}", *rest))
    if ratios:
        least = min(ratios, key=lambda name: ratios[name])
        for name, ratio in (
            ("geometric mean", statistics.geometric_mean(ratios.values())),
            (f"least: {least}", ratios[least]),
        ):
            rows.append((name, None, None, None, None, f"{ratio:.3f}", *[None] * 4))
    return rows


def read_options(name: str, description: str, sizes: list[str], rounds: int) -> tuple[argparse.Namespace, list[Row]]:
    """The command line of a benchmark of rows, with its device, dialect and file, and the rows that it names."""
    parser = harness.options(name, description)
    parser.set_defaults(out=None)
    parser.add_argument("--rows", nargs="*", default=[row.name for row in ROWS], choices=[row.name for row in ROWS])
    parser.add_argument("--sizes", nargs="*", default=sizes, choices=["small", "large"])
    parser.add_argument("--rounds", type=int, default=rounds, help="turns of the two sides (default: %(default)s)")
    parser.add_argument("--note", action="append", default=[], help="a line for the notes below the table")
    arguments = parser.parse_args()
    arguments.device = find_device(arguments.device)
    arguments.dialect = describe(arguments.device).name
    arguments.out = arguments.out or harness.RESULTS / f"{name}_{arguments.dialect}.md"
    return arguments, [row for row in ROWS if row.name in arguments.rows]


def main() -> None:
    arguments, rows = read_options("table_4_2", __doc__ or "", ["small", "large"], ROUNDS)
    found: list[tuple[str, str, str, Measured | str]] = []
    for row in rows:
        for line in lines_of(row, arguments.sizes, arguments.device, arguments.dialect, arguments.rounds):
            found.append(line)
            print(*line, flush=True)
            notes = [f"{title}, {which}: {text}" for title, which, _, text in found if isinstance(text, str)]
            notes = [*NOTES, *arguments.note, *notes]
            device = arguments.device
            harness.report(arguments.out, TITLE, HEADINGS, table(found), notes=notes, device=device, quietly=True)
    harness.show(TITLE, HEADINGS, table(found), notes=[*NOTES, *arguments.note])


TITLE = "Generated and hand-written kernels"
NOTES = (
    f"by hand and generated: medians of interleaved rounds in this run (default {ROUNDS}), each the least of three "
    "runs or more (one, if it takes over 0.3 s), by the device's clock, summed over the kernels; the ratio is the "
    "median of the rounds' ratios, and above 1 means that the generated kernel is faster",
    "both sides encode the same optimisations with the same parameters; both were validated against the interpreter at "
    "a small size, and at the timed size their results were compared element by element",
    "code generation: processor time, the median of three",
    "lines: without empty lines and comments; LIFT is the low-level term as printed, 120 characters wide",
)


if __name__ == "__main__":
    main()
