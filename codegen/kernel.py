"""Plans: the kernels of a program, their buffers, and how to launch them.

A plan is plain data. `Plan.to_json` is the content of ``launch.json``: together with the source text
it is all that a C program needs. Run the kernels in order; give each its arguments in order, a
buffer for a ``buffer`` argument and a value for a ``scalar`` argument.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from codegen.c_ast import Body

FORMAT = 1


@dataclass(frozen=True)
class Launch:
    """How many work-items run a kernel; ``local_size`` None leaves the group size to the device."""

    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class BufferInfo:
    """Global memory of a plan.

    `role` is ``input``, ``output`` or ``temporary``; `value` names the program's input (or ``result``)
    and `components` the tuple components that lead to this leaf; `element` is ``f32``, ``f64``, ``i32``
    or ``bool`` (one byte, 0 or 1); `length` counts elements, `shape` says how they are arranged, row-major
    (the lanes of a vector last; empty for temporaries and single values).
    """

    name: str
    role: str
    element: str
    length: int
    value: str = ""
    components: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScalarInfo:
    """An input of the program that is passed by value; a ``bool`` as an ``int``, 0 or 1."""

    name: str
    element: str
    value: str = ""
    components: tuple[int, ...] = ()


@dataclass(frozen=True)
class Argument:
    """One kernel argument: `kind` is ``buffer`` or ``scalar``."""

    kind: str
    name: str


@dataclass(frozen=True)
class Kernel:
    """One kernel: its text, its arguments in order, its launch, its local memory in bytes a group.

    `body` is the tree that the text was printed from; it is not part of ``launch.json``.
    """

    name: str
    source: str
    arguments: tuple[Argument, ...]
    launch: Launch
    local_bytes: int
    body: Body = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Origins:
    """Where the lines of a source text come from: for each line the number of a LIFT subterm, if it has one."""

    subterms: tuple[str, ...] = ()
    lines: tuple[int | None, ...] = ()

    def of(self, line: int) -> str | None:
        """The subterm of a line, counted from 1: its pattern, shortened to one line, and its type."""
        known = self.lines[line - 1] if 0 < line <= len(self.lines) else None
        return None if known is None else self.subterms[known]


@dataclass(frozen=True)
class Plan:
    """The kernels of a program in the order to run them; `source` is the OpenCL C text of all.

    `origins` says which part of the LIFT term each line of it computes; it is not part of ``launch.json``.
    """

    name: str
    dialect: str
    source: str
    kernels: tuple[Kernel, ...]
    buffers: tuple[BufferInfo, ...]
    scalars: tuple[ScalarInfo, ...]
    options: tuple[str, ...] = ()
    origins: Origins = field(default=Origins(), compare=False, repr=False)

    @property
    def inputs(self) -> tuple[BufferInfo, ...]:
        """The buffers to fill before the first kernel."""
        return tuple(b for b in self.buffers if b.role == "input")

    @property
    def outputs(self) -> tuple[BufferInfo, ...]:
        """The buffers that hold the result's leaves after the last kernel."""
        return tuple(b for b in self.buffers if b.role == "output")

    def to_json(self) -> dict[str, Any]:
        """The content of ``launch.json``: plain dictionaries, lists, strings and numbers."""
        kernels = [
            {
                "name": k.name,
                "arguments": [asdict(a) for a in k.arguments],
                "global_size": list(k.launch.global_size),
                "local_size": list(k.launch.local_size) if k.launch.local_size else None,
                "local_bytes": k.local_bytes,
            }
            for k in self.kernels
        ]
        return {
            "format": FORMAT,
            "program": self.name,
            "dialect": self.dialect,
            "build_options": list(self.options),
            "buffers": [{**asdict(b), "components": list(b.components), "shape": list(b.shape)} for b in self.buffers],
            "scalars": [{**asdict(s), "components": list(s.components)} for s in self.scalars],
            "kernels": kernels,
        }

    @staticmethod
    def from_json(content: dict[str, Any], source: str) -> Plan:
        """The plan of a ``launch.json`` and the source text beside it (without the trees)."""
        kernels = tuple(
            Kernel(
                k["name"],
                "",
                tuple(Argument(**a) for a in k["arguments"]),
                Launch(_triple(k["global_size"]), _triple(k["local_size"]) if k["local_size"] else None),
                k["local_bytes"],
            )
            for k in content["kernels"]
        )
        return Plan(
            content["program"],
            content["dialect"],
            source,
            kernels,
            tuple(
                BufferInfo(**{**b, "components": tuple(b["components"]), "shape": tuple(b["shape"])})
                for b in content["buffers"]
            ),
            tuple(ScalarInfo(**{**s, "components": tuple(s["components"])}) for s in content["scalars"]),
            tuple(content["build_options"]),
        )


def _triple(values: list[int]) -> tuple[int, int, int]:
    first, second, third = values
    return first, second, third
