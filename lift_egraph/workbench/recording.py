"""What a run of `optimize` takes from the journal of records, and what it adds to it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.errors import InputProblem, LiftError, OutputProblem
from lift_egraph.extract.models import PerformanceModel
from lift_egraph.language import ir
from lift_egraph.language.syntax import parse_program, print_program
from lift_egraph.records.journal import Contents, Journal
from lift_egraph.records.known import best_first, median_of, neighbours_first, same_device, same_versions
from lift_egraph.records.record import (
    FORMAT,
    ProgramPart,
    Record,
    Validity,
    launches_of,
    point_of,
    program_hash,
    thinned,
    version_of,
)
from lift_egraph.workbench.candidates import NOT_RUN, Candidate, make_candidate
from lift_egraph.workbench.way_file import phases_of, way_of

REMEMBERED = 5  # of the best known kernels: they are validated and timed again before others
NEIGHBOURS = 2  # other devices whose best kernel is tried, too
SLOWER = 2.0  # times the best known median, above which a known kernel is not measured again
PACKAGES = ("lift-egraph", "pyopencl", "numpy")


@dataclass(frozen=True)
class Recorded:
    """What a run had from its journal of records, and what it added.

    Attributes
    ----------
    path
        Of the journal.
    appended
        How many kernels were added.
    remembered
        How many of the best known went first, the naive one among them if it is one.
    skipped
        How many that were found again were not measured again.
    problem
        Why no more could be added; empty where nothing failed.
    notes
        What of the journal was left out.
    """

    path: str
    appended: int
    remembered: int
    skipped: int
    problem: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        known = f"; {self.remembered} known kernels went first" if self.remembered else ""
        skipped = f", {self.skipped} found again were not measured again" if self.skipped else ""
        return f"{self.appended} kernels added to {self.path}{known}{skipped}"


class Recording:
    """The records of one program on one device, and the journal to which new ones are appended.

    Parameters
    ----------
    journal
        None: nothing is known, and nothing is kept.
    program
        At concrete sizes.
    must
        Whether it is an error if the journal cannot be read or written to; else it is noted.
    exact
        Whether kernels that keep each bit of floats are meant. Kernels of the other kind are not known here.

    Raises
    ------
    InputProblem, OutputProblem
        If it must be of use, and is no journal or cannot be written to.
    """

    def __init__(
        self,
        journal: Journal | None,
        program: ir.Program,
        info: DeviceInfo,
        model: Device,
        must: bool = False,
        exact: bool = False,
    ) -> None:
        self._journal, self._program, self._info, self._model = journal, program, info, model
        self._hash, self._problem = program_hash(program), ""
        self._appended = self._first = self._skipped = 0
        self._going_first: dict[str, Candidate] = {}
        contents = Contents(())
        if journal:
            try:
                contents = journal.read(self._hash)
                journal.require_writable()
            except (InputProblem, OutputProblem) as problem:
                if must:
                    raise
                self._problem = str(problem)
        self.notes = [f"{journal and journal.path}: {note}" for note in contents.notes]
        alike = [r for r in contents.records if r.exact == exact]
        self.records = [r for r in alike if same_device(r.device, info)]
        self._neighbours = neighbours_first(alike, info)
        self.remembered: list[Candidate] = []
        current = [r for r in self.records if same_versions(r, info, versions())]
        self._current = {r.point: r for r in current}
        self._known = {r.point: median_of(r) for r in best_first(current)}

    @property
    def points(self) -> Mapping[str, Record]:
        """The last record of each point that was measured on this device with these versions."""
        return self._current

    def remember(self, naive: list[Candidate], cost: PerformanceModel, check: Callable[[Candidate], None]) -> None:
        """Compile the best known kernels again, and then the best of devices that are like this one.

        `remembered` has them, the fastest first, and `notes` why some fail. The naive kernel, which goes first anyway,
        is not among them. Only those that were measured on this device count as known.
        """
        first = self._going_first = {point_of(c.program, c.plan): c for c in naive}
        known = best_first(self.records)
        for record in known:
            if self._first == REMEMBERED or median_of(record) > SLOWER * median_of(known[0]):
                break
            point = self._remember(record, first, cost, check)
            if point is not None and not first[point].recorded:
                first[point].recorded = record.date
                self._first += 1
        for record in self._neighbours[:NEIGHBOURS]:
            self._remember(record, first, cost, check)

    def _remember(
        self,
        record: Record,
        first: dict[str, Candidate],
        cost: PerformanceModel,
        check: Callable[[Candidate], None],
    ) -> str | None:
        """The point of the kernel of a record, which goes first from now on; None if it cannot, or failed here."""
        if not record.phases:  # how it came about could not be explained
            return None
        try:
            lowered = replace(self._program, body=parse_program(record.term).body)
            made = make_candidate(lowered, 0.0, self._info, self._model, way_of(record.phases), cost)
            check(made)
        except LiftError as problem:  # another version made it, or another device can do more
            of_this = same_device(record.device, self._info)
            where, what = ("", "any more") if of_this else (f" on {record.device.name}", "here")
            self.notes.append(f"a known kernel of {record.date}{where} cannot be compiled {what}: {problem}")
            return None
        point = point_of(made.program, made.plan)
        last = self._current.get(point)
        if last is not None and last.validity != "valid":
            return None
        if point not in first:
            first[point] = made
            self.remembered.append(made)
        return point

    def knows(self, candidate: Candidate, limit: float) -> bool:
        """Whether it would be in vain to measure a candidate: it goes first anyway, or it is known that it fails, or is
        much slower than the best known.

        What was too slow within a lower limit than this one, in seconds, is tried again, and so is all that was
        measured with other versions.
        """
        if not (self._going_first or self._current):
            return False
        point = point_of(candidate.program, candidate.plan)
        if point in self._going_first:
            return True
        record = self._current.get(point)
        if record is None:
            return False
        if record.validity == "valid":
            known = self._known.get(point, 0.0) > SLOWER * min(self._known.values())
        else:
            known = record.validity != "too slow" or record.limit >= limit
        self._skipped += known
        return known

    def add(self, candidate: Candidate) -> None:
        """Append what became of a candidate; after the first failure to write nothing more is tried."""
        if self._journal is None or self._problem or candidate.message == NOT_RUN or candidate.is_open:
            return
        try:
            self._journal.append(self.record_of(candidate))
        except OutputProblem as problem:
            self._problem = str(problem)
        else:
            self._appended += 1

    def summary(self) -> Recorded | None:
        """What a report says of it."""
        if self._journal is None:
            return None
        return Recorded(
            str(self._journal.path), self._appended, self._first, self._skipped, self._problem, tuple(self.notes)
        )

    def record_of(self, c: Candidate) -> Record:
        """What the journal says of a candidate that was measured."""
        program = self._program
        return Record(
            format=FORMAT,
            program=ProgramPart(program.name, self._hash, dict(program.sizes), print_program(program)),
            term=print_program(c.program),
            point=point_of(c.program, c.plan),
            launches=launches_of(c.plan),
            phases=phases_of(program, c.way),
            predicted=1e-3 * c.predicted_ms,
            device=self._info,
            description=self._model.name,
            versions=versions(),
            host=c.host or platform.node(),
            date=datetime.now(UTC).isoformat(timespec="milliseconds"),
            validity=validity_of(c),
            reason=c.message,
            samples=thinned(tuple(1e-3 * ms for ms in c.times_ms)),
            runs=len(c.times_ms),
            median=None if c.measured_ms is None else 1e-3 * c.measured_ms,
            limit=c.limit,
        )


def validity_of(candidate: Candidate) -> Validity:
    """What became of a candidate, in a word."""
    return "valid" if candidate.valid else candidate.failure


@cache
def versions() -> dict[str, str]:
    """The versions of what takes part in a measurement."""
    return {**{name: version_of(name) for name in PACKAGES}, "python": platform.python_version()}
