"""Features beside what instrumented kernels count."""

from __future__ import annotations

import pyopencl as cl

from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.extract.events import events_of
from lift_egraph.extract.features import PUBLISHED, features
from tests.extract.instrumented import Counts

EVENTS = ("global_stores", "global_loads", "local_stores", "local_loads", "barriers", "ifs", "for_bodies")


def pocl() -> cl.Context:
    """A context on PoCL's CPU."""
    devices = [d for p in cl.get_platforms() if p.name == "Portable Computing Language" for d in p.get_devices()]
    return cl.Context(devices[:1])


def unknown(plan: Plan) -> str:
    """Which features only data decides: ``all``, those of ``lines``, or none; ``empty`` where nothing is computed."""
    if not any(kernel.body for kernel in plan.kernels):
        return "empty"
    events = [events_of(kernel, {s.name: s.value for s in plan.sizes}) for kernel in plan.kernels]
    if any(e.decided_by_data for e in events):
        return "all"
    return "lines" if any(e.addressed_by_data for e in events) else ""


def differences(plan: Plan, device: Device, counts: Counts) -> list[str]:
    """The published features that are not what was counted."""
    found = features(plan, device)
    counted = {name: counts.events[name] / counts.items for name in EVENTS}
    sizes = dict(zip(PUBLISHED[:6], counts.sizes, strict=True))
    counted |= {name: size for name, size in sizes.items() if found[name]}  # 0: the device has chosen
    counted["local_memory"] = counts.local_memory
    if unknown(plan) != "lines":
        touched, times = map(sum, zip((0, 0), *counts.lines.values(), strict=True))
        counted["lines_per_access"] = touched / times if times else 0.0
    return [
        f"{plan.name}: {name} is {found[name]}, and {value} was counted"
        for name, value in counted.items()
        if abs(found[name] - value) > 1e-9 * max(value, 1)
    ]
