"""Random points of a program's space: low-level terms of all that its search yields, each kind as often as the others.

A kind is a family of terms that a search finds, or the points of its plans with parameters. The space is searched in
rounds, until it has terms enough: first as `optimize` does, then wider, each time with other chunk sizes. What is cheap
in an e-graph is much alike, so a wide search with a few sizes finds more than a usual one with many.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.running.run import check_limits
from lift_egraph.errors import LiftError, SearchProblem
from lift_egraph.extract.cost import StructuralCost
from lift_egraph.garbage import drop_unused_e_graphs
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical
from lift_egraph.process.child import Stream
from lift_egraph.records.record import point_of
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import Candidate, kernels, make_candidate
from lift_egraph.workbench.exploration.search import search
from lift_egraph.workbench.exploration.tuned import Tunable
from lift_egraph.workbench.phases import Found, family

CHUNKS = (2, 4, 8, 16, 32, 64, 128, 256, 512)  # of short arrays, from which those of a round are drawn …
DRAWN_CHUNKS = 3  # … so many
ENOUGH = 0.7  # terms, for each point that is drawn at most, with which no further round begins
TRIES = 4  # terms that are compiled at most, for each point that is wanted
USUAL = Budget(search_share=1.0, tuning_share=0.5)
WIDE = replace(
    USUAL,
    widths=4,
    seeds=48,
    seed_tries=400,
    seeds_per_shape=24,
    worst_seed=16.0,
    lowered=36,
    lowered_tries=150,
    lowered_per_shape=9,
    staged=6,
    copies=6,
    copy_tries=60,
    copies_per_shape=2,
)  # how far a round looks: at what `optimize` would not try, too, as a model must tell it from what is good

WIDENED = (
    *("seeds", "seed_tries", "seeds_per_shape", "lowered", "lowered_tries", "lowered_per_shape"),
    *("staged", "copies", "copy_tries", "copies_per_shape"),
)  # what a search looks twice as far with that is made because another one found too little


def drawn(
    source: ir.Program,
    program: ir.Program,
    info: DeviceInfo,
    device: Device,
    most: int,
    seconds: float,
    seed: int = 0,
    known: Container[str] = (),
    searches: int = 0,
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
    searches
        How many were made before: each looks twice as far as the last, with chunk sizes in another order.

    Raises
    ------
    SearchProblem
        If the search finds no low-level term.
    """
    draw = random.Random(seed + searches)
    kinds = _kinds(source, program, device, most, seconds, draw, seed + searches, searches)
    if not kinds:
        raise SearchProblem(
            f"the space of {program.name} is empty: in {seconds:.3g} s the search found no low-level term; "
            "a longer search may find one"
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


def _kinds(
    source: ir.Program,
    program: ir.Program,
    device: Device,
    most: int,
    seconds: float,
    draw: random.Random,
    seed: int,
    searches: int,
) -> dict[str, list[Callable[[], Found]]]:
    """What makes the terms of each kind: rounds are searched side by side, one by each processor."""
    kinds: dict[str, list[Callable[[], Found]]] = defaultdict(list)
    terms, plans = set[ir.Expr](), set[object]()
    sizes = draw.sample(CHUNKS, len(CHUNKS))
    parts = [tuple(sizes[at : at + DRAWN_CHUNKS]) for at in range(0, len(sizes), DRAWN_CHUNKS)]
    wide = [(_wider(WIDE, searches), chunks) for chunks in (*parts[1:], parts[0])]
    depths = wide if searches else [(USUAL, parts[0]), *wide]
    budgets = [replace(depth, cpu_blocks=chunks, gpu_blocks=chunks) for depth, chunks in depths]
    with _Rounds(source, program, device, budgets, ENOUGH * most, seconds) as messages:
        for message in messages:
            if isinstance(message, Found):
                if (term := canonical(message.term)) not in terms:
                    terms.add(term)
                    kinds[" ".join(family(message.way)) or "lowering"].append(partial(_same, message))
            elif isinstance(message, Tunable) and (plan := canonical(message.base.term)) not in plans:
                plans.add(plan)
                name = f"{' '.join(family(message.base.way))}, parameters"
                try:
                    kinds[name] += [partial(message.found, p) for p in message.space(device).sample(most, seed)]
                except SearchProblem:  # nothing bounds a parameter
                    continue
    return kinds


def _wider(budget: Budget, times: int) -> Budget:
    """A budget with which twice as many terms are looked at and kept, so many times."""
    return replace(
        budget, **{name: getattr(budget, name) << times for name in WIDENED}, worst_seed=budget.worst_seed * 2**times
    )


class _Rounds:
    """Searches, one by each processor at a time; none is begun once they found enough, or after the end.

    In a context: what they find, the first search's before the second's. Leaving it ends all.
    """

    def __init__(
        self,
        source: ir.Program,
        program: ir.Program,
        device: Device,
        budgets: Sequence[Budget],
        enough: float,
        seconds: float,
    ) -> None:
        self._search, self._given, self._budgets = partial(search, source=source), (program, device), budgets
        self._enough, self._end, self._found = enough, time.perf_counter() + seconds, 0
        self._beside = min(os.cpu_count() or 1, len(budgets))
        self._threads = ThreadPoolExecutor(self._beside)
        self._streams: list[Stream[Any]] = []

    def __enter__(self) -> Iterator[Any]:
        drop_unused_e_graphs()
        reading = [self._threads.submit(self._read, number) for number in range(len(self._budgets))]
        return (message for found in reading for message in found.result())

    def _read(self, number: int) -> list[Any]:
        share = (self._end - time.perf_counter()) / ceil((len(self._budgets) - number) / self._beside)
        if share <= 0 or self._found >= self._enough:
            return []
        budget = replace(self._budgets[number], seconds=share)
        stream = Stream(self._search, *self._given, budget, StructuralCost(), time_limit=share)
        self._streams.append(stream)
        messages: list[Any] = []
        for message in stream:
            messages.append(message)
            self._found += isinstance(message, Found)
        self._streams.remove(stream)
        return messages

    def __exit__(self, *_: object) -> None:
        self._enough = 0  # also after Ctrl-C: no other begins
        for stream in self._streams:
            stream.signal(signal.SIGKILL)
        self._threads.shutdown()


def _same(found: Found) -> Found:
    return found
