"""The command line's ``lift-egraph explain``: how a kernel that `optimize` wrote was derived."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from lift_egraph.cli_rules import Json

if TYPE_CHECKING:
    from lift_egraph.workbench.explanation import CheckedStep, Explanation

WIDTH = 100  # columns of terms


def explain(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `optimize --out DIR` wrote.")],
    limit: Annotated[float, typer.Option(min=1.0, metavar="SECONDS", help="How long to look for the steps.")] = 600.0,
    as_json: Json = False,
) -> None:
    """Show how a written kernel was derived: the phases, and the single-rule steps that lead through them.

    Each step says which rule was applied where, by which law, and what became of the part that it changed. It is
    applied again, and the terms before and after it are interpreted on random inputs: the whole result, or some
    elements where that is too much. After Ctrl-C, and at the limit, the steps found so far are shown. The exit
    code is 1 if there is a gap, or a step does not hold.
    """
    from lift_egraph import workbench
    from lift_egraph.show import print_json, progress

    program, way = workbench.read_way(directory)
    with progress() as listen:
        found = workbench.explain_way(program, way, time_limit=limit, listen=listen)
    if as_json:
        print_json(found.to_json())
    else:
        typer.echo(text_of_explanation(found))
    if found.interrupted:
        raise typer.Exit(130)
    if not found.complete or not found.sound:
        raise typer.Exit(1)


def text_of_explanation(found: Explanation) -> str:
    """An explanation for people: headings for the phases, numbered steps, and what they lead to."""
    from lift_egraph.syntax import print_program, print_term

    lines = [print_program(found.program).rstrip()]
    count = 0
    for number, leg in enumerate(found.legs, 1):
        lines += ["", f"{number}. {leg.leg}"]
        for checked in leg.steps:
            count += 1
            lines += ["", _step(count, checked)]
        if leg.problem:
            lines += ["", f"   GAP: {leg.problem}"]
        elif not leg.steps:
            lines += ["   changes nothing"]
        elif number < len(found.legs):
            lines += ["", "   so that the program is", indent(print_term(leg.leg.term, WIDTH - 4), "    ")]
    if found.legs:
        lines += ["", "The kernel's term:", indent(print_term(found.legs[-1].leg.term, WIDTH - 4), "    ")]
    return "\n".join([*lines, "", found.summary])


def _step(number: int, checked: CheckedStep) -> str:
    from lift_egraph.rewriting import text_of

    step = checked.step
    before, after = (indent(text_of(part, WIDTH - 10), " " * 10).lstrip() for part in step.parts)
    backwards = " (from right to left)" if step.backwards else ""
    return "\n".join(
        (
            f"  {number:3}  {step.rule.name}{backwards}  at {step.place}",
            f"       {step.rule.law}",
            f"          {before}",
            f"        = {after}",
            f"       {checked}",
        )
    )
