"""What a program must meet before any work on it begins, and how much memory it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from pathlib import Path

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Device
from lift_egraph.errors import InputProblem, SizeProblem
from lift_egraph.extract.models import PerformanceModel
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.sizes import require_size
from lift_egraph.language.types import bytes_of
from lift_egraph.learned.strategies import Strategy


def data_bytes(program: ir.Program) -> int:
    """The size of a program's inputs and result at concrete sizes, in bytes."""
    return sum(map(bytes_of, (*(i.type for i in program.inputs), type_of(program.body))))


def available_memory() -> int | None:
    """Bytes of memory that can be had without swapping, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def require_elements(program: ir.Program, sizes: Mapping[str, int]) -> None:
    """Check that sizes are numbers of elements; with sizes of 0 there is nothing to measure.

    Raises
    ------
    SizeProblem
        If one is not.
    """
    if not isinstance(sizes, Mapping):
        raise SizeProblem(f'sizes are given as {{"N": 1024}}, got {sizes!r}')
    for name, value in {**dict(program.sizes), **sizes}.items():
        require_size(name, value, 1)


def require_kinds(
    top: int,
    seed: int,
    device: str | DeviceInfo | Device | None,
    description: Device | None,
    cost: PerformanceModel,
    strategy: Strategy | None,
    listen: Callable[..., object],
) -> None:
    """Check that arguments of `optimize` are of the kinds that it takes.

    Raises
    ------
    InputProblem
        If one is of another kind.
    """
    names = device is None or isinstance(device, str | DeviceInfo | Device)
    learns = strategy is None or all(map(callable, (getattr(strategy, n, None) for n in ("expected", "learn", "fail"))))
    for name, value, fits, wanted in (
        ("top", top, isinstance(top, Integral) and top >= 1, "a whole number of at least 1"),
        ("seed", seed, isinstance(seed, Integral) and seed >= 0, "a whole number of at least 0"),
        ("device", device, names, "an index, a part of a name, or a description"),
        ("description", description, isinstance(description, Device | None), "what `load_device` reads of a file"),
        ("cost", cost, callable(cost), "a model: a function of a plan and a device"),
        ("strategy", strategy, learns, "what `lift_egraph.learned.strategies.strategy_of` makes of a name"),
        ("listen", listen, callable(listen), "a function of an Event"),
    ):
        if not fits:
            raise InputProblem(f"optimize takes as {name} {wanted}, got {value!r}")


def require_result(program: ir.Program) -> None:
    """Check that the result of a program at concrete sizes has elements: else nothing can be measured.

    Raises
    ------
    SizeProblem
        If it has none.
    """
    if not bytes_of(type_of(program.body)):
        made = type_of(program.body)
        raise SizeProblem(f"{program.name} computes no elements: its result is {made}; choose larger sizes")
