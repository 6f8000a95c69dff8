"""``derivation.json``: the program, and each phase on the way to a kernel's term with the term that was taken from it.

`derivation.schema.json` is its schema for other programs, as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from msgspec import Struct

from lift_egraph import rules as book
from lift_egraph.egraph.rule_files import OwnRule, RuleFile, RuleIn, reference_to
from lift_egraph.errors import InputProblem, LiftError
from lift_egraph.files import read_json
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program, print_program
from lift_egraph.records.record import PhasePart, RulePart
from lift_egraph.workbench.phases import Leg

WAY_FILE = "derivation.json"
FORMAT = 1


class DerivationFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A program and the way from it; terms are programs in LIFT's text form."""

    format: Literal[1]
    program: str
    phases: list[PhasePart]


def derivation_of(program: ir.Program, way: tuple[Leg, ...]) -> DerivationFile:
    """The content of ``derivation.json``."""
    return DerivationFile(FORMAT, print_program(program), phases_of(program, way))


def phases_of(program: ir.Program, way: tuple[Leg, ...]) -> list[PhasePart]:
    """A way as plain data."""
    return [
        PhasePart(
            leg.name,
            leg.iterations,
            leg.device_kind,
            [(n, list(chunks)) for n, chunks in leg.tiling.items()],
            list(leg.widths),
            list(leg.spaces),
            print_program(replace(program, body=leg.term)),
            list(map(_rule_part, leg.rules)),
            leg.exact,
        )
        for leg in way
    ]


def way_of(phases: Sequence[PhasePart]) -> tuple[Leg, ...]:
    """A way from plain data.

    Raises
    ------
    LiftError
        If a term is no correct program.
    """
    return tuple(map(_leg, phases))


def read_way(directory: Path) -> tuple[ir.Program, tuple[Leg, ...]]:
    """The program and the way in a directory that `write` wrote.

    Raises
    ------
    InputProblem
        If the file is missing, or is no such file.
    """
    path = directory / WAY_FILE
    if not path.exists():
        raise InputProblem(f"there is no {path}: `lift-egraph optimize PROGRAM --out {directory}` writes it")
    content = read_json(path, DerivationFile, FORMAT)
    try:
        return parse_program(content.program), way_of(content.phases)
    except LiftError as problem:
        raise InputProblem(f"{path} holds no correct program: {problem}") from None


def _rule_part(own: OwnRule) -> RulePart:
    if own in book.all_rules:
        return RulePart(own.name, None, None)
    rule = own if isinstance(own, RuleIn) else reference_to(own)
    return RulePart(rule.name, rule.file and rule.file.path, rule.file and rule.file.digest)


def _own_rule(part: RulePart) -> OwnRule:
    if part.file and part.hash:
        return RuleIn(part.name, RuleFile(part.file, part.hash))
    return next((rule for rule in book.all_rules if rule.name == part.name), RuleIn(part.name, None))


def _leg(part: PhasePart) -> Leg:
    return Leg(
        part.phase,
        parse_program(part.term).body,
        part.iterations,
        part.device_kind,
        {n: tuple(chunks) for n, chunks in part.tiling},
        tuple(part.widths),
        tuple(part.spaces),
        tuple(map(_own_rule, part.rules)),
        part.exact,
    )
