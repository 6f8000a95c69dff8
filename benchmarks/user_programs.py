"""Programs as users write them, `benchmarks/programs/*.lift`: what `optimize` finds for each, beside NumPy.

Each is optimised in its budget; the best kernel is written to a directory, run from there on fresh inputs, and held
against NumPy's result. Then best, naive and NumPy are timed in turns.
What is finished is kept in a journal beside the table, from which an interrupted run goes on.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import harness
import numpy as np
from programs.peers import PEERS

from lift_egraph.api import LiftError, Runner, find_device, optimize, random_inputs, specialise
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.running.run import run_directory
from lift_egraph.language.syntax import parse_file
from lift_egraph.meaning.values import leaves_of
from lift_egraph.workbench import Report, write

FOLDER = Path(__file__).with_name("programs")
FRESH = 977  # the seed of inputs that no validation has seen
TOLERANCE = 2e-3  # of the largest element: NumPy adds in another order
HEADINGS = ("program", "naive ms", "best ms", "NumPy ms", "x naive", "x NumPy", "right", "seconds", "why")


def main() -> None:
    arguments = harness.options_of_searches("user_programs", __doc__ or "", budget=60.0, rounds=3)
    device = find_device(arguments.device)
    journal = arguments.out.with_suffix(".jsonl")
    known = dict(_journal(journal, str(device), arguments.budget))
    names = arguments.names or sorted(PEERS)
    for number, name in enumerate(names, 1):
        if name not in known:
            known[name] = _row(name, device, arguments.budget, arguments.rounds)
            journal.parent.mkdir(parents=True, exist_ok=True)
            with journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps([str(device), arguments.budget, name, known[name]]) + "\n")
        print(f"{number} of {len(names)}: {name} {known[name]}", file=sys.stderr, flush=True)
    rows = [(name, *known[name]) for name in names]
    late = sum(row[7] > 1.1 * arguments.budget + 3 for row in rows)
    notes = (
        f"{sum(row[2] is not None for row in rows)} of {len(rows)} have a kernel, "
        f"{sum(row[6] == 'yes' for row in rows)} are right on fresh inputs, "
        f"{late} took more than 1.1 times the budget of {arguments.budget:g} s and 3 s",
        f"{sum((row[5] or 0) >= 1 for row in rows)} of {len(rows)} are at least as fast as NumPy",
        "kernels by the device's own clock, NumPy by the wall clock, medians of interleaved rounds",
    )
    harness.report(arguments.out, "Programs as users write them", HEADINGS, rows, notes=notes, device=device)
    journal.unlink(missing_ok=True)  # the next run measures anew


def _journal(file: Path, device: str, budget: float) -> Iterator[tuple[str, list[Any]]]:
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            on, spent, name, row = json.loads(line)
            if (on, spent) == (device, budget):
                yield name, row


def _row(name: str, device: DeviceInfo, budget: float, rounds: int) -> list[Any]:
    program = parse_file(FOLDER / f"{name}.lift")
    began = time.perf_counter()
    try:
        found = optimize(program, device=device, budget=budget, records="none")
    except LiftError as problem:
        return [None, None, None, None, None, "no", time.perf_counter() - began, str(problem).splitlines()[0]]
    seconds = time.perf_counter() - began
    special = specialise(program)
    inputs = random_inputs(special, FRESH, "float")
    right, why = _fresh(found, inputs, name, device)
    assert found.best is not None
    plans = {"best": found.best.plan}
    if not found.no_baseline and found.candidates[0].valid:  # else it took too long
        plans["naive"] = found.candidates[0].plan
    with Runner(device) as runner:
        runner.load_inputs("floats", inputs)
        times = harness.interleaved(runner, plans, {"NumPy": lambda: PEERS[name](*inputs.values())}, rounds)
    best, peer, naive = times["best"], times["NumPy"], times.get("naive")
    return [naive, best, peer, naive and naive / best, peer / best, "yes" if right else "no", seconds, why]


def _fresh(found: Report, inputs: Mapping[str, Any], name: str, device: DeviceInfo) -> tuple[bool, str]:
    """Whether the written kernel is right on inputs that were not validated, by NumPy's result."""
    with TemporaryDirectory() as folder:
        write(found, Path(folder) / "k")
        given = list(leaves_of(run_directory(Path(folder) / "k", inputs, device.index)))
    wanted = list(leaves_of(PEERS[name](*inputs.values())))
    for ours, theirs in zip(given, wanted, strict=True):
        scale = float(np.max(np.abs(np.asarray(theirs, np.float64)))) or 1.0
        error = float(np.max(np.abs(np.asarray(ours, np.float64) - theirs))) / scale
        if not error <= TOLERANCE:
            return False, f"largest error {error:.2g} of the largest element"
    return True, ""


if __name__ == "__main__":
    main()
