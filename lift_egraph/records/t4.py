"""Records in T4, the JSON of autotuners' results that Kernel Tuner writes.

A configuration is the program with its sizes, the device, the phases with what steered them, and the launch. Times are
in milliseconds, as Kernel Tuner's are. T4 has no place for what a device is: it stands among the measurements.

Source: T4 results schema 1.0.0, github.com/odgaard/TuningSchema, with the value ``correct`` of Kernel Tuner's copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from lift_egraph.records.record import Record, Validity

VERSION = "1.0.0"
Invalidity = Literal["timeout", "compile", "runtime", "correctness", "constraints", "correct"]
INVALIDITY: dict[Validity, Invalidity] = {
    "valid": "correct",
    "wrong": "correctness",
    "failed to build": "compile",
    "refused": "constraints",
    "crashed": "runtime",
    "too slow": "timeout",
}


class Times(Struct, frozen=True):
    runtimes: list[float]


class Measurement(Struct, frozen=True):
    name: str
    value: float | str
    unit: str


class Result(Struct, frozen=True):
    timestamp: str
    configuration: dict[str, Any]
    objectives: list[str]
    times: Times
    invalidity: Invalidity
    correctness: float
    measurements: list[Measurement]


class T4(Struct, frozen=True):
    """The file."""

    schema_version: str
    results: list[Result]


def t4_of(records: Iterable[Record]) -> T4:
    """All records, in their order."""
    return T4(VERSION, [_result(record) for record in records])


def _result(r: Record) -> Result:
    configuration: dict[str, Any] = {"program": r.program.name, "program_hash": r.program.hash, **r.program.sizes}
    configuration["phases"] = [p.phase for p in r.phases]
    configuration["tiling"] = {str(n): chunks for p in r.phases for n, chunks in p.tiling}
    configuration["vector_widths"] = sorted({w for p in r.phases for w in p.widths})
    configuration["global_sizes"] = [list(launch.global_size) for launch in r.launches]
    configuration["local_sizes"] = [list(launch.local_size or ()) for launch in r.launches]
    configuration["kernels"] = r.point
    facts = {"platform": r.device.platform, "device": r.device.name, "driver": r.device.driver_version, "host": r.host}
    measured = [] if r.median is None else [Measurement("time", 1e3 * r.median, "ms")]
    return Result(
        timestamp=r.date,
        configuration=configuration,
        objectives=["time"],
        times=Times([1e3 * s for s in r.samples]),
        invalidity=INVALIDITY[r.validity],
        correctness=float(r.validity == "valid"),
        measurements=[
            *measured,
            Measurement("predicted", 1e3 * r.predicted, "ms"),
            *(Measurement(name, value, "") for name, value in {**facts, **r.versions}.items()),
        ],
    )
