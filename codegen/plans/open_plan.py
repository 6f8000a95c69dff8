"""Plans whose sizes are arguments: lengths and launches are expressions until the sizes are given.

`OpenPlan.at` makes the plan for given sizes, after a check of everything that they must fulfil.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lift_egraph.codegen.plans.kernel import BufferInfo, Buffers, Kernel, Launch, Origins, Plan, ScalarInfo, SizeValue
from lift_egraph.errors import SizeProblem
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.ranges import Bound
from lift_egraph.language.sizes import solved


@dataclass(frozen=True)
class OpenSize:
    """A size that the kernels take as an ``int`` from `low` to `high`: `name` in their text, `size` in the program."""

    name: str
    size: str
    low: int = 0
    high: int = 2**31 - 1


@dataclass(frozen=True)
class Requirement:
    """``low <= expression <= high`` must hold (None: no bound); `because` says what for."""

    expression: Nat
    low: int | None
    high: int | None
    because: str


@dataclass(frozen=True)
class OpenBuffer:
    """A `BufferInfo` whose length and shape depend on sizes."""

    name: str
    role: str
    element: str
    length: Nat
    value: str = ""
    components: tuple[int, ...] = ()
    shape: tuple[Nat, ...] = ()
    offsets: Nat | None = None
    low: Bound | None = None
    high: Bound | None = None


@dataclass(frozen=True)
class OpenPlan(Buffers[OpenBuffer]):
    """The kernels of a program with sizes as arguments; everything else is as in `Plan`.

    Expressions speak of the sizes by their names in the kernels.
    """

    name: str
    dialect: str
    source: str
    kernels: tuple[Kernel, ...]
    buffers: tuple[OpenBuffer, ...]
    scalars: tuple[ScalarInfo, ...]
    sizes: tuple[OpenSize, ...]
    requirements: tuple[Requirement, ...] = ()
    options: tuple[str, ...] = ()
    origins: Origins = field(default=Origins(), compare=False, repr=False)

    def at(self, sizes: Mapping[str, int]) -> Plan:
        """The plan for given sizes: numbers for all lengths and launches, the sizes as arguments.

        Raises
        ------
        SizeProblem
            If a size is unknown, missing or out of its range, if a pattern of the program cannot divide it, or if
            the kernels' index arithmetic would not fit into 32 bits.
        """
        known = [s.size for s in self.sizes]
        for size in sizes:
            if size not in known:
                raise SizeProblem(f"{self.name} has no open size {size!r}; it has {', '.join(known) or 'none'}")
        missing = [size for size in known if size not in sizes]
        if missing:
            raise SizeProblem(f"{self.name} needs a value for the size {', '.join(missing)} (--size {missing[0]}=…)")
        for s in self.sizes:
            if not s.low <= sizes[s.size] <= s.high:
                raise SizeProblem(f"the size {s.size} of {self.name} is {sizes[s.size]}, not {s.low} to {s.high}")
        values = {s.name: int(sizes[s.size]) for s in self.sizes}
        shown = ", ".join(f"{size} = {sizes[size]}" for size in known)
        for r in self.requirements:
            found = r.expression.evaluate(values)
            if (r.low is not None and found < r.low) or (r.high is not None and found > r.high):
                raise SizeProblem(f"{self.name} at {shown}: {r.because}; {r.expression} is {found}")

        def kernel(k: Kernel) -> Kernel:
            x, y, z = (n.evaluate(values) for n in k.global_size or map(nat, k.launch.global_size))
            return replace(k, launch=Launch((x, y, z), k.launch.local_size), global_size=None)

        def buffer(b: OpenBuffer) -> BufferInfo:
            shape = tuple(n.evaluate(values) for n in b.shape)
            end = None if b.offsets is None else b.offsets.evaluate(values)
            length, low, high = b.length.evaluate(values), number(b.low), number(b.high)
            return BufferInfo(b.name, b.role, b.element, length, b.value, b.components, shape, end, low, high)

        def number(bound: Bound | None) -> float | None:
            return bound.evaluate(values) if isinstance(bound, Nat) else bound

        return Plan(
            self.name,
            self.dialect,
            self.source,
            tuple(kernel(k) for k in self.kernels),
            tuple(buffer(b) for b in self.buffers),
            tuple(replace(s, low=number(s.low), high=number(s.high)) for s in self.scalars),
            self.options,
            self.origins,
            tuple(SizeValue(s.name, s.size, values[s.name]) for s in self.sizes),
        )

    def sizes_of(self, inputs: Mapping[str, Any]) -> dict[str, int]:
        """The sizes that the shapes of inputs tell, where a length is ``N``, or linear in it as ``N + 1``."""
        names = {s.name: s.size for s in self.sizes}
        found: dict[str, int] = {}
        for buffer in self.inputs:
            value = inputs.get(buffer.value)
            for component in buffer.components:
                value = value[component] if isinstance(value, tuple | list) and len(value) == 2 else None
            shape = () if value is None else getattr(value, "shape", None) or np.shape(value)
            for length, number in zip(buffer.shape, shape, strict=False):
                if (told := solved(length, nat(number))) is not None and told[1].constant is not None:
                    found.setdefault(names[told[0]], told[1].constant)
        return found


def number_or_text(value: Nat | int) -> int | str:
    """An expression as it stands in ``launch.json``."""
    known = value if isinstance(value, int) else value.constant
    return str(value) if known is None else known


def bound_or_text(value: Bound) -> float | str:
    """The bound of a range as it stands there."""
    return number_or_text(value) if isinstance(value, Nat | int) else value
