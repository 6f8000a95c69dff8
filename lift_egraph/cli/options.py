"""Options that several commands take, and what their texts say."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lift_egraph.errors import InputProblem

if TYPE_CHECKING:
    from lift_egraph.codegen.devices import Device
    from lift_egraph.language.ir import Program

USUAL_START = 1.5  # seconds that a command takes to begin on a machine with nothing else to do, at the most

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value to stdout instead of a table.")]
ProgramText = Annotated[str, typer.Argument(help="The name of a bundled program, or a .lift file.")]
DeviceText = Annotated[
    str | None,
    typer.Option("--device", help="An index or a description as `devices` shows them, or a part of a name."),
]
RecordsText = Annotated[
    str | None,
    typer.Option(
        "--records",
        metavar="FILE",
        help="The journal of what was measured; 'none' for none. By default $LIFT_EGRAPH_RECORDS, or the user's own.",
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact/--fast",
        help="Kernels that compute each bit of floats as the program says it, from left to right; or by all rules.",
    ),
]


def read_sizes(texts: list[str]) -> dict[str, int]:
    """The sizes in texts of the form ``NAME=NUMBER``."""
    sizes: dict[str, int] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            number = int(value)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=NUMBER") from None
        if name in sizes:
            raise typer.BadParameter(f"the size {name} is given twice")
        sizes[name] = number
    return sizes


def check_sizes(texts: list[str]) -> list[str]:
    read_sizes(texts)
    return texts


SizeTexts = Annotated[
    list[str] | None,
    typer.Option("--size", metavar="NAME=NUMBER", callback=lambda v: check_sizes(v or []), help="A size."),
]


def check_budget(seconds: float) -> float:
    if not 0 < seconds < math.inf:
        raise typer.BadParameter(f"{seconds} is not a number of seconds above 0")
    return seconds


def left_of(seconds: float, began: float | None) -> float:
    """What a command has left of its budget: all, but for how much later than usual it begins, at most half.

    Parameters
    ----------
    began
        When its process began, by `time.perf_counter`, if that is known.
    """
    late = 0.0 if began is None else time.perf_counter() - began - USUAL_START
    return seconds - min(max(late, 0.0), seconds / 2)


def read_program(text: str) -> Program:
    """The program that a user names: a bundled one, or a file.

    Raises
    ------
    LiftError
        If there is none, or the file holds no correct program.
    """
    from lift_egraph import programs as bundled
    from lift_egraph.language.syntax import parse_file

    if text in bundled.names():
        return bundled.load(text)
    if Path(text).exists() or text.endswith(".lift") or len(Path(text).parts) != 1:
        return parse_file(text)
    if Path(f"{text}.lift").exists():
        raise InputProblem(f"there is no bundled program {text!r}; did you mean the file {text}.lift?")
    return bundled.load(text)  # says which names are close


def read_program_with_sizes(text: str, read: Callable[[str], Program] = read_program) -> Program:
    """A program that a user names, with the sizes behind its name as defaults: ``mm:M=512,K=512,N=512``.

    Raises
    ------
    LiftError
        If there is no such program, or it has no such size.
    """
    name, _, sizes = text.partition(":")
    program = read(name)
    given = read_sizes([one for one in sizes.split(",") if one])
    unknown = given.keys() - dict(program.sizes).keys()
    if unknown:
        known = ", ".join(dict(program.sizes)) or "none"
        raise InputProblem(f"{name} has no size {', '.join(sorted(unknown))}: its sizes are {known}")
    return replace(program, sizes=tuple((size, given.get(size, value)) for size, value in program.sizes))


def _read_device(file: str) -> Device:
    from lift_egraph.codegen.devices import load_device

    return load_device(file)


DeviceFile = Annotated[
    Any, typer.Option("--device-file", metavar="FILE.toml", parser=_read_device, help="Describes the device.")
]
