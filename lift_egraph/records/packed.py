"""What models learn from of records, in a small compressed journal that comes with them.

It is read as any journal is. Left out is what learning does not ask: how the phases came to a term, and all runs of a
kernel but the fastest. So its kernels are compiled and measured again by their terms, and not explained.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lift_egraph.files import replacing
from lift_egraph.records import lines
from lift_egraph.records.record import PhasePart, Record

DIGITS = 4  # of times that nothing is learned from
_ENCODER = msgspec.json.Encoder()


def packed(record: Record, last: Record) -> Record:
    """A right kernel's record with what is learned from it; of the device and versions as the last record says them.

    Some say of the device what changes from day to day, as how much of its memory is free.
    """
    return replace(
        record,
        device=last.device,
        versions=last.versions,
        phases=[PhasePart(p.phase, p.iterations, p.device_kind, [], [], [], "") for p in record.phases],
        predicted=_short(record.predicted),
        date=record.date[:10],
        reason="",
        samples=[min(record.samples)],
        median=None if record.median is None else _short(record.median),
        limit=_short(record.limit),
    )


def write_packed(records: Iterable[Record], last: Record, path: Path) -> None:
    """Write the records of right kernels on a device as a compressed journal: those of a program side by side.

    Parameters
    ----------
    last
        The record whose device and versions models are of: `lift_egraph.learned.samples.Chosen`.

    Raises
    ------
    OutputProblem
        If it cannot be written.
    """
    ordered = sorted(records, key=lambda r: (r.program.name, sorted(r.program.sizes.items())))
    data = b"".join(lines.line_of(_ENCODER.encode(packed(r, last))) for r in ordered)
    with replacing(path) as file:
        file.write(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def _short(seconds: float) -> float:
    return float(f"{seconds:.{DIGITS}g}")
