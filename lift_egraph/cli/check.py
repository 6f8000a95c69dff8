"""The command line's ``lift-egraph check``: what is known of a program before any search."""

from __future__ import annotations

from typing import Annotated

import typer

from lift_egraph.cli import options
from lift_egraph.cli.options import Json, ProgramText, SizeTexts, read_program, read_sizes


def check(
    program: ProgramText,
    size: SizeTexts = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            callback=options.check_budget,
            metavar="SECONDS",
            help="Time for trying declared laws, and as much for comparing alternatives.",
        ),
    ] = 20.0,
    as_json: Json = False,
) -> None:
    """Look at a program without any search: its types, which of its folds can be parallel, and what it declares.

    Exit code 1, and a message, if it is no program, a declared law does not hold, or an alternative disagrees with its
    function. Folds that stay loops are no error: it says why they do.
    """
    source = read_program(program)
    from lift_egraph.cli.show import print_json, stdout
    from lift_egraph.workbench.checking import look_at

    known = look_at(source, read_sizes(size or []), seconds)
    if as_json:
        print_json(known.to_json())
        return
    lines = [known.head, f"result: {known.result}", *known.laws, *known.loops, *known.checks]
    stdout().print(*lines, sep="\n", soft_wrap=True)
