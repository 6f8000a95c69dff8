"""The command line's ``lift-egraph collect``, ``train`` and ``evaluate``: performance models learned from records."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lift_egraph.cli import options
from lift_egraph.cli.options import DeviceFile, DeviceText, Json, read_program_with_sizes
from lift_egraph.errors import InputProblem, LiftError, OutputProblem, SearchProblem

if TYPE_CHECKING:
    from lift_egraph.extract.models import PerformanceModel
    from lift_egraph.language.ir import Program
    from lift_egraph.learned.model import Model
    from lift_egraph.learned.samples import Samples, Told
    from lift_egraph.learned.strategies import Strategy
    from lift_egraph.records.record import Record

ANALYTICAL, LEARNED = "analytical", "learned"

Journals = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Journals that `collect` or `optimize` wrote; or one model.")
]
OnDevice = Annotated[
    str | None,
    typer.Option("--device", help="A description, or a part of the platform's or device's name, if there are several."),
]
MethodText = Annotated[
    str, typer.Option("--method", help="How to learn: blended, even, residual, forest, gaussian or published.")
]


def collect(
    out: Annotated[Path, typer.Option("--out", metavar="JOURNAL", help="Where each kernel is appended.")],
    programs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM", help="Bundled ones, or .lift files; with sizes as mm:M=512,K=512,N=512."),
    ] = None,
    again: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A journal, whose terms are measured in the place of what a search finds."),
    ] = None,
    points: Annotated[int, typer.Option(min=1, help="Right kernels of each that the journal is to have.")] = 100,
    search: Annotated[
        float,
        typer.Option(callback=options.check_budget, metavar="SECONDS", help="Time for the first search of each space."),
    ] = 60.0,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",  # typer before 0.28 takes a metavar that is the parameter's name for the option
            callback=lambda given: None if given is None else options.check_budget(given),
            metavar="SECONDS",
            help="Time for all programs: each has an equal share, and what one leaves goes to the others.",
        ),
    ] = None,
    device: DeviceText = None,
    description: DeviceFile = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw, and of the random inputs.")] = 0,
) -> None:
    """Measure random kernels of programs, for `train`.

    Each kernel is validated, timed and appended to the journal before the next one: Ctrl-C keeps what is there, and the
    same command goes on; so it does where --seconds ended it. While a program has fewer kernels than --points its space
    is searched again, wider and for longer, until a search finds nothing new. What fails for one program does not end
    the others, unless nothing can be written; the exit code is 1 then.

    With --again the terms of another journal's right kernels are compiled and measured by this version, of whatever
    device they are, and no space is searched: after a change of the code generator a journal is made anew so.

    In Python `lift_egraph.workbench.collection.collect(…, executor=client.get_executor())` measures on a dask cluster.
    """
    from lift_egraph.cli.show import progress
    from lift_egraph.records.journal import Journal
    from lift_egraph.workbench.collection import collect as collected

    if bool(programs) == bool(again):
        raise typer.BadParameter("give either programs, or --again and a journal")
    chosen = _recorded(again) if again else [(read_program_with_sizes(text), []) for text in programs or ()]
    Journal(out).require_writable()
    failed, end = False, time.monotonic() + (seconds or math.inf)
    for number, (program, records) in enumerate(chosen):
        share = (end - time.monotonic()) / (len(chosen) - number)
        if share <= 0:
            typer.echo(f"{program.name}: no time is left; the same command goes on")
            continue
        try:
            with progress() as listen:
                found = collected(
                    program,
                    journal=out,
                    points=points,
                    seconds=share,
                    device=device,
                    description=description,
                    search=search,
                    seed=seed,
                    again=records,
                    listen=listen,
                )
            typer.echo(str(found))
        except KeyboardInterrupt:
            typer.echo(f"interrupted: {out} keeps what was measured, and the same command goes on", err=True)
            raise typer.Exit(130) from None
        except LiftError as problem:
            longer = " (--search, and what --seconds leaves it)" * isinstance(problem, SearchProblem)
            typer.echo(f"error: {program.name}: {problem}{longer}", err=True)
            failed = True
            if isinstance(problem, OutputProblem):  # what is measured of the others could not be kept either
                break
    if failed:
        raise typer.Exit(1)


def train(
    files: Journals,
    out: Annotated[Path, typer.Option("--out", metavar="MODEL", help="Where to write, as FILE.npz.")],
    method: MethodText = "blended",
    device: OnDevice = None,
    description: DeviceFile = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl.xz", help="Write the records that it learned from, small and compressed."),
    ] = None,
) -> None:
    """Learn a performance model from records of one device, for `optimize --cost MODEL`.

    The file holds the features and times that it was learned from, the device and the versions, as plain arrays. What
    --keep writes is a journal, from which the same model is learned again; the features are then computed anew. What
    was collected with --device-file is trained and used with it.

    In Python `lift_egraph.learned.regressor.ThroughputRegressor` is this model as a scikit-learn estimator.
    """
    from lift_egraph.files import require_writable_file
    from lift_egraph.learned.model import Model, records_in
    from lift_egraph.learned.samples import chosen_of, samples_of
    from lift_egraph.records.packed import write_packed

    for path in (out, keep):
        if path is not None:
            require_writable_file(path)
    if keep is None:
        kept, samples = None, _samples(files, device, description)
    else:
        records, notes = records_in(files)
        with _progress("features", "kernels") as told:
            samples = samples_of(records, device, description, told)
        kept = chosen_of(records, device, description)
        _tell((*notes, *samples.notes))
    model = Model(samples, method)
    model.fitted  # what cannot be learned from is told before anything is written  # noqa: B018
    if keep is not None and kept is not None:
        write_packed(kept.records, kept.last, keep)
        typer.echo(f"wrote {keep}: {len(kept.records)} records")
    model.save(out)
    programs = len(set(samples.programs))
    typer.echo(
        f"wrote {out}: learned by {method} from {len(samples)} kernels of {programs} program{'s' * (programs > 1)}"
    )


def evaluate(
    files: Journals,
    method: MethodText = "blended",
    device: OnDevice = None,
    description: DeviceFile = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw predictions, strategies, features and residuals.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Leave each program out in turn, learn from the others, and predict it: how well, and how fast its best is found.

    The strategies choose kernels of a program that the model has not seen: by chance, by the analytical prediction, by
    the published model, by a better one; corrected by what was measured of their family; and with confidence bounds.
    """
    from lift_egraph.bench.report import require_picture
    from lift_egraph.bench.tables import text_of
    from lift_egraph.cli.show import print_json, stdout, table_of
    from lift_egraph.files import replacing
    from lift_egraph.learned.replay import evaluate as evaluated
    from lift_egraph.learned.summary import accuracy, effort, redundancy

    if plot is not None:
        require_picture(plot)
    samples = _samples(files, device, description)
    with _progress("left out", "programs") as told:
        found = evaluated(samples, method, told=told)
    if as_json:
        print_json({"accuracy": accuracy(found), "effort": effort(found), "redundancy": redundancy(samples)})
    for rows in () if as_json else (accuracy(found), effort(found)):
        table = table_of(*rows[0])
        for row in rows:
            table.add_row(*map(text_of, row.values()))
        stdout().print(table)
    if plot is not None:
        from lift_egraph.learned.pictures import draw

        with replacing(plot) as file:
            draw(found, samples, method).savefig(file, format=plot.suffix[1:])
        typer.echo(f"wrote {plot}", err=True)


