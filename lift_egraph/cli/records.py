"""The command line's ``lift-egraph best`` and ``lift-egraph records``: what is known without a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lift_egraph.cli.options import Exact, Json, ProgramText, RecordsText, SizeTexts, read_program, read_sizes
from lift_egraph.errors import InputProblem, SearchProblem

if TYPE_CHECKING:
    from lift_egraph.records.journal import Contents, Journal
    from lift_egraph.records.known import Known

records_app = typer.Typer(help="List, check, join and export the records of what was measured.", no_args_is_help=True)
Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Journals, or what `measure` wrote.")]


def best(
    program: ProgramText,
    size: SizeTexts = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="A description, or a part of the platform's or device's name; any by default."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Validate the best known kernels on the device, and write the fastest here."),
    ] = None,
    exact: Exact = False,
    records: RecordsText = None,
    as_json: Json = False,
) -> None:
    """Show the best kernel that the records know of a program at these sizes, on each device.

    No device is asked: the answer is what was measured before, with --exact of kernels that `optimize --exact` found,
    else of others. With --out the best known kernels are validated and
    timed again, on the device that --device or PYOPENCL_CTX names, and the fastest is written. The exit code is 1 if
    nothing is known.
    """
    source = read_program(program)
    from lift_egraph.cli.show import assignments, print_json
    from lift_egraph.language.check import specialise
    from lift_egraph.records.known import grouped
    from lift_egraph.records.record import program_hash
    from lift_egraph.records.searched import as_searched

    values = read_sizes(size or [])
    special = specialise(as_searched(source, values), values)
    journal = _journal(records)
    contents = journal.read(program_hash(special))
    _tell(journal, contents)
    alike = [record for record in contents.records if record.exact == exact]
    known = [k for k in grouped(alike) if k.best is not None and _fits(k, device)]
    if not known:
        where = f" on {device!r}" if device else ""
        kind, option = ("exact", " --exact") if exact else ("right", "")
        message = f"no {kind} kernel of {special.name} at {assignments(dict(special.sizes))}{where} is known"
        others = _others(journal, special.name, exact)
        raise SearchProblem(f"{message}: `lift-egraph optimize {program}{option}` finds one{others}")
    if out is not None:
        _write(source, dict(special.sizes), device, journal, out, exact)
    if as_json:
        print_json([_facts(k) for k in known])
        return
    for number, k in enumerate(known):
        typer.echo(("\n" if number else "") + _shown(k))


def _write(source: Any, sizes: dict[str, int], device: str | None, journal: Journal, out: Path, exact: bool) -> None:
    """Validate the best known kernels, and write the fastest."""
    from lift_egraph import workbench
    from lift_egraph.cli.show import progress

    workbench.require_writable(out)
    with progress() as listen:
        report = workbench.recall(source, sizes, device=device, exact=exact, records=journal.path, listen=listen)
    workbench.write(report, out)
    typer.echo(f"wrote {out}/kernel.cl, launch.json, lowered.lift, report.json and derivation.json", err=True)


def _fits(known: Known, text: str | None) -> bool:
    from lift_egraph.codegen.devices import is_called

    return text is None or is_called(known.records[0].device, text)


def _others(journal: Journal, name: str, exact: bool) -> str:
    """The sizes at which a program of that name is known, for a message."""
    from lift_egraph.cli.show import assignments

    alike = (r for r in journal.read().records if r.program.name == name and r.exact == exact)
    found = {assignments(r.program.sizes): None for r in alike}
    shown = [*found][:3] + ["…"] * (len(found) > 3)
    return f"; known at {'; '.join(shown)}" if shown else ""


def _facts(known: Known) -> dict[str, Any]:
    """What is known, as plain data."""
    best = known.best
    assert best is not None
    return {
        "program": best.program.name,
        "sizes": best.program.sizes,
        "platform": best.device.platform,
        "device": best.device.name,
        "kernels": known.kernels,
        "valid": known.valid,
        "median_ms": _ms(best.median),
        "measured_ms": [_ms(r.median) for r in known.of_best],
        "times": len(known.of_best),
        "first": known.of_best[0].date,
        "last": known.of_best[-1].date,
        "versions": best.versions,
        "driver": best.device.driver_version,
        "host": best.host,
        "phases": [p.phase for p in best.phases],
        "term": best.term,
        "launches": [{"kernel": k.kernel, "global": k.global_size, "local": k.local_size} for k in best.launches],
    }


def _shown(known: Known) -> str:
    """What is known, in words."""
    from lift_egraph.cli.show import assignments

    f = _facts(known)
    times = "once" if f["times"] == 1 else f"{f['times']} times"
    when = f["first"][:10] if f["first"][:10] == f["last"][:10] else f"{f['first'][:10]} to {f['last'][:10]}"
    versions = ", ".join(f"{name} {version}" for name, version in f["versions"].items())
    return "\n".join(
        (
            f"{f['program']}, {assignments(f['sizes'])}, on {f['platform']} / {f['device']}",
            f"The best of {f['kernels']} kernels, {f['valid']} of them right, takes {f['median_ms']:.3g} ms. "
            f"Measured {times}, {when}, on {f['host']}; driver {f['driver']}, {versions}.",
            f["term"].rstrip(),
        )
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _journal(place: str | None) -> Journal:
    from lift_egraph.records.journal import journal_at

    journal = journal_at(place)
    if journal is None:
        raise InputProblem("there is no journal of records: --records or LIFT_EGRAPH_RECORDS says none")
    return journal


def _written(place: str | None) -> Journal:
    """The journal that a user means: a file of this name, or the user's own, which need not be there yet."""
    journal = _journal(place)
    if not journal.path.exists():
        if place:
            raise InputProblem(f"cannot read {place}: there is no such file")
        typer.echo(f"note: nothing was recorded yet: `optimize` and `collect` write {journal.path}", err=True)
    return journal


