"""What a learned model is trained on: random points of a program's space, measured and appended to a journal.

Each point is on the disk as a record before another is measured, so an interrupted collection keeps what it has, and
the same call goes on where it stopped. The terms of records are measured again in the same way: a record says how fast
the kernel was that its term led to then.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from msgspec import structs

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.running.run import check_limits
from lift_egraph.errors import LiftError, SearchProblem
from lift_egraph.language import ir
from lift_egraph.language.check import specialise
from lift_egraph.language.syntax import parse_program
from lift_egraph.records.journal import Journal
from lift_egraph.records.record import PhasePart, Record, point_of
from lift_egraph.records.searched import as_searched
from lift_egraph.workbench.budget import Budget
from lift_egraph.workbench.candidates import NOT_RUN, Candidate, kernels, make_candidate
from lift_egraph.workbench.demands import data_bytes, require_elements, require_result
from lift_egraph.workbench.exploration.drawing import drawn
from lift_egraph.workbench.measuring.executors import ANSWER, Job, Workers, asked
from lift_egraph.workbench.measuring.lanes import Clock, Lanes
from lift_egraph.workbench.measuring.surveying import survey
from lift_egraph.workbench.pipeline import found_device
from lift_egraph.workbench.progress import Event, Listener
from lift_egraph.workbench.recording import Recording
from lift_egraph.workbench.validation.references import reference_of, room_for

REFERENCE = 30.0  # seconds of interpreting what kernels are compared with, at most
SLOW = 20.0  # times the best, from which one run tells the time of a kernel
RUNS, TIMING, LEAST_TIMING = 9, 0.25, 0.02  # of a kernel: so many, unless they take more seconds; and for so many, then
LONGEST, LONGEST_KERNEL = 7200.0, 3.0  # seconds for the points of one program, and for a kernel's build and run
SEARCH_SHARE = 0.5  # of the seconds for the points of a program, that the search takes at most
LONGER, USED_UP = 3, 0.8  # how often a search that found no term is made for longer, if it took that much of its time
SPARE = 3  # times the points that are wanted which are drawn: some are not valid


@dataclass(frozen=True)
class Collection:
    """What became of the points of a program.

    Attributes
    ----------
    valid
        How many its journal has that are right.
    new, failed
        How many of these are new, and how many new ones were wrong, too slow or refused.
    """

    program: ir.Program
    valid: int
    new: int = 0
    failed: int = 0

    def __str__(self) -> str:
        return f"{self.program.name}: {self.valid} points, {self.new} of them new; {self.failed} more are not valid"


def collect(
    program: ir.Program,
    sizes: dict[str, int] | None = None,
    *,
    journal: Path | str,
    points: int,
    device: str | DeviceInfo | None = None,
    description: Device | None = None,
    search: float = 60.0,
    seconds: float = LONGEST,
    seed: int = 0,
    again: Sequence[Record] = (),
    executor: Executor | None = None,
    listen: Listener = lambda event: None,
) -> Collection:
    """Measure random points of a program's space until a journal has so many that are right.

    Parameters
    ----------
    program, sizes, device, description, executor
        As for `lift_egraph.workbench.optimize`.
    journal
        A file; records that it has of the program, this device and these versions count.
    points
        How many it is to have at last, of this program at these sizes. There may be fewer in the space.
    search
        Seconds in which the space is searched, if it has not points enough before. While points are missing it is
        searched again, each time wider and for twice as long, until a search finds nothing new; one that was too short
        for any term is made for longer three times at most.
    seconds
        After which no more points are measured: a later call goes on. A search takes a half of what is left at most.
    seed
        Of the draw, and of the random inputs.
    again
        Records of this program (`recorded` finds it): their terms are compiled and measured, in an order that is drawn,
        in the place of what a search finds, so `points` and `search` do not matter. Where several lead to the same
        kernels now, one is measured.

    Raises
    ------
    SizeProblem, TypeProblem, DeviceProblem, SearchProblem
        If the program, its sizes and the device do not go together, or the space is empty.
    InputProblem, OutputProblem
        If the journal is none, or cannot be written to. What is in it stays.
    """
    require_elements(program, sizes or {})
    program = program if again else as_searched(program, sizes)
    special = specialise(program, sizes)
    require_result(special)
    given = device, description
    info, model = asked(executor, ANSWER, found_device, *given) if executor else found_device(*given)
    kept = Journal(Path(journal))
    recording = Recording(kept, special, info, model, must=True)
    known = recording.points
    valid, new, failed = sum(r.validity == "valid" for r in known.values()), 0, 0
    clock, tried = Clock(min(seconds, LONGEST)), {*known}
    if again:
        source = _Terms(again, special, info, model, {r.term for r in known.values()}, seed)
        points = valid + len(source)
    else:
        draw = partial(drawn, program, special, info, model)
        source = _Searches(draw, special.name, min(search, SEARCH_SHARE * seconds), clock, seed, listen)
    if valid >= points:
        return Collection(special, valid)
    waiting = source.another(SPARE * (points - valid), tried)
    if waiting is None:
        return Collection(special, valid)
    budget = Budget(
        LONGEST,
        repeats=RUNS,
        cut_off=SLOW,
        most_kernel=LONGEST_KERNEL,
        timing_seconds=LEAST_TIMING,
        timing_share=TIMING / LONGEST,
        reference_share=REFERENCE / LONGEST,
    )
    limit = budget.kernel_seconds(data_bytes(special))
    job = Job(program, special, info, model, budget, limit, seed, measure=survey)
    inbox = SimpleQueue[Any]()
    ready, together = deque[Candidate](), model.built_together
    with Workers(executor, job, clock, inbox) if executor else _here(job, clock, inbox) as lanes:
        while not lanes.ended and clock.left > 0:
            missing = points - valid - new - lanes.busy
            batch = min(missing, 1 if lanes.busy or waiting is None else together)
            if 0 < batch <= len(ready) and lanes.free(False):
                lanes.submit(ready.popleft(), [*islice(ready, together - 1)])
                continue
            if waiting and len(ready) < min(missing, 2 * together) and inbox.empty():
                with lanes.working():  # while others are built, and none is timed
                    following = next(waiting, None)
                if following is None:
                    waiting = None
                else:
                    ready.append(following[1])
                continue
            if not lanes.busy:
                waiting = source.another(SPARE * missing, tried) if missing else None
                if waiting is None:
                    break
                continue
            candidate = lanes.done(inbox.get(timeout=lanes.patience))
            if candidate.message == NOT_RUN:  # on its way again, or cut short by the end
                continue
            record = recording.record_of(candidate)
            kept.append(record := structs.replace(record, phases=source.phases.get(record.point, record.phases)))
            tried.add(record.point)
            new, failed = new + candidate.valid, failed + (not candidate.valid)
            told = f"{special.name}: {valid + new} of {points} points, {failed} more are not valid"
            listen(Event("measure", told, (valid + new) / points))
    return Collection(special, valid + new, new, failed)


def recorded(records: Iterable[Record]) -> list[tuple[ir.Program, list[Record]]]:
    """The programs that records of right kernels are of, at their sizes, each with these: those with the fewest first,
    so that the time that they leave goes to the others.
    """
    of_program: dict[str, list[Record]] = {}
    for record in records:
        if record.validity == "valid":
            of_program.setdefault(record.program.hash, []).append(record)
    return [
        (replace(parse_program(known[0].program.text), sizes=tuple(known[0].program.sizes.items())), known)
        for known in sorted(of_program.values(), key=len)
    ]


class _Terms:
    """The terms of records, compiled again, in an order that is drawn; `phases` has what led to each, by its point.

    Parameters
    ----------
    known
        Terms that are left out.
    """

    def __init__(
        self,
        records: Sequence[Record],
        program: ir.Program,
        info: DeviceInfo,
        model: Device,
        known: Set[str],
        seed: int,
    ) -> None:
        left = {r.term: r for r in records if r.term not in known}
        self._records, self.phases = list(left.values()), dict[str, list[PhasePart]]()
        self._program, self._info, self._model = program, info, model
        random.Random(seed).shuffle(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def another(self, most: int, tried: Set[str]) -> Iterator[tuple[str, Candidate]] | None:
        """Those of which none was measured, the first time."""
        records, self._records = self._records, []
        return self._compiled(records, tried) if records else None

    def _compiled(self, records: Sequence[Record], tried: Set[str]) -> Iterator[tuple[str, Candidate]]:
        texts = set[str]()
        for record in records:
            try:
                lowered = replace(self._program, body=parse_program(record.term).body)
                made = make_candidate(lowered, 0.0, self._info, self._model)
                check_limits(made.plan, self._info)
            except LiftError:  # another version made it, or another device can do more
                continue
            point = point_of(made.program, made.plan)
            if point not in tried and (text := kernels(made)) not in texts:
                texts.add(text)
                self.phases[point] = record.phases
                yield "known", made


class _Searches:
    """Searches of a program's space, one after the other: each goes wider than the last, and takes twice as long.

    Parameters
    ----------
    draw
        `lift_egraph.workbench.exploration.drawing.drawn` of the program on a device.
    seconds
        Of the first search.
    """

    def __init__(
        self,
        draw: Callable[..., Iterator[tuple[str, Candidate]]],
        name: str,
        seconds: float,
        clock: Clock,
        seed: int,
        listen: Listener,
    ) -> None:
        self._draw, self._name, self._seconds, self._clock = draw, name, seconds, clock
        self._seed, self._listen = seed, listen
        self._made, self._longer, self._tried = 0, 0, -1
        self.phases = dict[str, list[PhasePart]]()  # those of what it finds are known

    def another(self, most: int, tried: Set[str]) -> Iterator[tuple[str, Candidate]] | None:
        """Up to so many other points; None if there are none, or what is left is not time enough for a search.

        Where the time of the first was too short for any term, it is made again, for longer.
        """
        if len(tried) == self._tried:
            return None
        self._tried = len(tried)
        while True:
            seconds = min(self._seconds * 2 ** (self._made + self._longer), SEARCH_SHARE * self._clock.left)
            if self._made and seconds < self._seconds:
                return None
            self._listen(Event("search", f"the space of {self._name}, for {seconds:.3g} s"))
            began = self._clock.spent
            found = self._draw(most, seconds, self._seed, tried, self._made)
            try:
                first = next(found, None)
            except SearchProblem:
                if self._made:
                    return None  # the time was not enough for a term
                was_too_short = self._clock.spent - began > USED_UP * seconds
                if not was_too_short or self._longer == LONGER or SEARCH_SHARE * self._clock.left <= seconds:
                    raise
                self._longer += 1
                continue
            self._made += 1
            return None if first is None else chain([first], found)


def _here(job: Job, clock: Clock, inbox: SimpleQueue[Any]) -> Lanes:
    """What measures on this host: a kernel is timed alone. Others that are built or compared stand still meanwhile, or
    there are none: those that run on a GPU cannot be stopped.
    """
    compiled = partial(compile_program, device=job.description.run_once)
    lanes = job.budget.lanes if job.device.kind == "cpu" else 1
    room, seconds = room_for(job.program, job.device, lanes), job.budget.reference_seconds
    reference = reference_of(job.source, job.program, room, compiled, seed=job.seed, seconds=seconds)
    budget = replace(job.budget, lanes=room.workers)
    return Lanes(job.device, reference, budget, clock, job.kernel_seconds, inbox, measure=job.measure)
