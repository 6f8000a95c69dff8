"""What a program is compared with on a device: libraries, and texts written by hand.

One table: on a CPU NumPy, SciPy, Numba and Halide, and OpenCL C by hand; on an NVIDIA GPU torch. `lift_egraph.bench`
has a module for each. A library that is not installed is named with what brings it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

from lift_egraph.bench import by_hand
from lift_egraph.bench.in_numpy import CALLS
from lift_egraph.bench.in_torch import on_the_gpu, torch_makers
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.programs import load as bundled
from lift_egraph.records.record import program_hash

BY_HAND = "by hand"
INSTALL = "pip install 'lift-egraph[bench]'"
SCHEDULED = {"SciPy": "in_scipy", "Numba": "in_numba", "Halide": "in_halide"}
"""Libraries for CPUs beside NumPy, and the modules that have schedules in them for each program, as ``MAKERS``."""

HELD_BY = {
    "SciPy": ("spmv", "bfs"),
    "Numba": (
        "asum", "dot", "matvec", "jacobi5", "j2d9pt", "gauss25", "laplace7", "softmax_rows", "norm_rows", "conv_layer",
        "scan", "scan_f32", "horner", "mss", "spmv", "kmeans", "bfs",
    ),
    "Halide": ("jacobi5", "j2d9pt", "gauss25", "laplace7", "conv_layer", "softmax_rows", "norm_rows"),
}  # fmt: skip
"""The programs of each, known where it is not installed too."""

WORK = (
    "mm:M=512,K=512,N=512", "mm", "mm:M=2048,K=2048,N=2048", "mm_batch", "mm_tn", "mm_nt", "matvec", "vecmat",
    "matvec:M=524288,N=128", "matvec:M=128,N=524288", "asum", "dot", "jacobi5", "j2d9pt", "gauss25", "laplace7",
    "conv_layer", "softmax_rows", "norm_rows", "scan", "scan_f32", "horner", "mss", "spmv", "kmeans", "bfs",
    "dgemm:M=2048,K=2048,N=2048",
)  # fmt: skip
"""What a benchmark measures by default: programs, with sizes where these are not their defaults."""


@cache
def names() -> tuple[str, ...]:
    """The names of the programs that libraries are made for.

    >>> names()[:4]
    ('asum', 'bfs', 'conv_layer', 'dgemm')
    """
    return tuple(sorted(CALLS))


def load(name: str) -> ir.Program:
    """One of these programs; some are bundled ones."""
    own = files("lift_egraph.bench") / "libraries" / f"{name}.lift"
    return parse_program(own.read_text(encoding="utf-8"), f"{name}.lift") if own.is_file() else bundled(name)


def of(program: ir.Program) -> str | None:
    """Which of these a program at concrete sizes is; None if it is another one, whatever its name is."""
    if program.name not in CALLS:
        return None
    try:
        own = specialise(load(program.name), dict(program.sizes))
    except LiftError:  # its sizes have other names
        return None
    return program.name if program_hash(own) == program_hash(replace(program, name=own.name)) else None


@dataclass(frozen=True)
class Peer:
    """One thing that a program is compared with.

    Attributes
    ----------
    library, how
        Its name, and which of its schedules this is.
    make
        Makes a function that computes the result; by then it is compiled.
    plan
        Kernels that do, on the same device.
    milliseconds
        How long it takes by another clock, from the rounds of timing.
    problem
        Why it cannot be had.
    """

    library: str
    how: str = ""
    make: Callable[[], Callable[[], object]] | None = None
    plan: Plan | None = None
    milliseconds: Callable[[int], float] | None = None
    problem: str = ""


def peers(program: ir.Program, device: DeviceInfo, inputs: Mapping[str, Any]) -> list[Peer]:
    """All that a program at concrete sizes is compared with on a device; nothing for a program of another kind."""
    name = of(program)
    if name is None:
        return []
    if device.kind != "cpu":
        return list(_of_gpu(name, inputs))
    numpy = Peer("NumPy", make=lambda: partial(CALLS[name], **inputs))
    plans = by_hand.plans(name, program, describe(device))
    return [numpy, *_scheduled(name, inputs), *(Peer(BY_HAND, how, plan=plan) for how, plan in plans.items())]


def _scheduled(name: str, inputs: Mapping[str, Any]) -> Iterator[Peer]:
    for library, module in SCHEDULED.items():
        if name not in HELD_BY[library]:
            continue
        try:
            makers = importlib.import_module(f"lift_egraph.bench.{module}").MAKERS[name]
        except ImportError:
            yield Peer(library, problem=f"not installed: {INSTALL}")
        else:
            yield from (Peer(library, how, make=partial(make, inputs)) for how, make in makers.items())


def _of_gpu(name: str, inputs: Mapping[str, Any]) -> Iterator[Peer]:
    try:
        makers = torch_makers()
    except ImportError:
        yield Peer("torch", problem="not installed: pip install torch")
        return
    if name in makers:
        how, make = makers[name]
        yield Peer("torch", how, milliseconds=partial(on_the_gpu, make, inputs))
