"""What models learn from: a table of kernels with their features, the analytical prediction, and the measured time."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
import numpy.typing as npt

from lift_egraph.caching import cached_property
from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device, describe, is_called
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.errors import LiftError, ModelProblem, RunProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.extract.features import NAMES, features
from lift_egraph.garbage import no_search_for_garbage
from lift_egraph.language.syntax import parse_program
from lift_egraph.learned.strategies import family_of
from lift_egraph.process.child import Stream
from lift_egraph.records.known import same_device, same_versions
from lift_egraph.records.record import Record

FEW = 200  # records that one process describes sooner than another one starts
JOBS = min(os.cpu_count() or 1, 8)
SHORTEST, LONGEST = 1e-12, 1e15  # seconds of a kernel: what is beyond was not measured

TABLE = (*NAMES, "analytical")
"""The columns of `Samples.table`."""

Floats = npt.NDArray[np.float64]

Told = Callable[[int, int], None]
"""Who is told how many of how many are done, perhaps by several threads."""


@dataclass(frozen=True)
class Samples:
    """A table; each field but the first four has an entry for each kernel.

    Attributes
    ----------
    device
        Where all were measured.
    versions
        Of the packages that made and measured them.
    columns
        The names of the features.
    notes
        What of the records was left out, in words.
    programs, inputs
        The name of the program, and its sizes as text.
    families
        The phases that restructured the term, with a space between them.
    features
        A row for each kernel, a column for each feature.
    analytical, seconds
        The time that the analytical model predicts, and the least that was measured: others' load only adds.

    Raises
    ------
    ModelProblem
        If a feature is no finite number, or a time is none from `SHORTEST` to `LONGEST`.
    """

    device: DeviceInfo
    versions: dict[str, str]
    columns: tuple[str, ...]
    notes: tuple[str, ...] = field(compare=False)
    programs: tuple[str, ...]
    inputs: tuple[str, ...]
    families: tuple[str, ...]
    features: Floats
    analytical: Floats
    seconds: Floats

    def __post_init__(self) -> None:
        count = len(self.programs)
        shapes = {"features": (count, len(self.columns)), "analytical": (count,), "seconds": (count,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ModelProblem(
                    f"the {name} of {count} kernels have the shape {getattr(self, name).shape}, not {shape}"
                )
        if not len(self.inputs) == len(self.families) == count:
            raise ModelProblem(
                f"there are {count} kernels, {len(self.inputs)} inputs and {len(self.families)} families"
            )
        for name, values in (("analytical prediction", self.analytical), ("measured time", self.seconds)):
            wrong = np.flatnonzero(~((values >= SHORTEST) & (values <= LONGEST)))
            if wrong.size:
                at = wrong[0]
                raise ModelProblem(
                    f"the {name} of the kernel {at} (of {self.programs[at]}) is {values[at]} s; "
                    f"it must be a number from {SHORTEST:g} to {LONGEST:g}"
                )
        rows, columns = np.nonzero(~np.isfinite(self.features))
        if rows.size:
            at, column = rows[0], columns[0]
            raise ModelProblem(
                f"the feature {self.columns[column]} of the kernel {at} (of {self.programs[at]}) is "
                f"{self.features[at, column]}; features must be finite numbers"
            )

    def __len__(self) -> int:
        return len(self.programs)

    def __getitem__(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Samples:
        """Some of the kernels, by their numbers or by a mask."""
        numbers = np.flatnonzero(which) if which.dtype == bool else which
        texts = {name: tuple(getattr(self, name)[i] for i in numbers) for name in ("programs", "inputs", "families")}
        arrays = {name: getattr(self, name)[numbers] for name in ("features", "analytical", "seconds")}
        return replace(self, **texts, **arrays)

    @cached_property
    def spaces(self) -> npt.NDArray[np.str_]:
        """Of each kernel, the program with its input: what is compared with each other."""
        return np.array([f"{p}, {i}" for p, i in zip(self.programs, self.inputs, strict=True)])

    @cached_property
    def throughput(self) -> Floats:
        """The best time of the program and input over a kernel's own: 1 is the best."""
        best = {space: self.seconds[self.spaces == space].min() for space in set(self.spaces)}
        return np.array([best[space] for space in self.spaces]) / self.seconds

    @cached_property
    def beside_predicted(self) -> Floats:
        """How many times as fast as predicted each kernel is, beside the median of its program and input."""
        return beside_median(self.analytical / self.seconds, self.spaces)

    @property
    def table(self) -> Floats:
        """A row for each kernel, of the columns of `TABLE`: what a `ThroughputRegressor` takes."""
        return np.column_stack([self.taking(NAMES), self.analytical])

    def taking(self, columns: Sequence[str]) -> Floats:
        """The features of these names."""
        return self.features[:, [self.columns.index(name) for name in columns]]


