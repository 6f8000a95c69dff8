"""The command line's ``lift-egraph explain``: how a kernel that `optimize` wrote was derived."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lift_egraph.cli.options import Json


def explain(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `optimize --out DIR` wrote.")],
    limit: Annotated[float, typer.Option(min=1.0, metavar="SECONDS", help="How long to look for the steps.")] = 600.0,
    as_json: Json = False,
) -> None:
    """Show how a written kernel was derived: the phases, and the single-rule steps that lead through them.

    Each step says which rule was applied where, by which law, and what became of the part that it changed; where that
    is long, what stays as it was is written as …. The step is applied again, and the terms before and after it are
    interpreted on random inputs: the whole result, or some elements where that is too much. Rules of yours that took
    part are read from their files again, which are run in a child process. After Ctrl-C, and at the limit, the steps
    found so far are shown. The exit code is 1 if there is a gap, or a step does not hold.
    """
    from lift_egraph import workbench
    from lift_egraph.cli.show import print_json, progress

    program, way = workbench.read_way(directory)
    with progress() as listen:
        found = workbench.explain_way(program, way, time_limit=limit, listen=listen)
    if as_json:
        print_json(found.to_json())
    else:
        typer.echo(str(found))
    if found.interrupted:
        raise typer.Exit(130)
    if not found.complete or not found.sound:
        raise typer.Exit(1)
