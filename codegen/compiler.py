"""From a low-level program to a plan: lowering, passes, text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

from lift_egraph.codegen.c_ast import Block, Body, Buffer, For, Name
from lift_egraph.codegen.c_walk import buffers as buffers_in, mentioned, names, statements
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.lowering.host import Host, lower_program, open_sizes
from lift_egraph.codegen.lowering.little_work import LoweredKernel, steps_of
from lift_egraph.codegen.lowering.memory import PRIVATE_CHOICE
from lift_egraph.codegen.lowering.views import Memory
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.optimise import ALL, Optimisations
from lift_egraph.codegen.passes.groups import in_groups
from lift_egraph.codegen.passes.in_order import improved, spelled
from lift_egraph.codegen.passes.private_arrays import keeps_arrays, of_open_loops
from lift_egraph.codegen.passes.quotients import jumps
from lift_egraph.codegen.passes.repeats import share_texts
from lift_egraph.codegen.passes.unrolling import Stays, UnrollingProblem, adds_up_a_block
from lift_egraph.codegen.plans.index_range import INT_MAX, largest_values
from lift_egraph.codegen.plans.kernel import LARGEST_LAUNCH, Argument, Kernel, Launch, Origins, Plan, ScalarInfo
from lift_egraph.codegen.plans.open_plan import OpenBuffer, OpenPlan, OpenSize, Requirement
from lift_egraph.codegen.plans.requirements import requirements_of
from lift_egraph.codegen.text.header import header
from lift_egraph.codegen.text.one_dimension import can_be_flat, flat, flat_launch, neighbours_share_vectors
from lift_egraph.codegen.text.printer import Line, Printer
from lift_egraph.errors import DeviceProblem, SizeProblem
from lift_egraph.garbage import no_search_for_garbage
from lift_egraph.language import ir
from lift_egraph.language.check import type_of
from lift_egraph.language.describe import blame, describe
from lift_egraph.language.nat import Nat, NatLike, nat
from lift_egraph.language.ranges import Offsets, Range, Values
from lift_egraph.language.sizes import substitute_nats
from lift_egraph.language.types import DataType, Vector, leaves, scalar_of, width_of

_MUCH_WORK = 256  # steps of a work-item's loops from which it gets a group of its own on a CPU …
_FEW_ITEMS = 1 << 14  # … unless there are more work-items than this, which may share vectors


@no_search_for_garbage()
def compile_program(
    program: ir.Program,
    device: Device,
    *,
    launch: Launch | None = None,
    any_launch: bool = False,
    term_text: str | None = None,
    optimise: Optimisations = ALL,
    with_text: bool = True,
) -> Plan:
    """The OpenCL kernels of a low-level program at concrete sizes.

    Parameters
    ----------
    launch
        Launch sizes for the kernels with parallel maps, instead of the inferred ones.
    any_launch
        Make kernels that are right for every launch (`Plan.launched`): each parallel map is a loop. Where that
        needs a known local size, `launch` must give it; the number of groups stays free.
    term_text
        The program as text, for the comment above the kernels.
    optimise
        Which optimisations are on: all, but for ablations.
    with_text
        Print the kernels; without, a plan has their statements alone, in about half the time: enough for estimates
        and features, but nothing can be built from it, and what only the text shows is not refused.

    Raises
    ------
    NestingProblem
        If the term is not low-level, or breaks OpenCL's thread hierarchy or memory rules.
    SizeProblem
        If a size is open.
    DeviceProblem
        If a kernel exceeds a limit of the device.
    """
    sizes = open_sizes(program)
    if sizes:
        raise SizeProblem(
            f"{program.name} is open in the size {', '.join(sizes)}: give it a value "
            "(lift_egraph.language.check.specialise), or make it an argument of the kernels (compile_open)"
        )
    return _within_limits(program, device, launch, any_launch, term_text, optimise, with_text).at({})


def compile_open(
    program: ir.Program,
    device: Device,
    *,
    launch: Launch | None = None,
    any_launch: bool = False,
    term_text: str | None = None,
    optimise: Optimisations = ALL,
) -> OpenPlan:
    """The OpenCL kernels of a low-level program with its open sizes as arguments; else as `compile_program`.

    Sizes that have a value are constants in the kernels (`lift_egraph.language.check.specialise` with ``keep``). The
    number of work-groups is free where it depends on a size; the local size is fixed, but with `any_launch`.

    Raises
    ------
    SizeProblem
        If memory that the program places in private or local memory depends on an open size.
    """
    return _within_limits(program, device, launch, any_launch, term_text, optimise, True)


def _within_limits(
    program: ir.Program,
    device: Device,
    launch: Launch | None,
    any_launch: bool,
    term_text: str | None,
    optimise: Optimisations,
    with_text: bool,
) -> OpenPlan:
    """The plan, with small arrays in private memory unless that unrolls to too much."""
    options = (device, launch, any_launch, term_text, optimise, with_text)
    try:
        return _compiled(*_named_sizes(program), *options, PRIVATE_CHOICE)
    except UnrollingProblem:
        return _compiled(*_named_sizes(program), *options, 0)


def _compiled(
    program: ir.Program,
    sizes: tuple[OpenSize, ...],
    device: Device,
    launch: Launch | None,
    any_launch: bool,
    term_text: str | None,
    optimise: Optimisations,
    with_text: bool,
    most_private: int,
) -> OpenPlan:
    """The plan; larger arrays than `most_private` are kept in private memory only where the term asks for it."""
    host, result = lower_program(program, device, launch, optimise, any_launch=any_launch, most_private=most_private)
    if device.emission.reciprocals and any(jumps(part.body) for k in host.kernels for part in (k, *k.parts)):
        device = replace(device, emission=replace(device.emission, reciprocals=False))
    printer = Printer(device.emission, optimise, device.sub_group) if with_text else None
    base = c_name(program.name, set(host.taken))
    distinct = {id(lowered): lowered for lowered in host.kernels}  # the steps of an iterate launch some again
    finished: list[Kernel] = []
    texts: list[list[Line]] = []
    for number, lowered in enumerate(distinct.values()):
        name = base if len(distinct) == 1 else f"{base}_{number + 1}"
        kernel, made = _finish(name, lowered, host, result, device, printer, launch, sizes)
        finished.append(kernel)
        texts.append(made)
    if printer is not None:
        finished = share_texts(finished)
    shared: dict[str, list[Line]] = {}
    for kernel, made in zip(finished, texts, strict=True):
        shared.setdefault(kernel.name, made)
    by_lowered = dict(zip(distinct, finished, strict=True))
    every = [by_lowered[id(lowered)] for lowered in host.kernels]
    kernels = [kernel for kernel in every if kernel.body] or every  # what nobody reads is left out of them
    named_in = {kernel.name for kernel in kernels}
    lines = [line for name, made in shared.items() if name in named_in for line in (*made, Line(""))]
    plan = OpenPlan(
        program.name,
        device.name,
        "",
        tuple(kernels),
        _buffers(program, host, result),
        _scalars(program, host),
        sizes,
        _requirements(program, kernels, sizes),
        device.emission.options,
    )
    if printer is None:
        return plan
    before = f"{header(plan, term_text)}\n{printer.preamble()}"
    lines = [*(Line(text) for text in before.split("\n")[:-1]), *lines[:-1]]
    return replace(plan, source=_text(lines), origins=_origins(lines))


def _named_sizes(program: ir.Program) -> tuple[ir.Program, tuple[OpenSize, ...]]:
    """The program with its open sizes under names that C accepts."""
    taken = {"lane", "lcl_0", "lcl_1", "lcl_2"}
    sizes = tuple(OpenSize(c_name(name, taken), name) for name in open_sizes(program))
    values: dict[str, NatLike] = {s.size: nat(s.name) for s in sizes if s.name != s.size}
    if not values:
        return program, sizes
    inputs = tuple(substitute_nats(i, values) for i in program.inputs)
    ranges = tuple((name, r.substitute(values)) for name, r in program.ranges)
    return replace(program, inputs=inputs, body=substitute_nats(program.body, values), ranges=ranges), sizes


def _requirements(program: ir.Program, kernels: list[Kernel], sizes: tuple[OpenSize, ...]) -> tuple[Requirement, ...]:
    """What the sizes must fulfil: for the program's patterns, then for the index arithmetic."""
    if not sizes:
        return ()
    found = requirements_of(program.body)
    for kernel in kernels:
        for bound in largest_values(kernel.body, (nat(s.name) for s in sizes)):
            text = f"the index arithmetic of {kernel.name} leaves 32 bits: specialise the sizes"
            found.append(Requirement(bound, None, INT_MAX, text))
        for number in kernel.global_size or ():
            if number.constant is None:
                text = f"{kernel.name} has too many work-items in one dimension"
                found.append(Requirement(number, None, LARGEST_LAUNCH, text))
    return tuple({(r.expression, r.low, r.high): r for r in found}.values())


