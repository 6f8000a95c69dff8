"""Plans: the kernels of a program, their buffers, and how to launch them.

A plan is plain data. ``launch.json`` (`lift_egraph.codegen.plans.launch_file`) holds it: together with the source text
it is all that a C program needs. Run the kernels in order; give each its arguments in order, a
buffer for a ``buffer`` argument, a value for a ``scalar`` argument, an ``int`` for a ``size`` argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Generic, TypeVar

from lift_egraph.caching import cached_property
from lift_egraph.codegen.c_ast import Body
from lift_egraph.errors import DeviceProblem, InputProblem
from lift_egraph.language.nat import Nat

B = TypeVar("B", bound=Any)

LARGEST_LAUNCH = 1 << 30  # work-items of a dimension: index plus stride stay within 32 bits
PRIVATE_LIMIT = 1024  # elements of one private array that a term asks for
NON_TEMPORAL = "__builtin_nontemporal_store"  # writes around the caches what begins at its own multiple
LINE = 64  # bytes of a line of the caches of all present CPUs: buffers begin at a multiple of it


@dataclass(frozen=True)
class Launch:
    """How many work-items run a kernel; ``local_size`` None leaves the group size to the device.

    Raises
    ------
    DeviceProblem
        If a size is below 1, or the groups do not divide the work-items.
    """

    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        shown = f"{self.global_size} work-items" + (f" in groups of {self.local_size}" if self.local_size else "")
        if min((*self.global_size, *(self.local_size or ()))) < 1:
            raise DeviceProblem(f"a launch needs sizes of 1 or more, not {shown}")
        if self.local_size and any(n % k for n, k in zip(self.global_size, self.local_size, strict=True)):
            raise DeviceProblem(f"the groups of a launch must divide its work-items, not {shown}")


@dataclass(frozen=True)
class Freedom:
    """How the launch of a kernel may differ from the one given, without a change of its result.

    In the dimensions of `groups` any number of work-groups will do (of work-items, where the local size is left to
    the device), in the others there must be one. In the dimensions of `local` the local size may be any, in the
    others it stays.
    """

    groups: tuple[int, ...]
    local: tuple[int, ...] = ()


@dataclass(frozen=True)
class BufferInfo:
    """Global memory of a plan.

    `role` is ``input``, ``output`` or ``temporary``; `value` names the program's input (or ``result``)
    and `components` the tuple components that lead to this leaf; `element` is a scalar type of the language
    (a ``bool`` is one byte, 0 or 1); `length` counts elements, `shape` says how they are arranged, row-major
    (the lanes of a vector last; empty for temporaries and single values). An input may have to be `offsets` that end
    with a number (`lift_egraph.language.ranges.Offsets`), or numbers in the range from `low` to `high`
    (`lift_egraph.language.ranges.Range`).

    Raises
    ------
    InputProblem
        If the shape has another number of elements.
    """

    name: str
    role: str
    element: str
    length: int
    value: str = ""
    components: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    offsets: int | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.length < 0 or (self.shape and (min(self.shape) < 0 or prod(self.shape) != self.length)):
            raise InputProblem(f"the buffer {self.name} has {self.length} elements, but the shape {self.shape}")


@dataclass(frozen=True)
class ScalarInfo:
    """An input of the program that is passed by value; a ``bool`` as an ``int``, 0 or 1, an ``f16`` as a ``float``.

    It may have a range, as those of `BufferInfo` do, whose bounds are expressions where sizes are open.
    """

    name: str
    element: str
    value: str = ""
    components: tuple[int, ...] = ()
    low: Nat | float | None = None
    high: Nat | float | None = None


@dataclass(frozen=True)
class SizeValue:
    """A size that the kernels take as an ``int``: `name` in their text, `size` in the program."""

    name: str
    size: str
    value: int


@dataclass(frozen=True)
class Argument:
    """One kernel argument: `kind` is ``buffer``, ``scalar`` or ``size``."""

    kind: str
    name: str


@dataclass(frozen=True)
class Kernel:
    """One kernel: its text, its arguments in order, its launch, its local memory in bytes a group.

    `freedom` says which other launches are right; None: no other. `body` is the tree that the text was printed
    from; it is not part of ``launch.json``. `global_size` replaces that of `launch` where sizes are open.
    """

    name: str
    source: str
    arguments: tuple[Argument, ...]
    launch: Launch
    local_bytes: int
    body: Body = field(default=(), compare=False, repr=False)
    freedom: Freedom | None = None
    global_size: tuple[Nat, Nat, Nat] | None = None

    def launched(self, launch: Launch) -> Kernel:
        """The kernel with another launch.

        Raises
        ------
        DeviceProblem
            If it is too large, or the result would not be right.
        """
        free, items = self.freedom or Freedom(()), launch.global_size
        what = f"{self.name} cannot be launched with {launch.global_size} work-items in groups of {launch.local_size}"
        if self.freedom is None and launch != self.launch:
            raise DeviceProblem(f"{what}: it was generated for {self.launch} only; compile it for any launch")
        if max(items) > LARGEST_LAUNCH:
            raise DeviceProblem(f"{what}: a dimension has at most 2^30 work-items")
        own, local = self.launch.local_size, launch.local_size or (1, 1, 1)
        if launch.local_size is None and own is not None and free.groups != free.local:
            raise DeviceProblem(f"{what}: it needs a local size")
        for d in range(3):
            wanted = own[d] if own else 1
            if d not in free.local and local[d] != wanted and (own is not None or d not in free.groups):
                raise DeviceProblem(f"{what}: the local size of dimension {d} must be {wanted}")
            if self.freedom is not None and d not in free.groups and items[d] != local[d]:
                raise DeviceProblem(f"{what}: there must be one group in dimension {d}")
        return replace(self, launch=launch)


@dataclass(frozen=True)
class Origins:
    """Where the lines of a source text come from: for each line the number of a LIFT subterm, if it has one.

    The texts of the subterms are made when somebody asks: that takes longer than the rest of a small kernel.
    """

    texts: Callable[[], tuple[str, ...]] = tuple
    lines: tuple[int | None, ...] = ()

    @cached_property
    def subterms(self) -> tuple[str, ...]:
        """The LIFT subterms, each shortened to one line."""
        return self.texts()

    def __getstate__(self) -> dict[str, object]:
        return {"texts": tuple, "lines": self.lines, "subterms": self.subterms}

    def of(self, line: int) -> str | None:
        """The subterm of a line, counted from 1: its pattern, shortened to one line, and its type."""
        known = self.lines[line - 1] if 0 < line <= len(self.lines) else None
        return None if known is None else self.subterms[known]


class Buffers(Generic[B]):
    """What has buffers, each with a role."""

    buffers: tuple[B, ...]

    @property
    def inputs(self) -> tuple[B, ...]:
        """The buffers to fill before the first kernel."""
        return tuple(b for b in self.buffers if b.role == "input")

    @property
    def outputs(self) -> tuple[B, ...]:
        """The buffers that hold the result's leaves after the last kernel."""
        return tuple(b for b in self.buffers if b.role == "output")


