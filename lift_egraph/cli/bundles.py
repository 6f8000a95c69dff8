"""The command line's ``lift-egraph bundle`` and ``lift-egraph measure``: candidates for another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lift_egraph.cli import options
from lift_egraph.cli.options import DeviceFile, DeviceText, ProgramText, SizeTexts, read_program, read_sizes


def bundle(
    program: ProgramText,
    out: Annotated[Path, typer.Option("--out", metavar="BUNDLE", help="Where to write.")],
    size: SizeTexts = None,
    device: DeviceText = None,
    description: DeviceFile = None,
    count: Annotated[int, typer.Option(min=1, help="How many kernels, at most.")] = 50,
    budget: Annotated[
        float, typer.Option(callback=options.check_budget, metavar="SECONDS", help="Time for the search.")
    ] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the random inputs.")] = 0,
) -> None:
    """Write the kernels that a search finds into one file, to be measured elsewhere; none is run here.

    `python BUNDLE` measures them on a machine that has only Python, NumPy and PyOpenCL, `lift-egraph measure BUNDLE`
    where the package is; `lift-egraph records merge` brings the results home. For a device that is not here give its
    description by --device-file: `like = "nvidia"` is one.
    """
    source = read_program(program)
    from lift_egraph import workbench
    from lift_egraph.cli.show import progress
    from lift_egraph.files import require_writable_file

    require_writable_file(out)
    settings = {"device": device, "description": description, "count": count, "budget": budget, "seed": seed}
    with progress() as listen:
        made = workbench.bundle(source, read_sizes(size or []), out, **settings, listen=listen)
    typer.echo(f"wrote {out}: {made.count} of {made.found} kernels; {made.how}", err=True)
    if made.interrupted:
        raise typer.Exit(130)


def measure(
    file: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What `bundle` wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where the records go; beside the bundle by default.")
    ] = None,
    device: DeviceText = None,
    limit: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="When to give up on a kernel.")] = 60.0,
) -> None:
    """Measure the kernels of a bundle on a device here.

    Each record is written when it was made: what the file has already is not measured again. A bundle holds native
    code of whoever made it.
    """
    from lift_egraph.codegen.running.run import find_device
    from lift_egraph.records import measure as measuring
    from lift_egraph.records.opened import Bundle

    opened = Bundle(file)
    where = out or measuring.default_out(file)
    made = measuring.measure(opened, where, find_device(device).index, limit)
    typer.echo(measuring.told(made, opened.count))
    typer.echo(f"wrote {where}: `lift-egraph records merge {where}` brings them home", err=True)
