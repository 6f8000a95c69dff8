"""Texts written by hand, as plans: they run, and are timed, as generated kernels are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.plans.kernel import Argument, BufferInfo, Kernel, Launch, Plan, ScalarInfo
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.types import Array, DataType, Pair, Vector, leaves, scalar_of, width_of


@dataclass(frozen=True)
class HandKernel:
    """A kernel of a hand-written text: its arguments in order (buffers, or inputs by value), and its launch."""

    name: str
    arguments: tuple[str, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None = None
    local_bytes: int = 0


@dataclass(frozen=True)
class ByHand:
    """A hand-written text, over the buffers that the program's inputs and result need.

    A buffer is named as the input, or ``result``; a tuple has one per component, ``xs_0`` and ``xs_1``
    (of three components ``xs_0``, ``xs_1_0`` and ``xs_1_1``).

    Attributes
    ----------
    text
        The name of its file.
    defines
        What the compiler gets as ``-D NAME=value``: sizes and parameters, as numbers. ``ON_POCL``, ``ON_INTEL``
        or ``ON_NVIDIA`` is defined too, for what an expert spells differently for each.
    temporaries
        Further buffers between kernels: name to length.
    element
        The type of the temporaries.
    """

    text: str
    kernels: tuple[HandKernel, ...]
    defines: Mapping[str, int | float | str] = field(default_factory=dict)
    temporaries: Mapping[str, int] = field(default_factory=dict)
    element: str = "f32"


def plan_of(program: ir.Program, device: Device, hand: ByHand, text: str) -> Plan:
    """The plan of a hand-written text.

    Parameters
    ----------
    program
        What it computes, at concrete sizes.
    device
        Whose compiler's options it gets.
    text
        What the file has.
    """
    buffers: list[BufferInfo] = []
    scalars: list[ScalarInfo] = []
    for item in program.inputs:
        if isinstance(item.type, Array | Pair):
            buffers += _buffers(item.name, item.type, "input")
        else:
            scalars.append(ScalarInfo(item.name, scalar_of(item.type).name, item.name))
    buffers += [BufferInfo(name, "temporary", hand.element, length) for name, length in hand.temporaries.items()]
    buffers += _buffers("result", type_of(program.body), "output")
    by_value = {s.name for s in scalars}
    made = tuple(
        Kernel(
            k.name,
            "",
            tuple(Argument("scalar" if name in by_value else "buffer", name) for name in k.arguments),
            Launch(_three(k.global_size), _three(k.local_size) if k.local_size else None),
            k.local_bytes,
        )
        for k in hand.kernels
    )
    used = {a.name for k in made for a in k.arguments}
    options = (
        *device.emission.options,
        f"-DON_{device.name.upper()}",
        *(f"-D{name}={value}" for name, value in hand.defines.items()),
    )
    return Plan(
        f"{program.name} by hand",
        device.name,
        text,
        made,
        tuple(b for b in buffers if b.name in used),
        tuple(s for s in scalars if s.name in used),
        options,
    )


def _buffers(name: str, t: DataType, role: str) -> list[BufferInfo]:
    found = []
    for path, sizes, leaf in leaves(t):
        shape = tuple(s.evaluate({}) for s in sizes)
        length = math.prod(shape) * width_of(leaf)
        shape = (*shape, width_of(leaf)) if isinstance(leaf, Vector) else shape
        made = "".join((name, *(f"_{component}" for component in path)))
        value = "result" if role == "output" else name
        found.append(BufferInfo(made, role, scalar_of(leaf).name, length, value, path, shape))
    return found


def _three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