def _tell(journal: Journal, contents: Contents) -> None:
    for note in contents.notes:
        typer.echo(f"note: {journal.path}: {note}", err=True)


# --- lift-egraph records ----------------------------------------------------------------------------------


@records_app.command("list")
def list_(records: RecordsText = None, as_json: Json = False) -> None:
    """List the programs and devices that there are records of, with the time of the best kernel."""
    from lift_egraph.cli.show import assignments, print_json, stdout, table_of
    from lift_egraph.records.known import grouped

    journal = _written(records)
    contents = journal.read()
    _tell(journal, contents)
    rows: list[dict[str, Any]] = []
    for known in grouped(contents.records):
        last, best = known.records[-1], known.best
        row = {"program": last.program.name, "sizes": last.program.sizes}
        row |= {"platform": last.device.platform, "device": last.device.name, "kernels": known.kernels}
        row |= {"valid": known.valid, "best_ms": best and _ms(best.median), "records": len(known.records)}
        rows.append(row | {"last": last.date})
    if as_json:
        print_json(rows)
        return
    table = table_of("program", "sizes", "device", "kernels", "right", "best ms", "records", "last")
    for row in rows:
        counts = str(row["kernels"]), str(row["valid"]), f"{row['best_ms']:.3g}" if row["best_ms"] else "–"
        on = f"{row['platform']} / {row['device']}"
        table.add_row(row["program"], assignments(row["sizes"]), on, *counts, str(row["records"]), row["last"][:16])
    stdout().print(table)


@records_app.command()
def check(records: RecordsText = None) -> None:
    """Read the whole journal, and say what is in it. The exit code is 1 if something had to be left out."""
    from lift_egraph.records.known import grouped

    journal = _written(records)
    contents = journal.read()
    groups = grouped(contents.records)
    programs = len({k.records[0].program.hash for k in groups})
    devices = len({(k.records[0].device.platform, k.records[0].device.name) for k in groups})
    counts = f"{len(contents.records)} records of {programs} programs on {devices} devices"
    typer.echo(f"{journal.path}: {counts}")
    _tell(journal, contents)
    if contents.notes:
        raise typer.Exit(1)


@records_app.command()
def merge(files: Files, records: RecordsText = None) -> None:
    """Append the records in other files to the journal, in their order; those that it has already are left out."""
    from lift_egraph.records.journal import Journal

    journal = _journal(records)
    for file in files:
        if not file.exists():
            raise InputProblem(f"cannot read {file}: there is no such file")
    read = [(Journal(file), Journal(file).read()) for file in files]  # all, before anything is appended
    for other, contents in read:
        _tell(other, contents)
        given, new = journal.add_all(contents.records)
        typer.echo(f"{other.path}: {given} records, {new} of them new")


@records_app.command()
def export(
    t4: Annotated[Path, typer.Option("--t4", metavar="FILE.json", help="Where to write.")], records: RecordsText = None
) -> None:
    """Write all records as T4, the JSON of autotuners' results that Kernel Tuner writes."""
    from lift_egraph.files import json_text, replacing
    from lift_egraph.records.t4 import t4_of

    journal = _written(records)
    contents = journal.read()
    _tell(journal, contents)
    with replacing(t4) as file:
        file.write(json_text(t4_of(contents.records)).encode())
    typer.echo(f"wrote {t4}: {len(contents.records)} results", err=True)
