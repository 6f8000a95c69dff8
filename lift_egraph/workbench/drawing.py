"""Random points of a program's space: low-level terms of all that its search yields, each kind as often as the others.

A kind is a family of terms that a search finds, or the points of its plans with parameters.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import partial

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.running.run import check_limits
from lift_egraph.errors import LiftError, SearchProblem
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.language import ir
from lift_egraph.process.child import Stream
from lift_egraph.records.record import point_of
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import kernels, make_candidate
from lift_egraph.workbench.phases import Found, family
from lift_egraph.workbench.report import Candidate
from lift_egraph.workbench.search import search
from lift_egraph.workbench.tuned import Tunable

CHUNKS = (2, 4, 8, 16, 32, 64)  # of short arrays, from which those of a search are drawn …
DRAWN_CHUNKS = 4  # … so many
TRIES = 4  # terms that are compiled at most, for each point that is wanted


def drawn(
    source: ir.Program,
    program: ir.Program,
    info: DeviceInfo,
    device: Device,
    most: int,
    seconds: float,
    seed: int = 0,
    known: Container[str] = (),
) -> Iterator[tuple[str, Candidate]]:
    """Different kernels of a program that the device could run, each with its kind.

    Parameters
    ----------
    source
        The program with open sizes.
    program
        The same at the wanted sizes.
    most
        How many at most.
    seconds
        How long the space is searched, before the first.
    known
        Points (`lift_egraph.records.record.point_of`) that are left out.

    Raises
    ------
    SearchProblem
        If the search finds no low-level term.
    """
    draw = random.Random(seed)
    chunks = tuple(draw.sample(CHUNKS, DRAWN_CHUNKS))
    budget = Budget(seconds, search_share=1.0, cpu_blocks=chunks, gpu_blocks=chunks, tuning_share=1.0)
    kinds: dict[str, list[Callable[[], Found]]] = defaultdict(list)
    for message in Stream(
        partial(search, source=source), program, device, budget, StructuralCost(), time_limit=seconds
    ):
        if isinstance(message, Found):
            kinds[" ".join(family(message.way)) or "lowering"].append(partial(_same, message))
        elif isinstance(message, Tunable):
            name = f"{' '.join(family(message.base.way))}, parameters"
            try:
                kinds[name] += [partial(message.found, p) for p in message.space(device).sample(most, seed)]
            except SearchProblem:  # nothing bounds a parameter
                continue
    if not kinds:
        raise SearchProblem(
            f"the space of {program.name} is empty: in {seconds:g} s the search found no low-level term"
        )
    for members in kinds.values():
        draw.shuffle(members)
    texts: set[str] = set()
    for _ in range(TRIES * most):
        open_kinds = [name for name, members in kinds.items() if members]
        if not open_kinds or len(texts) == most:
            return
        name = draw.choice(open_kinds)
        try:
            found = kinds[name].pop()()
            made = make_candidate(replace(program, body=found.term), found.cost, info, device, found.way)
            check_limits(made.plan, info)
        except LiftError:  # legal in the e-graph's eyes, but not for the code generator, the device or the space
            continue
        if (text := kernels(made)) not in texts and point_of(made.program, made.plan) not in known:
            texts.add(text)
            yield name, made


def _same(found: Found) -> Found:
    return found
