"""``launch.json``: its schema, and the plans that it describes. `launch_json.md` says what the fields mean.

`launch.schema.json` is the same schema for other programs, as JSON Schema.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lift_egraph.codegen.plans.kernel import (
    LARGEST_LAUNCH,
    Argument,
    BufferInfo,
    Freedom,
    Kernel,
    Launch,
    Plan,
    ScalarInfo,
)
from lift_egraph.codegen.plans.open_plan import (
    OpenBuffer,
    OpenPlan,
    OpenSize,
    Requirement,
    bound_or_text,
    number_or_text,
)
from lift_egraph.language.nat import Nat, nat
from lift_egraph.language.scalar import NUMPY_TYPES
from lift_egraph.language.syntax import parse_size

FORMAT = 4

CName = Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
Element = Annotated[str, Meta(pattern=f"^({'|'.join(NUMPY_TYPES)})$")]
Role = Annotated[str, Meta(pattern="^(input|output|temporary)$")]
Kind = Annotated[str, Meta(pattern="^(buffer|scalar|size)$")]
Text = Annotated[str, Meta(max_length=10_000)]
Number = Annotated[int, Meta(ge=0)] | Text
Bound = int | float | Text
CInt = Annotated[int, Meta(ge=0, lt=2**31)]
Path = list[Annotated[int, Meta(ge=0, le=1)]]
Dimensions = Annotated[list[Annotated[int, Meta(ge=0, le=2)]], Meta(max_length=3)]
WorkItems = Annotated[int, Meta(ge=1, le=LARGEST_LAUNCH)]
Groups = Annotated[int, Meta(ge=1)]


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file: every field must be there, and no other."""


class SizePart(Part, frozen=True):
    name: CName
    size: str
    value: CInt | UnsetType = UNSET
    low: CInt | UnsetType = UNSET
    high: CInt | UnsetType = UNSET


class RequirementPart(Part, frozen=True):
    expression: int | Text
    low: int | None
    high: int | None
    because: str


class BufferPart(Part, frozen=True):
    name: CName
    role: Role
    element: Element
    length: Number
    value: str
    components: Path
    shape: list[Number]
    offsets: Number | UnsetType = UNSET
    low: Bound | UnsetType = UNSET
    high: Bound | UnsetType = UNSET


class ScalarPart(Part, frozen=True):
    name: CName
    element: Element
    value: str
    components: Path
    low: Bound | UnsetType = UNSET
    high: Bound | UnsetType = UNSET


class ArgumentPart(Part, frozen=True):
    kind: Kind
    name: CName


class FreedomPart(Part, frozen=True):
    groups: Dimensions
    local: Dimensions


class KernelPart(Part, frozen=True):
    name: CName
    arguments: list[ArgumentPart]
    global_size: tuple[WorkItems | Text, WorkItems | Text, WorkItems | Text]
    local_size: tuple[Groups, Groups, Groups] | None
    local_bytes: Annotated[int, Meta(ge=0)]
    free: FreedomPart | None


class LaunchFile(Part, frozen=True):
    """How to run the kernels of ``kernel.cl``."""

    format: Literal[4]
    program: str
    dialect: str
    kernel_sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    build_options: list[str]
    sizes: list[SizePart]
    requires: list[RequirementPart]
    buffers: list[BufferPart]
    scalars: list[ScalarPart]
    kernels: Annotated[list[KernelPart], Meta(min_length=1)]


def sha256(source: str) -> str:
    """What ``launch.json`` knows a kernel's text by."""
    return hashlib.sha256(source.encode()).hexdigest()


# --- from plans -------------------------------------------------------------------------------------------


def launch_of(plan: Plan | OpenPlan) -> LaunchFile:
    """The content of ``launch.json``: numbers where they are known, expressions as text elsewhere."""
    requirements = plan.requirements if isinstance(plan, OpenPlan) else ()
    return LaunchFile(
        FORMAT,
        plan.name,
        plan.dialect,
        sha256(plan.source),
        list(plan.options),
        [SizePart(**vars(s)) for s in plan.sizes],
        [RequirementPart(number_or_text(r.expression), r.low, r.high, r.because) for r in requirements],
        [
            BufferPart(
                b.name,
                b.role,
                b.element,
                number_or_text(b.length),
                b.value,
                list(b.components),
                list(map(number_or_text, b.shape)),
                UNSET if b.offsets is None else number_or_text(b.offsets),
                *_bounds(b),
            )
            for b in plan.buffers
        ],
        [ScalarPart(s.name, s.element, s.value, list(s.components), *_bounds(s)) for s in plan.scalars],
        [_kernel_part(k) for k in plan.kernels],
    )


