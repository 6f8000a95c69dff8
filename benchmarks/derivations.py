"""How long it takes to derive the kernels that `optimize` ranks, step by step, and how many steps they take."""

from __future__ import annotations

import time

import harness
from goals import Problem
from rule_check import cpu_seconds

from lift_egraph.api import explain
from lift_egraph.codegen.running.run import find_device
from lift_egraph.programs import load
from lift_egraph.rules.macros import register_blocking_2d
from lift_egraph.workbench import explain_candidate, optimize

PROGRAMS = ("asum", "dot", "mm", "j2d5pt")


def tiles_of_product() -> tuple[object, ...]:
    """The row of the macro rule that tiles a product in two dimensions."""
    p = Problem()
    found = register_blocking_2d((p.size, p.size), (p.tile, p.tile), p.size)(p.program.body)
    began, used = time.perf_counter(), cpu_seconds()
    steps = [len(derivation.steps) for derivation in explain(found)]
    seconds = time.perf_counter() - began, cpu_seconds() - used
    return "tiles of mm", None, " + ".join(map(str, steps)), None, None, None, *seconds


def main() -> None:
    parser = harness.options("derivations", __doc__ or "")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds for each search and its measurements")
    parser.add_argument("--top", type=int, default=3, help="how many kernels of each program to derive")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each derivation")
    arguments = parser.parse_args()
    device = find_device(arguments.device)
    rows = []
    for name in PROGRAMS:
        report = optimize(load(name), device=device, budget=arguments.budget, records="none")
        for rank, candidate in enumerate(report.ranked[: arguments.top], 1):
            used = cpu_seconds()
            found = explain_candidate(report, candidate, time_limit=arguments.limit)
            rows.append(
                (
                    name,
                    rank,
                    " + ".join(str(len(leg.steps)) for leg in found.legs),
                    "yes" if found.complete else "no",
                    sum(c.replays for c in found.steps),
                    sum(c.comparison.equal is True for c in found.steps),
                    found.seconds,
                    cpu_seconds() - used,
                )
            )
    rows.append(tiles_of_product())
    harness.report(
        arguments.out,
        "Derivations of the kernels that optimize ranks first",
        ("program", "rank", "steps by phase", "complete", "replay", "interpreted equal", "seconds", "CPU seconds"),
        rows,
        notes=(
            "bundled programs at their default sizes; phases: algorithmic, lowering, and memory where data is staged",
            "complete: the steps lead from the program to exactly the kernel's term",
            "seconds: to find the steps, apply each again and interpret the terms before and after it; CPU seconds are "
            "those of all processes, which other work on the machine does not change much",
            "tiles of mm: the stages of a macro rule, whose steps are found alone",
        ),
    )


if __name__ == "__main__":
    main()
