"""What records say together: the best kernels first, and groups of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.records.record import Record


def best_first(records: Iterable[Record]) -> list[Record]:
    """For each term the record of its least median, the fastest first; without those that were not right at last."""
    latest: dict[str, Record] = {}
    best: dict[str, Record] = {}
    for record in records:
        latest[record.term] = record
        known = best.get(record.term)
        if record.median is not None and (known is None or record.median < median_of(known)):
            best[record.term] = record
    right = [record for term, record in best.items() if latest[term].validity == "valid"]
    return sorted(right, key=median_of)


def median_of(record: Record) -> float:
    """The median of a record in seconds; infinite where it was not timed."""
    return float("inf") if record.median is None else record.median


def same_device(first: DeviceInfo, second: DeviceInfo) -> bool:
    """Whether two devices are of one make, whatever their drivers' versions are."""
    return (first.platform, first.name) == (second.platform, second.name)


def neighbours_first(records: Iterable[Record], device: DeviceInfo) -> list[Record]:
    """For each other device of its kind what was fastest there, the device that is most like it first.

    Those of its platform go before others, and then those whose compute units and vectors are as many, within factors.
    """
    others: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.device.kind == device.kind and not same_device(record.device, device):
            others.setdefault((record.device.platform, record.device.name), []).append(record)

    def distance(record: Record) -> tuple[bool, float]:
        other = record.device
        counts = (other.compute_units, device.compute_units), (other.vector_width, device.vector_width)
        return other.platform != device.platform, sum(abs(log(max(a, 1) / max(b, 1))) for a, b in counts)

    return sorted((best[0] for found in others.values() if (best := best_first(found))), key=distance)


def same_versions(record: Record, device: DeviceInfo, versions: Mapping[str, str]) -> bool:
    """Whether a record was made with these versions of the code generator and of the device's driver."""
    own, other = record.device, device
    drivers = (own.driver_version, own.platform_version) == (other.driver_version, other.platform_version)
    return drivers and record.versions.get("lift-egraph") == versions.get("lift-egraph")


@dataclass(frozen=True)
class Known:
    """What is known of one program at its sizes on one make of device.

    Attributes
    ----------
    records
        All, in their order.
    best
        Of those that were right the fastest; None if none was.
    """

    records: tuple[Record, ...]

    @property
    def best(self) -> Record | None:
        return next(iter(best_first(self.records)), None)

    @property
    def of_best(self) -> tuple[Record, ...]:
        """The records of the best term."""
        best = self.best
        return tuple(r for r in self.records if best is not None and r.term == best.term)

    @property
    def kernels(self) -> int:
        """How many different kernels were tried."""
        return len({r.point for r in self.records})

    @property
    def valid(self) -> int:
        """How many of them were right."""
        return len({r.point for r in self.records if r.validity == "valid"})


def grouped(records: Iterable[Record]) -> list[Known]:
    """Records by program and device, in the order of their first."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for r in records:
        groups.setdefault((r.program.hash, r.device.platform, r.device.name), []).append(r)
    return [Known(tuple(group)) for group in groups.values()]
