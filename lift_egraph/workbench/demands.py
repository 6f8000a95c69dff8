"""What a program must meet before any work on it begins: parallelism, and sizes that can be validated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from lift_egraph.egraph.encoding import known_operator
from lift_egraph.errors import SearchProblem, SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import SCALAR_BYTES, leaves, scalar_of, width_of
from lift_egraph.meaning.workload import workload

HOST_COPIES = 10  # how often inputs and result are held at once while a kernel is validated
MOST_WORK = 2e10  # values that the reference may compute: some minutes


def require_feasible(program: ir.Program) -> None:
    """Raise a `SizeProblem` for sizes at which the reference result could not be computed in reasonable time.

    Every kernel is compared with the interpreted program, so the program must be interpreted.
    """
    work = workload(program.body)
    if work > MOST_WORK:
        sizes = ", ".join(f"{name}={value}" for name, value in program.sizes)
        raise SizeProblem(
            f"{program.name} at {sizes} computes about {work:.2g} values; its reference result would take longer than "
            f"{MOST_WORK * 1e-8 / 60:.0f} minutes: choose smaller sizes"
        )
    needed, available = HOST_COPIES * data_bytes(program), available_memory()
    if available is not None and needed > available:
        raise SizeProblem(
            f"validating {program.name} needs about {needed / 2**30:.1f} GiB of memory, {available / 2**30:.1f} GiB "
            "are free: choose smaller sizes"
        )


def data_bytes(program: ir.Program) -> int:
    """The size of a program's inputs and result at concrete sizes, in bytes."""
    types = [*(i.type for i in program.inputs), type_of(program.body)]
    every = (leaf for t in types for leaf in leaves(t))
    return sum(
        math.prod(s.evaluate({}) for s in sizes) * width_of(t) * SCALAR_BYTES[scalar_of(t).name]
        for _, sizes, t in every
    )


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
        if value < 1:
            raise SizeProblem(f"the size {name} must be at least 1, got {value}")


def require_parallelism(program: ir.Program) -> None:
    """Raise a `SearchProblem` for a program in which nothing can run in parallel."""
    for term in ir.subterms(program.body):
        if isinstance(term, ir.Map | ir.MapLevel | ir.Generate):
            return
        if isinstance(term, ir.Reduce) and known_operator(term.operator) is not None:
            return
    raise SearchProblem(
        f"{program.name} has no parallelism: it contains no map, and no reduction by an operator that is known to "
        "be associative (add, mul, min, max, and, or)"
    )