def performance_of(text: str, device: str | None, description: Any) -> PerformanceModel:
    """The performance model that a user names: ``analytical``, ``learned``, or a file.

    Raises
    ------
    InputProblem, ModelProblem, DeviceProblem
        If a file is no model, or none for the device; or there is no such device.
    """
    from lift_egraph.codegen.running.run import find_device

    if text == ANALYTICAL:
        from lift_egraph.extract.analytical import predict

        return predict
    from lift_egraph.learned.model import load_model, nearest

    if text != LEARNED and not Path(text).exists():
        raise InputProblem(
            f"cannot read {text}: there is no such file; a cost model is {ANALYTICAL}, {LEARNED}, or a file that "
            "`lift-egraph train` wrote"
        )
    info = find_device(device, description)
    model: Model = nearest(info) if text == LEARNED else load_model(Path(text))
    if text != LEARNED:
        model.require_device(info)
    model.fitted  # learned before the clock runs: it would take seconds of a short budget  # noqa: B018
    return model


def strategy_called(name: str | None, performance: PerformanceModel) -> Strategy | None:
    """A new strategy of a name, for this performance model; none for the one by default.

    Raises
    ------
    ModelProblem
        If there is none, or it takes a model that was learned.
    """
    from lift_egraph.errors import ModelProblem
    from lift_egraph.learned.model import Model
    from lift_egraph.learned.strategies import COMPARING, strategy_of

    if name is None:
        return None
    found = strategy_of(name)
    if name in COMPARING and not isinstance(performance, Model):
        raise ModelProblem(f"the strategy {name} compares kernels as a learned model does: give it --cost learned")
    return found


def _recorded(files: list[Path]) -> list[tuple[Program, list[Record]]]:
    from lift_egraph.errors import ModelProblem
    from lift_egraph.learned.model import records_in
    from lift_egraph.workbench.collection import recorded

    records, notes = records_in(files)
    _tell(notes)
    if not (found := recorded(records)):
        raise ModelProblem(f"{', '.join(map(str, files))}: no record is of a right kernel")
    return found


def _samples(files: list[Path], device: str | None, description: Any) -> Samples:
    from lift_egraph.learned.model import read_samples

    with _progress("features", "kernels") as told:
        samples = read_samples(files, device, description, told)
    _tell(samples.notes)
    return samples


@contextmanager
def _progress(stage: str, things: str) -> Iterator[Told]:
    """A function that shows on stderr how many of so many things have been done."""
    from lift_egraph.cli.show import progress
    from lift_egraph.workbench.progress import Event

    with progress() as listen:
        yield lambda done, of: listen(Event(stage, f"{done} of {of} {things}", done / of))


def _tell(notes: Iterable[str]) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)
