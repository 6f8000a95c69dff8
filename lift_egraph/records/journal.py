"""The journal: where records are kept, appended to and read back.

Several processes may append to one journal. A journal only grows; what a killed process left half written at its end
is recognised by its checksum, and left out with a note. Journals of several machines are joined by `Journal.add_all`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import platformdirs

from lift_egraph.errors import InputProblem, OutputProblem
from lift_egraph.records import lines
from lift_egraph.records.record import FORMAT, Record

FILE, VARIABLE, NONE = "records.jsonl", "LIFT_EGRAPH_RECORDS", "none"

_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder(Record)


class _Versioned(msgspec.Struct):
    format: int


@dataclass(frozen=True)
class Contents:
    """What was read of a journal.

    Attributes
    ----------
    records
        In the order in which they were appended.
    damaged
        The numbers of lines whose checksum is wrong, or that hold no record.
    torn
        Whether the last line is one of them, as the end of a process while it wrote leaves it.
    others
        How many records have another version of the format, by version: they are left out too.
    """

    records: tuple[Record, ...]
    damaged: tuple[int, ...] = ()
    torn: bool = False
    others: Counter[int] = field(default_factory=Counter)

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        found = ["its last line is torn, and was left out"] if self.torn else []
        damaged = self.damaged[: len(self.damaged) - self.torn]
        if damaged:
            shown = ", ".join(map(str, damaged[:5])) + (", …" if len(damaged) > 5 else "")
            found.append(f"{len(damaged)} damaged or unknown line{'s' * (len(damaged) > 1)} left out ({shown})")
        found += [f"{n} of the format {v}, this version reads {FORMAT}" for v, n in sorted(self.others.items())]
        return found


@dataclass(frozen=True)
class Journal:
    """A file of records; it need not be there before something is appended."""

    path: Path

    def read(self, about: str = "") -> Contents:
        """The records, or those about one program, by its hash.

        Raises
        ------
        InputProblem
            If the file cannot be read, or is no journal.
        """
        try:
            data = lines.read(self.path)
        except FileNotFoundError:
            return Contents(())
        except OSError as problem:
            raise InputProblem(f"cannot read {self.path}: {problem.strerror or problem}") from None
        return contents_of(data, self.path, about)

    def append(self, *records: Record) -> None:
        """Append records: when this returns they are on the disk, and none of them if it raises.

        Raises
        ------
        OutputProblem
            If they cannot be written.
        """
        try:
            lines.append(self.path, map(_ENCODER.encode, records))
        except OSError as problem:
            raise OutputProblem(f"cannot write to {self.path}: {problem.strerror or problem}") from None

    def require_writable(self) -> None:
        """Raise an `OutputProblem` if nothing can be appended."""
        self.append()

    def add_all(self, records: Iterable[Record]) -> tuple[int, int]:
        """Append records that are not there yet, in their order; how many there were, and how many were new."""
        known = {_ENCODER.encode(record) for record in self.read().records}
        given = [(_ENCODER.encode(record), record) for record in records]
        new = {text: record for text, record in given if text not in known}
        self.append(*new.values())
        return len(given), len(new)


def contents_of(data: bytes, path: Path, about: str = "") -> Contents:
    """What `Journal.read` makes of the bytes of a file.

    Raises
    ------
    InputProblem
        If they are no journal; the message names the path.
    """
    if lines.is_foreign(data):
        raise InputProblem(f"{path} is no journal of records: it has no line of ours")
    wanted, found, damaged, others = about.encode(), list[Record](), list[int](), Counter[int]()
    number = 0
    for number, payload in enumerate(lines.payloads(data), 1):
        if payload is None:
            damaged.append(number)
        elif wanted in payload:  # to decode it takes much longer
            try:
                record = _DECODER.decode(payload)
                if not about or record.program.hash == about:
                    found.append(record)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                if version := _other_format(payload):
                    others[version] += 1
                else:
                    damaged.append(number)
    torn = bool(damaged) and damaged[-1] == number and not data.endswith(b"\n")
    return Contents(tuple(found), tuple(damaged), torn, others)


def _other_format(payload: bytes) -> int | None:
    """The version of the format of a record, if it is not ours."""
    try:
        version = msgspec.json.decode(payload, type=_Versioned).format
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return version if version != FORMAT else None


def journal_at(place: Path | str | None = None) -> Journal | None:
    """The journal that a user means.

    Parameters
    ----------
    place
        A file, or ``none`` for no journal. Without it the variable ``LIFT_EGRAPH_RECORDS`` counts in the same way,
        then it is ``records.jsonl`` in the user's folder for data.
    """
    chosen = place or os.environ.get(VARIABLE) or platformdirs.user_data_path("lift-egraph") / FILE
    return None if chosen == NONE else Journal(Path(chosen))
