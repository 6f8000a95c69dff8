"""The command line: ``lift-egraph``.

Reports go to stdout, everything else to stderr. Imports stand in the commands that need them: help is quick,
and `run` runs a kernel without egglog.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lift_egraph.cli import options
from lift_egraph.cli.bench import bench
from lift_egraph.cli.bundles import bundle, measure
from lift_egraph.cli.check import check
from lift_egraph.cli.explain import explain
from lift_egraph.cli.extract import extract
from lift_egraph.cli.learned import ANALYTICAL, collect, evaluate, performance_of, strategy_called, train
from lift_egraph.cli.options import (
    DeviceFile,
    DeviceText,
    Exact,
    Json,
    ProgramText,
    RecordsText,
    SizeTexts,
    read_program,
    read_sizes,
)
from lift_egraph.cli.records import best, records_app
from lift_egraph.cli.rules import rules_app
from lift_egraph.errors import InputProblem, LiftError, OutputProblem


class Commands(TyperGroup):
    """The commands; what a user can cause is one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command: exit code 1 for a `LiftError`, 130 after Ctrl-C."""
        try:
            return super().invoke(ctx)
        except LiftError as problem:
            typer.echo(f"error: {problem}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Commands,
    help="Optimise data-parallel LIFT programs on e-graphs, and generate validated OpenCL kernels.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # in others Typer keeps the line breaks of docstrings
    pretty_exceptions_enable=False,
)

app.add_typer(rules_app, name="rules")
app.add_typer(records_app, name="records")
app.command()(check)
app.command()(explain)
app.command()(best)
app.command()(bundle)
app.command()(measure)
app.command()(extract)
app.command()(bench)
app.command()(collect)
app.command()(train)
app.command()(evaluate)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"lift-egraph {version('lift-egraph')}")
        except PackageNotFoundError:
            typer.echo("lift-egraph, not installed")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Optimise data-parallel LIFT programs on e-graphs, and generate validated OpenCL kernels."""


# --- what there is ----------------------------------------------------------------------------------------


@app.command()
def devices(
    description: DeviceFile = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure each device's roofline, and keep it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the OpenCL devices that kernels can be made for, which description each has, and what it reaches."""
    from lift_egraph.cli.show import print_json, stdout, table_of
    from lift_egraph.codegen.devices import describe
    from lift_egraph.codegen.running.roofline import kept_roofline, measure_roofline
    from lift_egraph.codegen.running.run import find_device, list_devices

    found = list_devices() or [find_device()]  # with no device at all, the latter says what to do
    known = [description if description and description.fits(d) else describe(d) for d in found]
    roofs = [measure_roofline(d) if calibrate else kept_roofline(d) for d in found]
    rows = list(zip(found, known, roofs, strict=True))
    if as_json:
        print_json(
            [
                {**vars(d), "description": m.name, "levels": [*map(vars, m.levels)], "roofline": r and vars(r)}
                for d, m, r in rows
            ]
        )
        return
    columns = "index", "platform", "device", "kind", "units", "memory", "local memory", "version", "description"
    table = table_of(*columns, "GFLOP/s", "GB/s")
    for d, model, r in rows:
        memory, local = f"{d.global_memory / 2**30:.1f} GiB", f"{d.local_memory / 2**10:.0f} KiB"
        units, version = str(d.compute_units), d.opencl_c_version
        reached = [f"{r.gflop_per_s:.0f}", f"{r.gb_per_s:.0f}"] if r else ["", ""]
        table.add_row(d.index, d.platform, d.name, d.kind, units, memory, local, version, model.name, *reached)
    stdout().print(table)
    for model in {m.name: m for m in known}.values():
        stdout().print(f"{model.name}:", *(f"  {level}" for level in model.levels), sep="\n", highlight=False)


@app.command()
def programs(as_json: Json = False) -> None:
    """List the bundled programs, with the default values of their sizes."""
    from lift_egraph import programs as bundled
    from lift_egraph.cli.show import assignments, print_json, stdout, table_of

    rows = [(name, bundled.describe(name), dict(bundled.load(name).sizes)) for name in bundled.names()]
    if as_json:
        print_json([{"name": name, "description": text, "sizes": sizes} for name, text, sizes in rows])
        return
    table = table_of("name", "description", "sizes")
    for name, text, sizes in rows:
        table.add_row(name, text, assignments(sizes))
    stdout().print(table)


# --- optimize ---------------------------------------------------------------------------------------------


@app.command()
def optimize(
    context: typer.Context,
    program: ProgramText,
    size: SizeTexts = None,
    device: DeviceText = None,
    description: DeviceFile = None,
    top: Annotated[int, typer.Option(min=1, help="How many validated kernels to report.")] = 10,
    budget: Annotated[
        float, typer.Option(callback=options.check_budget, metavar="SECONDS", help="Time for search and measurements.")
    ] = 90.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the random inputs.")] = 0,
    exact: Exact = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the best kernel, its launch and a report here.")
    ] = None,
    rules: Annotated[
        list[Path] | None,
        typer.Option("--rules", metavar="FILE.py", help="Rules of yours take part, once checked; again for each file."),
    ] = None,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Do not check these rules first; kernels are validated all the same.")
    ] = False,
    cost: Annotated[
        str,
        typer.Option(metavar="MODEL", help="What predicts times: analytical, learned, or a file that `train` wrote."),
    ] = ANALYTICAL,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which kernel is measured next: confident (the default with a learned model), by prediction, what was "
            "measured of kernels like it, and how sure that is; families (the default else), by prediction and what "
            "was measured of each family, whose best go first; corrected, without these; greedy, by prediction alone; "
            "or random.",
        ),
    ] = None,
    records: RecordsText = None,
    as_json: Json = False,
) -> None:
    """Search for fast kernels of a program; validate and time them on a device.

    Only kernels whose results were found right in this run are ranked. Ctrl-C ends the search and shows what
    was found so far. Each kernel is recorded when it was measured, and the best that the records know go first.

    A .lift file may also hold other algorithms for functions of it, `alternative f = …`, with sizes that the search
    chooses. Each is compared with its function first, and takes part where the program computes what that does.

    With --exact no rule takes part that changes results of floats by a bit, and no alternative: sums stay in their
    order. Products and sums are not contracted, and results are compared bit for bit, unless a function is not rounded
    alike on all devices: the report says so. Whole numbers are reduced in any order still. --fast, the default, takes
    all rules. Each knows the records of its own kind alone.

    Files with --rules are run in child processes. Their rules are first checked as `rules check` does, which takes
    seconds beside the budget; then each takes part in the phases of the search that its own phase says.
    """
    source = read_program(program)
    from lift_egraph import workbench
    from lift_egraph.cli.show import print_json, progress, show_report

    if out is not None:
        workbench.require_writable(out)
    sizes = read_sizes(size or [])
    model = performance_of(cost, device, description)
    left = options.left_of(budget, context.obj)
    with progress() as listen:
        report = workbench.optimize(
            source,
            sizes,
            device=device,
            description=description,
            top=top,
            budget=left,
            seed=seed,
            exact=exact,
            cost=model,
            strategy=strategy_called(strategy, model),
            rules=rules or (),
            unchecked=unchecked,
            records=records,
            listen=listen,
        )
    unwritten = None
    if out is not None:
        try:
            workbench.write(report, out)
            typer.echo(f"wrote {out}/kernel.cl, launch.json, lowered.lift, report.json and derivation.json", err=True)
        except OutputProblem as problem:
            unwritten = problem  # a full disk is told once what was found is shown
    if as_json:
        print_json(report.to_json())
    else:
        show_report(report, budget - left)
    if unwritten is not None:
        raise unwritten
    if report.stop_reason == "interrupted":
        raise typer.Exit(130)


