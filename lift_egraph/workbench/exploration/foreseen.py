"""What is predicted of low-level terms while the search goes on: their kernels are compiled, but not built or run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf, isinf

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import Device
from lift_egraph.errors import LiftError
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.baseline import naive_term
from lift_egraph.garbage import no_search_for_garbage
from lift_egraph.language import ir
from lift_egraph.workbench.exploration.spectrum import Version, kind_of, versions
from lift_egraph.workbench.phases import Found

KEPT = 1024  # predictions: a stage's terms are ranked when they are found, and again among those of later rounds


@lru_cache(KEPT)
def predicted_ms(low_level: ir.Program, device: Device) -> float:
    """The time of a low-level program; infinite for what is legal in the e-graph's eyes, but not on the device."""
    try:
        return float(predict(compile_program(low_level, device, with_text=False), device))
    except LiftError:
        return inf


@no_search_for_garbage()
def ranked(program: ir.Program, found: Sequence[Found], device: Device) -> list[Found]:
    """Different low-level terms of a program, the best first; none with copies in other memory: one phase stages those
    of all stages.
    """
    terms = {f.term: f for f in found if f.way[-1].name != "memory"}
    if len(terms) < 2:
        return [*terms.values()]
    times = {term: predicted_ms(replace(program, body=term), device) for term in terms}
    return sorted(terms.values(), key=lambda f: (times[f.term], f.cost))


def best_versions(
    program: ir.Program, device: Device, alternatives: Sequence[ir.Alternative], end: float
) -> list[Version]:
    """The versions of a program by alternatives whose naive kernels are the best, of each kind one before the second
    of any; after the end, a time of `time.perf_counter`, no more are looked at.
    """
    found: dict[object, list[tuple[float, int, Version]]] = {}
    for number, version in enumerate(versions(program.body, alternatives)):
        if number and time.perf_counter() > end:
            break
        ms = _naive_ms(replace(program, body=version[0]), device)
        if not isinf(ms):  # a version may be none for the device
            found.setdefault(kind_of(version), []).append((ms, number, version))
    places = sorted((place, *one) for ones in found.values() for place, one in enumerate(sorted(ones)))
    return [version for *_, version in places]


def _naive_ms(program: ir.Program, device: Device) -> float:
    try:
        return predicted_ms(naive_term(program), device)
    except LiftError:
        return inf
