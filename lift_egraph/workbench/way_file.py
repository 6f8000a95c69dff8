"""The way to a kernel's term as a file: the program, and each phase with the term that was taken from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lift_egraph.errors import InputProblem, LiftError
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program, print_program
from lift_egraph.workbench.search import Leg

WAY_FILE = "derivation.json"
PHASES = ("algorithmic", "lowering", "memory")


def way_to_json(program: ir.Program, way: tuple[Leg, ...]) -> dict[str, Any]:
    """A program and the way from it as plain data; terms are programs in LIFT's text form."""

    def text(term: ir.Expr) -> str:
        return print_program(ir.Program(program.name, program.inputs, term, program.sizes))

    return {
        "program": text(program.body),
        "phases": [
            {
                "phase": leg.name,
                "iterations": leg.iterations,
                "device_kind": leg.device_kind,
                "tiling": [[n, list(chunks)] for n, chunks in leg.tiling.items()],
                "widths": list(leg.widths),
                "spaces": list(leg.spaces),
                "term": text(leg.term),
            }
            for leg in way
        ],
    }


def read_way(directory: Path) -> tuple[ir.Program, tuple[Leg, ...]]:
    """The program and the way in a directory that `write` wrote.

    Raises
    ------
    InputProblem
        If the file is missing, or is no such file.
    """
    path = directory / WAY_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputProblem(f"there is no {path}: `lift-egraph optimize PROGRAM --out {directory}` writes it") from None
    except (OSError, ValueError) as problem:
        raise InputProblem(f"cannot read {path}: {problem}") from None
    try:
        return parse_program(data["program"]), tuple(_leg(item) for item in data["phases"])
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputProblem(f"{path} is not what `optimize` writes: {type(problem).__name__}: {problem}") from None
    except LiftError as problem:
        raise InputProblem(f"{path} holds no correct program: {problem}") from None


def _leg(item: dict[str, Any]) -> Leg:
    if item["phase"] not in PHASES:
        raise ValueError(f"there is no phase {item['phase']!r}")
    return Leg(
        item["phase"],
        parse_program(item["term"]).body,
        int(item["iterations"]),
        str(item["device_kind"]),
        {int(n): tuple(int(c) for c in chunks) for n, chunks in item["tiling"]},
        tuple(int(w) for w in item["widths"]),
        tuple(str(s) for s in item["spaces"]),
    )