def beside_median(values: Floats, spaces: npt.NDArray[np.str_]) -> Floats:
    """Values beside the median of those of the same program and input."""
    middle = {space: np.median(values[spaces == space]) for space in set(spaces)}
    return values / np.array([middle[space] for space in spaces])


def row_of(plan: Plan, device: Device, columns: Sequence[str] = NAMES) -> Floats:
    """The features of one plan, as a row of a table."""
    found = features(plan, device)
    return np.array([found[name] for name in columns])


@dataclass(frozen=True)
class Chosen:
    """The records of right kernels on one device, as the last record's versions made them; each kernel once.

    Attributes
    ----------
    description
        For which their terms are compiled.
    notes
        What was left out, in words.
    """

    records: tuple[Record, ...]
    last: Record
    description: Device
    notes: tuple[str, ...]


def chosen_of(records: Sequence[Record], device: str | None = None, description: Device | None = None) -> Chosen:
    """The records that models can learn from.

    Parameters
    ----------
    device
        The name of its description, or a part of the platform's or device's name, where there are records of several.
    description
        Of the device, in the place of the one that comes with the package: only records of a device that it fits count.

    Raises
    ------
    ModelProblem
        If no record is of the device, or they are of several; or none of a right kernel is left.
    """
    named = [
        r
        for r in records
        if (device is None or is_called(r.device, device)) and (description is None or description.fits(r.device))
    ]
    makes = {(r.device.platform, r.device.name): r.device for r in named}
    known = "; ".join(sorted({f"{r.device.platform} / {r.device.name}" for r in records})) or "none"
    if not makes:
        what = [repr(device)] if device else []
        what += [f"the description {description.name} ({description.whom})"] if description else []
        raise ModelProblem(f"no record is of a device {' and '.join(what)}: there are records of {known}" if records
                           else "there is no record: `lift-egraph collect` makes some")  # fmt: skip
    if len(makes) > 1:
        raise ModelProblem(f"the records are of several devices, choose one with --device: {known}")
    last = named[-1]
    current = [r for r in named if same_versions(r, last.device, last.versions) and same_device(r.device, last.device)]
    least: dict[str, Record] = {}
    for record in current:
        if record.validity == "valid" and record.samples and min(record.samples) > 0:
            known_time = least.get(record.point)
            if known_time is None or min(record.samples) < min(known_time.samples):
                least[record.point] = record
    if not least:
        raise ModelProblem(f"none of {len(named)} records is of a right kernel of this version: collect some")
    left_out = Counter[str]()
    left_out[
        f"of another version than {last.versions.get('lift-egraph')} with the driver {last.device.driver_version}"
    ] = len(named) - len(current)
    left_out["of kernels that are not right, or known twice"] = len(current) - len(least)
    own = description.on(last.device) if description else describe(last.device)
    return Chosen(tuple(least.values()), last, own, _noted(left_out))


