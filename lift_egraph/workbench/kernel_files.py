"""The files that a kernel becomes: its text and how to launch it, the term, the report, and the way that led to it."""

from __future__ import annotations

from pathlib import Path

from lift_egraph.codegen.plans.arrays import plan_texts
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.plans.open_plan import OpenPlan
from lift_egraph.errors import OutputProblem
from lift_egraph.files import json_text, write_texts
from lift_egraph.language import ir
from lift_egraph.language.syntax import print_program
from lift_egraph.workbench.report import Report
from lift_egraph.workbench.way_file import WAY_FILE, derivation_of

REPORT_FILE = "report.json"


def write(report: Report, directory: Path) -> None:
    """Write the best kernel: ``kernel.cl``, ``launch.json``, ``lowered.lift``, ``report.json``, ``derivation.json``.

    Raises
    ------
    OutputProblem
        If the directory cannot be written to.
    """
    best = report.best
    if best is None:
        raise OutputProblem("there is no valid kernel to write")
    found = {REPORT_FILE: report.to_json(), WAY_FILE: derivation_of(report.source, best.way)}
    texts = {name: json_text(content) for name, content in found.items()}
    write_texts(directory, {**_kernel_texts(best.plan, best.program), **texts}, stale=found)


def write_kernel(plan: Plan | OpenPlan, term: ir.Program, directory: Path) -> None:
    """Write ``kernel.cl``, ``launch.json``, and the term that they were generated from as ``lowered.lift``.

    What `write` wrote about another kernel goes.

    Raises
    ------
    OutputProblem
        If the directory cannot be written to.
    """
    write_texts(directory, _kernel_texts(plan, term), stale=(REPORT_FILE, WAY_FILE))


def _kernel_texts(plan: Plan | OpenPlan, term: ir.Program) -> dict[str, str]:
    return {**plan_texts(plan), "lowered.lift": print_program(term)}


def require_writable(directory: Path) -> None:
    """Make a directory, and check that files can be written there, before any long work.

    Raises
    ------
    OutputProblem
        If not.
    """
    try:
        if directory.exists() and not directory.is_dir():
            raise OutputProblem(f"cannot write to {directory}: it is a file, not a directory")
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as problem:
        raise OutputProblem(f"cannot write to {directory}: {problem.strerror}") from None