def _kernel_part(k: Kernel) -> KernelPart:
    x, y, z = map(number_or_text, k.global_size or k.launch.global_size)
    return KernelPart(
        k.name,
        [ArgumentPart(a.kind, a.name) for a in k.arguments],
        (x, y, z),
        k.launch.local_size,
        k.local_bytes,
        None if k.freedom is None else FreedomPart(list(k.freedom.groups), list(k.freedom.local)),
    )


# --- to plans ---------------------------------------------------------------------------------------------


def plan_of(content: LaunchFile, source: str) -> Plan | OpenPlan:
    """The plan of a ``launch.json`` and the source text beside it (without the trees).

    Raises
    ------
    ValueError
        If the content contradicts itself.
    LiftError
        If an expression is none, or a launch is impossible.
    """
    _check(content)
    scalars = tuple(
        ScalarInfo(s.name, s.element, s.value, tuple(s.components), _bound(s.low), _bound(s.high))
        for s in content.scalars
    )
    kernels = tuple(_kernel(k) for k in content.kernels)
    buffers = tuple(
        OpenBuffer(
            b.name,
            b.role,
            b.element,
            _expression(b.length),
            b.value,
            tuple(b.components),
            tuple(map(_expression, b.shape)),
            None if b.offsets is UNSET else _expression(b.offsets),
            _bound(b.low),
            _bound(b.high),
        )
        for b in content.buffers
    )
    sizes = tuple(OpenSize(s.name, s.size, _known(s.low, s.value), _known(s.high, s.value)) for s in content.sizes)
    requirements = tuple(Requirement(_expression(r.expression), r.low, r.high, r.because) for r in content.requires)
    options = tuple(content.build_options)
    plan = OpenPlan(content.program, content.dialect, source, kernels, buffers, scalars, sizes, requirements, options)
    values = {s.size: s.value for s in content.sizes if s.value is not UNSET}
    return plan.at(values) if len(values) == len(sizes) else plan


def _kernel(k: KernelPart) -> Kernel:
    x, y, z = map(_expression, k.global_size)
    return Kernel(
        k.name,
        "",
        tuple(Argument(a.kind, a.name) for a in k.arguments),
        Launch(k.local_size or (1, 1, 1), k.local_size),
        k.local_bytes,
        freedom=None if k.free is None else Freedom(tuple(k.free.groups), tuple(k.free.local)),
        global_size=(x, y, z),
    )


def _known(bound: int | UnsetType, value: int | UnsetType) -> int:
    known = value if bound is UNSET else bound
    assert not isinstance(known, UnsetType)
    return known


def _expression(content: int | str) -> Nat:
    return nat(content) if isinstance(content, int) else parse_size(content)


def _bounds(place: BufferInfo | OpenBuffer | ScalarInfo) -> tuple[Bound | UnsetType, Bound | UnsetType]:
    low, high = (UNSET if n is None else bound_or_text(n) for n in (place.low, place.high))
    return low, high


def _bound(content: Bound | UnsetType) -> Nat | float | None:
    if isinstance(content, UnsetType):
        return None
    return content if isinstance(content, float) else _expression(content)


def _check(content: LaunchFile) -> None:
    """Raise `ValueError` for a file that contradicts itself."""
    for s in content.sizes:
        if (s.value is UNSET) == (s.low is UNSET) or (s.low is UNSET) != (s.high is UNSET):
            raise ValueError(f"the size {s.name} has either a value, or low and high")
    names = [*(b.name for b in content.buffers), *(s.name for s in (*content.scalars, *content.sizes))]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"there are {names.count(name)} buffers, scalars and sizes of the name {name}")
    known = {"buffer": {b.name for b in content.buffers}, "scalar": {s.name for s in content.scalars}}
    known["size"] = {s.name for s in content.sizes}
    for kernel in content.kernels:
        for argument in kernel.arguments:
            if argument.name not in known[argument.kind]:
                raise ValueError(f"the kernel {kernel.name} takes the {argument.kind} {argument.name}, which it lacks")
    outputs = [b for b in content.buffers if b.role == "output"]
    if not outputs:
        raise ValueError("it has no output")
    inputs = [*(b for b in content.buffers if b.role == "input"), *content.scalars]
    for role, places in (("input", inputs), ("output", outputs)):
        for value in {p.value for p in places}:
            if not _is_whole(sorted(p.components for p in places if p.value == value)):
                raise ValueError(f"the components of the {role} {value!r} are not those of a tuple")
    if len({p.value for p in outputs}) > 1:
        raise ValueError("it has several results")


def _is_whole(paths: list[list[Any]]) -> bool:
    """Whether sorted paths are those to all leaves of a tuple of tuples."""
    if len(paths) == 1:
        return not paths[0]
    sides = [[path[1:] for path in paths if path[:1] == [side]] for side in (0, 1)]
    return len(paths) == len(sides[0]) + len(sides[1]) and all(side and _is_whole(side) for side in sides)
