"""Of which vectors plans are: how wide they are, and how many of them a work-item keeps in registers."""

from __future__ import annotations

from lift_egraph.codegen.devices import Device
from lift_egraph.workbench.planning.plan import SPARE

ACCUMULATORS = 12  # vectors of partial results that hide the latency of sums


def width_for(length: int, device: Device) -> int | None:
    """The first width that the length and the language allow."""
    return next((w for w in device.widths if length % w == 0), None)


def beside(width: int, device: Device) -> list[int]:
    """How many vectors of partial results registers hold beside each other, the best number first."""
    parts = max(1, width // device.lanes)
    fitting = [int(b) for b in device.level("item").workers if b * parts <= device.registers - SPARE]
    return sorted(fitting, key=lambda b: abs(b * parts - ACCUMULATORS))