# --- compile ----------------------------------------------------------------------------------------------


@app.command("compile")
def compile_(
    program: Annotated[str, typer.Argument(help="A .lift file in which every pattern says how it runs.")],
    size: SizeTexts = None,
    open_: Annotated[
        list[str] | None,
        typer.Option("--open", metavar="NAME", help="Make this size an argument of the kernels; again for each."),
    ] = None,
    any_launch: Annotated[
        bool, typer.Option("--any-launch", help="Make kernels that are right for any number and size of work-groups.")
    ] = False,
    device: DeviceText = None,
    description: DeviceFile = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random inputs.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the kernels, their launch and the program here.")
    ] = None,
) -> None:
    """Generate the kernels of a low-level program of your own, without any search.

    They are printed, or written with --out, if the device computes what the interpreter does, at the sizes of the
    program or those given by --size. For programs of `map` and `reduce` there is `optimize`.
    """
    source = read_program(program)
    from lift_egraph import workbench
    from lift_egraph.algebra.places import doubtful_in
    from lift_egraph.cli.show import show_validated

    if out is not None:
        workbench.require_writable(out)
    made = workbench.compile_low_level(
        source,
        read_sizes(size or []),
        open_sizes=open_ or [],
        any_launch=any_launch,
        device=device,
        description=description,
        seed=seed,
    )
    if doubtful_in(made.term.body):
        typer.echo(
            "The places of reduceByIndexGlb are not known to be distinct: where two elements have one, it is left to "
            "chance which of them counts.",
            err=True,
        )
    if out is None:
        typer.echo(made.plan.source, nl=False)
    else:
        workbench.write_kernel(made.plan, made.term, out)
        typer.echo(f"wrote {out}/kernel.cl, launch.json and lowered.lift", err=True)
    show_validated(made)


# --- run --------------------------------------------------------------------------------------------------


@app.command()
def run(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `optimize --out DIR` or `compile --out DIR` wrote.")
    ],
    output: Annotated[
        list[Path], typer.Option("--output", metavar="FILE.npy", help="Where to write; again for each tuple component.")
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE.npy",
            help="An input array, or a number for a scalar; again for each tuple component.",
        ),
    ] = None,
    device: DeviceText = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="NAME=NUMBER",
            callback=lambda v: options.check_sizes(v or []),
            help="A size that is an argument of the kernels and that no input's shape tells.",
        ),
    ] = None,
    limit: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="When to give up on the kernel.")] = 60.0,
) -> None:
    """Run a written kernel on your own arrays."""
    from lift_egraph.cli.arrays import check_outputs, input_value, save
    from lift_egraph.codegen.plans.arrays import read_plan
    from lift_egraph.codegen.running.run import run_directory
    from lift_egraph.meaning.values import leaves_of

    given: dict[str, list[str]] = {}
    for text in inputs or []:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=FILE.npy", param_hint="--input")
        given.setdefault(name, []).append(value)
    plan = read_plan(directory)
    if len(output) != len(plan.outputs):
        raise InputProblem(
            f"the result of {plan.name} has {len(plan.outputs)} array(s), each needs an --output; got {len(output)}"
        )
    check_outputs(output)
    values = {name: input_value(plan, name, texts) for name, texts in given.items()}
    sizes = read_sizes(size or [])
    results = list(leaves_of(run_directory(directory, values, device, sizes=sizes, time_limit=limit)))
    for path, array in zip(output, results, strict=True):
        save(path, array)
        typer.echo(f"wrote {path}: {array.dtype} of shape {array.shape}", err=True)
