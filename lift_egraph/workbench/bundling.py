"""Candidates of a search for another machine: nothing is run here, and no device needs to be there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.running.run import check_limits
from lift_egraph.codegen.running.validate import References
from lift_egraph.errors import LiftError, NestingProblem, RunProblem, SearchProblem, SizeProblem
from lift_egraph.extract.baseline import naive_term
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.language.check import specialise, type_of
from lift_egraph.language.types import leaves
from lift_egraph.meaning.values import Value, leaves_of
from lift_egraph.process.child import Stream
from lift_egraph.records.bundle import Check, Content, write_bundle
from lift_egraph.records.opened import leaf_name
from lift_egraph.records.searched import as_searched
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import Candidate, kernels, make_candidate
from lift_egraph.workbench.demands import data_bytes, require_elements, require_result
from lift_egraph.workbench.phases import Found, naive_leg
from lift_egraph.workbench.pipeline import STRUCTURAL, found_device
from lift_egraph.workbench.progress import Event, Listener
from lift_egraph.workbench.recording import Recording
from lift_egraph.workbench.validation.few_steps import FewSteps
from lift_egraph.workbench.validation.references import reference_of, room_for
from lift_egraph.workbench.validation.sampled import Sampled

MOST_BYTES = 1 << 30  # of inputs and result, for one set of inputs
MOST_CHECKS = 1 << 16  # elements of a leaf of the result that are compared
UNKNOWN = 1 << 50  # a limit of a device that is not here


@dataclass(frozen=True)
class Bundled:
    """What went into a bundle: how many candidates, of how many that were found, and how they will be compared."""

    count: int
    found: int
    how: str
    interrupted: bool


def bundle(
    program: ir.Program,
    sizes: dict[str, int] | None,
    path: Path,
    *,
    device: str | None = None,
    description: Device | None = None,
    count: int = 50,
    budget: Budget | float = 60.0,
    seed: int = 0,
    listen: Listener = lambda event: None,
) -> Bundled:
    """Search, and write the candidates with the least predicted times, inputs and what to compare with, into a file.

    Parameters
    ----------
    description
        Of the device that will measure; else the device that `device` names, which must be here, is described.
    count
        How many candidates, the naive one among them, at most.
    budget
        Seconds for the search and the interpreter. After Ctrl-C what was found so far is written.

    Raises
    ------
    SizeProblem, TypeProblem, DeviceProblem, SearchProblem
        If the program, its sizes and the device do not go together, or nothing legal was found.
    OutputProblem
        If the file cannot be written.
    """
    budget = budget if isinstance(budget, Budget) else Budget(budget)
    require_elements(program, sizes or {})
    program = as_searched(program, sizes)
    special = specialise(program, sizes)
    require_result(special)
    if data_bytes(special) > MOST_BYTES:
        raise SizeProblem(f"the inputs and the result of {program.name} have over 1 GiB: choose smaller sizes")
    info, model = (absent(description), description) if description else found_device(device, None)
    candidates: dict[str, Candidate] = {}
    interrupted = False
    try:
        for candidate in _found(special, info, model, budget):
            candidates.setdefault(kernels(candidate), candidate)
            listen(Event("search", f"{len(candidates)} kernels"))
    except KeyboardInterrupt:
        interrupted = True
    if not candidates:
        raise SearchProblem(
            f"the search found no legal term for {program.name} in {budget.seconds:.3g} s: give it a larger budget"
        )
    first, *others = candidates.values()
    chosen = [first, *sorted(others, key=lambda c: c.predicted_ms)][:count]
    listen(Event("reference", "interpreting the program"))
    compiled = partial(compile_program, device=model.run_once)
    room = room_for(special, replace(info, kind="cpu"), 1)
    reference = reference_of(program, special, room, compiled, seed=seed, seconds=budget.reference_seconds)
    records = Recording(None, special, info, model)
    inputs = {kind: _named(special, values) for kind, values in reference.inputs.items()}
    checks, how = _checks(special, reference, seed)
    write_bundle(path, Content(program.name, [(c.plan, records.record_of(c)) for c in chosen], inputs, checks, how))
    return Bundled(len(chosen), len(candidates), how, interrupted)


def _found(program: ir.Program, info: DeviceInfo, model: Device, budget: Budget) -> Iterator[Candidate]:
    """The naive candidate if there is one, and those of the search."""
    from lift_egraph.workbench.exploration.search import search

    began, seen = time.perf_counter(), set[ir.Expr]()
    try:
        naive = naive_term(program)
        seen.add(canonical(naive.body))
        yield _made(naive, 0.0, (naive_leg(naive.body, model.kind),), info, model)
    except (NestingProblem, SizeProblem):
        pass
    seconds, memory = budget.search_seconds, budget.limits.memory_mb << 20
    stream = Stream(search, program, model, budget, STRUCTURAL, time_limit=seconds, memory_limit=memory)
    for message in stream:
        term = canonical(message.term) if isinstance(message, Found) else None
        if term is None or term in seen or time.perf_counter() - began > budget.seconds:
            continue
        seen.add(term)
        try:
            yield _made(replace(program, body=message.term), message.cost, message.way, info, model)
        except LiftError:  # legal in the e-graph's eyes, but not for the code generator or the device
            continue
    if stream.end.kind == "error":
        raise RunProblem(f"the search failed: {stream.end.text}")


def _made(lowered: ir.Program, cost: float, way: Any, info: DeviceInfo, model: Device) -> Candidate:
    made = make_candidate(lowered, cost, info, model, way)
    check_limits(made.plan, info)
    return made


def absent(model: Device) -> DeviceInfo:
    """The facts of a device of which only the description is here: what that leaves out has no limit."""
    return DeviceInfo(
        index="0:0",
        platform=model.platform,
        platform_version="",
        name=model.named or model.name,
        driver_version="",
        opencl_c_version="",
        kind=model.kind,
        compute_units=model.compute_units,
        clock_mhz=model.clock_mhz,
        max_work_group=model.max_work_group,
        max_work_items=(UNKNOWN, UNKNOWN, UNKNOWN),
        local_memory=model.local_memory,
        local_memory_is_dedicated=model.local_memory_is_cheap,
        global_memory=UNKNOWN,
        max_allocation=UNKNOWN,
        cache=model.cache,
        vector_width=model.vector_width,
        supports_f64=True,
        address_alignment=4096,
    )


def _named(program: ir.Program, values: Mapping[str, Value]) -> dict[str, np.ndarray]:
    """The leaves of inputs by their names in a bundle."""
    found: dict[str, np.ndarray] = {}
    for i in program.inputs:
        for (path, *_), array in zip(leaves(i.type), leaves_of(values[i.name]), strict=True):
            found[leaf_name({"value": i.name, "components": path})] = array
    return found


def _checks(program: ir.Program, reference: References | Sampled, seed: int) -> tuple[dict[str, dict[str, Check]], str]:
    """What results are compared with, for each set of inputs and leaf of the result, and that in a sentence."""
    names = [leaf_name({"value": "result", "components": path}) for path, *_ in leaves(type_of(program.body))]
    if isinstance(reference, FewSteps):
        raise SizeProblem(f"no element of {program.name} has a finite error bound: choose fewer steps of its iterates")
    if isinstance(reference, References):
        sets = {"integers": reference.integers, "floats": reference.floats}
        generator = np.random.default_rng(seed)
        made = {
            kind: [_some(v, b, generator) for v, b in zip(leaves_of(r.value), leaves_of(r.bound), strict=True)]
            for kind, r in sets.items()
        }
    else:
        made = {kind: _sampled(program, reference, kind) for kind in reference.kinds}
    count = max(check.positions.size for checks in made.values() for check in checks)
    how = f"up to {count} elements of the result are compared with the interpreter's"
    return {kind: dict(zip(names, checks, strict=True)) for kind, checks in made.items()}, how


def _some(value: np.ndarray, bound: np.ndarray, generator: np.random.Generator) -> Check:
    """All elements of a leaf, or some of them."""
    size = value.size
    positions = np.arange(size) if size <= MOST_CHECKS else np.sort(generator.choice(size, MOST_CHECKS, replace=False))
    return Check(positions, value.reshape(-1)[positions], np.broadcast_to(bound, value.shape).reshape(-1)[positions])


def _sampled(program: ir.Program, reference: Sampled, kind: str) -> list[Check]:
    """The elements that were interpreted."""
    samples = reference.sets[kind].samples
    if samples is None:
        raise SizeProblem(
            f"no element of {program.name} can be interpreted in the time: choose smaller sizes, or more time"
        )
    found: list[Check] = []
    parts = zip(
        leaves(type_of(program.body)), *map(leaves_of, (samples.places, samples.value, samples.bound)), strict=True
    )
    for (_, lengths, _), places, value, bound in parts:
        shape = tuple(n.evaluate({}) for n in lengths)
        flat = np.ravel_multi_index(tuple(places.T), shape) if shape else np.zeros(len(places), np.intp)
        lanes = value.reshape(len(places), -1).shape[1]
        positions = np.add.outer(flat * lanes, np.arange(lanes)).reshape(-1)
        found.append(Check(positions, value.reshape(-1), np.broadcast_to(bound, value.shape).reshape(-1)))
    return found
