"""The command line's ``lift-egraph bench``: the best kernels of programs beside libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lift_egraph.cli import options
from lift_egraph.cli.options import Json, read_program, read_program_with_sizes
from lift_egraph.errors import InputProblem, OutputProblem

if TYPE_CHECKING:
    from lift_egraph.bench.folder import BenchRow, Crossing, Folder
    from lift_egraph.bench.run import Bench
    from lift_egraph.codegen.device_info import DeviceInfo
    from lift_egraph.language.ir import Program


def bench(
    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM",
            help="Of libraries' work (mm, dot, ...), bundled, or .lift files; with sizes as mm:M=2048,K=2048,N=2048. "
            "By default all of libraries' work.",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option("--device", help="An index or a part of a name; again for each; 'all' for every one."),
    ] = None,
    budget: Annotated[
        float, typer.Option(callback=options.check_budget, metavar="SECONDS", help="Time for each search.")
    ] = 25.0,
    rounds: Annotated[int, typer.Option(min=1, help="Of timing in turns.")] = 5,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where results and kernels are kept; it goes on there.")
    ] = Path("bench"),
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="DIR", help="The folder of another machine: its kernels are run here too."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw the comparison with libraries.")] = None,
    as_json: Json = False,
) -> None:
    """Measure what `optimize` finds beside NumPy, SciPy, Numba, Halide and kernels by hand, or torch on a GPU.

    Tables: the kernels beside the fastest library in the same run, and beside all; each device's best kernels on the
    others; which plan won, and its speed at the median point of its parameters. They are also written to DIR/bench.md.
    Each result is kept as it comes: Ctrl-C shows what is there, and the same command goes on. A folder of others holds
    native code of whoever made it.
    """
    from lift_egraph.bench.folder import Folder
    from lift_egraph.bench.report import require_picture
    from lift_egraph.bench.run import Bench
    from lift_egraph.cli.show import progress

    folder = Folder(out)
    if out.exists() and not out.is_dir():
        raise OutputProblem(f"cannot write to {out}: it is a file, not a folder")
    for other in others or ():
        if not (other / "rows.jsonl").exists():
            raise InputProblem(f"{other} is no folder of a benchmark: it has no rows.jsonl")
    if plot is not None:
        require_picture(plot)
    from lift_egraph.bench import peers

    chosen = [read_program_with_sizes(text, _read) for text in programs or peers.WORK]
    devices = _devices(device or [])
    found = Bench(chosen, devices, folder, [Folder(path) for path in others or ()], budget, rounds)
    interrupted = False

    def told(item: BenchRow | Crossing) -> None:
        from lift_egraph.bench.folder import BenchRow, key_of
        from lift_egraph.bench.tables import text_of

        ms, whose = (item.best_ms, "") if isinstance(item, BenchRow) else (item.ms, f", the best of {item.origin},")
        shown = item.problem or f"{text_of(ms)} ms"
        typer.echo(f"{item.program}{whose} on {key_of(item.device)}: {shown}", err=True)

    try:
        with progress() as listen:
            found.run(told, listen)
    except KeyboardInterrupt:
        interrupted = True
    _show(folder, found, plot, as_json)
    if interrupted:
        typer.echo("interrupted: the same command goes on", err=True)
        raise typer.Exit(130)


def _read(name: str) -> Program:
    """The program of libraries' work, a bundled one, or one in a file."""
    from lift_egraph.bench import peers

    return peers.load(name) if name in peers.names() else read_program(name)


def _devices(texts: list[str]) -> list[DeviceInfo]:
    from lift_egraph.codegen.running.run import find_device, list_devices

    if texts == ["all"]:
        return list_devices() or [find_device()]
    return list({d.index: d for d in map(find_device, texts or [None])}.values())


def _show(folder: Folder, bench: Bench, plot: Path | None, as_json: bool) -> None:
    """Print and write the tables of what was asked for."""
    import msgspec

    from lift_egraph.bench.folder import key_of
    from lift_egraph.bench.report import draw, tables
    from lift_egraph.bench.tables import markdown
    from lift_egraph.cli.show import print_json, stdout
    from lift_egraph.files import write_texts
    from lift_egraph.language.check import specialise
    from lift_egraph.records.record import program_hash

    every, crossed, notes = folder.read()
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    hashes, on = {program_hash(specialise(p)) for p in bench.programs}, {key_of(d) for d in bench.devices}
    rows = [r for r in every if r.hash in hashes and key_of(r.device) in on and r.budget == bench.budget]
    crossings = [c for c in crossed if c.hash in hashes and key_of(c.device) in on]
    made = tables(rows, crossings)
    if as_json:
        print_json({"rows": msgspec.to_builtins(rows), "crossings": msgspec.to_builtins(crossings)})
    for table in () if as_json else made:
        stdout().print(table.shown())
        for note in table.notes:
            stdout().print(note, soft_wrap=True)
    if made:
        write_texts(folder.path, {"bench.md": markdown(made, bench.devices)})
        typer.echo(f"wrote {folder.path}/bench.md", err=True)
    if plot is not None and rows:
        draw(rows, plot)
        typer.echo(f"wrote {plot}", err=True)