def samples_of(
    records: Sequence[Record],
    device: str | None = None,
    description: Device | None = None,
    told: Told | None = None,
) -> Samples:
    """The right kernels of records, on one device, as the last record's versions made them.

    Where several terms lead to the same kernels, these count once, with their least time.

    Parameters
    ----------
    device, description
        As for `chosen_of`. Terms are compiled, and features and predictions made, for the description.
    told
        Is told of each kernel whose features are computed: some hundred are in a second.

    Raises
    ------
    ModelProblem
        If no record is of the device, or they are of several; or none of a right kernel is left.
    """
    chosen = chosen_of(records, device, description)
    last, left_out = chosen.last, Counter[str]()
    kept, rows, times = list[Record](), list[Floats](), list[float]()
    places, seconds = dict[int, int](), list[float]()
    for number, (record, found) in enumerate(zip(chosen.records, _described(chosen, told), strict=True)):
        if found is None:
            left_out["of terms that are not compiled any more"] += 1
        elif isinstance(found, int):
            seconds[places[found]] = min(seconds[places[found]], *record.samples)
            left_out["of kernels that another term leads to, too"] += 1
        else:
            places[number] = len(kept)
            predicted, row = found
            rows.append(row)
            times.append(1e-3 * predicted)
            seconds.append(min(record.samples))
            kept.append(record)
    if not kept:
        raise ModelProblem(f"none of {len(records)} records is of a right kernel of this version: collect some")
    return Samples(
        device=last.device,
        versions=dict(last.versions),
        columns=NAMES,
        notes=(*chosen.notes, *_noted(left_out)),
        programs=tuple(r.program.name for r in kept),
        inputs=tuple(", ".join(f"{n} = {v}" for n, v in r.program.sizes.items()) for r in kept),
        families=tuple(" ".join(family_of((p.phase, p.iterations) for p in r.phases)) for r in kept),
        features=np.array(rows),
        analytical=np.array(times),
        seconds=np.array(seconds),
    )


Described = tuple[float, Floats] | int | None
"""Of a record: the milliseconds that are predicted of its kernels, with their features; the number of the first that
has the same kernels; or nothing, where its term is not compiled any more.
"""


def _described(chosen: Chosen, told: Told | None = None) -> list[Described]:
    """What there is of each record; those of many are shared out among processes, each program to one of them."""
    records, model = chosen.records, chosen.description
    shares = _shares([r.program.hash for r in records], min(JOBS, 1 + len(records) // FEW))
    streams = [Stream(_each, [records[k] for k in share], model) for share in shares[1:]]
    numbers = count(1)

    def counted(found: Iterable[Described]) -> Iterator[Described]:
        for one in found:
            if told is not None:
                told(next(numbers), len(records))
            yield one

    def read(stream: Stream[Described]) -> list[Described]:
        found = list(counted(stream))
        if stream.end.kind != "finished":
            raise RunProblem(f"a process that computes features failed: {stream.end}")
        return found

    made: list[Described] = [None] * len(records)
    with ThreadPoolExecutor(max(len(streams), 1)) as readers:
        try:
            others = [readers.submit(read, stream) for stream in streams]
            own = list(counted(_each([records[k] for k in shares[0]], model)))
            every = [own, *(other.result() for other in others)]
        except BaseException:
            for stream in streams:
                stream.signal(signal.SIGKILL)
            raise
    for share, found in zip(shares, every, strict=True):
        for number, one in zip(share, found, strict=True):
            made[number] = share[one] if isinstance(one, int) else one
    return made


def _shares(programs: Sequence[str], count: int) -> list[list[int]]:
    """The numbers of what is of some programs, in so many shares of about a size, each program in one of them."""
    shares: list[list[int]] = [[] for _ in range(count)]
    of_program: dict[str, list[int]] = {}
    for number, program in enumerate(programs):
        of_program.setdefault(program, []).append(number)
    for numbers in sorted(of_program.values(), key=len, reverse=True):
        min(shares, key=len).extend(numbers)
    return [sorted(share) for share in shares]


def _each(records: Sequence[Record], model: Device) -> Iterator[Described]:
    """What there is of each record; of others alike, the number among these."""
    places = dict[Hashable, int]()
    with no_search_for_garbage():
        for number, record in enumerate(records):
            try:
                plan = compile_program(parse_program(record.term), model, with_text=False)
                predicted = predict(plan, model).predicted_ms
            except LiftError:
                yield None
                continue
            kernels = record.program.hash, tuple((kernel.body, kernel.launch) for kernel in plan.kernels)
            place = places.setdefault(kernels, number)
            yield place if place < number else (predicted, row_of(plan, model))


def _noted(left_out: Counter[str]) -> tuple[str, ...]:
    return tuple(f"{count} record{'s' * (count > 1)} left out: {why}" for why, count in left_out.items() if count)