def _text(lines: list[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def _origins(lines: list[Line]) -> Origins:
    """The table of where lines come from."""
    terms = {id(line.origin): line.origin for line in lines if line.origin is not None}
    numbers = {identity: number for number, identity in enumerate(terms)}
    described = partial(_described, tuple(terms.values()))
    return Origins(described, tuple(None if x.origin is None else numbers[id(x.origin)] for x in lines))


def _described(terms: tuple[ir.Expr, ...]) -> tuple[str, ...]:
    return tuple(map(describe, terms))


def _finish(
    name: str,
    lowered: LoweredKernel,
    host: Host,
    result: Memory,
    device: Device,
    printer: Printer | None,
    wanted: Launch | None,
    sizes: tuple[OpenSize, ...],
) -> tuple[Kernel, list[Line]]:
    if lowered.parts:
        return _finish_parts(name, lowered, host, result, device, printer, sizes)
    dialect, alone = device.emission, wanted is None and lowered.threads.local_size is None
    is_alone = alone or lowered.threads.local_size == (1, 1, 1)
    body, arrays, stays, taken = improved(lowered, device, host.optimise, host.taken, is_alone)
    local_bytes = sum(b.bytes for b in arrays)
    if local_bytes > device.most_local:
        largest = max(arrays, key=lambda b: b.bytes)
        problem = DeviceProblem(
            f"{name} needs {local_bytes} bytes of local memory a group, {device.name} has {device.most_local}: "
            f"use smaller tiles; the largest is {largest.name} with {largest.bytes} bytes"
        )
        raise blame(problem, largest.origin)
    threads = lowered.threads
    local, items = threads.local_size, prod(threads.global_size, start=nat(1)).constant
    few = items is None or items <= _FEW_ITEMS
    keeps = alone and not dialect.indexed_private and keeps_arrays(body, stays)
    in_vectors = any(isinstance(s, For) and adds_up_a_block(s) for s in statements(body))
    if alone and (keeps or ((few or in_vectors) and steps_of(body) >= _MUCH_WORK)):
        local = (1, 1, 1)
    # where a number is open, one group stands for it until the sizes are known
    x, y, z = (n.constant or items for n, items in zip(threads.global_size, local or (1, 1, 1), strict=True))
    launch = Launch((x, y, z), local)
    if alone and local is None and threads.freedom is None:
        body, launch = in_groups(body, launch, device.max_work_group, apart=dialect.groups_apart)
        x, y, z = launch.global_size
    buffers, scalars, used_sizes, arguments = _parameters(body, host, result, sizes)
    freedom, lines = threads.freedom, list[Line]()
    if printer is not None:
        printed = spelled(body, dialect, host.optimise, taken)
        required = None if freedom and freedom.local else launch.local_size
        lines = printer.kernel(name, buffers, scalars, used_sizes, list(arrays), printed, required, stays=stays)
    is_fixed = wanted is None and freedom is None
    if dialect.in_one_dimension and is_fixed and can_be_flat(launch) and neighbours_share_vectors(body):
        lines = [line._replace(text=flat(line.text, launch)) for line in lines]
        launch = flat_launch(launch)
        x, y, z = launch.global_size
    size = threads.global_size if freedom else (nat(x), nat(y), nat(z))
    kernel = Kernel(name, _text(lines), arguments, launch, local_bytes, body, freedom, size)
    return kernel, lines


def _parameters(
    body: Body, host: Host, result: Memory, sizes: tuple[OpenSize, ...]
) -> tuple[list[Buffer], list[Name], list[str], tuple[Argument, ...]]:
    """The buffers, scalars and sizes that a kernel mentions, and these as its arguments."""
    used = buffers_in(body)
    named = set(names(body)) if host.scalars else set[str]()
    every = [b for _, _, b in host.inputs] + host.temporaries + [c.buffer for c in result.cells]
    buffers = [b for b in every if b.name in used]
    scalars = [s for _, _, s in host.scalars if s.name in named]
    used_sizes = [size.name for size in sizes if any(size.name in mentioned(s) for s in body)]
    arguments = (
        *(Argument("buffer", b.name) for b in buffers),
        *(Argument("scalar", s.name) for s in scalars),
        *(Argument("size", size) for size in used_sizes),
    )
    return buffers, scalars, used_sizes, arguments


def _finish_parts(
    name: str,
    lowered: LoweredKernel,
    host: Host,
    result: Memory,
    device: Device,
    printer: Printer | None,
    sizes: tuple[OpenSize, ...],
) -> tuple[Kernel, list[Line]]:
    """A kernel of one work-item that does what several would, each in a scope of its own."""
    alone = (bool(of_open_loops(part.body)) for part in lowered.parts)
    parts = [improved(p, device, host.optimise, host.taken, a) for p, a in zip(lowered.parts, alone, strict=True)]
    parts = [part for part in parts if part.body]
    body = tuple(Block(part.body) for part in parts)
    buffers, scalars, used_sizes, arguments = _parameters(body, host, result, sizes)
    lines, launch = list[Line](), Launch((1, 1, 1), (1, 1, 1))
    if printer is not None:
        printed = tuple(Block(spelled(p.body, device.emission, host.optimise, p.taken)) for p in parts)
        stays = partial(_stays_in, [part.stays for part in parts])
        lines = printer.kernel(name, buffers, scalars, used_sizes, [], printed, launch.local_size, stays=stays)
    return Kernel(name, _text(lines), arguments, launch, 0, body, None, (nat(1), nat(1), nat(1))), lines


def _stays_in(parts: Sequence[Stays], buffer: Buffer) -> bool:
    return any(stays(buffer) for stays in parts)


def _scalars(program: ir.Program, host: Host) -> tuple[ScalarInfo, ...]:
    ranges = _ranges(program)

    def info(scalar: Name, value: str, path: tuple[int, ...]) -> ScalarInfo:
        made = ScalarInfo(scalar.name, scalar_of(scalar.type).name, value, path)
        match ranges.get(value):
            case Range(low=low, high=high):
                return replace(made, low=low, high=high)
        return made

    return tuple(info(scalar, value, path) for value, path, scalar in host.scalars)


def _ranges(program: ir.Program) -> dict[str, Values]:
    """The ranges of inputs by name, but for those with sizes that no kernel takes."""
    known = set(open_sizes(program))
    return {name: v for name, v in program.ranges if v.sizes <= known}


def _buffers(program: ir.Program, host: Host, result: Memory) -> tuple[OpenBuffer, ...]:
    ranges = _ranges(program)

    def info(buffer: Buffer, role: str, value: str, path: tuple[int, ...], t: DataType) -> OpenBuffer:
        shape = {components: _shape(sizes, leaf) for components, sizes, leaf in leaves(t)}.get(path, ())
        element, within = scalar_of(buffer.element), ranges.get(value) if role == "input" else None
        made = OpenBuffer(buffer.name, role, element.name, buffer.elements, value, path, shape)
        match within:
            case Offsets(end=end):
                return replace(made, offsets=end)
            case Range(low=low, high=high):
                return replace(made, low=low, high=high)
        return made

    types = {i.name: i.type for i in program.inputs}
    inputs = [info(b, "input", value, path, types[value]) for value, path, b in host.inputs]
    outputs = [info(c.buffer, "output", "result", c.choices, type_of(program.body)) for c in result.cells]
    temporaries = [OpenBuffer(b.name, "temporary", scalar_of(b.element).name, b.elements) for b in host.temporaries]
    return (*inputs, *temporaries, *outputs)


def _shape(sizes: tuple[Nat, ...], leaf: DataType) -> tuple[Nat, ...]:
    lanes = (nat(width_of(leaf)),) if isinstance(leaf, Vector) else ()
    return (*sizes, *lanes)
