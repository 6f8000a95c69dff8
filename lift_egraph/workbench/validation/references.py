"""What the kernels of a program are held against: the whole result of the interpreter, or what it can make of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.plans.kernel import Plan
from lift_egraph.codegen.running.run import Runner
from lift_egraph.codegen.running.validate import References, references
from lift_egraph.errors import SizeProblem, TimeProblem
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import bytes_of
from lift_egraph.meaning.time_limit import within
from lift_egraph.meaning.workload import effort
from lift_egraph.workbench.demands import available_memory
from lift_egraph.workbench.validation.few_steps import with_fewer_steps
from lift_egraph.workbench.validation.sampled import KINDS, RATE, TOO_LONG, Sampled


@dataclass(frozen=True)
class Room:
    """What memory allows: the sets of inputs, how many workers hold them, and whether whole references fit too."""

    kinds: tuple[str, ...]
    workers: int
    whole: bool


def room_for(program: ir.Program, device: DeviceInfo, workers: int, most_bytes: float = float("inf")) -> Room:
    """What there is memory for, with as many workers at most.

    Parameters
    ----------
    most_bytes
        Of inputs that are sent to workers, if they are more than one set in one worker: that takes its time.

    Raises
    ------
    SizeProblem
        If there is not enough for one set of inputs in one worker.
    """
    inputs, result = sum(bytes_of(i.type) for i in program.inputs), bytes_of(type_of(program.body))
    free, is_here = available_memory(), device.kind == "cpu"

    def needed(sets: int, count: int, whole: bool) -> int:
        """A worker holds the inputs, and, as the device may be in this memory, what it computes with."""
        here = (sets + 1) * inputs + (10 if whole else 2 * sets) * result
        return here + count * (sets * inputs * (1 + is_here) + result * (1 + is_here))

    def fits(sets: int, count: int, whole: bool) -> bool:
        on_device = count * (sets * inputs + result) <= device.global_memory
        is_quick = sets * count == 1 or sets * count * inputs <= most_bytes
        return is_quick and on_device and (free is None or needed(sets, count, whole) <= free)

    for sets, count in ((2, workers), (2, 1), (1, 1)):
        if fits(sets, count, False):
            return Room(KINDS[:sets], count, sets == 2 and fits(sets, count, True))
    if free is None or needed(1, 1, False) <= free:
        return Room(KINDS[:1], 1, False)  # whether the device has room, it says itself
    raise SizeProblem(
        f"validating {program.name} needs about {needed(1, 1, False) / 2**30:.1f} GiB of memory, "
        f"{free / 2**30:.1f} GiB are free: choose smaller sizes"
    )


def reference_of(
    source: ir.Program,
    program: ir.Program,
    room: Room,
    compiled: Callable[[ir.Program], Plan],
    *,
    seed: int = 0,
    seconds: float,
    exact: bool = False,
) -> References | Sampled:
    """What kernels are held against: the whole result if time and memory allow it, and its error has a bound.

    Parameters
    ----------
    source
        The program with open sizes.
    program
        The same at the wanted sizes.
    compiled
        Makes the kernels of a low-level term at other sizes, or with fewer steps.
    seconds
        How long the interpreter may take; half as long again for samples, where that was not enough for all.
    exact
        Whether results must agree bit for bit where all devices compute the same.
    """
    whole, why = None, TOO_LONG
    if room.whole and 2 * RATE * effort(program.body) <= seconds:
        with suppress(TimeProblem), within(seconds):
            whole, why = references(program, seed, exact=exact), "as its errors have no finite bound"
            found = with_fewer_steps(program, whole, compiled)
            if found.bounded:
                return found
        seconds = seconds if whole else seconds / 2
    return Sampled(source, program, compiled, seed, seconds, room.kinds, why, exact, whole)


def load_references(runner: Runner, reference: References | Sampled) -> None:
    """Ship the sets of inputs to the runner once."""
    for name, inputs in reference.inputs.items():
        runner.load_inputs(name, inputs)
