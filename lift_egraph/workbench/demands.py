"""What a program must meet before any work on it begins, and how much memory it takes."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from pathlib import Path

from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import bytes_of


def data_bytes(program: ir.Program) -> int:
    """The size of a program's inputs and result at concrete sizes, in bytes."""
    return sum(map(bytes_of, (*(i.type for i in program.inputs), type_of(program.body))))


def available_memory() -> int | None:
    """Bytes of memory that can be had without swapping, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def require_elements(program: ir.Program, sizes: Mapping[str, int]) -> None:
    """Raise a `SizeProblem` for sizes of 0: there is nothing to measure then."""
    for name, value in {**dict(program.sizes), **sizes}.items():
        if isinstance(value, Integral) and value < 1:
            raise SizeProblem(f"the size {name} must be at least 1, got {value}")


def require_result(program: ir.Program) -> None:
    """Raise a `SizeProblem` for a program at concrete sizes whose result has no elements: nothing can be measured."""
    if not bytes_of(type_of(program.body)):
        raise SizeProblem(f"{program.name} computes no elements: its result is {type_of(program.body)}")