@dataclass(frozen=True)
class Plan(Buffers[BufferInfo]):
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
    sizes: tuple[SizeValue, ...] = ()

    def launched(self, launch: Launch) -> Plan:
        """The plan with another launch of its kernels, in the dimensions that each of them leaves free.

        Kernels that no other launch suits keep their own; dimensions in which a kernel needs one group keep it.

        Raises
        ------
        DeviceProblem
            If no kernel can be launched otherwise, or not so.
        """
        if all(k.freedom is None for k in self.kernels):
            raise DeviceProblem(f"{self.name} was generated for one launch only; compile it with any_launch=True")
        return replace(self, kernels=tuple(_launched(k, launch) for k in self.kernels))


def _launched(kernel: Kernel, launch: Launch) -> Kernel:
    free = kernel.freedom
    if free is None:
        return kernel
    own = kernel.launch.local_size or (1, 1, 1)
    local: list[int] = []
    for d in range(3):
        given = launch.local_size[d] if launch.local_size else own[d]
        local.append(given if d in free.local or d in free.groups else own[d])
    keeps_local = launch.local_size is None and (kernel.launch.local_size is None or free.groups == free.local)
    x, y, z = (launch.global_size[d] if d in free.groups else local[d] for d in range(3))
    return kernel.launched(Launch((x, y, z), None if keeps_local else (local[0], local[1], local[2])))
