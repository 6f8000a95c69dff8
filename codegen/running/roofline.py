"""What a device reaches at most: floating-point operations and bytes of its memory a second, measured once and kept.

The kernels are written by hand: independent chains of `a * x + b` in registers, a copy, and a sum that only reads.

Source: the roofline model, Williams, Waterman and Patterson 2009.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import platformdirs

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Argument, BufferInfo, Kernel, Launch, Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.errors import InputProblem, LiftError, OutputProblem, RunProblem
from lift_egraph.files import json_text, read_json, write_texts

FORMAT, FILE = 1, "rooflines.json"
ELEMENTS = 1 << 25  # of the array that is copied: 128 MB, more than most caches
LANES = 16  # of the values that a work-item of a CPU moves; those of a GPU move 4
CHAINS = {"cpu": ((8, 10), (16, 6)), "gpu": ((1, 10), (2, 10))}  # lanes and chains: registers for all, none idle
STEPS = 40_000  # enough to outweigh a launch
ITEMS = {"cpu": 4, "gpu": 2048}  # of each compute unit
GROUP = {"cpu": 1, "gpu": 256}  # work-items
OPTIONS = ("-cl-mad-enable",)


@dataclass(frozen=True)
class Roofline:
    """The most that was measured on a device, for `f32`.

    Attributes
    ----------
    gflop_per_s
        Operations in registers, an `a * x + b` counted as two.
    gb_per_s
        Bytes that are read from, or written to, memory which is too large for most caches.

    Examples
    --------
    >>> Roofline(gflop_per_s=400.0, gb_per_s=40.0).least_ms(operations=2 * 512**3, moved=3 * 4 * 512**2)
    0.67108864
    """

    gflop_per_s: float
    gb_per_s: float

    def least_ms(self, operations: int, moved: int) -> float:
        """The least milliseconds for so many operations and bytes."""
        return 1e-6 * max(operations / self.gflop_per_s, moved / self.gb_per_s)


class _File(msgspec.Struct):
    format: int
    devices: dict[str, Roofline]


def _key(device: DeviceInfo) -> str:
    return " / ".join((device.platform, device.platform_version, device.name, device.driver_version))


def _path() -> Path:
    return platformdirs.user_cache_path("lift-egraph") / FILE


def _kept() -> Mapping[str, Roofline]:
    try:
        return read_json(_path(), _File, FORMAT).devices
    except InputProblem:  # none yet, or none that can be read: measured again
        return {}


def kept_roofline(device: DeviceInfo) -> Roofline | None:
    """What was measured on a device before, by this user on this machine."""
    return _kept().get(_key(device))


def measure_roofline(device: DeviceInfo, seconds: float = 30.0) -> Roofline:
    """Measure a device, which should have nothing else to do, and keep the result for `kept_roofline`.

    What was measured before counts where it is more: others' load only takes away. Where the result cannot be kept, it
    is measured again the next time.

    Parameters
    ----------
    seconds
        After which no more is measured.

    Raises
    ------
    RunProblem
        If no kernel for the operations, or none for the memory, runs in that time.
    """
    length = min(ELEMENTS, device.max_allocation // 4 // LANES * LANES)
    with Runner(device, time_limit=seconds) as runner:
        runner.deadline = time.perf_counter() + seconds
        runner.load_inputs("x", {"x": np.ones(length, np.float32)})
        operations = _most(runner, _computing(device, length))
        moved = _most(runner, _moving(device, length))
    kept = _kept()
    before = kept.get(_key(device), Roofline(0.0, 0.0))
    found = Roofline(max(operations, before.gflop_per_s), max(moved, before.gb_per_s))
    content = _File(FORMAT, {**kept, _key(device): found})
    with suppress(OutputProblem):
        write_texts(_path().parent, {FILE: json_text(content)})
    return found


def _most(runner: Runner, plans: Iterator[tuple[Plan, float]]) -> float:
    """The most that a kernel does, in units of 10⁹ a second."""
    best, why = 0.0, "there is none"
    for plan, done in plans:
        try:
            best = max(best, 1e-6 * done / runner.measure(plan, "x", repeats=5).min_ms)
        except LiftError as problem:
            why = str(problem)
    if not best:
        raise RunProblem(f"the device's roofline cannot be measured: {why}")
    return best


def _computing(device: DeviceInfo, length: int) -> Iterator[tuple[Plan, float]]:
    """Kernels that only compute, each with its operations."""
    kind = _kind(device)
    items = device.compute_units * ITEMS[kind]
    for lanes, count in CHAINS[kind]:
        scalar = "float" if lanes == 1 else f"float{lanes}"
        chains = [f"a{n}" for n in range(count)]
        starts = "\n".join(f"  {scalar} {a} = ({scalar})({n}.0f) + x[0];" for n, a in enumerate(chains))
        steps = "\n".join(f"    {a} = {a} * m + c;" for a in chains)
        total = " + ".join(chains)
        parts = " + ".join(f"t.s{n:x}" for n in range(lanes)) if lanes > 1 else "t"
        body = (
            f"{starts}\n  const {scalar} m = ({scalar})(x[1] * 0.5f), c = ({scalar})(x[2]);\n"
            f"  for (int i = 0; i < {STEPS}; i += 1) {{\n{steps}\n  }}\n"
            f"  const {scalar} t = {total};\n  y[get_global_id(0)] = {parts};"
        )
        yield (
            _plan(body, length, items, Launch((items, 1, 1), (GROUP[kind], 1, 1))),
            2.0 * count * STEPS * lanes * items,
        )


def _moving(device: DeviceInfo, length: int) -> Iterator[tuple[Plan, float]]:
    """Kernels that only move data, each with its bytes."""
    kind = _kind(device)
    wide = LANES if kind == "cpu" else 4
    vector, moved = f"float{wide}", 4.0 * length
    first = f"  const global {vector} *v = (const global {vector} *)x;\n"
    copy = f"  ((global {vector} *)y)[get_global_id(0)] = v[get_global_id(0)];"
    yield _plan(first + copy, length, length, Launch((length // wide, 1, 1))), 2 * moved
    items = device.compute_units * ITEMS[kind]
    each = length // wide // items
    at = f"get_global_id(0) * {each} + i" if kind == "cpu" else f"i * {items} + get_global_id(0)"
    names = [f"a{n}" for n in range(4)]
    sums = "\n".join(f"    {a} += v[{at} + {n * (1 if kind == 'cpu' else items)}];" for n, a in enumerate(names))
    parts = " + ".join(f"t.s{n:x}" for n in range(wide))
    read = (
        f"  {vector} {', '.join(f'{a} = 0.0f' for a in names)};\n"
        f"  for (int i = 0; i < {each // 4 * 4}; i += 4) {{\n{sums}\n  }}\n"
        f"  const {vector} t = {' + '.join(names)};\n  y[get_global_id(0)] = {parts};"
    )
    yield (
        _plan(first + read, length, items, Launch((items, 1, 1), (GROUP[kind], 1, 1))),
        4.0 * wide * items * (each // 4 * 4),
    )


def _kind(device: DeviceInfo) -> str:
    return "cpu" if device.kind == "cpu" else "gpu"


def _plan(body: str, length: int, results: int, launch: Launch) -> Plan:
    """A kernel that reads `x` and writes `results` elements to `y`."""
    source = f"kernel void roofline(global const float *restrict x, global float *restrict y) {{\n{body}\n}}\n"
    buffers = (
        BufferInfo("x", "input", "f32", length, "x", shape=(length,)),
        BufferInfo("y", "output", "f32", results, "result", shape=(results,)),
    )
    arguments = (Argument("buffer", "x"), Argument("buffer", "y"))
    kernel = Kernel("roofline", source, arguments, launch, 0)
    return Plan("roofline", "opencl", source, (kernel,), buffers, (), OPTIONS)
